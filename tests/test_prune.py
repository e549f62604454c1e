"""Pruning: exactly the plan, whatever happens meanwhile; exported first where that is wished; nothing by half."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from state_ledger import full_text
from state_ledger.cli import main, output
from state_ledger.connection import open_for_reading
from state_ledger.portability.importing import import_files
from state_ledger.retention import pruning, safekeeping
from state_ledger.retention.plan import Criteria, Plan, make_plan
from state_ledger.retention.pruning import PruneStopped
from state_ledger.search import search_messages
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests import aged
from tests.aged import NOW, add, ago, assert_clean, ended, lock, sessions
from tests.conftest import names_in
from tests.test_write_faults import appender

unix = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be killed like this there")
VERB = "from state_ledger.cli import main; main()"


@pytest.fixture
def household(writer: Writer) -> Writer:
    """One session of every kind a clean-up has to tell apart."""
    writer.connection.execute("PRAGMA synchronous = OFF")
    aged.household(writer)
    return writer


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def planned(path: Path, days: float | None = 90, **options: Any) -> Plan:
    with closing(open_for_reading(path)) as connection:
        return make_plan(connection, Criteria(days, now=NOW, **options))


def assert_whole(path: Path) -> None:
    """The file is sound, and nothing in it refers to what is gone."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for index in (full_text.WORDS, full_text.TRIGRAMS):
            full_text.check(connection, index)


# -- exactly the plan --------------------------------------------------------------------------------------


def test_the_dry_run_and_the_real_one_are_of_the_same_sessions(household: Writer, tmp_path: Path) -> None:
    path, backups = household.path, tmp_path / "backups"
    dry = json.loads(run("plan", path, "--older-than", 90, "--json").stdout)
    done = run("prune", path, "--older-than", 90, "--yes", "--backup-dir", backups, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert set(said["done"]["deleted"]) == set(dry["delete"]) == {"finished", "silent"}
    assert said["done"]["rows_removed"] == {"messages": 1, "sessions": 2} and said["done"]["stayed"] == {}
    assert set(sessions(household)) == {"left_open", "used_lately", "keepsake", "segment", "sequel", "nightly"}
    assert sessions(household)["sequel"] == "segment"
    assert search_messages(household, "concluded") == []
    assert [row["session_id"] for row in search_messages(household, "continuing")] == ["sequel"]
    assert_clean(household)
    with closing(sqlite3.connect(said["backup"])) as backup:
        assert backup.execute("SELECT count(*) FROM sessions").fetchone() == (8,)


def test_the_documented_behaviour_leaves_the_rest_of_the_conversation_without_parent(household: Writer) -> None:
    done = run("prune", household.path, "--older-than", 90, "--compat", "--yes", "--no-backup")
    assert "3 sessions deleted; rows removed: 2 of messages, 3 of sessions." in done.stdout
    assert sessions(household)["sequel"] is None
    assert_clean(household)


def test_free_pages_are_told_and_no_bytes_are_called_freed(writer: Writer) -> None:
    writer.connection.execute("PRAGMA synchronous = OFF")
    add(writer, "old", *("word " * 400 for _ in range(200)), **ended(199))
    size = writer.path.stat().st_size
    done = run("prune", writer.path, "--older-than", 90, "--yes", "--no-backup")
    found = re.search(r"([\d,]+) pages of ([\d,]+) free, 4,096 bytes each", done.stdout)
    assert found and int(found[1].replace(",", "")) == writer.value("PRAGMA freelist_count") > 50
    assert f"until it is rewritten: state-ledger vacuum {writer.path}" in done.stdout
    assert "freed" not in done.output
    assert writer.path.stat().st_size >= size


def test_nothing_is_asked_or_backed_up_where_nothing_would_go(household: Writer, tmp_path: Path) -> None:
    done = run("prune", household.path, "--source", "telegram", "--backup-dir", tmp_path / "backups")
    assert done.exit_code == 0 and done.stdout.startswith("Nothing would be deleted: ")
    assert "backups" not in names_in(tmp_path)


def test_where_nobody_can_be_asked_nothing_is_deleted(household: Writer) -> None:
    done = run("prune", household.path, "--older-than", 90)
    assert done.exit_code == output.NOT_CONFIRMED and done.stdout == ""
    assert "2 sessions with 1 message would be deleted" in done.stderr
    assert len(sessions(household)) == 8


def test_what_changed_since_the_plan_stays_and_is_reported(writer: Writer) -> None:
    for id in ("used", "pinned", "reopened", "locked", "deleted", "renamed", "continued", "same"):
        add(writer, id, "word", title=f"old {id}", **ended(199, "compression" if id == "continued" else "exit"))
    plan = planned(writer.path, filters={"title_like": "old"})
    assert len(plan.delete) == 8
    add(writer, "next", "word", parent_session_id="continued", started_at=ago(1))
    for sql in (
        f"INSERT INTO messages(session_id, role, content, timestamp) VALUES ('used', 'user', 'again', {ago(1)})",
        "UPDATE sessions SET pinned = 1 WHERE id = 'pinned'",
        "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = 'reopened'",
        "DELETE FROM messages WHERE session_id = 'deleted'",
        "DELETE FROM sessions WHERE id = 'deleted'",
        "UPDATE sessions SET title = 'kept' WHERE id = 'renamed'",
    ):
        writer.connection.execute(sql)
    lock(writer, "locked")
    done = pruning.prune(writer, plan)
    assert done.deleted == ["same"]
    assert done.left == {
        "used": "too_recent", "pinned": "pinned", "reopened": "never_ended", "locked": "locked", "deleted": "gone",
        "renamed": "other", "continued": "in_use",
    }  # fmt: skip
    assert_clean(writer)


def test_a_session_goes_in_one_transaction_and_a_transaction_is_bounded(writer: Writer) -> None:
    writer.connection.execute("PRAGMA synchronous = OFF")
    for number in range(12):
        add(writer, f"s{number}", *["word"] * 60, **ended(199))
    add(writer, "large", *["word"] * (2 * pruning.FIRST_ROWS), **ended(198))
    told: list[tuple[int, int]] = []
    done = pruning.prune(writer, planned(writer.path), progress=lambda *so_far: told.append(so_far))
    assert done.rows == {"messages": 720 + 2 * pruning.FIRST_ROWS, "sessions": 13}
    assert 3 <= done.transactions <= 13 and len(told) == done.transactions
    assert told[0][0] <= pruning.FIRST_ROWS // 61 and told[-1] == (13, 13)
    assert_clean(writer)


@unix
def test_a_prune_that_is_interrupted_says_what_it_did(crowded: Path, tmp_path: Path) -> None:
    path = crowd(crowded, tmp_path)
    words = [sys.executable, "-c", VERB, "prune", str(path), "--older-than", "90", "--yes", "--no-backup"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with closing(sqlite3.connect(path)) as watching:
        while count(watching, "SELECT count(*) FROM sessions") == 242 and process.poll() is None:
            time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    number = 242 - len(sessions_of(path))
    assert process.returncode == 1 and 0 < number < 240
    assert f"Stopped after {number} of 240 sessions;" in errors and "You ended it." in errors
    assert f"{number} sessions deleted; rows removed: {12 * number:,} of messages" in said
    assert_whole(path)


def sessions_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM sessions")]


def test_rows_that_were_orphans_before_are_counted_and_not_touched(household: Writer) -> None:
    household.connection.execute("PRAGMA foreign_keys = OFF")
    household.connection.execute(
        "INSERT INTO messages(session_id, role, content, timestamp) VALUES ('lost', 'user', 'stray', 1)"
    )
    done = run("prune", household.path, "--older-than", 90, "--yes", "--no-backup")
    assert "1 row of messages and usage belong to no session any more" in done.stderr
    assert [row["content"] for row in household.rows("SELECT content FROM messages WHERE session_id = 'lost'")] == [
        "stray"
    ]


def test_rows_that_refer_to_messages_go_with_them(household: Writer) -> None:
    household.connection.execute("CREATE TABLE reactions (message_id INTEGER REFERENCES messages(id), emoji TEXT)")
    household.connection.execute("INSERT INTO reactions SELECT id, '+' FROM messages")
    done = pruning.prune(household, planned(household.path))
    assert done.rows == {"messages": 1, "reactions": 1, "sessions": 2}
    assert_clean(household)


@pytest.mark.parametrize("name", ["small-1.db", "small-6.db", "small-10.db", "small-17.db", "small-22-to-23.db",
                                  "small-1-to-23.db", "small-23-cjk.db", "schema-25.db"])  # fmt: skip
def test_stores_of_every_layout_are_clean_afterwards(
    shared_store: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    path = shared_store(name)
    # Of a newer schema an index is left as another SQLite wrote it; what was sound has to be sound afterwards.
    sound = sound_indexes(Path(shutil.copy(path, tmp_path / "before.db")))
    done = run("prune", path, "--older-than", 0, "--yes", "--no-backup", "--export", tmp_path / "kept", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert set(said["done"]["deleted"]) == set(said["plan"]["delete"]) and said["done"]["stayed"] == {}
    assert said["export"]["sessions"] == len(said["plan"]["delete"]) > 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for table in ("messages", "session_model_usage"):
            sql = f"SELECT count(*) FROM {table} WHERE session_id NOT IN (SELECT id FROM sessions)"
            assert connection.execute(sql).fetchone() == (0,)
    assert sound_indexes(path) >= (sound if name == "schema-25.db" else {full_text.WORDS.name, full_text.TRIGRAMS.name})


def sound_indexes(path: Path) -> set[str]:
    sound = set()
    with closing(sqlite3.connect(path)) as connection:
        for index in (full_text.WORDS.name, full_text.TRIGRAMS.name):
            with suppress(sqlite3.DatabaseError):
                connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
                sound.add(index)
    return sound


def test_damage_keeps_back_only_what_it_is_in(household: Writer) -> None:
    household.connection.execute(
        "CREATE TRIGGER broken BEFORE DELETE ON messages WHEN old.content = 'concluded' BEGIN"
        " SELECT raise(ABORT, 'database disk image is malformed'); END"
    )
    done = run("prune", household.path, "--older-than", 90, "--yes", "--no-backup", "--json")
    assert done.exit_code == output.NOT_WELL
    assert json.loads(done.stdout)["done"]["deleted"] == ["silent"]
    assert json.loads(done.stdout)["done"]["stayed"] == {"finished": "damaged"}
    assert "finished" in sessions(household)


# -- exported first ------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(writer: Writer) -> Writer:
    """Ended sessions with everything a record can have: repeated, summarised and taken-back messages, parts, usage."""
    with SessionDB(writer.path) as db:
        for id in ("rich", "plain"):
            db.create_session(id, "cli", model_config={"a": [1, None]})
            db.append_message(id, "user", [{"type": "text", "text": "서울 café"}, {"type": "image_url", "url": "x"}])
            call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
            db.append_message(id, "assistant", "said", tool_calls=[call])
            db.append_message(id, "user", "taken back")
            db.end_session(id, "exit")
    for sql in (
        "UPDATE messages SET active = 0, compacted = 0 WHERE content = 'taken back'",
        "INSERT INTO messages(session_id, role, content, timestamp, active, compacted)"
        " SELECT session_id, role, content, timestamp, 0, 1 FROM messages WHERE content = 'said'",
        "UPDATE messages SET tool_calls = '{not json' WHERE session_id = 'rich' AND content = 'said'",
        "INSERT INTO session_model_usage(session_id, model, input_tokens, estimated_cost_usd)"
        " VALUES ('rich', 'm', 7, 0.1), ('rich', 'n', 8, 0.2)",
        f"UPDATE sessions SET started_at = {ago(200)}",
        f"UPDATE messages SET timestamp = {ago(199)}",
    ):
        writer.connection.execute(sql)
    return writer


def test_an_export_before_holds_every_row_and_can_be_read_back(recorded: Writer, tmp_path: Path) -> None:
    done = run("prune", recorded.path, "--older-than", 90, "--yes", "--no-backup", "--export", tmp_path / "kept")
    assert done.exit_code == 0, done.output
    assert "2 sessions, 8 messages, 2 usage rows, read back and the same as in the store." in done.stderr
    assert f"Command: state-ledger prune {recorded.path} --older-than 90 --export {tmp_path / 'kept'}" in done.stderr
    assert "2 sessions deleted" in done.stdout and sessions(recorded) == {}
    (file,) = (tmp_path / "kept").iterdir()
    assert file.stat().st_mode & 0o077 == 0 and re.fullmatch(r"state-pruned-\d{8}T\d{6}Z\.jsonl", file.name)
    back = Writer(tmp_path / "back.db")
    try:
        assert import_files(back, [file]).troubles == []
        assert back.value("SELECT count(*) FROM messages") == 8
        assert back.value("SELECT count(*) FROM messages WHERE content = 'taken back' AND active = 0") == 2
        assert back.value("SELECT sum(input_tokens) FROM session_model_usage") == 15
    finally:
        back.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sessions SET rewind_count = 1 WHERE id = 'rich'",
        "UPDATE messages SET api_content = 'other' WHERE session_id = 'rich' AND content = 'taken back'",
        "UPDATE session_model_usage SET cost_source = 'none' WHERE session_id = 'rich' AND model = 'n'",
        "INSERT INTO session_model_usage(session_id, model) VALUES ('rich', 'o')",
        "DELETE FROM messages WHERE session_id = 'rich' AND compacted = 1",
    ],
    ids=["a session's column", "a taken-back message", "a usage row", "one more row", "one row less"],
)
def test_what_changed_since_the_export_is_left(recorded: Writer, tmp_path: Path, change: str) -> None:
    plan = planned(recorded.path)
    kept = safekeeping.keep(recorded.connection, plan.delete, tmp_path, store="state")
    assert kept.unlike == () and set(kept.records) == {"rich", "plain"}
    recorded.connection.execute(change)
    done = pruning.prune(recorded, plan, verify=kept.holds)
    assert done.deleted == ["plain"] and done.left == {"rich": "changed"}
    assert set(sessions(recorded)) == {"rich"}


@pytest.mark.parametrize(
    "stored",
    ["UPDATE messages SET content = CAST(x'ff6f' AS TEXT) WHERE session_id = 'rich' AND content = 'said'",
     "UPDATE messages SET reasoning = x'00' WHERE session_id = 'rich'",
     "UPDATE sessions SET estimated_cost_usd = 9e999 WHERE id = 'rich'"],
    ids=["not UTF-8", "binary data", "infinity"],
)  # fmt: skip
def test_what_an_export_cannot_say_exactly_is_not_deleted(recorded: Writer, tmp_path: Path, stored: str) -> None:
    recorded.connection.execute(stored)
    done = run("prune", recorded.path, "--older-than", 90, "--yes", "--no-backup", "--export", tmp_path / "kept")
    assert done.exit_code == output.NOT_WELL
    assert "Not in it exactly as they are stored, hence left: 1 of 2 sessions (rich)." in done.stderr
    assert "1 session of the plan stayed: changed since it was exported, or not to be exported exactly." in done.stdout
    assert set(sessions(recorded)) == {"rich"}


def test_a_family_is_exported_and_goes_although_deleting_a_parent_alters_its_children(
    writer: Writer, tmp_path: Path
) -> None:
    writer.connection.execute("PRAGMA synchronous = OFF")
    parent = None
    for number in range(8):
        add(writer, f"s{number}", *["word"] * 60, parent_session_id=parent, **ended(199 - number))
        parent = f"s{number}"
    kept = tmp_path / "kept"
    done = run("prune", writer.path, "--older-than", 90, "--yes", "--no-backup", "--export", kept, "--json")
    assert json.loads(done.stdout)["done"]["stayed"] == {} and json.loads(done.stdout)["done"]["transactions"] > 1
    assert sessions(writer) == {}


def test_an_export_that_cannot_be_written_stops_before_anything_is_deleted(recorded: Writer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run("prune", recorded.path, "--older-than", 90, "--yes", "--no-backup", "--export", tmp_path / "file" / "x")
    assert done.exit_code == 1 and "Nothing was deleted." in done.output
    assert len(sessions(recorded)) == 2


# -- among others ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 240 old sessions of 12 messages, and a living conversation of two."""
    path = tmp_path_factory.mktemp("crowd") / "state.db"
    writer = Writer(path)
    writer.connection.execute("PRAGMA synchronous = OFF")

    def work(_connection: Any) -> None:
        add(writer, "before", *["early words"] * 5, **ended(150, "compression"))
        add(writer, "alive", "late words", at=ago(0), parent_session_id="before", started_at=ago(150))
        for number in range(240):
            add(writer, f"old{number}", *[f"some old words of {number}"] * 12, **ended(199))

    writer.write(work)
    writer.close()
    return path


def crowd(crowded: Path, folder: Path, name: str = "state.db") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(crowded, folder / name))


@unix
def test_a_writer_that_never_pauses_is_let_in_and_loses_nothing(crowded: Path, tmp_path: Path) -> None:
    path = crowd(crowded, tmp_path)
    with appender(path, "alive", 100_000) as process:
        # Looked at and not read: what a reader took beyond the first line would be lost to `communicate`.
        assert select.select([process.stdout], [], [], 60)[0]
        done = run("prune", path, "--older-than", 90, "--yes", "--no-backup", "--json")
        assert process.poll() is None
        process.kill()
        rest, errors = process.communicate(timeout=60)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["done"]
    assert len(said["deleted"]) == 240 and said["rows_removed"]["messages"] == 2880 and said["transactions"] >= 3
    acknowledged = [int(line) for line in rest.split()]
    assert "Error" not in errors and acknowledged == list(range(len(acknowledged)))
    assert len(acknowledged) > said["transactions"]
    with SessionDB(path) as db:
        stored = [row["content"] for row in db.get_messages("alive")][1:]
        assert stored[: len(acknowledged)] == [f"alive {number}" for number in acknowledged]
        assert len(db.get_messages("before")) == 5
    assert_whole(path)


def count(connection: Any, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])


@unix
def test_a_full_disk_stops_a_prune_between_sessions(crowded: Path, disk: Callable[[int], Path]) -> None:
    small_disk = disk(4)
    path = crowd(crowded, small_disk)
    writer = Writer(path)
    try:
        plan = planned(path)
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
        (small_disk / "filler").write_bytes(b"x" * (free - 120_000))
        says = r"Stopped after [\d,]+ of 240 sessions; .*There is no room left"
        with pytest.raises(PruneStopped, match=says) as stop:
            pruning.prune(writer, plan)
        assert len(sessions(writer)) == 242 - len(stop.value.done.deleted)
        assert len(stop.value.done.deleted) < 240
        (small_disk / "filler").unlink()
        assert_clean(writer)
        assert writer.value("SELECT count(*) FROM messages") == 6 + 12 * (len(sessions(writer)) - 2)
        done = pruning.prune(writer, planned(path))
        assert len(done.deleted) + len(stop.value.done.deleted) == 240
    finally:
        writer.close()


def test_a_newer_schema_that_lacks_a_column_is_planned_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    writer = Writer(path)
    aged.household(writer)
    writer.connection.execute("ALTER TABLE messages DROP COLUMN api_content")
    writer.connection.execute("UPDATE schema_version SET version = 99")
    writer.close()
    before = path.read_bytes()
    assert run("plan", path, "--older-than", 90).stdout.startswith("2 sessions with 1 message would be deleted")
    for verb in (["prune", path, "--older-than", 90], ["sweep", path, "--idle-days", 90], ["delete", path, "finished"],
                 ["archive", path, "finished"]):  # fmt: skip
        done = run(*verb, "--yes", "--no-backup")
        assert done.exit_code == 1 and "has schema 99, which is newer" in done.stderr, verb
    assert path.read_bytes() == before


def test_through_a_link_and_under_any_name(crowded: Path, tmp_path: Path) -> None:
    path = crowd(crowded, tmp_path / "지난 해 書類", "내 store.db")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    shown = json.loads(run("plan", path, "--older-than", 90, "--json").stdout)
    assert f"'{path}'" in shown["commands"]["prune"]
    done = run("prune", link, "--older-than", 90, "--yes", "--backup-dir", tmp_path / "my backups", "--json")
    assert done.exit_code == 0 and len(json.loads(done.stdout)["done"]["deleted"]) == 240
    assert link.is_symlink() and len(planned(path).left) == 2
    assert_whole(path)


def test_another_user_is_told_and_changes_nothing(
    crowded: Path, open_folder: Path, as_nobody: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    path = crowd(crowded, open_folder)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    path.chmod(0o644)
    before = path.read_bytes()
    done = as_nobody(
        "from click.testing import CliRunner\n"
        "for words in (['plan'], ['prune', '--yes', '--no-backup']):\n"
        "    done = CliRunner().invoke(state_ledger.cli.main, [*words, sys.argv[1], '--older-than', '90'])\n"
        "    print(done.exit_code, done.output)\n",
        path,
    )
    assert done.stdout.startswith("0 240 sessions with 2,880 messages would be deleted"), done.stdout + done.stderr
    assert "\n1 " in done.stdout and str(path) in done.stdout.partition("\n1 ")[2]
    assert path.read_bytes() == before and names_in(open_folder) == ["state.db"]


@unix
def test_in_a_terminal_the_plan_is_shown_and_only_yes_deletes(household: Writer, tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    words = ["-c", VERB, "prune", str(household.path), "--older-than", "90", "--backup-dir", str(tmp_path / "b")]
    for answer, left in (("n", 8), ("y", 6)):
        child = pexpect.spawn(sys.executable, words, encoding="utf-8", timeout=60, dimensions=(60, 200))
        child.expect_exact("2 sessions with 1 message would be deleted")
        child.expect_exact("never ended")
        child.expect_exact("Do it? [y/N]:")
        child.sendline(answer)
        child.expect_exact("Nothing was done." if answer == "n" else "2 sessions deleted")
        child.expect_exact(pexpect.EOF)
        child.wait()
        assert child.exitstatus == (output.NOT_CONFIRMED if answer == "n" else 0)
        assert len(sessions(household)) == left
    assert len(list((tmp_path / "b").iterdir())) == 1
