"""What happens to a lake: kills, several pushers, full disks, damage, other versions. It stays readable, and `verify`
names what is missing.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from state_ledger.errors import StoreAccessError
from state_ledger.lake import compaction, manifest
from state_ledger.lake.errors import LakeDamaged, LakeError, LakeTooNew
from state_ledger.lake.manifest import DataFile, Options, StoreState
from state_ledger.lake.names import ManifestName, data_path
from state_ledger.lake.reading import Lake
from state_ledger.lake.verification import verify
from tests.conftest import ROOT, STRESS
from tests.killing import Job, Killer, World
from tests.lakes import (
    JULY,
    assert_whole,
    change,
    contents,
    folders_of_our_own,  # noqa: F401
    make_store,
    push,
    rows_of,
    state_of,
    verified,
)

pytest.importorskip("pyarrow", reason="a lake needs the extra `lake`")

KILLS = 40 if STRESS else 2
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel kills by a timer of Linux")


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    started = Killer()
    yield started
    started.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that is known wherever it is."""
    found = make_store(tmp_path / "world" / "state.db")
    change(found, "CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)",
           "INSERT INTO state_meta VALUES ('store_instance_id', 'one')")  # fmt: skip
    return found


@pytest.fixture
def lake(path: Path) -> Path:
    return path.parent / "lake"


# Kills


def push_words(folder: Path, *options: str) -> tuple[Any, ...]:
    return ("lake", "push", folder / "state.db", "--to", folder / "lake", "--host", "h", *options)


@linux
@pytest.mark.parametrize("phase", ["first", "changes", "full", "deleted"])
def test_a_push_that_is_killed_leaves_what_was_there(killer: Killer, path: Path, lake: Path, phase: str) -> None:
    """Then or after the next push a lake is whole; the next push brings it to what one push makes of the store."""
    before = None
    if phase != "first":
        push(path, lake, options=Options(deleted="keep"))
        before = state_of(lake)
        change(path, f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s0', 'user', 'x', {JULY})",
               "UPDATE session_model_usage SET estimated_cost_usd = 0.75 WHERE session_id = 's5'")  # fmt: skip
    if phase == "deleted":
        change(path, "DELETE FROM sessions WHERE id = 's1'", "DELETE FROM messages WHERE session_id = 's1'")
    given = ("--deleted", "keep", *(["--full"] if phase == "full" else []))
    world = World(killer, path.parent, lambda folder: push_words(folder, *given))
    for folder, _ended in world.killed(KILLS, phase):
        found = folder / "lake"
        left = Lake.open(found).stores() if (found / "lake.json").exists() else []
        if before is None:
            assert left == [] or left[0].totals.sessions == 6
        else:
            assert left[0].sequence in (before.sequence, before.sequence + 1)
            assert left[0] == before or left[0].totals.cost_usd != before.totals.cost_usd
        if left:
            assert not verify(Lake.open(found)).findings
        assert world.again(folder).code == 0
        assert_whole(found, folder / "state.db")
        assert state_of(found).totals.sessions == 6 and state_of(found).kept.sessions == (phase == "deleted")
        # What the killed one left goes, and nothing else.
        opened = Lake.open(found)
        compaction.carry_out(opened, compaction.plan(opened, grace_s=-60, keep=1))
        assert not list(found.rglob("*.part"))
        assert_whole(found, folder / "state.db")


@linux
def test_a_compaction_that_is_killed_loses_nothing(killer: Killer, path: Path, lake: Path) -> None:
    change(path, "UPDATE sessions SET started_at = started_at - 86400 * 365 * 3")
    for number in range(4):
        change(path, f"UPDATE sessions SET title = 'title {number}'")
        push(path, lake)
    world = World(
        killer, path.parent, lambda folder: ("lake", "compact", folder / "lake", "--grace", 0, "--keep", 1, "--yes")
    )
    for folder, _ended in world.killed(KILLS, "compact"):
        assert_whole(folder / "lake", folder / "state.db")
        assert world.again(folder).code == 0
        assert_whole(folder / "lake", folder / "state.db")
        assert len(list((folder / "lake" / "stores" / "h" / "default").iterdir())) <= 2


# Several at once


@linux
def test_pushers_of_one_store_and_of_several_at_the_same_time(killer: Killer, path: Path, lake: Path) -> None:
    folder = path.parent
    others = [make_store(folder / "profiles" / f"p{number}" / "state.db") for number in range(2)]
    for turn in range(20 if STRESS else 3):
        change(path, f"UPDATE session_model_usage SET estimated_cost_usd = {turn + 1} WHERE session_id = 's{turn % 6}'")
        jobs = [Job(push_words(folder), folder / f"home{number}") for number in range(2)]
        for other in others:
            jobs.append(Job(("lake", "push", other, "--to", lake, "--host", f"host {turn % 2}"), folder / "home"))
        assert [ended.code for ended in killer.run(*jobs)] == [0] * 4
        assert_whole(lake, path)
    assert {state.name for state in Lake.open(lake).stores()} == {
        "h/default", "host 0/p0", "host 0/p1", "host 1/p0", "host 1/p1"
    }  # fmt: skip


def test_of_two_that_pushed_at_once_the_later_reading_counts(path: Path, lake: Path) -> None:
    push(path, lake)
    first = state_of(lake)
    slow = StoreState(**{**vars(first), "sequence": 2, "read_at": first.read_at + 1, "pushed_at": 9e9})
    quick = StoreState(**{**vars(first), "sequence": 2, "read_at": first.read_at + 2})
    for state in (quick, slow):
        name, content = manifest.write(state)
        Lake.open(lake).place.write(name.path, content)
    assert state_of(lake).read_at == quick.read_at


def test_a_store_that_is_written_to_meanwhile(path: Path, lake: Path) -> None:
    """Every state that is pushed adds up, and the last one is that of the store."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(400 if STRESS else 60)], cwd=ROOT, stdout=subprocess.PIPE
    )
    pushes = 0
    while writer.poll() is None:
        with suppress(StoreAccessError):
            push(path, lake)
            pushes += 1
            assert not verify(Lake.open(lake)).findings
            facts = {row["session_id"] for row in rows_of(lake, "session_facts")}
            assert {row["session_id"] for row in rows_of(lake, "usage")} <= facts
    assert writer.returncode == 0 and pushes
    push(path, lake)
    assert_whole(lake, path)


WRITER = """
import sys, time
from state_ledger.sqlite import sqlite3
from tests.books import call, message, session
for number in range(int(sys.argv[2])):
    name = f"w{number}"
    rows = {"sessions": session(name), "messages": message(name, 1780315200 + number),
            "session_model_usage": call(name, input_tokens=5, estimated_cost_usd=0.25, cost_status="estimated")}
    connection = sqlite3.connect(sys.argv[1], timeout=30)
    with connection:
        for table, row in rows.items():
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    connection.close()
    time.sleep(0.01)
"""


# Damage


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[random.Random(1).randrange(len(content))] ^= 16
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "said"),
    [(cut, "bytes in the place of"), (flip, "is damaged"), (Path.unlink, "is missing")],
    ids=["cut", "flipped", "lost"],
)
def test_a_file_that_is_damaged_is_named_and_a_full_push_mends_it(
    path: Path, lake: Path, harm: Callable[[Path], None], said: str
) -> None:
    push(path, lake)
    (file,) = state_of(lake).of("usage", "2026-06")
    harm(lake / file.path)
    (finding,) = verified(lake).findings
    assert finding[:4] == ("h", "default", "usage", "2026-06") and said in finding.what
    with pytest.raises(LakeDamaged, match=said):
        Lake.open(lake).table(file)
    if harm is not flip:
        with pytest.raises(LakeDamaged, match=said):
            Lake.open(lake).local_path(file)
    push(path, lake, full=True)
    assert_whole(lake, path)


def test_a_lost_month_is_named_table_by_table(path: Path, lake: Path) -> None:
    push(path, lake)
    lost = [file for file in state_of(lake).files if file.month == "2026-05"]
    for file in lost:
        shutil.rmtree((lake / file.path).parent)
    assert {(each.table, each.month) for each in verified(lake).findings} == {(file.table, "2026-05") for file in lost}
    assert len(rows_of(lake, "locks")) == 0 and Lake.open(lake).stores()


@pytest.mark.parametrize("harm", [cut, flip, lambda file: file.write_bytes(b"")], ids=["cut", "flipped", "empty"])
def test_a_damaged_manifest_is_passed_over(path: Path, lake: Path, harm: Callable[[Path], None]) -> None:
    push(path, lake)
    first = state_of(lake)
    change(path, "UPDATE sessions SET title = 'another' WHERE id = 's0'")
    push(path, lake)
    newest = max((lake / "stores" / "h" / "default").iterdir())
    harm(newest)
    opened = Lake.open(lake)
    assert opened.stores() == [first]
    assert "is damaged" in opened.notices[0] and "The state before it is used." in opened.notices[0]
    assert [each.what for each in verified(lake).findings] == opened.notices
    # The next push is newer than the damaged one.
    assert push(path, lake).state.sequence == 3 and not Lake.open(lake).wrong
    assert_whole(lake, path)


def newer(lake: Path, sequence: int) -> None:
    """A manifest as a later version might write it."""
    state = state_of(lake)
    _name, content = manifest.write(StoreState(**{**vars(state), "sequence": sequence}))
    told = json.dumps(json.loads(content) | {"format": 99, "files": "elsewhere"}).encode()
    name = ManifestName(state.host, state.profile, sequence, hashlib.sha256(told).hexdigest()[:24])
    (lake / name.path).write_bytes(told)


def test_a_manifest_of_a_newer_format_is_passed_over_and_its_files_are_left(path: Path, lake: Path) -> None:
    push(path, lake)
    newer(lake, 2)
    opened = Lake.open(lake)
    assert [state.sequence for state in opened.stores()] == [1] and "newer than this program knows" in opened.notices[0]
    stray = lake / "data" / "usage" / "host=h" / "profile=default" / "month=2026-05" / "new.parquet"
    stray.write_bytes(b"of a kind that is not known yet")
    assert not compaction.plan(opened, grace_s=-60, keep=1).remove
    for file in sorted((lake / "stores" / "h" / "default").iterdir())[:1]:
        file.unlink()
    assert opened.stores() == [] and opened.notices[0].startswith("h/default is left out: ")
    assert verified(lake).findings[0].what == opened.notices[0]


def test_a_lake_of_a_newer_format_is_not_touched(path: Path, lake: Path) -> None:
    push(path, lake)
    (lake / "lake.json").write_text('{"kind": "state-ledger lake", "format": 99}')
    before = contents(lake)
    with pytest.raises(LakeTooNew, match="newer than this program knows"):
        push(path, lake)
    with pytest.raises(LakeTooNew):
        Lake.open(lake)
    assert contents(lake) == before


def test_columns_and_tables_of_other_versions(path: Path, lake: Path) -> None:
    """A column that is not there is NULL, one that is not known is passed over, a table that is not known is kept."""
    import pyarrow
    from pyarrow import parquet

    push(path, lake)
    opened, state = Lake.open(lake), state_of(lake)
    (file,) = state.of("usage", "2026-05")
    other = opened.table(file).drop_columns(["legacy"]).append_column("mood", pyarrow.array(["calm"] * file.rows))
    parquet.write_table(other, lake / file.path)
    content = (lake / file.path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    as_named = data_path("usage", "h", "default", "2026-05", digest)
    (lake / file.path).rename(lake / as_named)
    (lake / "data" / "moods").mkdir()
    changed = DataFile("usage", "2026-05", as_named, file.rows, len(content), digest)
    strange_path = data_path("moods", "h", "default", "2026-05", digest)
    stranger = DataFile("moods", "2026-05", strange_path, file.rows, len(content), digest)
    opened.place.write(stranger.path, content)
    files = (*(each for each in state.files if each != file), changed, stranger)
    name, told = manifest.write(StoreState(**{**vars(state), "sequence": 2, "files": files}))
    opened.place.write(name.path, told)
    rows = opened.table(changed)
    assert set(rows.column("legacy").to_pylist()) == {None} and "mood" not in rows.column_names
    assert set(opened.table(stranger).column("mood").to_pylist()) == {"calm"}
    assert_whole(lake, path)


# No room, no rights


def test_a_full_disk(path: Path, disk: Callable[[int], Path]) -> None:
    """What was there stays, and what is said names the lake."""
    folder = disk(1)
    lake = folder / "lake"
    push(path, lake)
    before = state_of(lake)
    change(path, "UPDATE sessions SET title = 'another ' || id")
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    with pytest.raises(LakeError, match=r"cannot be written to .*[Nn]o space left"):
        push(path, lake)
    assert Lake.open(lake).stores() == [before] and not verify(Lake.open(lake)).findings
    assert not list(lake.rglob("*.part"))
    ballast.unlink()
    push(path, lake)
    assert_whole(lake, path)


def test_a_place_that_is_no_folder(path: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LakeError, match="cannot be written to"):
        push(path, tmp_path / "file" / "lake")


# Clearing


def test_compaction_removes_what_nothing_names_and_no_reader_needs(path: Path, lake: Path) -> None:
    for number in range(5):
        change(path, f"UPDATE sessions SET title = 'title {number}'")
        push(path, lake)
    (lake / "parts" / ".1-a.part").write_bytes(b"left")
    opened = Lake.open(lake)
    before = contents(lake)
    within = compaction.plan(opened, grace_s=3600, keep=2)
    assert not within.remove and within.waiting == 1 + 3  # the part, and manifests whose successors are new
    planned = compaction.plan(opened, grace_s=-60, keep=2)
    assert planned.counts[compaction.MANIFEST] == 3 and planned.counts[compaction.LEFTOVER] == 1
    assert contents(lake) == before
    compaction.carry_out(opened, planned)
    assert len(list((lake / "stores" / "h" / "default").iterdir())) == 2
    assert_whole(lake, path)
    assert not compaction.plan(opened, grace_s=-60, keep=2).remove
    compaction.carry_out(opened, compaction.plan(opened, grace_s=-60, keep=1))
    assert {str(file.relative_to(lake)) for file in (lake / "data").rglob("*.parquet")} == {
        file.path for file in state_of(lake).files
    }


@pytest.mark.parametrize("deleted", ["tombstone", "keep"])
def test_months_of_past_years_are_put_in_one_and_pushed_to_as_before(path: Path, lake: Path, deleted: str) -> None:
    options = Options(deleted=deleted)
    change(path, "UPDATE sessions SET started_at = started_at - 86400 * 365 * 3")
    push(path, lake, options=options)
    apart = state_of(lake)
    facts = sorted(map(repr, rows_of(lake, "time")))
    opened = Lake.open(lake)
    planned = compaction.plan(opened, grace_s=3600, keep=1)
    assert [year for _state, year in planned.merge] == ["2023"]
    compaction.carry_out(opened, planned)
    merged = state_of(lake)
    assert set(merged.periods) == {"2023"} and len(merged.files) < len(apart.files) / 2
    assert merged.totals == apart.totals and sorted(map(repr, rows_of(lake, "time"))) == facts
    assert_whole(lake, path)
    assert not push(path, lake, options=options).changed
    change(path, "UPDATE sessions SET title = 'another' WHERE id = 's0'", "DELETE FROM sessions WHERE id = 's1'",
           "DELETE FROM messages WHERE session_id = 's1'", "DELETE FROM session_model_usage WHERE session_id = 's1'")
    assert push(path, lake, options=options).gone == 1
    assert set(state_of(lake).periods) == {"2023"} and state_of(lake).kept.sessions == (deleted == "keep")
    assert_whole(lake, path)
    assert not compaction.plan(opened, grace_s=3600, keep=1).merge
