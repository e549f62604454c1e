"""Looking changes nothing, holds nobody up, and sees what was written a moment ago."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from state_ledger.sqlite import sqlite3
from tests import prepared
from tests.conftest import SHARED_STORES, fetch, names_in
from tests.writers import WRITER

PAGES = [
    "/",
    "/{name}",
    "/{name}.json",
    "/{name}/sessions?_facet=source",
    "/{name}/messages?_sort_desc=id",
    "/{name}/messages.json?_shape=array",
    "/{name}/messages.csv?_stream=on",
    "/{name}?sql=select+*+from+ledger_usage",
    "/{name}.json?sql=select+*+from+ledger_sessions",
]


def _fingerprint(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return hashlib.sha256(path.read_bytes()).hexdigest(), status.st_mtime_ns, status.st_ino


async def _walk(datasette, name: str) -> None:
    for page in PAGES:
        answer = await datasette.client.get(page.format(name=name), follow_redirects=True)
        assert answer.status_code == 200, (page, answer.text[-500:])


@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_no_byte_of_a_quiet_store_changes(small_store, make_datasette, tmp_path, journal):
    path = small_store(journal=journal)
    before = _fingerprint(path)
    datasette = await make_datasette(path)
    await _walk(datasette, "state")
    assert _fingerprint(path) == before
    beside = {file.name for file in tmp_path.iterdir()} - {"state.db"}
    assert beside == (set() if journal == "delete" else {"state.db-wal", "state.db-shm"})


@pytest.mark.parametrize("name", sorted(path.name for path in SHARED_STORES.glob("*.db")) or ["schema-23.db"])
async def test_every_store_of_the_real_program_opens_and_stays_as_it_is(shared_store, make_datasette, name):
    path = shared_store(name)
    before = _fingerprint(path)
    datasette = await make_datasette(path)
    await _walk(datasette, path.stem)
    assert _fingerprint(path) == before


async def test_rows_in_the_log_are_seen_and_new_ones_without_a_restart(small_store, make_datasette):
    path = small_store(journal="wal")
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("PRAGMA wal_autocheckpoint = 0")
    owner.execute("INSERT INTO schema_version VALUES (6)")
    datasette = await make_datasette(path)

    async def shown() -> list[int]:
        answer = await datasette.client.get("/state/schema_version.json?_shape=array")
        return [row["version"] for row in answer.json()]

    assert await shown() == [5, 6]
    owner.execute("INSERT INTO schema_version VALUES (7)")
    assert await shown() == [5, 6, 7]
    owner.close()


async def test_nothing_is_held_between_requests(small_store, make_datasette):
    path = small_store(journal="wal")
    owner = sqlite3.connect(path, timeout=0, isolation_level=None)
    owner.execute("INSERT INTO schema_version VALUES (6)")
    seen = owner.execute("PRAGMA data_version").fetchone()
    log = Path(f"{path}-wal").stat().st_ino
    datasette = await make_datasette(path)
    await _walk(datasette, "state")
    assert Path(f"{path}-wal").stat().st_ino == log
    assert owner.execute("PRAGMA data_version").fetchone() == seen
    assert owner.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    assert Path(f"{path}-wal").stat().st_size == 0
    owner.close()


async def test_a_rollback_mode_store_can_be_written_between_requests(small_store, make_datasette):
    path = small_store()
    datasette = await make_datasette(path)
    await _walk(datasette, "state")
    with sqlite3.connect(path, timeout=0) as owner:
        owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.close()
    await _walk(datasette, "state")


def test_a_writer_beside_the_app_sees_no_lock(small_store, served):
    path = small_store(journal="wal")
    address = served([path])
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "8"], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    loaded = 0
    while writer.poll() is None:
        status, text = fetch(f"{address}{PAGES[loaded % len(PAGES)].format(name='state')}")
        assert status == 200, text[-500:]
        loaded += 1
    written, locked = map(int, writer.stdout.read().split())
    writer.stdout.close()
    assert locked == 0
    assert written > 100 and loaded > 30
    rows = fetch(f"{address}/state.json?sql=select+count(*)+as+n+from+messages&_shape=array")[1]
    assert f'"n": {written + 1}' in rows


async def test_columns_that_a_migration_adds_are_seen(small_store, make_datasette):
    from state_ledger.plugins.stores import registry

    path = small_store(journal="wal")
    datasette = await make_datasette(path)
    datasette.get_database("state").look_every_s = 0
    sql = {"sql": "select sum(cache_read_tokens) as n from ledger_usage", "_shape": "array"}

    async def cached() -> object:
        answer = await datasette.client.get("/state.json", params=sql, follow_redirects=True)
        return answer.json()[0]["n"]

    for _ in range(6):  # all the threads that keep a connection
        assert not await cached()
    assert not registry(datasette).stores["state"].shape.has("sessions", "cache_read_tokens")
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("ALTER TABLE sessions ADD COLUMN cache_read_tokens INTEGER DEFAULT 0")
    owner.execute("UPDATE sessions SET cache_read_tokens = 700")
    owner.close()
    for _ in range(6):
        assert await cached() == 700
    assert registry(datasette).stores["state"].shape.has("sessions", "cache_read_tokens")
    await _walk(datasette, "state")


async def test_a_store_that_is_replaced_is_the_new_one_from_then_on(small_store, make_datasette, tmp_path):
    path, other = small_store(), small_store("other.db")
    with sqlite3.connect(other) as writer:
        writer.execute("UPDATE sessions SET id = 'second'")
    writer.close()
    datasette = await make_datasette(path)
    datasette.get_database("state").look_every_s = 0

    async def ids() -> list[str]:
        answer = await datasette.client.get("/state/sessions.json?_shape=array")
        return [row["id"] for row in answer.json()]

    for _ in range(6):
        assert await ids() == ["first"]
    other.replace(path)
    for _ in range(6):
        assert await ids() == ["second"]


async def test_looking_for_changes_is_rare(small_store, make_datasette):
    datasette = await make_datasette(small_store())
    database = datasette.get_database("state")
    looks = []
    look = database.look
    database.look = lambda connection: looks.append(connection) or look(connection)
    for _ in range(20):
        await database.execute("SELECT 1")
    threads = datasette.setting("num_sql_threads")
    assert len(looks) <= 2 * threads + 2  # one for each new connection, one or two for the clock


async def test_a_store_that_breaks_takes_no_page_of_another_with_it(small_store, make_datasette, tmp_path):
    broken, sound = small_store("broken.db"), small_store("sound.db")
    datasette = await make_datasette([broken, sound])
    assert (await datasette.client.get("/sound/sessions")).status_code == 200
    datasette.get_database("broken").look_every_s = 0
    (tmp_path / "zeros").write_bytes(bytes(10_000))
    (tmp_path / "zeros").replace(broken)
    for path, status in (("/broken/sessions", 503), ("/sound/sessions", 200), ("/nowhere", 404)):
        assert (await datasette.client.get(path)).status_code == status, path


@pytest.mark.parametrize("ending", ["", ".json"])
async def test_a_store_that_breaks_while_it_is_served_is_a_sentence(small_store, make_datasette, tmp_path, ending):
    path = small_store()
    datasette = await make_datasette(path)
    datasette.get_database("state").look_every_s = 0
    assert (await datasette.client.get("/state/sessions")).status_code == 200
    (tmp_path / "broken").write_bytes(b"\x00" * 10000)
    (tmp_path / "broken").replace(path)
    answer = await datasette.client.get(f"/state/sessions{ending}")
    assert answer.status_code == 503
    assert "nothing but zero bytes" in answer.text and "Traceback" not in answer.text


SERVE = """
datasette.cli.cli(["serve", *sys.argv[1:], "--get", "/-/databases.json"])
"""


@pytest.mark.parametrize("options", [[], ["--setting", "cache_size_kb", "1000"]])
@pytest.mark.parametrize(("folder_mode", "says"), [(0o755, "cannot make in"), (0o777, "keep root from writing")])
def test_datasette_says_at_start_why_it_does_not_read_another_users_store(
    small_store, open_folder, as_nobody, folder_mode, says, options
):
    path = small_store(journal="wal", folder=open_folder)
    open_folder.chmod(folder_mode)
    answer = as_nobody(SERVE, path, *options)
    assert answer.returncode != 0
    assert says in answer.stderr and "state-ledger serve --snapshot" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert names_in(open_folder) == ["state.db"]
    owner = sqlite3.connect(path)
    owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.commit()
    owner.close()


def test_datasette_says_what_is_no_database(tmp_path):
    path = tmp_path / "state.db"
    path.write_bytes(b"something else " * 1000)
    answer = _serve_once(path)
    assert answer.returncode != 0
    assert "is not a SQLite database" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_another_users_database_that_is_no_store_is_none_of_our_business(open_folder, as_nobody, tmp_path):
    path = open_folder / "plain.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    open_folder.chmod(0o777)
    answer = as_nobody(SERVE, path)
    assert answer.returncode == 0, answer.stderr


def test_the_owner_writes_on_while_another_user_looks_and_after(small_store, open_folder, as_nobody):
    path = small_store(journal="wal", folder=open_folder)
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("INSERT INTO schema_version VALUES (6)")
    open_folder.chmod(0o777)
    look = 'datasette.cli.cli(["serve", sys.argv[1], "--get", "/state/schema_version.json?_shape=array"])'
    assert '"version": 6' in as_nobody(look, path).stdout
    owner.execute("INSERT INTO schema_version VALUES (7)")
    owner.close()
    again = sqlite3.connect(path, isolation_level=None)
    again.execute("INSERT INTO schema_version VALUES (8)")
    again.close()
    assert {file.stat().st_uid for file in open_folder.iterdir()} == {0}


def test_an_immutable_store_with_a_log_shows_the_log(small_store, served):
    path = small_store(journal="wal")
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("PRAGMA wal_autocheckpoint = 0")
    owner.execute("INSERT INTO schema_version VALUES (6)")
    address = served([], "-i", str(path))
    assert '"version": 6' in fetch(f"{address}/state/schema_version.json?_shape=array")[1]
    owner.close()


def _serve_once(path: Path) -> subprocess.CompletedProcess[str]:
    return prepared.run("-m", "datasette", "serve", path, "--get", "/-/databases.json")


async def test_a_stock_page_that_runs_out_of_time_says_so(demo_store: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(demo_store, settings={"sql_time_limit_ms": 300})
    endless = "with recursive n(n) as (select 1 union all select n+1 from n) select count(*) from n"
    for address in (f"/demo/messages?_where=({endless})", f"/demo/messages.json?_where=({endless})"):
        answer = await datasette.client.get(address)
        assert answer.status_code in (200, 400, 503), f"{address}: {answer.text[:300]}"
        assert "Traceback" not in answer.text
