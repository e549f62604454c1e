"""Schema 23 as declared is schema 23 as the program makes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger import full_text, schema
from state_ledger.sqlite import Connection, sqlite3

REAL_STORES = Path(__file__).resolve().parents[2] / "shared" / "stores"


@pytest.fixture(params=["small-23.db", "schema-23.db"])
def real(request: pytest.FixtureRequest) -> Iterator[Connection]:
    path = REAL_STORES / request.param
    if not path.exists():
        pytest.skip(f"{request.param}, a store made by the real program, is not here")
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    yield connection
    connection.close()


@pytest.fixture
def made() -> Iterator[Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    yield connection
    connection.close()


def _names(connection: Connection, kind: str) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))
    return {name for (name,) in rows if not name.startswith("sqlite_")}


@pytest.mark.parametrize("kind", ["table", "view", "index", "trigger"])
def test_has_the_same_objects(real: Connection, made: Connection, kind: str) -> None:
    assert _names(made, kind) == _names(real, kind)


@pytest.mark.parametrize("table", schema.TABLES)
def test_table_has_the_same_columns_and_foreign_keys(real: Connection, made: Connection, table: str) -> None:
    for pragma in ("table_xinfo", "foreign_key_list"):
        statement = f"PRAGMA {pragma}({table})"
        assert made.execute(statement).fetchall() == real.execute(statement).fetchall()


@pytest.mark.parametrize("index", schema.INDEXES, ids=lambda index: index.name)
def test_index_has_the_same_columns(real: Connection, made: Connection, index: schema.Index) -> None:
    def described(connection: Connection) -> tuple[object, ...]:
        columns = connection.execute(f"PRAGMA index_xinfo({index.name})").fetchall()
        listed = connection.execute(f"PRAGMA index_list({index.table})").fetchall()
        (kind,) = [row[2:] for row in listed if row[1] == index.name]
        return columns, kind

    assert described(made) == described(real)


def test_declares_sixteen_indexes() -> None:
    assert len(schema.INDEXES) == 16


def test_full_text_tables_have_the_same_options(real: Connection, made: Connection) -> None:
    def options(connection: Connection, name: str) -> str:
        (text,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        return "".join(str(text).lower().split())

    for index in full_text.INDEXES:
        assert options(made, index.name) == options(real, index.name)


def test_writes_its_version(made: Connection) -> None:
    assert made.execute("SELECT version FROM schema_version").fetchall() == [(23,)]
    assert made.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_names_the_declared_columns_in_order(made: Connection) -> None:
    live = tuple(row[1] for row in made.execute("PRAGMA table_info(session_model_usage)"))
    assert schema.declared_columns("session_model_usage") == live
    with pytest.raises(KeyError):
        schema.declared_columns("no_such_table")


def test_ids_of_messages_are_never_used_twice(made: Connection) -> None:
    add = "INSERT INTO messages(session_id, role, timestamp) VALUES ('s', 'user', 1.0) RETURNING id"
    first = made.execute(add).fetchone()
    made.execute("DELETE FROM messages")
    assert made.execute(add).fetchone() > first


# What the triggers do is compared by doing the same to a store of ours and to one made of the
# statements that the real program left in its file.

_TEXT = st.sampled_from(["", "night train", "ferry and train", "기차 여행", "夜行列車", None])
_ROLE = st.sampled_from(["user", "assistant", "tool"])
_INSERT = st.tuples(
    st.just("INSERT INTO messages(session_id, timestamp, role, content, tool_name) VALUES ('s', 1, ?, ?, ?)"),
    st.tuples(_ROLE, _TEXT, _TEXT),
)
_UPDATE = st.tuples(
    st.sampled_from(
        [
            f"UPDATE messages SET {column} = ? WHERE id = ?"
            for column in ("content", "tool_name", "tool_calls")
        ]
    ),
    st.tuples(_TEXT, st.integers(1, 6)),
)
_CHANGE_ROLE = st.tuples(
    st.just("UPDATE messages SET role = ? WHERE id = ?"), st.tuples(_ROLE, st.integers(1, 6))
)
_DEACTIVATE = st.tuples(st.just("UPDATE messages SET active = 0 WHERE id = ?"), st.tuples(st.integers(1, 6)))
_DELETE = st.tuples(st.just("DELETE FROM messages WHERE id = ?"), st.tuples(st.integers(1, 6)))


def _real_definitions() -> list[str]:
    path = REAL_STORES / "small-23.db"
    if not path.exists():
        pytest.skip("small-23.db, a store made by the real program, is not here")
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    rows = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        " AND name NOT LIKE 'messages_fts%_data' AND name NOT LIKE 'messages_fts%_idx'"
        " AND name NOT LIKE 'messages_fts%_docsize' AND name NOT LIKE 'messages_fts%_config' ORDER BY rowid"
    ).fetchall()
    connection.close()
    return [sql for (sql,) in rows]


def _indexed(connection: Connection) -> list[list[tuple[object, ...]]]:
    found = []
    for index in full_text.INDEXES:
        name = f"vocabulary_{index.name}"
        connection.execute(
            f"CREATE VIRTUAL TABLE temp.{name} USING fts5vocab('main', '{index.name}', 'instance')"
        )
        found.append(connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3, 4").fetchall())
        found.append(connection.execute(f"SELECT id FROM {index.name}_docsize ORDER BY id").fetchall())
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(_INSERT, _INSERT, _UPDATE, _CHANGE_ROLE, _DEACTIVATE, _DELETE), max_size=14),
    st.sampled_from(
        [{}, {"fts_rebuild_high_water": "3", "fts_rebuild_progress": "1"}, {"fts_rebuild_high_water": "4"}]
    ),
)
def test_triggers_do_the_same(changes: list[tuple[str, tuple[object, ...]]], gate: dict[str, str]) -> None:
    ours, theirs = (sqlite3.connect(":memory:", isolation_level=None) for _ in range(2))
    schema.create(ours)
    for definition in _real_definitions():
        theirs.execute(definition)
    for connection in (ours, theirs):
        connection.executemany("INSERT INTO state_meta VALUES (?, ?)", gate.items())
        for statement, values in changes:
            connection.execute(statement, values)
    assert _indexed(ours) == _indexed(theirs)
    if not gate:
        for index in full_text.INDEXES:
            full_text.check(ours, index)
    ours.close()
    theirs.close()


def test_rows_of_an_unfinished_rebuild_stay_out(made: Connection) -> None:
    made.execute(
        "INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '2'), ('fts_rebuild_progress', '1')"
    )
    for _ in range(3):
        made.execute(
            "INSERT INTO messages(session_id, role, timestamp, content) VALUES ('s', 'user', 1, 'ferry')"
        )
    found = made.execute("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'ferry'").fetchall()
    assert found == [(1,), (3,)]


def test_fills_the_indexes_from_messages_that_are_there() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create_tables(connection)
    connection.execute(
        "INSERT INTO messages(session_id, role, timestamp, content) VALUES ('s', 'user', 1, 'ferry')"
    )
    connection.execute(
        "INSERT INTO messages(session_id, role, timestamp, content) VALUES ('s', 'tool', 1, 'ferry')"
    )
    assert full_text.create(connection) == [full_text.WORDS, full_text.TRIGRAMS]
    words = connection.execute("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'ferry'").fetchall()
    trigrams = connection.execute(
        "SELECT rowid FROM messages_fts_trigram WHERE messages_fts_trigram MATCH 'err'"
    )
    assert words == [(1,), (2,)]
    assert trigrams.fetchall() == [(1,)]


def test_goes_without_the_trigram_index_where_sqlite_has_no_such_tokenizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unknown = full_text.TextIndex(
        "messages_fts_trigram", "messages_fts_trigram_src", "no_such_tokenizer", "tool"
    )
    monkeypatch.setattr(full_text, "INDEXES", (full_text.WORDS, unknown))
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    assert not {
        name
        for kind in ("table", "view", "trigger")
        for name in _names(connection, kind)
        if "trigram" in name
    }
    connection.execute(
        "INSERT INTO messages(session_id, role, timestamp, content) VALUES ('s', 'user', 1, 'ferry')"
    )
    assert connection.execute(
        "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'ferry'"
    ).fetchone() == (1,)
