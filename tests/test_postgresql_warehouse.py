"""PostgreSQL holds the books of a fleet: loaded at once or not at all, by one at a time, read by who cannot write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyarrow", reason="needs the extra lake")
pytest.importorskip("sqlglot", reason="needs the extra lake")
pytest.importorskip("psycopg", reason="needs the extra postgresql")

import psycopg

from state_ledger import questions
from state_ledger.cli import main
from state_ledger.lake.manifest import Options
from state_ledger.lake.reading import Lake
from state_ledger.questions import EngineError, OutOfTime
from state_ledger.warehouse import Warehouse, loading
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.native import held
from state_ledger.warehouse.postgres import PostgreSQL
from tests.lakes import UTC, change, make_store, push
from tests.postgres import OWNER, PASSWORD, Server, postgres

__all__ = ["postgres"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "state.db")


@pytest.fixture
def lake(store: Path, tmp_path: Path) -> Path:
    push(store, tmp_path / "lake", options=Options(with_messages=True))
    return tmp_path / "lake"


@pytest.fixture
def address(postgres: Server) -> str:
    return postgres.database()


@pytest.fixture
def engine(address: str) -> Iterator[PostgreSQL]:
    with closing(PostgreSQL(address)) as opened:
        loading.prepare(opened)
        yield opened


def load(engine: Dialect, lake: Path) -> Warehouse:
    loading.load(engine, Lake.open(lake))
    return Warehouse(engine, UTC)


def sessions(books: Warehouse) -> list[object]:
    return [row[0] for row in questions.ask(books, "recent_sessions", settings=UTC).rows]


def test_a_lake_is_loaded_by_the_command_and_again_only_where_it_changed(
    postgres: Server, store: Path, lake: Path, address: str
) -> None:
    def command(*words: str) -> str:
        said = CliRunner().invoke(main, ["lake", "load", str(lake), "--postgresql", address, *words])
        assert said.exit_code == 0, said.output
        return said.stdout

    assert command().startswith("1 stores have changed; ")
    assert command() == "Nothing has changed.\n"
    change(store, "UPDATE sessions SET title = 'quokka' WHERE id = 's1'")
    push(store, lake, options=Options(with_messages=True))
    assert '"stores": 1' in command("--json")
    with closing(PostgreSQL(address)) as engine:
        rows = questions.ask(Warehouse(engine, UTC), "recent_sessions", settings=UTC).rows
        assert sum("quokka" in str(row) for row in rows) == 1
    with psycopg.connect(address) as connection:
        schemas = connection.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE tableowner = %s", [OWNER])
        assert schemas.fetchall() == [("state_ledger",)]


def test_a_schema_may_be_chosen(address: str, lake: Path) -> None:
    with closing(PostgreSQL(f"{address}&options=-csearch_path%3Dother")) as engine:
        loading.prepare(engine)
        assert len(sessions(load(engine, lake))) == 6
    with closing(PostgreSQL(address)) as engine, pytest.raises(EngineError, match="does not exist"):
        loading.newest(engine)


def test_readers_go_on_reading_what_there_was_and_cannot_write(
    store: Path, lake: Path, address: str, engine: PostgreSQL
) -> None:
    before = load(engine, lake)
    seen: list[list[object]] = []
    change(store, "DELETE FROM sessions WHERE id = 's5'", "DELETE FROM session_model_usage WHERE session_id = 's5'",
           "DELETE FROM messages WHERE session_id = 's5'")  # fmt: skip
    push(store, lake, options=Options(with_messages=True))
    with closing(PostgreSQL(address)) as other:
        loading.load(other, Lake.open(lake), lambda _sentence: seen.append(sessions(before)))
    assert [len(each) for each in seen] == [6]
    assert len(sessions(Warehouse(engine, UTC))) == 5
    for statement in (f"DELETE FROM {held('session_facts')}", "CREATE TABLE mine (a int)"):
        with pytest.raises(EngineError, match="read-only"):
            engine.run(statement)


def test_a_load_that_fails_leaves_nothing_and_the_next_one_is_whole(
    postgres: Server, store: Path, lake: Path, engine: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = PostgreSQL.insert

    def cut(self: PostgreSQL, table: str, rows: object) -> None:
        if table == held("tool_calls"):
            postgres.run("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                     " WHERE application_name = 'state-ledger'")  # fmt: skip
        insert(self, table, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgreSQL, "insert", cut)
    with pytest.raises(EngineError):
        loading.load(engine, Lake.open(lake))
    monkeypatch.undo()
    assert engine.run(f"SELECT count(*) FROM {held('session_facts')}")[1] == [(0,)]
    assert len(sessions(load(engine, lake))) == 6


def test_two_that_load_at_once_take_turns(address: str, lake: Path) -> None:
    order: list[str] = []

    def other() -> None:
        with closing(PostgreSQL(address)) as engine, engine.alone():
            order.append("second")

    thread = threading.Thread(target=other)
    with closing(PostgreSQL(address)) as engine, engine.alone():
        thread.start()
        thread.join(0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_question_ends_after_its_time(address: str, engine: PostgreSQL, lake: Path) -> None:
    books = load(engine, lake)
    with psycopg.connect(address) as other:
        other.execute(f"LOCK TABLE state_ledger.{held('session_facts')}".encode())
        with pytest.raises(OutOfTime):
            questions.ask(books, "recent_sessions", settings=UTC, limit_ms=50)
    assert len(sessions(books)) == 6


def test_texts_come_as_they_are_but_for_nuls(engine: PostgreSQL, store: Path, tmp_path: Path) -> None:
    odd = "a \"quoted\", 100% \\ of\n'it' \x00 ünïcode 오류"
    literal = "'" + odd.replace("'", "''").replace("\x00", "' || char(0) || '") + "'"
    change(store, f"UPDATE sessions SET title = {literal}, source = '' WHERE id = 's1'",
           "UPDATE sessions SET title = NULL WHERE id = 's2'")  # fmt: skip
    push(store, tmp_path / "lake", options=Options(with_messages=True, redacted=False))
    load(engine, tmp_path / "lake")
    rows = dict(engine.run(f"SELECT session_id, title FROM {held('session_facts')}")[1])
    assert rows["s1"] == odd.replace("\x00", "\ufffd") and rows["s2"] is None
    assert engine.run(f"SELECT source FROM {held('session_facts')} WHERE session_id = 's1'")[1] == [("",)]


def test_a_server_that_is_gone_or_refuses_is_a_sentence_without_a_password(postgres: Server, address: str) -> None:
    wrong = address.replace(f"{OWNER}@", f"locked:not-{PASSWORD}@")
    for given in (wrong, postgres.address("nothing", OWNER), "postgresql://127.0.0.1:1/nobody?connect_timeout=2"):
        with pytest.raises(EngineError) as refusal:
            PostgreSQL(given)
        assert PASSWORD not in str(refusal.value) and str(refusal.value).endswith(".")
    said = CliRunner().invoke(main, ["lake", "load", "/nowhere", "--postgresql", wrong])
    assert (said.exit_code, said.output.count("Traceback")) == (1, 0) and PASSWORD not in said.output
