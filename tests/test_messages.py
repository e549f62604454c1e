"""Messages are stored whole or refused aloud, and read back as they were given."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import ledger, messages, sessions
from state_ledger.errors import CompressionSessionBusyError, CompressionSessionClosedError
from state_ledger.schema import declared_columns
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests.conftest import fewer


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    """One store for all examples of a law: each adds a message and looks at that message only."""
    writer = Writer(tmp_path_factory.mktemp("messages") / "state.db")
    sessions.create_session(writer, "s", "cli")
    yield writer
    writer.close()


def stored(writer: Writer, row_id: int, column: str) -> Any:
    return writer.value(f"SELECT {column} FROM messages WHERE id = ?", (row_id,))


def counts(writer: Writer, session_id: str = "s") -> tuple[int, int]:
    row = writer.row("SELECT message_count, tool_call_count FROM sessions WHERE id = ?", (session_id,))
    assert row is not None
    return tuple(row)


def last(writer: Writer, session_id: str = "s") -> dict[str, Any]:
    return messages.get_messages(writer, session_id)[-1]


def indexes_are_sound(writer: Writer) -> None:
    for index in ("messages_fts", "messages_fts_trigram"):
        writer.connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
ANY_TEXT = st.text(st.characters(exclude_categories=()))
QUIET = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@QUIET
@given(content=st.lists(JSON) | st.dictionaries(st.text(), JSON))
def test_structured_content_is_read_back_equal(lasting: Writer, content: Any) -> None:
    row_id = messages.append_message(lasting, "s", "user", content)
    assert stored(lasting, row_id, "CAST(content AS BLOB)").startswith(b"\x00json:")
    assert last(lasting)["content"] == content


@QUIET
@given(text=ANY_TEXT)
def test_any_text_is_stored_and_shown(lasting: Writer, text: str) -> None:
    row_id = messages.append_message(
        lasting, "s", "assistant", text, tool_name=text, reasoning=text, reasoning_content=text, api_content=text,
        display_kind=text, finish_reason=text, tool_call_id=text, tool_calls=[{"id": text}], reasoning_details=[text],
    )  # fmt: skip
    expected = "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    message = last(lasting)
    for name in ("content", "tool_name", "reasoning", "reasoning_content", "api_content", "display_kind"):
        assert message[name] == expected, name
    assert len(message["tool_calls"]) == 1
    shown = lasting.value("SELECT text FROM ledger_messages WHERE id = ?", (row_id,))
    assert shown == expected.replace("\x00", "\ufffd")  # a NUL is shown, not obeyed


@pytest.fixture(autouse=True, scope="module")
def _views(lasting: Writer) -> None:
    ledger.install(lasting.connection, profile="test", settings=None)


def test_every_argument_is_kept(store: Writer) -> None:
    given_values: dict[str, Any] = {
        "tool_name": "grep", "tool_call_id": "c1", "token_count": 7, "finish_reason": "stop", "reasoning": "r",
        "reasoning_content": "", "platform_message_id": "p1", "effect_disposition": "none", "timestamp": 12.5,
        "api_content": "sent", "display_kind": "hidden",
    }  # fmt: skip
    row_id = messages.append_message(
        store, "s", "assistant", "text", tool_calls=[{"id": "a"}, {"id": "b"}], reasoning_details=[{"k": 1}],
        codex_reasoning_items=[1], codex_message_items={"a": 2}, observed=True, display_metadata={"m": [1]},
        **given_values,
    )  # fmt: skip
    [message] = messages.get_messages(store, "s")
    assert tuple(message) == declared_columns("messages")
    assert message == {
        "id": row_id, "session_id": "s", "role": "assistant", "content": "text",
        "tool_calls": [{"id": "a"}, {"id": "b"}], "reasoning_details": '[{"k": 1}]', "codex_reasoning_items": "[1]",
        "codex_message_items": '{"a": 2}', "observed": 1, "active": 1, "compacted": 0, "display_metadata": {"m": [1]},
        **given_values,
    }  # fmt: skip
    assert counts(store) == (1, 2)
    assert store.value("SELECT input_tokens + output_tokens FROM sessions") == 0


@pytest.mark.parametrize(
    ("calls", "text", "counted"),
    [
        (None, None, 0),
        ([], None, 0),
        ({}, None, 0),
        ("", None, 0),
        ("not json", None, 0),
        ("null", None, 0),
        ("[]", None, 0),
        ('[{"id":"x"}]', '[{"id": "x"}]', 1),
        ([1, 2, 3], "[1, 2, 3]", 3),
        ({"a": 1}, '{"a": 1}', 1),
        ([{"f": "\ud800"}], '[{"f": "\\ufffd"}]', 1),
        ([{"f": "😀"}], '[{"f": "\\ud83d\\ude00"}]', 1),
    ],
)
def test_tool_calls_are_stored_once_encoded_and_counted(
    store: Writer, calls: Any, text: str | None, counted: int
) -> None:
    row_id = messages.append_message(store, "s", "assistant", "x", tool_calls=calls)
    assert stored(store, row_id, "tool_calls") == text
    assert counts(store) == (1, counted)


def test_a_tool_result_counts_as_no_call(store: Writer) -> None:
    messages.append_message(store, "s", "tool", "result", tool_call_id="c1", tool_name="grep")
    assert counts(store) == (1, 0)


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (None, None),
        ("", ""),
        (5, "5"),
        (1.5, "1.5"),
        (b"\x00\xff", b"\x00\xff"),
        (2**70, str(2**70)),
        (math.nan, "nan"),
        ((1, 2), [1, 2]),
        ({1}, "{1}"),
        ({"a": {1}}, "{'a': {1}}"),
        ("a\ud800b", "a\ufffdb"),
        (["\udfff", {"\ud800": 1}], ["\ufffd", {"\ufffd": 1}]),
        ("a\x00b", "a\x00b"),
        ("\x00json:[1", "\x00json:[1"),
        ("json:[1]", "json:[1]"),
        ([], []),
        ({}, {}),
    ],
)
def test_content_of_any_kind_is_kept(store: Writer, content: Any, kept: Any) -> None:
    messages.append_message(store, "s", "user", content)
    assert last(store)["content"] == kept
    indexes_are_sound(store)


def test_what_cannot_be_said_in_json_or_text_at_all_is_refused_and_not_half_stored(store: Writer) -> None:
    loop: list[Any] = []
    loop.append(loop)
    for arguments in ({"tool_name": {"a": 1}}, {"reasoning": ["x"]}, {"role": ["user"]}):
        with pytest.raises(TypeError, match="must be text"):
            messages.append_message(store, "s", **{"role": "user", "content": "x", **arguments})
    with pytest.raises(ValueError, match="Circular"):
        messages.append_message(store, "s", "assistant", "x", tool_calls=loop)
    assert (counts(store), messages.message_count(store)) == ((0, 0), 0)


def test_values_that_are_json_text_already_are_not_encoded_twice(store: Writer) -> None:
    row_id = messages.append_message(
        store, "s", "assistant", "x", reasoning_details='[{"a":1}]', codex_reasoning_items="plain",
        codex_message_items=[],
    )  # fmt: skip
    assert stored(store, row_id, "reasoning_details") == '[{"a":1}]'
    assert stored(store, row_id, "codex_reasoning_items") == '"plain"'
    assert stored(store, row_id, "codex_message_items") is None


def test_display_metadata_that_is_no_object_is_left_out_with_a_warning(
    store: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    for value, kept in (({"a": 1}, '{"a": 1}'), ('{"a":1}', '{"a":1}'), (None, None)):
        assert stored(store, messages.append_message(store, "s", "user", "x", display_metadata=value),
                      "display_metadata") == kept  # fmt: skip
    assert not caplog.records
    for number, value in enumerate(("[1]", "bad", 5, {"a": {1}}), start=1):
        row_id = messages.append_message(store, "s", "user", "x", display_metadata=value)  # type: ignore[arg-type]
        assert stored(store, row_id, "display_metadata") is None
        assert len(caplog.records) == number


@pytest.mark.parametrize("valid", [0, -5, 12.5, "12.5", 1e13, datetime(2026, 1, 1, tzinfo=timezone.utc)])
def test_a_valid_time_is_kept(store: Writer, valid: Any) -> None:
    messages.append_message(store, "s", "user", "x", timestamp=valid)
    assert last(store)["timestamp"] == (valid.timestamp() if isinstance(valid, datetime) else float(valid))


@pytest.mark.parametrize("invalid", [None, "x", math.nan, math.inf, [1], 10**400, "2026-01-01"])
def test_an_invalid_time_becomes_the_present(store: Writer, invalid: Any) -> None:
    before = time.time()
    messages.append_message(store, "s", "user", "x", timestamp=invalid)
    assert before <= last(store)["timestamp"] <= time.time()


def test_a_message_of_many_megabytes_is_stored_found_and_deleted(store: Writer) -> None:
    text = "needle " + "hay é " * (fewer(50) * 1024 * 1024 // 7)
    assert len(text.encode()) > fewer(50) * 1_000_000
    row_id = messages.append_message(store, "s", "assistant", text)
    assert last(store)["content"] == text
    assert store.value("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'needle'") == row_id
    store.write(lambda connection: connection.execute("DELETE FROM messages"))
    assert store.value("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'needle'") is None


def test_an_unknown_session_is_refused(store: Writer) -> None:
    for session_id in ("nope", "", "\ud800"):
        with pytest.raises(sqlite3.IntegrityError):
            messages.append_message(store, session_id, "user", "x")
        with pytest.raises(sqlite3.IntegrityError):
            messages.append_messages(store, session_id, [{"role": "user", "content": "x"}])
    assert messages.message_count(store) == 0


def lock(writer: Writer, holder: str, expires_in_s: float) -> None:
    now = time.time()
    writer.write(
        lambda connection: connection.execute(
            "INSERT OR REPLACE INTO compression_locks VALUES ('s', ?, ?, ?)", (holder, now, now + expires_in_s)
        )
    )


def test_a_session_that_somebody_else_compresses_takes_nothing(store: Writer) -> None:
    lock(store, "compressor", 60)
    turn = [{"role": "user", "content": "x"}]
    for holder in (None, "another"):
        with pytest.raises(CompressionSessionBusyError) as caught:
            messages.append_message(store, "s", "user", "x", compression_lock_holder=holder)
        assert (caught.value.session_id, caught.value.holder) == ("s", "compressor")
        with pytest.raises(CompressionSessionBusyError):
            messages.append_messages(store, "s", turn, compression_lock_holder=holder)
    assert counts(store) == (0, 0)
    messages.append_message(store, "s", "user", "mine", compression_lock_holder="compressor")
    lock(store, "compressor", -1)
    messages.append_message(store, "s", "user", "expired")
    assert counts(store) == (2, 0)


def test_a_session_ended_by_compression_takes_nothing_and_any_other_end_does_not_matter(store: Writer) -> None:
    sessions.create_session(store, "other", "cli")
    sessions.end_session(store, "s", "compression")
    sessions.end_session(store, "other", "user_exit")
    with pytest.raises(CompressionSessionClosedError) as caught:
        messages.append_message(store, "s", "user", "x")
    assert caught.value.session_id == "s"
    assert isinstance(caught.value, RuntimeError)
    messages.append_message(store, "other", "user", "x")
    assert (counts(store), counts(store, "other")) == ((0, 0), (1, 0))
    sessions.reopen_session(store, "s")
    messages.append_message(store, "s", "user", "x")


def test_a_turn_is_stored_in_order_and_counted(store: Writer) -> None:
    ids = messages.append_messages(
        store,
        "s",
        (
            message
            for message in [
                {"role": "user", "content": "q", "message_id": "p7"},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}, {"id": "2"}]},
                {"role": "tool", "content": ["r"], "tool_call_id": "1", "timestamp": 3},
            ]
        ),
    )
    rows = messages.get_messages(store, "s")
    assert [row["id"] for row in rows] == ids == sorted(ids)
    assert [row["content"] for row in rows] == ["q", None, ["r"]]
    assert rows[0]["platform_message_id"] == "p7"
    assert rows[0]["timestamp"] < rows[1]["timestamp"]
    assert rows[2]["timestamp"] == 3.0
    assert counts(store) == (3, 2)
    assert messages.append_messages(store, "s", []) == []


@pytest.mark.parametrize(
    "bad", ["text", {"content": "no role"}, {"role": "user", "contents": "x"}, {"role": "user", "tool_name": []}]
)
def test_of_a_turn_with_a_bad_message_nothing_is_stored(store: Writer, bad: Any) -> None:
    with pytest.raises(TypeError):
        messages.append_messages(store, "s", [{"role": "user", "content": "good"}, bad])
    assert (messages.message_count(store), counts(store)) == (0, (0, 0))


def test_of_a_turn_that_the_store_refuses_half_way_nothing_is_stored(store: Writer) -> None:
    with pytest.raises(OverflowError):
        messages.append_messages(store, "s", [{"role": "user"}, {"role": "user", "token_count": 2**70}])
    assert (messages.message_count(store), counts(store)) == (0, (0, 0))


def test_rows_of_one_session_can_be_appended_to_another(store: Writer) -> None:
    sessions.create_session(store, "copy", "cli")
    messages.append_message(store, "s", "assistant", [{"a": "é"}], tool_calls=[{"id": 1}], reasoning_details=[1])
    messages.append_messages(store, "copy", messages.get_messages(store, "s"))
    [first], [second] = (messages.get_messages(store, name) for name in ("s", "copy"))
    assert {**first, "id": 0, "session_id": ""} == {**second, "id": 0, "session_id": ""}


def test_threads_that_share_a_handle_lose_nothing_and_keep_their_order(store: Writer) -> None:
    def write(name: str) -> None:
        for number in range(50):
            messages.append_message(store, "s", "user", f"{name} {number}")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [row["content"] for row in messages.get_messages(store, "s")]
    for name in "abcd":
        assert [text for text in found if text.startswith(name)] == [f"{name} {number}" for number in range(50)]
    assert counts(store) == (200, 0)
