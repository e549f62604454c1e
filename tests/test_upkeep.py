"""vacuum, optimize and repair: what they change, what they must not, under writers, kills and full disks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from state_ledger import full_text
from state_ledger.cli import main
from state_ledger.errors import StateLedgerError, StoreFullError
from state_ledger.health import checkup, orphans, salvage, upkeep
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests import damage
from tests.conftest import names_in
from tests.writers import WRITER

unix = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be killed like this there")
WORDS = "messages_fts"
VERB = "import sys; from state_ledger.cli import main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which half of the messages were deleted, in write-ahead mode where SQLite makes such. Copy it."""
    path = tmp_path_factory.mktemp("filled") / "state.db"
    with SessionDB(path) as db:
        for name in ("first", "gone"):
            db.create_session(name, "cli", model="a-model")
            rows = [{"role": "user", "content": f"number {n} {'harbour ' * 80}"} for n in range(300)]
            db.append_messages(name, rows)
            db.update_token_counts(name, 700, 80, model="a-model", estimated_cost_usd=0.25, api_call_count=3)
    damage.run(path, "DELETE FROM messages WHERE id % 2 = 0 AND session_id = 'gone'")
    return path


@pytest.fixture
def live(filled: Path, path: Path) -> Path:
    shutil.copyfile(filled, path)
    return path


@pytest.fixture
def small_disk(tmp_path: Path, filled: Path) -> Iterator[Path]:
    """A file system with room for the store and one MB more."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small disk, and only on Linux this way")
    folder = tmp_path / "disk"
    folder.mkdir()
    size = filled.stat().st_size + (1 << 20)
    command = ("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(("umount", "-l", folder), check=True)


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            row
            for table in ("sessions", "messages", "session_model_usage")
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
        ]


def assert_sound(path: Path) -> None:
    """Pages, references and, word by word, the search indexes."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for index in (full_text.WORDS, full_text.TRIGRAMS):
            full_text.check(connection, index)


def hits(path: Path, word: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {WORDS} WHERE {WORDS} MATCH ?", (word,)).fetchone()[0])


def test_vacuum_gives_pages_back_and_keeps_every_row(live: Path) -> None:
    before, size = rows_of(live), live.stat().st_size
    answer = invoke("vacuum", live, "--yes", "--no-backup", "--json")
    assert answer.exit_code == 0, answer.output
    done = json.loads(answer.stdout)
    assert done["before"] == size and done["after"] == live.stat().st_size < size and done["freed_pages"] > 0
    assert rows_of(live) == before and hits(live, "harbour") == 450
    assert_sound(live)


def test_vacuum_asks_and_takes_a_backup(live: Path, tmp_path: Path) -> None:
    size = live.stat().st_size
    refused = invoke("vacuum", live)
    assert refused.exit_code == 3 and live.stat().st_size == size
    done = invoke("vacuum", live, "--yes", "--backup-dir", tmp_path / "kept")
    assert done.exit_code == 0 and len(names_in(tmp_path / "kept")) == 1
    assert rows_of(tmp_path / "kept" / names_in(tmp_path / "kept")[0]) == rows_of(live)


def test_vacuum_refuses_where_there_is_too_little_room(filled: Path, small_disk: Path) -> None:
    path = small_disk / "state.db"
    shutil.copyfile(filled, path)
    whole = path.read_bytes()
    answer = invoke("vacuum", path, "--yes", "--no-backup")
    assert answer.exit_code == 1 and "free disk" in answer.output and "usable as it is" in answer.output
    assert path.read_bytes() == whole


def test_a_disk_that_fills_up_during_a_vacuum_leaves_the_store_whole(
    filled: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_disk / "state.db"
    shutil.copyfile(filled, path)
    before = rows_of(path)
    monkeypatch.setattr(upkeep, "room_for_vacuum", lambda _path: (0, 0))
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - 64_000))
    with pytest.raises(StoreFullError, match="no room"):
        upkeep.vacuum(path)
    filler.unlink()
    assert rows_of(path) == before
    assert_sound(path)


def test_a_newer_schema_is_refused_with_the_reason(live: Path) -> None:
    damage.run(live, "UPDATE schema_version SET version = 99")
    answer = invoke("vacuum", live, "--yes", "--no-backup")
    assert answer.exit_code == 1 and "schema 99" in answer.output and "newer" in answer.output


def test_an_old_schema_is_not_migrated_on_the_way(small_store: Callable[..., Path]) -> None:
    path = small_store()
    for verb in ("vacuum", "optimize"):
        assert invoke(verb, path, "--yes", "--no-backup").exit_code == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchone() == (5,)


def test_optimize_merges_tunes_and_empties_the_log(live: Path) -> None:
    before = rows_of(live)
    answer = invoke("optimize", live, "--yes", "--no-backup", "--fast-appends", "--json")
    done = json.loads(answer.stdout)
    assert answer.exit_code == 0 and set(done["merged"]) == {WORDS, "messages_fts_trigram"} == set(done["tuned"])
    assert not done["unmerged"] and done["log_bytes"] == 0
    with closing(sqlite3.connect(live)) as connection:
        settings = dict(connection.execute(f"SELECT k, v FROM {WORDS}_config").fetchall())
        assert (settings["automerge"], settings["crisismerge"]) == (16, 64)
        assert connection.execute("SELECT count(*) FROM sqlite_stat1").fetchone()[0] > 0
    assert rows_of(live) == before
    assert_sound(live)


def test_optimize_says_when_a_reader_keeps_the_log(live: Path) -> None:
    if live.read_bytes()[18] != 2:
        pytest.skip("this SQLite makes files without a log")
    with closing(sqlite3.connect(live, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sessions").fetchone()
        answer = invoke("optimize", live, "--yes", "--no-backup")
        assert answer.exit_code == 0 and "could not be emptied" in answer.output


@pytest.mark.parametrize(
    "trouble",
    [
        f"DELETE FROM {WORDS}_data WHERE id > 10",
        f"INSERT INTO {WORDS}({WORDS}) VALUES ('delete-all')",
        "INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '500'), ('fts_rebuild_progress', '10')",
        f"DROP TABLE {WORDS}_docsize",
    ],
    ids=["data lost", "emptied", "half built", "lost a table"],
)
def test_a_search_index_is_made_anew(live: Path, trouble: str) -> None:
    before = rows_of(live)
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        if trouble.startswith("DROP"):
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(f"DELETE FROM sqlite_master WHERE name = '{WORDS}_docsize'")
        else:
            connection.execute(trouble)
    assert not checkup.check(live).is_well
    answer = invoke("optimize", live, "--yes", "--no-backup", "--rebuild-index", WORDS)
    assert answer.exit_code == 0, answer.output
    assert hits(live, "harbour") == 450 and rows_of(live) == before
    if not trouble.startswith("DROP"):  # its pages stay unnamed until a vacuum
        assert_sound(live)
    assert not [kind for kind in (f.kind for f in checkup.check(live).findings if f.is_trouble) if "text" in kind]


def test_an_index_of_sessions_is_made_anew_and_a_name_that_is_none_refused(live: Path) -> None:
    assert invoke("optimize", live, "-y", "--no-backup", "--rebuild-index", "idx_messages_session").exit_code == 0
    answer = invoke("optimize", live, "-y", "--no-backup", "--rebuild-index", "idx_of_nothing")
    assert answer.exit_code == 1 and "no index named idx_of_nothing" in answer.output


def test_pages_that_cannot_be_read_are_not_mended_in_place(live: Path) -> None:
    damage.wipe(live, f"{WORDS}_data")
    with pytest.raises(upkeep.IndexBeyondRepair, match="state-ledger repair"):
        upkeep.rebuild_index(live, WORDS)


@pytest.mark.parametrize(
    ("table", "others"),
    [("messages", ("sessions", "session_model_usage")), ("idx_messages_session", ()), (f"{WORDS}_data", ())],
)
def test_repair_copies_what_can_be_read(live: Path, tmp_path: Path, table: str, others: tuple[str, ...]) -> None:
    before = rows_of(live)
    damage.wipe(live, table, child=1)
    damaged = live.read_bytes()
    new = tmp_path / "new.db"
    answer = invoke("repair", live, new, "--json")
    done = json.loads(answer.stdout)
    assert done["sound"] and live.read_bytes() == damaged and new.stat().st_mode & 0o777 == 0o600
    lost = done["tables"]["messages"]["lost"]
    if others:
        # One page holds some rows; all others are there, each as it was.
        assert 0 < lost < 20 and answer.exit_code == 1
        assert len(rows_of(new)) == len(before) - lost and set(rows_of(new)) <= set(before)
    else:
        assert lost == 0 and rows_of(new) == before and answer.exit_code == 0
    assert_sound(new)
    assert hits(new, "harbour") == 450 - lost and checkup.check(new).is_well
    with SessionDB(new) as db:
        assert db.append_message("first", "user", "goes on") > 600, "ids are not given twice"
    assert names_in(tmp_path) == ["new.db", "state.db"]


def test_repair_never_overwrites_and_never_leaves_a_part(live: Path, tmp_path: Path) -> None:
    for target in (live, tmp_path / "no folder" / "new.db"):
        assert invoke("repair", live, target).exit_code == 1
    empty = tmp_path / "empty.db"
    empty.write_bytes(b"")
    with pytest.raises(StateLedgerError, match="empty"):
        salvage.repair(empty, tmp_path / "new.db")
    zeros = tmp_path / "zeros.db"
    zeros.write_bytes(bytes(8192))
    with pytest.raises(StateLedgerError, match="zero bytes"):
        salvage.repair(zeros, tmp_path / "new.db")
    assert names_in(tmp_path) == ["empty.db", "state.db", "zeros.db"]


def test_repair_of_a_file_that_lost_its_end(live: Path, tmp_path: Path) -> None:
    before = set(rows_of(live))
    os.truncate(live, live.stat().st_size * 2 // 3)
    done = salvage.repair(live, tmp_path / "new.db")
    assert done.sound and done.tables["messages"].rows > 0
    assert set(rows_of(tmp_path / "new.db")) <= before
    assert_sound(tmp_path / "new.db")


def test_repair_of_every_layout_of_old_stores(shared_store: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("small-4.db", "small-10.db", "small-16.db", "small-22.db", "small-25.db"):
        path = shared_store(name)
        new = tmp_path / f"new-{name}"
        done = salvage.repair(path, new)
        assert done.sound and not done.left_out, (name, done)
        with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(new)) as copy:
            for table in done.tables:
                rows = f"SELECT * FROM {table}"
                assert old.execute(rows).fetchall() == copy.execute(rows).fetchall()
            names = "SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2"
            assert old.execute(names).fetchall() == copy.execute(names).fetchall(), name


def test_what_becomes_of_orphans(live: Path, tmp_path: Path) -> None:
    damage.run(live, "DELETE FROM sessions WHERE id = 'gone'; UPDATE sessions SET parent_session_id = 'lost'")
    results = {}
    for way in orphans.WAYS:
        new = tmp_path / f"{way}.db"
        results[way] = salvage.repair(live, new, orphaned=way).orphans
        kinds = [f.kind for f in checkup.check(new).findings if f.kind.startswith(("orphans:", "foreign-keys:"))]
        assert bool(kinds) is (way == orphans.KEEP), kinds
    assert results[orphans.KEEP] == {}
    assert results[orphans.DETACH] == {"sessions made anew": 1, "links taken off": 1}
    assert results[orphans.REMOVE] == {
        "rows removed from messages": 150, "rows removed from session_model_usage": 1, "links taken off": 1,
    }  # fmt: skip
    with closing(sqlite3.connect(tmp_path / "detach.db")) as connection:
        made = connection.execute("SELECT source, end_reason, message_count FROM sessions WHERE id = 'gone'").fetchone()
        assert made == ("recovered", "recovered", 150)
    assert hits(tmp_path / "remove.db", "harbour") == 300


def test_verbs_beside_a_writer_lose_nothing(live: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, live, "4"], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        for arguments in (("vacuum",), ("optimize",), ("optimize", "--rebuild-index", WORDS)):
            answer = invoke(arguments[0], live, "--yes", "--no-backup", *arguments[1:])
            assert answer.exit_code == 0, answer.output
        written = int(writer.communicate(timeout=60)[0].split()[0])
    with closing(sqlite3.connect(live)) as connection:
        more = connection.execute("SELECT count(*) FROM messages WHERE content = 'more'").fetchone()
    assert more == (written,) and written > 0 and hits(live, "more") == written
    assert_sound(live)


def test_a_store_that_may_not_be_written(filled: Path, open_folder: Path, as_nobody: Callable[..., Any]) -> None:
    path = open_folder / "state.db"
    shutil.copyfile(filled, path)
    path.chmod(0o644)
    done = as_nobody("import sys\n" + VERB, "vacuum", path, "--yes", "--no-backup")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert names_in(open_folder) == ["state.db"]
