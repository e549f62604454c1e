"""The views: on every shape of store, documented, made without reading and without a trace."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from state_ledger import content, questions, schema
from state_ledger.ledger import documentation, view_statements
from state_ledger.ledger.models import canonical_model
from state_ledger.shape import READ_COLUMNS, Shape
from state_ledger.sqlite import sqlite3
from tests import books
from tests.conftest import EXAMPLES_DIVISOR, SHARED_STORES

STORES = sorted(path.name for path in SHARED_STORES.glob("*.db")) or ["none"]
OPTIONAL = [
    (table, column.name)
    for table, columns in schema.TABLES.items()
    for column in columns
    if column.name in READ_COLUMNS.get(table, ())
    and column.name not in {"id", "session_id", "source", "role", "content", "started_at", "timestamp"}
]
SAMPLE: dict[str, Any] = {
    "sessions": [
        books.session("s", model="m", input_tokens=9, output_tokens=1, parent_session_id="s0"),
        books.session("s0"),
    ],
    "usage": [books.call("s", input_tokens=4, api_call_count=1)],
    "messages": [
        books.message("s", 1780315300.0),
        books.message("s", 1780401700.0, "assistant", tool_calls='[{"id": "1"}]'),
    ],
}


def _everything(connection: Any) -> None:
    for (view,) in connection.execute("SELECT name FROM temp.sqlite_master WHERE type = 'view'").fetchall():
        connection.execute(f'SELECT * FROM "{view}"').fetchall()
    for name in list(questions.load())[:: min(EXAMPLES_DIVISOR, 4)]:
        questions.ask(connection, name, {"since": "2026-06-01", "until": "2026-06-30", "session": "s"})


@pytest.mark.parametrize("name", STORES)
def test_every_shared_store_answers_every_view_and_question(shared_store: Any, name: str) -> None:
    connection = books.open_books(shared_store(name))
    _everything(connection)
    sessions = connection.execute("SELECT count(*) FROM sessions").fetchone()
    assert connection.execute("SELECT count(*) FROM ledger_lineage").fetchone() == sessions


@pytest.mark.parametrize(("table", "column"), OPTIONAL)
def test_a_store_that_lacks_an_optional_column_answers(tmp_path: Path, table: str, column: str) -> None:
    path = books.write(tmp_path / "state.db", **SAMPLE, without=[(table, column)])
    connection = books.open_books(path)
    _everything(connection)
    assert (table, column) in [(t, c) for t, columns in Shape.read(connection).missing.items() for c in columns]


@pytest.mark.parametrize("table", ["session_model_usage"])
def test_a_store_that_lacks_an_optional_table_answers(tmp_path: Path, table: str) -> None:
    connection = books.open_books(books.write(tmp_path / "state.db", **SAMPLE, without=[(table, None)]))
    _everything(connection)
    assert connection.execute("SELECT sum(input_tokens) FROM ledger_usage").fetchone() == (9,)


def test_an_empty_store_answers(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "state.db")
    schema.create(writer)
    writer.commit()
    writer.close()
    connection = books.open_books(tmp_path / "state.db")
    _everything(connection)
    assert connection.execute("SELECT count(*) FROM ledger_usage").fetchone() == (0,)


def test_a_newer_store_with_unknown_columns_answers(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", **SAMPLE)
    writer = sqlite3.connect(path)
    writer.executescript(
        "ALTER TABLE sessions ADD COLUMN last_activity_at REAL; ALTER TABLE sessions ADD COLUMN mood BLOB;"
        "ALTER TABLE session_model_usage ADD COLUMN region TEXT; CREATE TABLE schema_version (version INTEGER);"
        "INSERT INTO schema_version VALUES (99); UPDATE sessions SET last_activity_at = 1790000000 WHERE id = 's0';"
    )
    writer.close()
    connection = books.open_books(path)
    _everything(connection)
    assert Shape.read(connection).version == 99
    active = connection.execute("SELECT last_active FROM ledger_sessions WHERE session_id = 's0'").fetchone()
    assert active == (1790000000.0,)


def test_a_database_that_is_not_a_store_is_left_alone(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "other.db")
    writer.execute("CREATE TABLE sessions (number INTEGER)")
    writer.close()
    connection = books.open_books(tmp_path / "other.db")
    assert connection.execute("SELECT count(*) FROM sqlite_temp_master").fetchone() == (0,)


def test_making_the_views_reads_no_row(tmp_path: Path) -> None:
    connection = sqlite3.connect(f"file:{books.write(tmp_path / 'state.db', **SAMPLE)}?mode=ro", uri=True)
    shape = Shape.read(connection)
    touched: list[tuple[Any, ...]] = []

    def watch(action: int, table: Any, column: Any, database: Any, _trigger: Any) -> int:
        if action == 20 and database == "main":  # SQLITE_READ
            touched.append((table, column))
        return 0

    connection.set_authorizer(watch)
    from state_ledger import ledger

    ledger.install(connection, shape=shape)
    assert touched == []


def test_the_documentation_is_that_of_the_views() -> None:
    page = Path(__file__).resolve().parents[1] / "docs" / "semantic-layer.md"
    assert page.read_text(encoding="utf-8") == documentation.render(), (
        "run: python -m state_ledger.ledger.documentation > docs/semantic-layer.md"
    )


def test_every_view_is_documented() -> None:
    connection = sqlite3.connect(":memory:")
    schema.create(connection)
    made = [name for name, _ in view_statements(Shape.read(connection))]
    assert sorted(made) == sorted(documentation.VIEWS)


@pytest.mark.parametrize(
    ("stored", "canonical"),
    [
        ("anthropic/claude-sonnet-4.6", "claude-sonnet-4.6"),
        ("OpenRouter/Anthropic/Claude-Opus-4-5-20251101", "claude-opus-4-5"),
        ("gpt-5.2-2026-01-31", "gpt-5.2"),
        ("model@20260229", "model"),
        ("qwen3-coder:30b", "qwen3-coder:30b"),
        ("gpt-4-0613", "gpt-4-0613"),  # not a date
        ("big-20261399", "big-20261399"),  # nor is this
        ("  ", "unknown"), ("", "unknown"), (None, "unknown"), ("vendor/", "vendor"),
        (b"caf\xff", "caf\ufffd"),
    ],
)  # fmt: skip
def test_one_name_per_model(stored: Any, canonical: str) -> None:
    assert canonical_model(stored) == canonical


def test_rows_that_are_not_utf8_break_no_view(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", **SAMPLE)
    writer = sqlite3.connect(path)
    for table, column in itertools.chain(
        (("sessions", name) for name in ("title", "source", "model", "cwd")),
        (("messages", name) for name in ("content", "role", "tool_name")),
        (("session_model_usage", name) for name in ("model", "billing_provider", "task")),
    ):
        writer.execute(f"UPDATE {table} SET {column} = CAST(x'ff41fe' AS TEXT)")
    writer.commit()
    writer.close()
    connection = books.open_books(path)
    _everything(connection)
    assert connection.execute("SELECT DISTINCT text FROM ledger_messages").fetchall() == [("\ufffdA\ufffd",)]
    problems = {problem for (problem,) in connection.execute("SELECT problem FROM ledger_messages")}
    assert all("UTF-8" in problem for problem in problems)


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ("\x00json:" + '[{"type": "text", "text": "one"}, {"type": "text", "text": "둘"}]', "one\n\n둘"),
        (
            "\x00json:" + '[{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]',
            "[image: image/png, 3 bytes]",
        ),
        ("\x00json:" + '{"type": "text", "text": "alone"}', "alone"),
        ("\x00json:" + '"a word"', "a word"),
        ("\x00json:" + "[1, null]", "1\n\nnull"),
        ("\x00json:{broken", "{broken"),
        (7, "7"),
    ],
)
def test_content_as_a_person_reads_it(stored: Any, text: str) -> None:
    decoded = content.decode(stored)
    assert decoded.text == text
    assert (decoded.problem is not None) == (text == "{broken")


def test_a_message_stored_twice_by_compaction_is_shown_once(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session("s")],
        messages=[
            books.message("s", 1.0e9, id=1, content="kept", active=0, compacted=1),
            books.message("s", 1.1e9, content="gone", active=0, compacted=1),
            books.message("s", 1.2e9, content="undone", active=0, compacted=0),
            books.message("s", 1.0e9, content="kept", active=1, compacted=0),
            books.message("s", 1.3e9, content="old", active=None),
        ],
    )
    rows = books.open_books(path).execute("SELECT id, text, state, copies FROM ledger_messages ORDER BY id").fetchall()
    assert rows == [
        (1, "kept", "live", 2),
        (2, "gone", "compacted", 1),
        (3, "undone", "taken back", 1),
        (5, "old", "live", 1),
    ]


def test_tool_calls_that_are_not_a_list_of_calls_are_no_calls(tmp_path: Path) -> None:
    calls = [
        '[{"id": "1", "function": {"name": "terminal"}}, {"name": "search"}]',
        "{",
        '{"id": 1}',
        '["x", 3]',
        "null",
        "",
    ]
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session("s")],
        messages=[books.message("s", 1780315300.0 + n, "assistant", tool_calls=text) for n, text in enumerate(calls)],
    )
    rows = books.open_books(path).execute("SELECT tool_call_id, tool_name FROM ledger_tool_calls").fetchall()
    assert rows == [("1", "terminal"), (None, "search")]
