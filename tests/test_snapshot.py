"""A snapshot is complete and private, disturbs nobody, and is there when reading itself would do harm."""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from state_ledger import snapshot
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import sqlite3
from tests.conftest import fetch, names_in
from tests.writers import WRITER, crashed_in_the_middle_of_a_write


def _versions(path: str | Path) -> list[int]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = [row[0] for row in connection.execute("SELECT version FROM schema_version ORDER BY 1")]
    connection.close()
    return rows


def _state_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_snapshot_is_one_private_file(small_store, tmp_path, journal):
    path = small_store(journal=journal)
    beside, before = names_in(path.parent), time.time()
    taken = snapshot.take(path, tmp_path / "snapshots")
    assert before <= taken.taken_at <= time.time()
    assert (taken.source, taken.path.name) == (path, "state.db")
    assert stat.S_IMODE(taken.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(taken.path.parent.stat().st_mode) == 0o700
    assert [file.name for file in taken.path.parent.iterdir()] == ["state.db"]
    assert _versions(taken.path) == [5]
    assert names_in(path.parent) == sorted([*beside, "snapshots"])


def test_a_snapshot_of_a_live_store_holds_what_is_only_in_the_log(small_store, tmp_path):
    path = small_store(journal="wal")
    owner = sqlite3.connect(path)
    owner.execute("PRAGMA wal_autocheckpoint = 0")
    owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.commit()
    plain = tmp_path / "copied.db"
    shutil.copyfile(path, plain)
    assert _versions(plain) == [5]
    assert _versions(snapshot.take(path, tmp_path / "snapshots").path) == [5, 6]
    owner.close()


def test_a_crashed_write_is_undone_in_the_snapshot_only(small_store, tmp_path):
    path = crashed_in_the_middle_of_a_write(small_store, tmp_path)
    before = path.read_bytes(), Path(f"{path}-journal").read_bytes()
    taken = snapshot.take(path, tmp_path / "snapshots")
    connection = sqlite3.connect(taken.path)
    assert connection.execute("SELECT content FROM messages").fetchall() == [("hello",)]
    connection.close()
    assert (path.read_bytes(), Path(f"{path}-journal").read_bytes()) == before


def test_a_writer_is_not_held_up(small_store, tmp_path):
    path = small_store(journal="wal")
    connection = sqlite3.connect(path)
    connection.executemany(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'user', ?, 1)",
        [("x" * 3000,)] * 8000,
    )
    connection.commit()
    connection.close()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), "3"], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    counts = []
    while writer.poll() is None:
        taken = snapshot.take(path, tmp_path / "snapshots")
        copy = sqlite3.connect(taken.path)
        assert copy.execute("PRAGMA quick_check").fetchone()[0] == "ok"
        counts.append(copy.execute("SELECT count(*) FROM messages").fetchone()[0])
        copy.close()
    written, locked = map(int, writer.stdout.read().split())
    writer.stdout.close()
    assert counts == sorted(counts) and counts[0] >= 8001 and counts[-1] <= 8001 + written
    assert written > 50
    assert locked == 0


def test_what_is_no_store_has_no_snapshot(tmp_path):
    path = tmp_path / "state.db"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreAccessError, match="not a SQLite database"):
        snapshot.take(path, tmp_path / "snapshots")
    assert not (tmp_path / "snapshots").exists()


def test_no_room_is_a_sentence(small_store, tmp_path, monkeypatch):
    path = small_store()
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("state_ledger.snapshot.shutil.disk_usage", lambda _: full)
    with pytest.raises(StoreAccessError, match="no room for a snapshot"):
        snapshot.take(path, tmp_path / "snapshots")


TAKE_AND_END = """
import os, signal, sys, time
from pathlib import Path
from state_ledger import snapshot
print(snapshot.take(sys.argv[1], Path(sys.argv[2])).path, flush=True)
if sys.argv[3] != "end":
    os.kill(os.getpid(), getattr(signal, sys.argv[3]))
    time.sleep(10)
"""


@pytest.mark.parametrize("how", ["end", "SIGTERM", "SIGINT"])
def test_snapshots_go_when_their_process_ends(small_store, tmp_path, how):
    arguments = [sys.executable, "-c", TAKE_AND_END, small_store(), tmp_path / "snapshots", how]
    taken = subprocess.run(arguments, capture_output=True, text=True).stdout.strip()
    assert taken.endswith("state.db")
    assert not list((tmp_path / "snapshots").iterdir())


def test_snapshots_of_killed_processes_go_with_the_next_one(small_store, tmp_path):
    arguments = [sys.executable, "-c", TAKE_AND_END, small_store(), tmp_path / "snapshots", "SIGKILL"]
    taken = Path(subprocess.run(arguments, capture_output=True, text=True).stdout.strip())
    assert taken.exists()
    again = snapshot.take(tmp_path / "state.db", tmp_path / "snapshots")
    assert not taken.exists() and again.path.exists()


TAKE = """
from pathlib import Path
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import sqlite3
try:
    taken = state_ledger.snapshot.take(sys.argv[1])
except StoreAccessError as refusal:
    print("refused", refusal)
else:
    rows = sqlite3.connect(taken.path).execute("SELECT version FROM schema_version ORDER BY 1").fetchall()
    print([row[0] for row in rows])
"""


@pytest.mark.parametrize("folder_mode", [0o755, 0o777])
def test_another_user_reads_a_quiet_store_and_the_owner_can_still_write(
    small_store, open_folder, as_nobody, folder_mode
):
    path = small_store(journal="wal", folder=open_folder)
    open_folder.chmod(folder_mode)
    before = _state_of(open_folder)
    answer = as_nobody(TAKE, path)
    assert answer.stdout == "[5]\n", answer
    assert _state_of(open_folder) == before
    owner = sqlite3.connect(path)
    owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.commit()
    owner.close()


@pytest.mark.parametrize("with_index", [True, False])
def test_a_log_left_by_a_crash_is_recovered_in_the_copy(small_store, open_folder, as_nobody, with_index):
    live = small_store("live.db", journal="wal")
    owner = sqlite3.connect(live)
    owner.execute("PRAGMA wal_autocheckpoint = 0")
    owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.commit()
    for suffix in ("", "-wal", "-shm") if with_index else ("", "-wal"):
        shutil.copyfile(f"{live}{suffix}", open_folder / f"state.db{suffix}")
    owner.close()
    open_folder.chmod(0o755)
    before = _state_of(open_folder)
    answer = as_nobody(TAKE, open_folder / "state.db")
    assert answer.stdout == "[5, 6]\n", answer
    assert _state_of(open_folder) == before


def test_sidecars_that_may_not_be_read_are_no_obstacle_while_the_log_is_empty(
    small_store, open_folder, as_nobody
):
    path = small_store(journal="wal", folder=open_folder)
    owner = sqlite3.connect(path)
    owner.execute("SELECT * FROM schema_version").fetchall()
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").chmod(0o600)
    assert as_nobody(TAKE, path).stdout == "[5]\n"
    owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.commit()
    assert as_nobody(TAKE, path).stdout.startswith("refused")
    owner.close()


async def test_the_app_shows_a_snapshot_under_the_stores_own_name(
    small_store, tmp_path, make_datasette, monkeypatch
):
    from state_ledger.plugins.stores import registry

    monkeypatch.setenv("STATE_LEDGER_SNAPSHOT", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = small_store(folder=tmp_path / "profiles" / "work", journal="wal")
    datasette = await make_datasette(path)
    state = registry(datasette).stores["work"]
    assert state.store.path == path and state.snapshot_taken_at is not None
    with sqlite3.connect(path) as owner:
        owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.close()
    rows = (await datasette.client.get("/work/schema_version.json?_shape=arrayfirst")).json()
    assert len(rows) == 1


def test_the_app_removes_its_snapshot_when_it_is_told_to_end(small_store, tmp_path, served, monkeypatch):
    monkeypatch.setenv("STATE_LEDGER_SNAPSHOT", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    address = served([small_store()])
    snapshots = tmp_path / "cache" / "state-ledger" / "snapshots"
    assert len(list(snapshots.iterdir())) == 1
    assert fetch(f"{address}/state/sessions.json")[0] == 200
    served.end()
    assert list(snapshots.iterdir()) == []


SHOW_A_SNAPSHOT = """
os.environ["STATE_LEDGER_SNAPSHOT"] = "1"
page = "/state/sessions.json?_shape=array"
datasette.cli.cli(["serve", sys.argv[1], "--setting", "cache_size_kb", "1000", "--get", page])
"""


@pytest.mark.parametrize("folder_mode", [0o755, 0o777])
def test_plain_datasette_shows_another_users_store_by_a_snapshot(
    small_store, open_folder, as_nobody, folder_mode
):
    path = small_store(journal="wal", folder=open_folder)
    open_folder.chmod(folder_mode)
    shown = as_nobody(SHOW_A_SNAPSHOT, path)
    assert '"id": "first"' in shown.stdout, shown.stderr
    assert names_in(open_folder) == ["state.db"]
