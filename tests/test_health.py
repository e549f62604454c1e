"""`check`: each trouble is found on a store that has exactly that, named, and left as it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from state_ledger import questions, storage
from state_ledger.cli import main
from state_ledger.connection import open_for_reading
from state_ledger.health import checkup, file_system, growth, log
from state_ledger.health.finding import Finding, Report
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from state_ledger.writing import journal
from tests import damage
from tests.conftest import names_in

pytestmark = pytest.mark.skipif(
    journal.has_wal_reset_bug(), reason="such an SQLite makes stores without a log, and is itself a finding"
)
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who reads")
WORDS = "messages_fts"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that is well: two sessions, 400 messages over the last six weeks. Copy it before use."""
    path = tmp_path_factory.mktemp("sound") / "state.db"
    now = time.time()
    with SessionDB(path) as db:
        for name in ("a", "b"):
            db.create_session(name, "cli", model="a-model")
            rows = [
                {"role": "user", "content": f"pier{number} {'lantern ' * 60}", "timestamp": now - 18000 * number}
                for number in range(200, 0, -1)
            ]
            db.append_messages(name, rows)
            db.update_token_counts(name, 700, 80, model="a-model", estimated_cost_usd=0.25, api_call_count=3)
    return path


@pytest.fixture
def live(sound: Path, path: Path) -> Path:
    """A copy of one's own, at rest."""
    shutil.copyfile(sound, path)
    return path


def found(path: Path, *, full: bool = False) -> dict[str, Finding]:
    return by_kind(checkup.check(path, full=full))


def by_kind(report: Report) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def troubles(path: Path, *, full: bool = False) -> list[str]:
    return [finding.kind for finding in checkup.check(path, full=full).findings if finding.is_trouble]


def fingerprint(path: Path) -> tuple[str, int, list[str]]:
    return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, names_in(path.parent)


@contextmanager
def another_process(path: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has done `code` with `connection` on the store, and keeps it open until the end."""
    program = (
        "import sys\nfrom state_ledger.sqlite import sqlite3\n"
        f"connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n{code}\n"
        "print('ready', flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        process.communicate(timeout=30)


@pytest.mark.parametrize("full", [False, True], ids=["quick", "full"])
def test_a_store_that_is_well(live: Path, full: bool) -> None:
    before = fingerprint(live)
    report = checkup.check(live, full=full)
    assert report.is_well and report.how == "at rest", report.findings
    assert {finding.severity for finding in report.findings} <= {"ok", "note"}
    assert fingerprint(live) == before, "nothing is written, and nothing is left beside it"
    said = by_kind(report)
    assert said["schema"].figures["version"] == 23 and "unicode61" in said[f"text-index:{WORDS}"].sentence
    assert sqlite3.sqlite_version in said["sqlite"].sentence
    assert said["growth"].figures["bytes_per_week"] > 0 and said["growth"].figures["reaches 1 GB"] > time.time()


def test_pages_of_a_table_are_structural_damage(live: Path) -> None:
    damage.wipe(live, "messages")
    said = found(live)["integrity:rows:messages"]
    assert said.severity == "error" and said.sentence.startswith("Structural damage")
    assert said.remedy == f"state-ledger repair {live} NEW"
    assert "does not help" in said.sentence, "no rebuilding of an index is offered"
    assert not any("--rebuild-index" in finding.remedy for finding in found(live).values())


def test_pages_of_an_index_are_told_apart_from_rows(live: Path) -> None:
    damage.wipe(live, "idx_messages_session")
    said = found(live)
    damaged = [kind for kind in said if kind.startswith("integrity:")]
    assert damaged == ["integrity:index:idx_messages_session"]
    assert "nothing is lost" in said[damaged[0]].sentence


def test_an_index_that_disagrees_with_its_table_is_seen_by_a_full_look(live: Path) -> None:
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        index = damage.root_of(live, "idx_sessions_source")
        other = damage.root_of(live, "idx_sessions_source_id")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'idx_sessions_source'", (other,))
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'idx_sessions_source_id'", (index,))
    kinds = [kind for kind in found(live, full=True) if kind.startswith("integrity:")]
    assert kinds and all("index:idx_sessions_source" in kind for kind in kinds)


def test_a_search_index_whose_data_is_gone(live: Path) -> None:
    # Every check of pages says ok, storing works, and only a search fails (bug-log 19).
    damage.run(live, f"DELETE FROM {WORDS}_data WHERE id > 10")
    said = found(live)
    error = next(finding for kind, finding in said.items() if kind.endswith(WORDS) and finding.severity == "error")
    assert error.remedy == f"state-ledger optimize {live} --rebuild-index {WORDS}"
    assert not any(kind.startswith("integrity:rows") for kind in said)


def test_pages_of_a_search_index_cannot_be_mended_in_place(live: Path) -> None:
    damage.wipe(live, f"{WORDS}_data")
    said = [finding for kind, finding in found(live).items() if kind.endswith(f":{WORDS}") and finding.is_trouble]
    assert said and {finding.remedy for finding in said} == {f"state-ledger repair {live} NEW"}


def test_a_file_that_lost_its_end(live: Path) -> None:
    whole = live.stat().st_size
    os.truncate(live, whole // 2)
    said = found(live)
    assert said["integrity:truncated"].figures == {"bytes": whole // 2, "needed": whole}
    assert any(kind.startswith("integrity:rows") or kind.startswith("integrity:schema") for kind in said)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"no database at all" * 40, b"SQLite format 3\0"])
def test_what_is_no_store_is_a_finding_and_no_exception(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    report = checkup.check(path)
    assert [finding.severity for finding in report.findings] == ["error"] and report.findings[0].remedy
    assert names_in(path.parent) == ["state.db"]


def test_another_programs_database(path: Path) -> None:
    damage.run(path, "CREATE TABLE t (a)")
    assert "is no store" in found(path)["schema"].sentence


def test_bytes_at_random_places_are_never_an_exception(live: Path) -> None:
    import random

    whole, chance, seen = live.read_bytes(), random.Random(5), set()
    for _ in range(12):
        spoilt = bytearray(whole)
        for _ in range(40):
            spoilt[chance.randrange(100, len(spoilt))] = chance.randrange(256)
        live.write_bytes(spoilt)
        report = checkup.check(live)
        seen.add(report.severity)
        assert report.findings and names_in(live.parent) == ["state.db"]
    assert "error" in seen, "some hit only the text of a message, which is then another text"


def test_a_search_index_that_is_gone(live: Path) -> None:
    damage.run(live, f"DROP TABLE {WORDS}")
    assert found(live)[f"text-index:{WORDS}"].remedy == f"state-ledger migrate {live}"


def test_a_search_index_that_was_left_half_built(live: Path) -> None:
    damage.run(live, "INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '400'), ('fts_rebuild_progress', '120')")
    said = found(live)["rebuild:fts"]
    assert (said.severity, dict(said.figures)) == ("warning", {"indexed_up_to": 120, "goal": 400})
    assert "121 to 400" in said.sentence


def test_a_search_index_that_lacks_messages(live: Path) -> None:
    damage.run(
        live,
        f"DROP TRIGGER {WORDS}_insert; INSERT INTO messages(session_id, role, content, timestamp)"
        " VALUES ('a', 'user', 'unheard', 1790000000)",
    )
    assert f"text-index:{WORDS}" in troubles(live)
    damage.run(live, f"DELETE FROM {WORDS}_docsize WHERE id BETWEEN 3 AND 7; DELETE FROM messages WHERE id = 401")
    said = found(live)[f"text-rows:{WORDS}"]
    assert said.figures["missing"] == 5 and "--rebuild-index" in said.remedy


def test_a_search_index_that_does_not_find_a_word_that_is_there(live: Path) -> None:
    damage.run(
        live,
        f"DROP TRIGGER {WORDS}_update; UPDATE messages SET content = 'zebra ' || id",
    )
    said = found(live)[f"text-match:{WORDS}"]
    assert "does not find a word" in said.sentence and "zebra" not in said.sentence


def test_an_index_whose_tokenizer_is_not_here_is_no_trouble(live: Path) -> None:
    damage.run(
        live,
        "CREATE VIRTUAL TABLE messages_fts_cjk USING fts5(content, content='messages', content_rowid='id',"
        " tokenize='trigram'); PRAGMA writable_schema = ON; UPDATE sqlite_master SET"
        " sql = replace(sql, 'trigram', 'cjk_unicode61') WHERE name = 'messages_fts_cjk'",
    )
    said = found(live)["text-index:messages_fts_cjk"]
    assert said.severity == "note" and said.figures["tokenizer"] == "cjk_unicode61"
    damage.run(live, "INSERT INTO state_meta VALUES ('fts_cjk_stale', '1')")
    assert "stale" in found(live)["text-index:messages_fts_cjk"].sentence


def test_orphans_are_counted_by_kind(live: Path) -> None:
    damage.run(
        live,
        "DELETE FROM sessions WHERE id = 'b'; UPDATE sessions SET parent_session_id = 'gone' WHERE id = 'a';"
        "INSERT INTO compression_locks VALUES ('nowhere', 'pid=1', 1790000000, 1790000300)",
    )
    said = found(live)
    orphaned = {kind: finding for kind, finding in said.items() if kind.startswith("orphans:")}
    numbers = {kind.partition(":")[2]: finding.figures["rows"] for kind, finding in orphaned.items()}
    assert numbers == {
        "message without a session": 200, "usage row without a session": 1, "link to a missing parent": 1,
        "compression lock without a session": 1,
    }  # fmt: skip
    assert "foreign-keys:messages" in said and said["orphans:message without a session"].is_trouble
    with closing(open_for_reading(live)) as connection:
        rows = questions.ask(connection, "orphans").records()
        assert {(row["source_table"], row["session_id"]): row["rows"] for row in rows} == {
            ("messages", "b"): 200, ("session_model_usage", "b"): 1, ("sessions", "gone"): 1,
            ("compression_locks", "nowhere"): 1,
        }  # fmt: skip
        lock = questions.ask(connection, "locks").records()[0]
        assert (lock["session_id"], lock["lock_state"], lock["holder"]) == ("nowhere", "held", "pid=1") or (
            time.time() > 1790000300 and lock["lock_state"] == "run out"
        )


def test_doubles_titles_and_missing_indexes(live: Path) -> None:
    damage.run(
        live,
        "INSERT INTO messages(session_id, role, content, timestamp) SELECT session_id, role, content, timestamp"
        " FROM messages WHERE id <= 3; DROP INDEX idx_sessions_title_unique; UPDATE sessions SET title = 'Same'",
    )
    said = found(live)
    assert said["doubles"].figures["rows"] == 3 and said["doubles"].severity == "note"
    assert said["titles"].figures["titles"] == 1 and "Same" not in said["titles"].sentence
    assert "idx_sessions_title_unique" in said["indexes"].sentence


def test_figures_that_disagree_are_notes(live: Path) -> None:
    damage.run(live, "UPDATE sessions SET input_tokens = 1 WHERE id = 'a'")
    damage.run(live, "UPDATE sessions SET output_tokens = -1 WHERE id = 'b'")
    said = found(live)
    assert said["discrepancies"].severity == "note" and said["set-aside"].figures["rows"] >= 1
    assert said["set-aside"].remedy == f"state-ledger query ledger_problems {live}"


def test_free_pages(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # bug-log 88: deleted rows leave the file as large as it was.
    monkeypatch.setattr(checkup, "FREE_BYTES", 100_000)
    damage.run(live, "DELETE FROM messages")
    said = found(live)["free-pages"]
    assert said.severity == "note" and said.remedy == f"state-ledger vacuum {live}"
    assert said.figures["free_bytes"] > checkup.FREE_BYTES


@linux
def test_who_pins_a_long_log(live: Path) -> None:
    write = (
        "connection.execute('PRAGMA wal_autocheckpoint = 0').fetchall()\n"
        "for number in range(5): connection.execute(\"INSERT INTO messages(session_id, role, content, timestamp)"
        " VALUES ('a', 'user', hex(randomblob(600000)), 1790000000)\")"
    )
    read = "connection.execute('BEGIN'); connection.execute('SELECT 1 FROM sessions').fetchone()"
    with another_process(live, read) as reader, another_process(live, write):
        said = found(live)["log"]
        assert said.severity == "warning" and said.figures["readers"] == [reader.pid]
        assert f"process {reader.pid}" in said.sentence and said.figures["waiting"] > checkup.WAITING_PAGES
        users = log.users(live)
        assert users is not None and reader.pid in [pid for pid, _ in users]
    reported = checkup.check(live)
    assert by_kind(reported).get("log", Finding("log", "ok", "")).severity == "ok", "nobody is left"


def test_a_writer_is_seen_and_not_held_up(live: Path) -> None:
    # Case 17, steps 1 to 3 and 7: rows that are only in the log count, and the files stay the writer's.
    with closing(sqlite3.connect(live, isolation_level=None)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        writer.execute("INSERT INTO sessions(id, source, started_at) VALUES ('c', 'cli', 1790000000)")
        inodes = [Path(f"{live}{suffix}").stat().st_ino for suffix in ("", "-wal", "-shm")]
        report = checkup.check(live)
        assert report.how == "live" and by_kind(report)["log"].figures["waiting"] > 0
        writer.execute("BEGIN IMMEDIATE")
        assert checkup.check(live).how == "live"
        writer.execute("COMMIT")
        assert [Path(f"{live}{suffix}").stat().st_ino for suffix in ("", "-wal", "-shm")] == inodes
        assert writer.execute("SELECT count(*) FROM sessions").fetchone() == (3,)


def test_a_log_left_by_a_crash_is_read_from_a_copy(live: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(live, isolation_level=None)) as writer:
        writer.execute("INSERT INTO sessions(id, source, started_at) VALUES ('c', 'cli', 1790000000)")
        crashed = tmp_path / "crashed" / "state.db"
        crashed.parent.mkdir()
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{live}{suffix}", f"{crashed}{suffix}")
    report = checkup.check(crashed)
    assert report.how == "snapshot" and report.is_well
    assert names_in(crashed.parent) == ["state.db", "state.db-wal"]


def test_another_user_is_told_and_leaves_nothing(sound: Path, open_folder: Path, as_nobody: Callable[..., Any]) -> None:
    # Case 17, steps 4 and 5: a folder that may not be written, and one that may.
    code = (
        "import sys\nfrom state_ledger.health import checkup\n"
        "for each in map(checkup.check, sys.argv[1:]): print(each.how, each.severity, each.findings[0].sentence)"
    )
    paths = []
    for name, folder_mode, mode in (("closed", 0o755, 0o644), ("open", 0o777, 0o644), ("secret", 0o777, 0o600)):
        folder = open_folder / name
        folder.mkdir()
        paths.append(folder / "state.db")
        shutil.copyfile(sound, paths[-1])
        paths[-1].chmod(mode)
        folder.chmod(folder_mode)
    done = as_nobody(code, *paths)
    closed, opened, secret = done.stdout.splitlines() or [done.stderr] * 3
    assert closed.startswith("at rest ok") and opened.startswith("at rest ok"), done.stdout
    assert secret.startswith("not error") and "may not be read" in secret
    assert [names_in(path.parent) for path in paths] == [["state.db"]] * 3


def test_a_link_and_a_path_with_blanks_and_cjk(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "大きな 店 #1?"
    folder.mkdir()
    path = folder / "상태 db%20.db"
    shutil.copyfile(sound, path)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    for name in (path, link):
        report = checkup.check(name)
        assert report.is_well, report.findings
    damage.run(path, f"DROP TABLE {WORDS}")
    assert f"'{path}'" in found(path)[f"text-index:{WORDS}"].remedy, "as a shell takes it"
    assert names_in(folder) == [path.name]


def test_old_and_newer_schemas(small_store: Callable[..., Path], live: Path) -> None:
    old = small_store("old.db")
    said = found(old)
    assert said["schema"].severity == "note" and said["schema"].figures["missing"]
    assert said["schema"].remedy == f"state-ledger migrate {old}" and "journal" in said
    damage.run(live, "UPDATE schema_version SET version = 99; ALTER TABLE sessions ADD COLUMN mood TEXT")
    newer = found(live)["schema"]
    assert newer.severity == "note" and "newer than this program knows" in newer.sentence


def test_stores_of_the_real_program_are_well(shared_store: Callable[[str], Path]) -> None:
    for version in ("1", "9", "10", "16", "22", "23-cjk", "25"):
        name = f"small-{version}.db"
        report = checkup.check(shared_store(name))
        assert report.is_well, (name, report.findings)


def test_a_full_look_at_a_store_without_a_log_is_made_on_a_copy(small_store: Callable[..., Path]) -> None:
    path = small_store()
    report = checkup.check(path, full=True)
    assert report.how == "snapshot" and names_in(path.parent) == ["state.db"]


@linux
@pytest.mark.parametrize("kind", ["virtiofs", "9p", "nfs4", "cifs", "fuse.sshfs", "ext4", "fuseblk"])
def test_the_file_system_by_the_table_of_mounts(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "shared disk"
    folder.mkdir()
    table = tmp_path / "mounts"
    spelled = str(folder).replace(" ", "\\040")
    table.write_text(f"dev / ext4 rw 0 0\nhost:/x {spelled} {kind} rw 0 0\n")
    mount = file_system.mount_of(folder / "state.db", table)
    assert mount == file_system.Mount(str(folder), kind)
    assert mount.is_shared is (kind not in ("ext4", "fuseblk"))
    beside = file_system.mount_of(tmp_path / "shared disk 2" / "state.db", table)
    assert beside is not None and beside.folder == "/"


@linux
def test_a_log_on_a_network_mount_is_an_error(live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"dev / ext4 rw 0 0\nhost:/x {live.parent} nfs4 rw 0 0\n")
    monkeypatch.setattr(file_system.mount_of, "__defaults__", (table,))
    said = found(live)["file-system"]
    assert said.severity == "error" and "nfs4" in said.sentence


def test_growth_and_forecasts(live: Path) -> None:
    now = time.time()
    with closing(open_for_reading(live)) as connection:
        measured = growth.measure(connection, now)
    assert len(measured.weeks) == growth.WEEKS
    assert sum(number for _begin, number in measured.weeks) == 400
    last_four = sum(number for _begin, number in measured.weeks[-4:])
    assert measured.bytes_per_week == pytest.approx(measured.bytes / 400 * last_four / 4)
    one = measured.reached["1 GB"]
    assert one is not None
    assert (one - now) / growth.WEEK_S * measured.bytes_per_week + measured.bytes == pytest.approx(1e9)
    with closing(open_for_reading(live)) as connection:
        still = growth.measure(connection, now + 90 * 86400)
    assert still.bytes_per_week == 0 and set(still.reached.values()) == {None}


def test_estimated_sizes_add_up_and_come_near_to_exact_ones(demo_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    shutil.copyfile(demo_store, path)
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        estimated = storage.measure(connection, exact=False)
    assert estimated.method == "estimate" and estimated.file_bytes == path.stat().st_size
    assert sum(estimated.by_owner.values()) + estimated.free_bytes <= estimated.file_bytes * 1.1
    # Python's own SQLite often has what pysqlite3 has not; in a process of its own, since two must not meet.
    code = (
        "import sys, sqlite3, json\nconnection = sqlite3.connect(sys.argv[1])\n"
        "try: rows = connection.execute('SELECT name, sum(pgsize) FROM dbstat GROUP BY name').fetchall()\n"
        "except sqlite3.OperationalError: rows = []\nprint(json.dumps(dict(rows)))"
    )
    exact = json.loads(subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True).stdout)
    if not exact:
        pytest.skip("no SQLite here tells exact sizes")
    for part in estimated.parts:
        if exact[part.name] > 400_000:
            assert 0.6 < part.bytes / exact[part.name] < 1.6, part.name


def test_the_canned_query_of_sizes(live: Path) -> None:
    with closing(open_for_reading(live)) as connection:
        rows = questions.ask(connection, "storage_sizes").records()
    names = {row["name"]: row for row in rows}
    assert WORDS in names and f"{WORDS}_data" not in names and names["messages"]["rows"] == 400
    assert sum(row["share"] for row in rows) == pytest.approx(1) and rows[0]["bytes"] >= rows[-1]["bytes"]


def test_routing_and_delegations_show_no_private_names(demo_store: Path) -> None:
    with closing(open_for_reading(demo_store)) as connection:
        routes = questions.ask(connection, "routing").records()
        delegations = questions.ask(connection, "delegations").records()
    assert {row["platform"] for row in routes} == {"telegram", "discord", "whatsapp"}
    assert all(row["is_known"] for row in routes)
    assert not any("agent:main" in str(value) or "Ops room" in str(value) for row in routes for value in row.values())
    assert delegations and all(row["delivery_state"] == "delivered" for row in delegations)


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_verb_its_exit_codes_and_its_json(live: Path) -> None:
    well = invoke("check", live)
    assert well.exit_code == 0 and f"{live}: 0 to mend" in well.output
    damage.run(live, f"DROP TABLE {WORDS}")
    troubled = invoke("check", live, "--json")
    assert troubled.exit_code == 1
    body = json.loads(troubled.output)
    assert body["ok"] is False and body["findings"][0]["remedy"].startswith("state-ledger migrate")
    assert invoke("check", live.with_name("nothing.db")).exit_code == 1
    assert invoke("check").exit_code == 2


def test_watching_tells_what_changes(live: Path) -> None:
    code = "import sys; from state_ledger.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "check", str(live), "--watch", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "to mend" in line:
                break
        assert "0 to mend" in line
        damage.run(live, f"DROP TABLE {WORDS}")
        change = process.stdout.readline()
        process.terminate()
    assert f"search index {WORDS} is missing" in change and "warning" in change


def test_status_of_several_stores(live: Path, small_store: Callable[..., Path]) -> None:
    old = small_store("profiles/work/state.db")
    answer = invoke("status", live, old, "--json")
    first, second = json.loads(answer.output)
    assert (first["sessions"], first["messages"], first["schema"]) == (2, 400, 23)
    # The messages go back six weeks, and the cost is spread over them.
    assert 0 < first["last_30_days"]["estimated_usd"] < 0.5 and second["profile"] == "work"
    screen = invoke("status", live)
    assert screen.exit_code == 0 and "estimated $0." in screen.output and "well at first sight" in screen.output
    assert invoke("status", live, live.with_name("gone.db")).exit_code == 1
    assert names_in(live.parent) == ["profiles", "state.db"]


def test_sizes_in_text_and_json(live: Path) -> None:
    text = invoke("sizes", live)
    assert text.exit_code == 0 and "###" in text.output and "in the log" in text.output
    body = json.loads(invoke("sizes", live, "--json").output)
    assert body["file_bytes"] == live.stat().st_size and body["by_owner"]["messages"] > 0


@pytest.mark.parametrize("version", [(3, 40, 1), (3, 51, 3)], ids=["3.40.1", "3.51.3"])
def test_the_wal_reset_bug_is_named(live: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]) -> None:
    monkeypatch.setattr(checkup, "version_info", version)
    said = found(live)["sqlite"]
    with_log = live.read_bytes()[18] == 2
    assert said.severity == (("warning" if with_log else "note") if journal.has_wal_reset_bug(version) else "ok")
