"""A reading connection cannot change anything, whoever's SQL runs on it, and still reads everything."""

from __future__ import annotations

import subprocess
import sys

import pytest

from state_ledger.connection import ASKING_PRAGMAS, READING_PRAGMAS, open_for_reading
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import sqlite3

REFUSED = [
    "ATTACH 'other.db' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE TEMP TRIGGER t AFTER INSERT ON messages BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE temp.t USING fts5(a)",
    "DROP TABLE messages",
    "DROP VIEW ledger_usage",
    "ALTER TABLE messages ADD COLUMN x",
    "CREATE INDEX i ON messages (role)",
    "INSERT INTO sessions (id, source, started_at) VALUES ('x', 'x', 1)",
    "UPDATE messages SET content = ''",
    "DELETE FROM messages",
    "REPLACE INTO schema_version VALUES (99)",
    "INSERT INTO sqlite_master VALUES ('table', 't', 't', 0, '')",
    "DELETE FROM sqlite_master",
    "VACUUM",
    "VACUUM INTO 'copy.db'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "SAVEPOINT s",
    "SELECT load_extension('x')",
    "PRAGMA query_only = 0",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA optimize",
    "PRAGMA user_version = 5",
    "PRAGMA schema_version = 5",
    "PRAGMA cache_size = 1000000",
    "PRAGMA incremental_vacuum",
    "PRAGMA case_sensitive_like = 1",
    "PRAGMA temp_store_directory = '/'",
]


@pytest.fixture
def connection(small_store):
    opened = open_for_reading(small_store())
    yield opened
    opened.close()


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(connection, sql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        sqlite3.DatabaseError, match=r"not authorized|authorization denied|may not be modified"
    ):
        connection.execute(sql).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.db"]


def test_the_schema_table_cannot_be_updated(connection):
    with pytest.raises(sqlite3.OperationalError, match="may not be modified"):
        connection.execute("UPDATE sqlite_master SET sql = ''")


@pytest.mark.parametrize("name", sorted(READING_PRAGMAS | ASKING_PRAGMAS))
def test_pragmas_that_only_tell_something_may_be_asked(connection, name):
    connection.execute(f"PRAGMA {name}").fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM ledger_usage",
        "SELECT * FROM pragma_table_info('sessions')",
        "PRAGMA main.index_list(sessions)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
        "SELECT value FROM json_each('[1, 2]')",
        "EXPLAIN QUERY PLAN SELECT * FROM messages",
    ],
)
def test_reading_works(connection, sql):
    assert connection.execute(sql).fetchall()


def test_full_text_search_works(demo_store):
    connection = open_for_reading(demo_store)
    count = connection.execute("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'the'")
    assert count.fetchone()[0] > 0
    connection.close()


@pytest.mark.parametrize("which", ["", "import sys; sys.modules['pysqlite3'] = None"])
def test_full_text_tables_can_be_opened_under_the_guard(demo_store, which):
    code = (
        f"{which}\n"
        "import sys; from state_ledger.connection import guard; from state_ledger.sqlite import sqlite3\n"
        "connection = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)\n"
        "guard(connection)\n"
        "for table in ('messages_fts', 'messages_fts_trigram'):\n"
        "    connection.execute(f'PRAGMA table_info({table})').fetchall()\n"
        "    sql = f\"SELECT count(*) FROM {table} WHERE {table} MATCH 'the'\"\n"
        "    print(connection.execute(sql).fetchone()[0] > 0)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code, str(demo_store)], capture_output=True, text=True)
    assert answer.stdout == "True\nTrue\n", answer.stderr


def test_rows_have_names_and_bad_text_breaks_nothing(small_store):
    path = small_store()
    with sqlite3.connect(path) as writer:
        writer.execute("UPDATE messages SET content = CAST(x'68e96c6c6f' AS TEXT)")
    writer.close()
    connection = open_for_reading(path)
    assert connection.execute("SELECT content FROM messages").fetchone()["content"] == "h\ufffdllo"
    connection.close()


@pytest.mark.parametrize("name", ["a?b.db", "a#b.db", "100%.db", "a b.db", "한글.db"])
def test_any_file_name_can_be_opened(small_store, name):
    connection = open_for_reading(small_store(name))
    assert connection.execute("SELECT count(*) FROM sessions").fetchone()[0] == 1
    connection.close()


def test_what_cannot_be_read_raises_our_error(tmp_path):
    with pytest.raises(StoreAccessError):
        open_for_reading(tmp_path / "nothing.db")
    assert not list(tmp_path.iterdir())


SELECTABLE = [
    "select load_extension('x')",
    "select * from pragma_wal_checkpoint",
    "with x as (select 1) insert into schema_version values (7)",
    "explain delete from messages",
]


@pytest.mark.parametrize("sql", [*REFUSED, *SELECTABLE])
async def test_peoples_own_sql_cannot_change_anything(
    small_store, make_datasette, sql, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = small_store()
    before = path.read_bytes()
    datasette = await make_datasette(path)
    for address in ("/state.json", "/state/-/query.json"):
        answer = await datasette.client.get(address, params={"sql": sql}, follow_redirects=True)
        assert answer.status_code in (400, 403, 404), answer.text
        assert "Traceback" not in answer.text
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["state.db"]


@pytest.mark.parametrize("sql", REFUSED)
async def test_plugins_cannot_write_through_the_database_either(small_store, make_datasette, sql):
    path = small_store()
    before = path.read_bytes()
    datasette = await make_datasette(path)
    database = datasette.get_database("state")
    for run in (database.execute, database.execute_write):
        with pytest.raises(sqlite3.DatabaseError):
            await run(sql)
    with pytest.raises(sqlite3.DatabaseError):
        await database.execute_write_fn(lambda connection: connection.execute(sql))
    if hasattr(database, "execute_isolated_fn"):
        with pytest.raises(sqlite3.DatabaseError):
            await database.execute_isolated_fn(lambda connection: connection.execute(sql).fetchall())
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("/state/-/create", {"table": "t", "row": {"id": 1}}),
        ("/state/schema_version/-/insert", {"row": {"version": 9}}),
        ("/state/messages/-/drop", {"confirm": True}),
        ("/state/messages/1/-/update", {"update": {"content": "x"}}),
        ("/state/messages/1/-/delete", {}),
        ("/state/-/execute-write", {"sql": "delete from messages"}),
    ],
)
async def test_the_write_api_of_datasette_1_is_refused_even_to_root(
    small_store, make_datasette, address, body
):
    path = small_store()
    datasette = await make_datasette(path)
    if not hasattr(datasette, "root_enabled"):
        pytest.skip("Datasette 0.65 has no write API")
    datasette.root_enabled = True
    before = path.read_bytes()
    cookies = {"ds_actor": datasette.client.actor_cookie({"id": "root"})}
    headers = {"content-type": "application/json"}
    answer = await datasette.client.post(address, json=body, cookies=cookies, headers=headers)
    assert 400 <= answer.status_code < 500, answer.text
    assert "Traceback" not in answer.text
    assert path.read_bytes() == before


STOCK_PAGES = [
    "/-/databases.json",
    "/-/versions.json",
    "/state.json",
    "/state/sessions",
    "/state/sessions.json?_shape=array",
    "/state/messages?_facet=role",
    "/state/messages.csv?_stream=on",
    "/state/messages/1",
    "/state/sessions/first.json",
    "/state?sql=select+*+from+ledger_usage",
    "/state.json?sql=select+1",
    "/state.csv?sql=select+*+from+sessions",
    "/state/sessions?_where=id+in+(select+session_id+from+messages)",
]


@pytest.mark.parametrize("address", STOCK_PAGES)
async def test_pages_of_datasette_work_on_guarded_connections(small_store, make_datasette, address):
    datasette = await make_datasette(small_store())
    answer = await datasette.client.get(address, follow_redirects=True)
    assert answer.status_code == 200, answer.text
