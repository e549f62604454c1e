"""A store in PostgreSQL is read into a private copy that answers as the SQLite file would; the server is only read."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state_ledger import full_text, postgresql, questions
from state_ledger.connection import open_for_reading
from state_ledger.errors import PostgresqlError, StoreFullError
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests import prepared
from tests.conftest import SHARED_STORES, STRESS, unix
from tests.postgres import JSON, NATIVE, OWNER, Server, fit, postgres, psycopg

__all__ = ["postgres"]

OF_THE_FILE = {"storage_sizes"}
"""Questions on pages of the file, which are the copy's own."""

STORES = {
    "the demo store": ("demo.db", {"types": NATIVE, "search": True}),
    "schema 25 in a schema of its own": ("schema-25.db", {"types": NATIVE | JSON, "search": True, "schema": "work"}),
    "schema 11": ("small-11.db", {}),
    "schema 30": ("small-30-handmade.db", {"types": NATIVE}),
}
if STRESS:
    STORES |= {path.name: (path.name, {}) for path in sorted(SHARED_STORES.glob("*.db"))}
    STORES["the demo store in the types of SQLite"] = ("demo.db", {})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies are kept in the test's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(variable)
    return tmp_path / "cache"


@pytest.fixture
def small(postgres: Server, small_store: Callable[..., Path]) -> str:
    """The address of a database with one session and one message."""
    return postgres.holding(small_store())


def answers(path: Path) -> dict[str, Any]:
    """Every question's answer, of one moment; searches are for a word that all stores have."""
    given = {"q": "the", "now": "1798000000"}
    with closing(open_for_reading(path, profile="one")) as connection:
        found = {}
        for name, question in questions.load().items():
            if name not in OF_THE_FILE:
                named = {each.name for each in question.parameters}
                result = questions.ask(connection, name, {key: given[key] for key in given if key in named})
                found[name] = (result.columns, result.rows)
    return found


def rows_of(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("case", STORES)
def test_every_question_has_the_answer_of_the_sqlite_file(
    postgres: Server, demo_store: Path, tmp_path: Path, case: str
) -> None:
    name, options = STORES[case]
    original = demo_store if name == "demo.db" else SHARED_STORES / name
    if not original.exists():
        pytest.skip(f"there is no {name} in ../shared/stores")
    store = fit(Path(shutil.copyfile(original, tmp_path / name)), options.get("types", {}))
    address = postgres.holding(store, **options)
    schema = options.get("schema")
    copy = postgresql.refresh(address + (f"&options=-csearch_path%3D{schema}" if schema else ""))
    expected, found = answers(store), answers(copy.path)
    assert [name for name in expected if found[name] != expected[name]] == []
    assert (mode_of(copy.path), mode_of(copy.path.parent)) == (0o600, 0o700)
    assert copy.name.startswith("localhost/books")


def test_a_schema_of_its_own_is_a_profile(postgres: Server, small_store: Callable[..., Path]) -> None:
    address = postgres.holding(small_store(), schema="work") + "&options=-csearch_path%3Dwork"
    with closing(open_for_reading(postgresql.refresh(address).path)) as connection:
        assert connection.execute("SELECT DISTINCT profile FROM ledger_session_facts").fetchall()[0][0] == "work"


CHANGES = (
    "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (900, 'first', 'user', 'a new lamp', 9)",
    "UPDATE messages SET content = 'hello again' WHERE id = 1",
    "INSERT INTO sessions (id, source, started_at) VALUES ('second', 'cron', 5), ('third', 'cron', 6)",
    "UPDATE sessions SET input_tokens = 777 WHERE id = 'first'",
    "DELETE FROM sessions WHERE id = 'second'",
    "UPDATE sessions SET id = 'renamed' WHERE id = 'third'",
    "DELETE FROM messages WHERE id = 1",
    "UPDATE schema_version SET version = 6",
    "INSERT INTO sessions (id, source, started_at) SELECT 's' || n, 'cli', n FROM generate_series(1, 300) n",
    "DELETE FROM sessions WHERE id LIKE 's%2'; UPDATE sessions SET output_tokens = 3 WHERE id LIKE 's%3'",
)


def test_a_copy_follows_whatever_is_written(postgres: Server, small: str) -> None:
    def on_the_server(sql: str) -> list[Any]:
        with psycopg.connect(small) as connection:
            return connection.execute(sql).fetchall()

    selects = (
        "SELECT id, source, started_at, input_tokens, output_tokens FROM sessions ORDER BY id",
        "SELECT id, session_id, role, content, timestamp FROM messages ORDER BY id",
        "SELECT version FROM schema_version",
    )
    path = postgresql.refresh(small).path
    for change in CHANGES:
        postgres.run(small, change)
        assert postgresql.refresh(small).path == path
        for select in selects:
            assert rows_of(path, select) == on_the_server(select), change


def test_its_text_index_follows_too(postgres: Server, tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"harbour {number}"} for number in range(100)])
    address = postgres.holding(tmp_path / "state.db")
    path = postgresql.refresh(address).path
    postgres.run(
        address,
        "UPDATE messages SET content = 'quokkas everywhere' WHERE id % 50 = 0",
        "DELETE FROM messages WHERE id % 50 = 1",
        "INSERT INTO messages (id, session_id, role, content, timestamp, active)"
        " SELECT 1000 + n, 's', 'user', 'quokka ' || n, 1790000000 + n, 1 FROM generate_series(1, 40) n",
    )
    postgresql.refresh(address)
    with closing(open_for_reading(path)) as connection:
        assert len(questions.ask(connection, "search", {"q": "quokka*", "limit": "100"}).rows) == 42
        assert len(questions.ask(connection, "search", {"q": "harbour", "limit": "100"}).rows) == 96
    with closing(sqlite3.connect(path)) as connection:
        for index in full_text.INDEXES:
            full_text.check(connection, index)


def test_only_what_was_written_is_read_again(postgres: Server, small: str) -> None:
    path = postgresql.refresh(small).path
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE sessions SET model = 'seen by nobody'")
    postgres.run(small, "INSERT INTO sessions (id, source, started_at) VALUES ('second', 'cli', 5)")
    postgresql.refresh(small)
    assert rows_of(path, "SELECT id, model FROM sessions ORDER BY 1") == [("first", "seen by nobody"), ("second", None)]


def test_a_copy_that_lost_rows_is_made_anew(small: str) -> None:
    path = postgresql.refresh(small).path
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM messages")
    assert rows_of(postgresql.refresh(small).path, "SELECT content FROM messages") == [("hello",)]


def test_a_transaction_that_was_open_at_one_look_is_seen_at_the_next(postgres: Server, small: str) -> None:
    with psycopg.connect(small) as slow:
        slow.execute("INSERT INTO sessions (id, source, started_at) VALUES ('slow', 'cli', 5)")
        postgres.run(small, "INSERT INTO sessions (id, source, started_at) VALUES ('quick', 'cli', 5)")
        path = postgresql.refresh(small).path
        assert rows_of(path, "SELECT id FROM sessions ORDER BY 1") == [("first",), ("quick",)]
        slow.commit()
    postgresql.refresh(small)
    assert rows_of(path, "SELECT id FROM sessions ORDER BY 1") == [("first",), ("quick",), ("slow",)]


def test_new_columns_and_tables_are_copied_and_words_of_the_server_left_out(postgres: Server, small: str) -> None:
    path = postgresql.refresh(small).path
    postgres.run(
        small,
        "ALTER TABLE sessions ADD title text, ADD archived boolean DEFAULT true, ADD labels text[] DEFAULT '{a,b}'",
        "ALTER TABLE messages ADD fts_content tsvector",
        "CREATE TABLE compression_locks (session_id text PRIMARY KEY, holder text, acquired_at float8)",
        "INSERT INTO compression_locks VALUES ('first', 'me', 1)",
        "CREATE TABLE invoices (id int PRIMARY KEY)",
    )
    postgresql.refresh(small)
    assert rows_of(path, "SELECT title, archived, labels FROM sessions") == [(None, 1, '["a","b"]')]
    assert rows_of(path, "SELECT * FROM compression_locks") == [("first", "me", 1.0)]
    names = [row[0] for row in rows_of(path, "SELECT name FROM sqlite_master UNION SELECT name FROM"
                                             " pragma_table_info('messages')")]  # fmt: skip
    assert "fts_content" not in names and "invoices" not in names


def test_structured_content_gets_its_own_mark_back(postgres: Server, small: str) -> None:
    postgres.run(
        small,
        r"""UPDATE messages SET content = E'\u0001json:[{"type": "text", "text": "a picture of it"}]'""",
    )
    with closing(open_for_reading(postgresql.refresh(small).path)) as connection:
        assert connection.execute("SELECT text FROM ledger_messages").fetchone()[0] == "a picture of it"
    postgres.run(small, """ALTER TABLE messages ALTER content TYPE jsonb USING '[{"type":"text","text":"a chart"}]'""",
                 "INSERT INTO messages (id, session_id, role, content, timestamp)"
                 " VALUES (2, 'first', 'user', '\"plain\"', 8)")  # fmt: skip
    with closing(open_for_reading(postgresql.refresh(small).path)) as connection:
        texts = connection.execute("SELECT text FROM ledger_messages ORDER BY id").fetchall()
        assert [row[0] for row in texts] == ["a chart", "plain"]


def test_views_in_the_place_of_tables_are_read_whole_each_time(postgres: Server, small: str) -> None:
    postgres.run(
        small,
        "CREATE SCHEMA shown",
        "CREATE VIEW shown.sessions AS SELECT * FROM public.sessions WHERE source <> 'secret'",
        "CREATE VIEW shown.messages AS SELECT * FROM public.messages",
    )
    address = f"{small}&options=-csearch_path%3Dshown"
    path = postgresql.refresh(address).path
    postgres.run(small, "UPDATE sessions SET model = 'b'",
                 "INSERT INTO sessions (id, source, started_at) VALUES ('x', 'secret', 1)")  # fmt: skip
    postgresql.refresh(address)
    assert rows_of(path, "SELECT id, model FROM sessions") == [("first", "b")]


def while_copying(address: str, job: Callable[[], object], at: str = "copying messages") -> postgresql.Copy:
    """Copies a database, and does something else in the middle of it."""
    done: list[object] = []

    def tell(what: str) -> None:
        if what == at:
            done.append(job())

    copy = postgresql.refresh(address, tell)
    assert len(done) == 1
    return copy


def test_writers_are_not_held_up_and_only_one_moment_is_seen(postgres: Server, small: str) -> None:
    locks: list[Any] = []

    def write() -> None:
        with psycopg.connect(postgres.address("postgres")) as watcher:
            locks.extend(watcher.execute(
                "SELECT DISTINCT l.mode FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
                " WHERE a.application_name = 'state-ledger' AND l.locktype = 'relation'"
            ).fetchall())  # fmt: skip
        with psycopg.connect(small, options="-c lock_timeout=1", autocommit=True) as writer:
            writer.execute("INSERT INTO sessions (id, source, started_at) VALUES ('second', 'cli', 5)")
            writer.execute("UPDATE messages SET content = 'changed'")
            writer.execute("CREATE INDEX a_new_one ON messages (role)")

    copy = while_copying(small, write)
    assert locks == [("AccessShareLock",)]
    assert rows_of(copy.path, "SELECT sessions.id, content FROM sessions, messages ORDER BY 1") == [("first", "hello")]
    postgresql.refresh(small)
    assert rows_of(copy.path, "SELECT sessions.id, content FROM sessions, messages ORDER BY 1") == [
        ("first", "changed"), ("second", "changed")
    ]  # fmt: skip


def test_a_role_that_may_only_read_is_enough(postgres: Server, small: str) -> None:
    postgres.run(small, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO plain")
    copy = postgresql.refresh(small.replace(f"//{OWNER}@", "//plain@"))
    assert rows_of(copy.path, "SELECT id FROM sessions") == [("first",)]


def refused(address: str) -> str:
    with pytest.raises(PostgresqlError) as refusal:
        postgresql.refresh(address)
    said = str(refusal.value)
    assert said.endswith((".", ".db")) and "Traceback" not in said
    return said


def test_what_the_server_refuses_is_said_with_its_remedy(
    postgres: Server, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_plain, as_locked = small.replace(f"//{OWNER}@", "//plain@"), small.replace(f"//{OWNER}@", "//locked@")
    assert "GRANT SELECT" in refused(as_plain)
    postgres.run(small, "GRANT SELECT (id, source, started_at) ON sessions TO plain")
    assert "may not read public.messages, column id" in refused(as_plain)
    postgres.run(small, "GRANT SELECT ON messages, schema_version TO plain")
    assert "may not read public.sessions, column model" in refused(as_plain)
    assert "PGPASSWORD" in refused(as_locked)
    for wrong in ("wrong-%2F-password", "another"):
        said = refused(as_locked.replace("locked@", f"locked:{wrong}@"))
        assert "password authentication failed" in said and wrong not in said and "wrong-/" not in said
    monkeypatch.setenv("PGPASSWORD", "not-it-either")
    assert "not-it-either" not in refused(as_locked)
    monkeypatch.delenv("PGPASSWORD")
    assert 'database "nothing" does not exist' in refused(postgres.address("nothing", OWNER))
    assert "no table named sessions" in refused(postgres.database())
    assert "search_path" in refused(f"{small}&options=-csearch_path%3Delsewhere")
    postgres.run(small, "ALTER TABLE messages DROP content")
    assert "messages has no content" in refused(small)
    postgres.run(small, "DROP TABLE messages")
    assert "messages has no content, id, role, session_id" in refused(small)
    assert not list(postgresql.Address.of(small).copy_path.parent.glob("*.part"))


def test_a_table_that_is_being_altered_is_not_waited_for(
    postgres: Server, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from state_ledger.postgresql import server

    monkeypatch.setattr(server, "LOCK_MS", 20)
    with psycopg.connect(small) as altering:
        altering.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        assert "altering the tables" in refused(small)


def test_the_limit_of_a_role_on_statements_is_kept(postgres: Server, small: str) -> None:
    postgres.run(small, "CREATE VIEW slow AS SELECT pg_sleep(20)::text AS id, '' AS source, 1.0 AS started_at",
                 "CREATE SCHEMA late", "ALTER VIEW slow SET SCHEMA late", "ALTER VIEW late.slow RENAME TO sessions",
                 "CREATE VIEW late.messages AS SELECT * FROM public.messages")  # fmt: skip
    said = refused(f"{small}&options=-csearch_path%3Dlate%20-cstatement_timeout%3D50")
    assert "statement timeout" in said and "Give it more time" in said


@pytest.mark.parametrize(
    "address",
    ["postgresql://u:pa/ss@h/db", "postgresql://u:p@ss@h/db", "postgresql://u:12/ss@h/db", "postgres://u:p?ss@h/db",
     "postgresql://a:b:ss@h:x/db", "postgresql://h:ss/db"],
)  # fmt: skip
def test_an_address_that_would_be_misread_is_refused_without_quoting_it(address: str) -> None:
    with pytest.raises(PostgresqlError, match="percent-encoded") as refusal:
        postgresql.Address.of(address)
    assert "ss" not in str(refusal.value).replace("password", "").replace("address", "").replace("~/.pgpass", "")


def test_an_address_is_shown_by_host_and_database(monkeypatch: pytest.MonkeyPatch) -> None:
    of = postgresql.Address.of
    whole = of("postgresql://me:secret%40word@db.example.com:5433/hermes?sslmode=require&options=-csearch_path%3Dwork")
    assert (whole.name, whole.schema) == ("db.example.com/hermes", "work")
    assert whole.copy_path.parts[-3:] == ("profiles", "work", "db.example.com-hermes.db")
    assert "secret" not in f"{whole!r} {whole} {whole.copy_path}"
    assert of("postgres:///hermes?host=/var/run/postgresql").name == "localhost/hermes"
    assert of("postgresql://[::1]:5432/hermes").name == "::1/hermes"
    assert of("postgresql://a,b:6000/hermes").name == "a,b/hermes"
    monkeypatch.setenv("PGHOST", "elsewhere")
    assert of("postgresql:///hermes").name == "elsewhere/hermes"
    same, other = of("postgresql://me:x@h/hermes"), of("postgresql://you@h/hermes")
    assert of("postgresql://me:y@h/hermes").key == same.key != other.key


def test_a_connection_that_is_lost_midway_leaves_the_copy_as_it_was(postgres: Server, small: str) -> None:
    def cut() -> None:
        postgres.run("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                 " WHERE application_name = 'state-ledger'")  # fmt: skip

    with pytest.raises(PostgresqlError, match="cannot be read"):
        while_copying(small, cut)
    path = postgresql.Address.of(small).copy_path
    assert postgresql.copy_at(path) is None  # nothing, rather than a half
    copy = postgresql.refresh(small)
    postgres.run(small, "UPDATE messages SET content = 'later'", "UPDATE sessions SET model = 'later'")
    with pytest.raises(PostgresqlError, match="can still be read"):
        while_copying(small, cut, "looking for changes of messages")
    assert rows_of(path, "SELECT content, model FROM messages, sessions") == [("hello", "a-model")]
    assert postgresql.copy_at(path) == copy
    postgresql.refresh(small)
    assert rows_of(path, "SELECT content, model FROM messages, sessions") == [("later", "later")]


def test_a_server_that_is_gone_is_a_sentence_and_the_copy_stays(small_store: Callable[..., Path]) -> None:
    from tests.postgres import server

    with server() as own:
        address = own.holding(small_store())
        copy = postgresql.refresh(address)
        own.stop()
        said = refused(address)
        assert "Look at whether the server runs" in said and str(copy.path) in said
        assert rows_of(copy.path, "SELECT content FROM messages") == [("hello",)]
        own.start()
        assert postgresql.refresh(address).taken_at > copy.taken_at


@unix
def test_a_copy_whose_making_was_killed_is_made_by_the_next(postgres: Server, small: str) -> None:
    code = (
        "import os, signal, sys\nfrom state_ledger import postgresql\n"
        "postgresql.refresh(sys.argv[1], lambda what: what == sys.argv[2] and os.kill(os.getpid(), signal.SIGKILL))"
    )
    path = postgresql.Address.of(small).copy_path
    for at in ("copying messages", "making the indexes"):
        assert prepared.run("-c", code, small, at).returncode == -signal.SIGKILL
        assert postgresql.copy_at(path) is None
    postgresql.refresh(small)
    postgres.run(small, "UPDATE messages SET content = 'later'")
    assert prepared.run("-c", code, small, "looking for changes of schema_version").returncode == -signal.SIGKILL
    assert prepared.run("-c", code, small, "looking for changes of messages").returncode == -signal.SIGKILL
    assert rows_of(path, "SELECT content FROM messages") == [("hello",)]
    postgresql.refresh(small)
    assert rows_of(path, "SELECT content FROM messages") == [("later",)]


def test_two_that_copy_at_once_share_one_copy(small: str) -> None:
    copies: list[postgresql.Copy] = []

    def copy() -> None:
        copies.append(postgresql.refresh(small))

    threads = [threading.Thread(target=copy) for _ in range(2)]
    while_copying(small, lambda: [thread.start() for thread in threads])
    for thread in threads:
        thread.join()
    assert len({each.path for each in copies}) == 1
    assert rows_of(copies[0].path, "SELECT content FROM messages") == [("hello",)]


def test_a_damaged_copy_is_made_anew(small: str) -> None:
    path = postgresql.refresh(small).path
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    assert rows_of(postgresql.refresh(small).path, "SELECT content FROM messages") == [("hello",)]


def test_a_full_disk_is_a_sentence_and_leaves_the_server_alone(
    postgres: Server, small: str, disk: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk(1)))
    postgres.run(
        small,
        "INSERT INTO messages SELECT n, 'first', 'user', repeat('words ', 500), n FROM generate_series(10, 900) n",
    )
    with pytest.raises(StoreFullError, match="no room left"):
        postgresql.refresh(small)
    assert postgresql.copy_at(postgresql.Address.of(small).copy_path) is None


def test_copies_are_told_from_other_files(small: str, small_store: Callable[..., Path], cache: Path) -> None:
    copy = postgresql.refresh(small)
    assert postgresql.copy_at(copy.path) == copy
    assert postgresql.copy_at(small_store("other.db")) is None
    assert postgresql.copy_at(cache / "postgresql" / "nothing.db") is None
