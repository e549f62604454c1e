"""Killed at any instant, whatever writes leaves a whole store, loses nothing acknowledged, and goes on the next time.

More than 40 kills in all; `STATE_LEDGER_STRESS=1` makes them about 600.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state_ledger import migrate
from state_ledger.backup import back_up, contents, places
from state_ledger.companion.building import refresh
from state_ledger.companion.reading import open_for_search
from state_ledger.companion.status import status
from state_ledger.full_text import WORDS
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests import companions
from tests.conftest import STRESS, copy_of_shared, names_in
from tests.killing import Job, Killer, World, assert_clean
from tests.migrated import MESSAGE_COLUMNS, assert_sound, live_columns, rows, totals

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel kills by a timer of Linux")

KILLS, FEW = (40, 30) if STRESS else (3, 2)
"""Of each verb, and of those that share a test with others."""

LONG_AGO = 1700000000.0


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    started = Killer()
    yield started
    started.close()


def fill(path: Path, prefix: str, sessions: int, messages: int = 6) -> None:
    """Ended sessions without activity for long, of so many messages."""
    source = random.Random(prefix)
    with SessionDB(path) as db:
        db._writer.connection.execute("PRAGMA synchronous = OFF")
        for number in range(sessions):
            name = f"{prefix}{number}"
            db.create_session(name, "cli", model="a-model")
            said = [
                {"role": "user", "content": f"{name} {turn} {companions.text(source)} " + "harbour " * 30,
                 "timestamp": LONG_AGO + turn}
                for turn in range(messages)
            ]  # fmt: skip
            db.append_messages(name, said)
            db.update_token_counts(name, 700, 80, model="a-model", estimated_cost_usd=0.25, api_call_count=1)
            db.end_session(name, "done")
        db._writer.connection.execute("UPDATE sessions SET started_at = ?, ended_at = ?", (LONG_AGO, LONG_AGO + 60))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of 40 old sessions and a living one."""
    folder = tmp_path_factory.mktemp("filled")
    fill(folder / "state.db", "old", 40)
    with SessionDB(folder / "state.db") as db:
        db.create_session("alive", "cli")
        db.append_message("alive", "user", "the harbour of today")
    return folder


def template(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "world"))


def texts(path: Path) -> dict[str, list[str]]:
    """The contents of every session's messages; a message of none is an error."""
    with closing(sqlite3.connect(path)) as connection:
        found: dict[str, list[str]] = {row[0]: [] for row in connection.execute("SELECT id FROM sessions")}
        for session, content in connection.execute("SELECT session_id, content FROM messages ORDER BY id"):
            found[session].append(content)
    return found


def asked(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


YES = ("--yes", "--no-backup")


def test_appending(killer: Killer, tmp_path: Path) -> None:
    """Three at once on one store; what each was told is stored is there, and at most one message more."""
    path, chance = tmp_path / "state.db", random.Random("append")
    SessionDB(path).close()
    acknowledged: dict[str, list[int]] = {}
    for turn in range(KILLS - 1):
        names = [f"{turn}-{number}" for number in range(3)]
        jobs = [Job(("append", path, name, 1_000_000), tmp_path, chance.uniform(0.01, 0.15)) for name in names]
        for name, ended in zip(names, killer.run(*jobs), strict=True):
            assert ended.killed and not ended.errors, ended
            acknowledged[name] = [int(line) for line in ended.said]
    stored = texts(path)
    assert sum(map(bool, acknowledged.values())) * 3 > len(acknowledged)
    for name, numbers in acknowledged.items():
        assert numbers == list(range(len(numbers)))
        found = stored.get(name, [])
        assert len(found) - len(numbers) in (0, 1)
        assert found == [f"{name} {number}" for number in range(len(found))]
    assert_clean(path)


@pytest.mark.parametrize("name", ["small-1.db", "schema-16.db", "schema-22.db"])
def test_bringing_up_to_date(killer: Killer, tmp_path: Path, name: str) -> None:
    """On opening, and the indexes in steps: as before, as after, or on the way with all rows there."""
    folder = tmp_path / "world"
    folder.mkdir()
    origin = copy_of_shared(name, folder)
    had = live_columns(origin, "messages")
    before, money = rows(origin, "messages", MESSAGE_COLUMNS), totals(origin)
    world = World(killer, folder, lambda place: ("open", place / name))
    for place, _ended in world.killed(max(1, FEW // 2), name):
        path = place / name
        assert rows(path, "messages", MESSAGE_COLUMNS, had) == before and totals(path) == money
        assert world.again(place).code == 0
        with closing(sqlite3.connect(path)) as connection:
            assert migrate.plan(connection) == []
        assert rows(path, "messages", MESSAGE_COLUMNS, had) == before and totals(path) == money
        assert_sound(path)


def test_migrating(killer: Killer, tmp_path: Path) -> None:
    folder = tmp_path / "world"
    folder.mkdir()
    origin = copy_of_shared("schema-16.db", folder)
    had, before = live_columns(origin, "messages"), rows(origin, "messages", MESSAGE_COLUMNS)
    world = World(killer, folder, lambda place: ("migrate", place / origin.name, *YES))
    for place, _ended in world.killed(KILLS, "migrate"):
        assert rows(place / origin.name, "messages", MESSAGE_COLUMNS, had) == before
        assert world.again(place).code == 0
        assert rows(place / origin.name, "messages", MESSAGE_COLUMNS, had) == before
        assert_sound(place / origin.name)


def test_pruning(killer: Killer, filled: Path, tmp_path: Path) -> None:
    """Every session is whole or gone, and what is left goes the next time."""
    folder = template(filled, tmp_path)
    before = texts(folder / "state.db")
    world = World(killer, folder, lambda place: ("prune", place / "state.db", "--older-than", 90, *YES))
    for place, _ended in world.killed(KILLS, "prune"):
        left = texts(place / "state.db")
        assert left == {name: before[name] for name in left} and "alive" in left
        assert_clean(place / "state.db")
        assert world.again(place).code == 0
        assert list(texts(place / "state.db")) == ["alive"]


def test_pruning_with_an_export(killer: Killer, filled: Path, tmp_path: Path) -> None:
    """What was deleted is in an export that is whole; of an export that was not, nothing is left in the end."""
    folder = template(filled, tmp_path)
    before = texts(folder / "state.db")
    kept = folder.with_name("kept")
    arguments = ("--older-than", 90, "--export", kept, *YES)
    world = World(killer, folder, lambda place: ("prune", place / "state.db", *arguments))
    for place, _ended in world.killed(max(1, FEW // 2), "export"):
        exports = [exported(file) for file in kept.glob("*.jsonl")]
        gone = set(before) - set(texts(place / "state.db"))
        assert all(any(name in file for file in exports) for name in gone)
        assert world.again(place).code == 0 and not list(kept.glob(".*.part"))
        shutil.rmtree(kept)


def exported(file: Path) -> set[str]:
    """The sessions of a file that is whole."""
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert lines[-1]["type"] == "trailer" and lines[-1]["complete"]
    return {line["id"] for line in lines if line["type"] == "session"}


@pytest.mark.parametrize("verb", ["sweep", "archive"])
def test_marking(killer: Killer, filled: Path, tmp_path: Path, verb: str) -> None:
    """A session is marked or not, and is what it was else."""
    folder = template(filled, tmp_path)
    if verb == "sweep":
        with closing(sqlite3.connect(folder / "state.db")) as connection, connection:
            connection.execute("UPDATE sessions SET ended_at = NULL, end_reason = NULL")
    before = texts(folder / "state.db")
    chosen = {"sweep": ("--idle-days", 30), "archive": ("--older-than", 90)}[verb]
    marked = {"sweep": "end_reason = 'swept' AND ended_at IS NOT NULL", "archive": "archived = 1"}[verb]
    world = World(killer, folder, lambda place: (verb, place / "state.db", *chosen, *YES))
    for place, _ended in world.killed(FEW, verb):
        assert texts(place / "state.db") == before
        assert_clean(place / "state.db")
        assert world.again(place).code == 0
        assert asked(place / "state.db", f"SELECT count(*) FROM sessions WHERE {marked}") == [(40,)]


def test_making_the_companion(
    killer: Killer, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is whole, answers for what it covers or not at all, and is in the end what one made in peace is."""
    folder = template(filled, tmp_path)
    world = World(killer, folder, lambda place: ("index", place / "state.db"))
    for place, _ended in world.killed(KILLS, "index"):
        path = place / "state.db"
        monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        reached = status(path).covered_up_to or 0
        companion = open_for_search(path)
        if companion is not None:
            with companion:
                assert all(number <= reached for number in companion.ids("데이터"))
        assert world.again(place).code == 0
        made = companions.contents(path)
        refresh(path, rebuild=True)
        assert companions.contents(path) == made
        assert_clean(path)


def test_importing(killer: Killer, filled: Path, tmp_path: Path) -> None:
    """A session of the file is there whole or not at all; the next import brings the rest."""
    folder = template(filled, tmp_path)
    fill(tmp_path / "other.db", "new", 25)
    (made,) = killer.run(Job(("export", tmp_path / "other.db", "--all", "--output", folder / "new.jsonl"), tmp_path))
    assert made.code == 0, made.errors
    before, brought = texts(folder / "state.db"), texts(tmp_path / "other.db")
    world = World(killer, folder, lambda place: ("import", place / "new.jsonl", place / "state.db", *YES))
    for place, _ended in world.killed(KILLS, "import"):
        there = texts(place / "state.db")
        assert {name: there[name] for name in before} == before
        assert {name: found for name, found in there.items() if name not in before}.items() <= brought.items()
        assert_clean(place / "state.db")
        assert world.again(place).code == 0
        assert texts(place / "state.db") == {**before, **brought}


def test_backing_up(killer: Killer, filled: Path, tmp_path: Path) -> None:
    """The older backup stays until the new one is whole; what was half made goes with the next."""
    folder = template(filled, tmp_path)
    path, kept = folder / "state.db", folder / "kept"
    first = back_up(path, kept)
    first.path.rename(kept / first.path.name.replace(places.stem_of(path), "first"))
    world = World(killer, folder, lambda place: ("backup", place / "state.db", "--to", place / "kept", "--keep", 1))
    for place, _ended in world.killed(KILLS, "backup"):
        store = place / "state.db"
        for name in names_in(place / "kept"):
            assert name.endswith(".part") or contents.read_file(place / "kept" / name) == first.contents
        before = texts(store)
        assert world.again(place).code == 0
        (made,) = places.existing(store, place / "kept")
        assert names_in(place / "kept") == sorted([made.name, first.path.name.replace(places.stem_of(path), "first")])
        assert texts(made) == before
        assert_clean(store)


@pytest.mark.parametrize("verb", ["restore", "repair", "export"])
def test_making_a_new_file(killer: Killer, filled: Path, tmp_path: Path, verb: str) -> None:
    """It has its name when it is whole and not before; what was half made goes with the next run."""
    folder = template(filled, tmp_path)
    before = texts(folder / "state.db")
    name = "new.jsonl" if verb == "export" else "new.db"
    given: dict[str, Callable[[Path], tuple[Any, ...]]] = {
        "restore": lambda place: ("restore", place / "state.db", place / name),
        "repair": lambda place: ("repair", place / "state.db", place / name),
        "export": lambda place: ("export", place / "state.db", "--all", "--output", place / name, "--force"),
    }
    world = World(killer, folder, given[verb])

    def assert_whole(file: Path) -> None:
        if verb == "export":
            assert exported(file) == set(before)
        else:
            assert texts(file) == before
            assert_clean(file)

    for place, _ended in world.killed(FEW, verb):
        if (place / name).exists():
            assert_whole(place / name)
            (place / name).unlink()
        assert world.again(place).code == 0
        assert_whole(place / name)
        assert texts(place / "state.db") == before
        assert [left for left in names_in(place) if not left.startswith(("state.db", "cache"))] == [name]


@pytest.mark.parametrize("verb", [("vacuum",), ("optimize", "--rebuild-index", WORDS.name)], ids=lambda verb: verb[0])
def test_upkeep(killer: Killer, filled: Path, tmp_path: Path, verb: tuple[str, ...]) -> None:
    folder = template(filled, tmp_path)
    with closing(sqlite3.connect(folder / "state.db")) as connection, connection:
        connection.execute("DELETE FROM messages WHERE session_id = 'old3'")
        connection.execute("UPDATE sessions SET message_count = 0 WHERE id = 'old3'")
    before = texts(folder / "state.db")
    world = World(killer, folder, lambda place: (verb[0], place / "state.db", *verb[1:], *YES))
    for place, _ended in world.killed(FEW, verb[0]):
        assert texts(place / "state.db") == before
        assert found(place / "state.db") == 39 * 6 + 1
        assert_clean(place / "state.db")
        assert world.again(place).code == 0
        assert texts(place / "state.db") == before and found(place / "state.db") == 39 * 6 + 1


def found(path: Path) -> int:
    return int(asked(path, f"SELECT count(*) FROM {WORDS.name} WHERE {WORDS.name} MATCH 'harbour'")[0][0])


def test_the_app(killer: Killer, filled: Path, tmp_path: Path) -> None:
    """Its snapshots and templates: the next start answers all the same, and clears away what the killed one left."""
    folder = template(filled, tmp_path)
    before = (folder / "state.db").read_bytes()
    world = World(killer, folder, lambda place: ("show", place / "state.db"))
    for place, _ended in world.killed(max(1, FEW // 2), "show"):
        assert (place / "state.db").read_bytes() == before
        assert world.again(place).code == 0
        assert names_in(place / "cache" / "state-ledger" / "snapshots") == []
