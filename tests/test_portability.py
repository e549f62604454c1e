"""What is exported from one store is the same in another after import."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import messages, portability, sessions, titles, usage
from state_ledger.content import PREFIX
from state_ledger.messages import rewriting
from state_ledger.portability import imports
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "one.db")
    sessions.create_session(writer, "s", "cli", model="m", model_config={"a": 1}, cwd="/w", chat_id="chat")
    yield writer
    writer.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "other.db")
    yield writer
    writer.close()


def indexes_are_sound(writer: Writer) -> None:
    for index in ("messages_fts", "messages_fts_trigram"):
        writer.connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
    assert writer.rows("PRAGMA foreign_key_check") == []


def raw(writer: Writer) -> list[tuple[Any, ...]]:
    return [
        tuple(row)
        for row in writer.rows(
            "SELECT role, CAST(content AS BLOB), tool_calls, display_metadata, timestamp FROM messages ORDER BY id"
        )
    ]


def refused(writer: Writer, *given_sessions: Any) -> list[dict[str, Any]]:
    answer = portability.import_sessions(writer, list(given_sessions))
    assert (answer["ok"], answer["imported"], answer["skipped"], answer["detached"]) == (False, 0, 0, 0)
    assert writer.value("SELECT count(*) FROM sessions") == 0
    errors: list[dict[str, Any]] = answer["errors"]
    return errors


def test_an_export_is_the_session_and_its_live_messages(store: Writer) -> None:
    messages.append_messages(store, "s", [{"role": "user", "content": ["x"]}, {"role": "user", "content": "back"}])
    rewriting.rewind_to_message(store, "s", 2)
    exported = portability.export_session(store, "s")
    assert exported == {**(sessions.get_session(store, "s") or {}), "messages": messages.get_messages(store, "s")}
    assert len(exported["messages"]) == 1
    assert portability.export_session(store, "nope") is None


def test_all_sessions_are_exported_the_last_active_first(store: Writer) -> None:
    sessions.create_session(store, "child", "tool", parent_session_id="s")
    sessions.create_session(store, "later", "cli")
    store.write(lambda c: c.execute("UPDATE sessions SET started_at = 10, archived = id = 'later'"))
    messages.append_message(store, "s", "user", "x", timestamp=30)
    messages.append_message(store, "later", "user", "x", timestamp=20)
    exported = portability.export_all(store)
    assert [(session["id"], session["last_active"]) for session in exported] == [
        ("s", 30.0), ("later", 20.0), ("child", 10.0),
    ]  # fmt: skip
    assert [len(session["messages"]) for session in exported] == [1, 1, 0]
    assert [session["id"] for session in portability.export_all(store, source="tool")] == ["child"]
    assert portability.export_all(store, source="none") == []
    assert isinstance(portability.iterate_sessions(store), types.GeneratorType)


def test_a_long_session_comes_in_pages(store: Writer) -> None:
    turn = [{"role": "user", "content": str(number)} for number in range(1001)]
    messages.append_messages(store, "s", turn)
    stream = portability.iterate_messages(store, "s")
    assert next(stream)["content"] == "0"
    messages.append_message(store, "s", "user", "meanwhile")
    assert [message["content"] for message in stream] == [str(number) for number in range(1, 1001)]


def test_a_conversation_is_exported_over_its_segments(store: Writer) -> None:
    messages.append_message(store, "s", "user", "first")
    sessions.end_session(store, "s", "compression")
    sessions.create_session(store, "s2", "cli", parent_session_id="s")
    messages.append_message(store, "s2", "user", "second")
    for session_id in ("s", "s2"):
        exported = portability.export_session_lineage(store, session_id)
        assert exported is not None
        assert (exported["id"], exported["message_count"]) == ("s2", 2)
        assert exported["lineage_session_ids"] == ["s", "s2"]
        assert [segment["id"] for segment in exported["segments"]] == ["s", "s2"]
        assert [message["content"] for message in exported["messages"]] == ["first", "second"]
    assert portability.export_session_lineage(store, "nope") is None


def test_an_import_keeps_the_session_and_drops_what_ties_it_to_its_place(store: Writer, other: Writer) -> None:
    store.write(
        lambda c: c.execute(
            "UPDATE sessions SET title = 't', input_tokens = 5, estimated_cost_usd = 0.5, archived = 1, pinned = 1,"
            " ended_at = 9.5, end_reason = 'done', rewind_count = 3, profile_name = 'p', message_count = 77"
        )
    )
    messages_before = [{"role": "assistant", "content": "x", "tool_calls": [{"id": 1}], "reasoning_details": "[1]"}]
    messages.append_messages(store, "s", messages_before)
    exported = json.loads(json.dumps(portability.export_all(store)))
    assert portability.import_sessions(other, exported) == {
        "ok": True, "imported": 1, "skipped": 0, "detached": 0, "imported_ids": ["s"], "skipped_ids": [], "errors": [],
    }  # fmt: skip
    before, after = sessions.get_session(store, "s"), sessions.get_session(other, "s")
    assert before is not None and after is not None
    dropped = {"chat_id": None, "pinned": 0, "rewind_count": 0, "profile_name": None, "message_count": 1}
    assert after == {**before, **dropped}
    again = portability.import_sessions(other, exported)
    assert (again["imported"], again["skipped"], again["skipped_ids"]) == (0, 1, ["s"])
    assert messages.message_count(other) == 1
    indexes_are_sound(other)


def test_rows_of_calls_travel_with_their_session_and_totals_do_not_double(store: Writer, other: Writer) -> None:
    for model in ("a", "b"):
        usage.update_token_counts(
            store, "s", input_tokens=10, output_tokens=1, model=model, billing_provider="p", api_call_count=1,
            estimated_cost_usd=0.25,
        )  # fmt: skip
    usage.record_auxiliary_usage(store, "s", "vision", model="v", input_tokens=3)
    exported = json.loads(json.dumps(portability.export_all(store)))
    portability.import_sessions(other, exported)
    portability.import_sessions(other, exported)
    rows = "SELECT * FROM session_model_usage ORDER BY model, task"
    assert len(store.rows(rows)) == 3
    assert [tuple(row) for row in other.rows(rows)] == [tuple(row) for row in store.rows(rows)]
    assert tuple(other.rows("SELECT input_tokens, estimated_cost_usd FROM sessions")[0]) == (20, 0.5)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool"]),
        "content": st.none() | st.text() | st.lists(JSON) | st.dictionaries(st.text(), JSON),
        "timestamp": st.floats(0, 2e9),
    },
    optional={
        "tool_calls": st.lists(JSON, min_size=1),
        "display_metadata": st.dictionaries(st.text(), JSON),
        "api_content": st.text(),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(turn=st.lists(MESSAGE, max_size=4))
def test_export_and_import_keep_every_message_to_the_byte(
    store: Writer, other: Writer, turn: list[dict[str, Any]]
) -> None:
    rewriting.clear_messages(store, "s")
    messages.append_messages(store, "s", turn)
    other.write(lambda c: (c.execute("DELETE FROM messages"), c.execute("DELETE FROM sessions")))
    answer = portability.import_sessions(other, json.loads(json.dumps(portability.export_all(store))))
    assert answer["ok"], answer
    assert raw(other) == raw(store)
    first, second = (messages.get_messages(writer, "s") for writer in (store, other))
    assert [{**message, "id": 0} for message in first] == [{**message, "id": 0} for message in second]


def test_content_that_another_program_wrote_in_its_own_way_keeps_its_bytes(store: Writer, other: Writer) -> None:
    parts = (
        '[{"type":"text","text":"harbour photo"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},'
        '{"type":"text","text":"\\u6842\\u6797\\u65c5\\u6e38"}]'
    )
    store.write(
        lambda c: c.executemany(
            "INSERT INTO messages(session_id, role, content, timestamp, tool_calls, display_metadata)"
            " VALUES ('s', 'user', ?, ?, ?, ?)",
            [
                (PREFIX + parts, 1, '[ {"id":1} ]', '{"a":"é"}'),
                ("plain harbour text", 2, None, None),
                (PREFIX + "[broken", 3, None, None),
                ("json:[1]", 4, None, None),
            ],
        )
    )
    exported = json.loads(json.dumps(portability.export_all(store)))
    first, second, third, fourth = exported[0]["messages"]
    assert [part["type"] for part in first["content"]] == ["text", "image_url", "text"]
    assert first["content"][2]["text"] == "桂林旅游"
    assert (first["tool_calls"], first["display_metadata"]) == ([{"id": 1}], {"a": "é"})
    assert not any("stored" in message for message in (second, third, fourth))
    assert portability.import_sessions(other, exported)["ok"]
    assert raw(other) == raw(store)
    first["content"] = [{"type": "text", "text": "edited"}]
    other.write(lambda c: (c.execute("DELETE FROM messages"), c.execute("DELETE FROM sessions")))
    portability.import_sessions(other, exported)
    assert messages.get_messages(other, "s")[0]["content"] == [{"type": "text", "text": "edited"}]


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (5, "object"),
        ({}, "id"),
        ({"id": "  "}, "id"),
        ({"id": "a", "messages": "x"}, "messages"),
        ({"id": "a", "messages": ["x"]}, r"messages\[0\]"),
        ({"id": "a", "messages": [{"content": "x"}]}, "role"),
        ({"id": "a", "messages": [{"role": " "}]}, "role"),
        ({"id": "a", "messages": [{"role": 5}]}, "role"),
        ({"id": "a", "messages": [{"role": "user", "tool_name": 5}]}, "tool_name"),
        ({"id": "a", "messages": [{"role": "user", "token_count": "x"}]}, "token_count"),
        ({"id": "a", "title": 5}, "title"),
        ({"id": "a", "parent_session_id": 5}, "parent_session_id"),
        ({"id": "a", "model_config": "bad"}, "model_config"),
        ({"id": "a", "model_config": "[1]"}, "model_config"),
        ({"id": "a", "model_config": 5}, "model_config"),
        ({"id": "a", "usage": [5]}, "usage"),
        ({"id": "a", "usage": [{"model": 5}]}, "model"),
        ({"id": "a", "usage": [{"model": "m"}, {"model": "m"}]}, "same model"),
        ({"id": "a", "extra": object()}, "JSON"),
        ({"id": "a", "messages": [{"role": "user"}] * 10_001}, "10000 messages"),
        ({"id": "a", "messages": [{"role": "user", "content": "x" * (5 << 20)}]}, "bytes"),
        ({"id": "good"}, "same id"),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(given),
)
def test_one_bad_session_and_nothing_is_imported(other: Writer, bad: Any, word: str) -> None:
    [error] = refused(other, {"id": "good", "messages": [{"role": "user", "content": "x"}]}, bad)
    assert error["index"] == 1
    assert error.get("session_id") == (bad.get("id", "").strip() or None if isinstance(bad, dict) else None)
    assert re.search(word, error["error"]), error


def test_every_bad_session_is_named(other: Writer) -> None:
    assert [error["index"] for error in refused(other, {"id": "a"}, 5, {"id": "b"}, {"id": "c", "title": 1})] == [1, 3]


def test_limits_of_the_whole_import(other: Writer) -> None:
    many = [{"id": str(n), "messages": [{"role": "user"}] * 10_000} for n in range(6)]
    assert [error["index"] for error in refused(other, *many)] == [5]
    large = [{"id": str(n), "messages": [{"role": "user", "content": "x" * (4 << 20)}]} for n in range(7)]
    assert [error["index"] for error in refused(other, *large)] == [6]
    with pytest.raises(ValueError, match="500"):
        portability.import_sessions(other, [{"id": str(n)} for n in range(501)])
    for no_list in ("x", {"id": "a"}, None, ({"id": "a"},)):
        with pytest.raises(ValueError, match="list"):
            portability.import_sessions(other, no_list)  # type: ignore[arg-type]
    assert portability.import_sessions(other, [{"id": str(n)} for n in range(imports.MAX_SESSIONS)])["imported"] == 500


def test_what_is_missing_or_no_number_gets_a_default(other: Writer) -> None:
    answer = portability.import_sessions(
        other, [{"id": 5, "started_at": "x", "input_tokens": "x", "messages": None, "title": ""}, {"id": " b "}]
    )
    assert answer["imported_ids"] == ["5", "b"]
    row = sessions.get_session(other, "5")
    assert row is not None
    assert (row["source"], row["input_tokens"], row["title"], row["message_count"]) == ("import", 0, None, 0)
    assert row["started_at"] > 1e9


def test_parents_are_linked_when_they_are_there_and_no_loop_closes(other: Writer) -> None:
    sessions.create_session(other, "old", "cli")
    answer = portability.import_sessions(
        other,
        [
            {"id": "child", "parent_session_id": "parent"},
            {"id": "parent", "parent_session_id": "old"},
            {"id": "lost", "parent_session_id": "nowhere"},
            {"id": "self", "parent_session_id": "self"},
            {"id": "x", "parent_session_id": "y"},
            {"id": "y", "parent_session_id": "x"},
        ],
    )
    assert (answer["ok"], answer["imported"], answer["detached"]) == (True, 6, 3)
    links = dict(map(tuple, other.rows("SELECT id, parent_session_id FROM sessions")))
    assert {key: links[key] for key in ("child", "parent", "lost", "self")} == {
        "child": "parent", "parent": "old", "lost": None, "self": None,
    }  # fmt: skip
    assert sorted((links["x"] or "", links["y"] or "")) in (["", "x"], ["", "y"])


def test_a_title_in_use_stops_the_whole_import(store: Writer, other: Writer) -> None:
    titles.set_session_title(store, "s", "taken")
    sessions.create_session(other, "mine", "cli")
    titles.set_session_title(other, "mine", "taken")
    with pytest.raises(sqlite3.IntegrityError):
        portability.import_sessions(other, [{"id": "first"}, *portability.export_all(store)])
    assert [row[0] for row in other.rows("SELECT id FROM sessions")] == ["mine"]


def test_messages_of_sessions_ended_by_compression_are_imported_too(other: Writer) -> None:
    portability.import_sessions(
        other, [{"id": "a", "ended_at": 5, "end_reason": "compression", "messages": [{"role": "user", "content": "x"}]}]
    )
    assert messages.message_count(other, "a") == 1


@pytest.mark.parametrize("name", ["small-23.db", "schema-23.db", "small-1.db"])
def test_stores_of_the_real_program_travel_whole(
    shared_store: Callable[[str], Path], other: Writer, name: str
) -> None:
    with_live_only = "SELECT session_id, role, CAST(content AS BLOB), tool_calls, timestamp FROM messages"
    source = Writer(shared_store(name))
    exported = json.loads(json.dumps(portability.export_all(source)))[:100]
    answer = portability.import_sessions(other, exported)
    assert answer["ok"], answer["errors"]
    ids = {session["id"] for session in exported}
    expected = [tuple(row) for row in source.rows(f"{with_live_only} WHERE active IS NOT 0") if row[0] in ids]
    assert sorted(map(repr, map(tuple, other.rows(with_live_only)))) == sorted(map(repr, expected))
    source.close()
    indexes_are_sound(other)
