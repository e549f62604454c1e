"""Rewriting a session changes what it says it changes, all of it or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import messages, sessions
from state_ledger.errors import CompressionSessionClosedError
from state_ledger.messages import rewriting
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer


def talk(writer: Writer, *texts: str) -> list[int]:
    roles = ("user", "assistant")
    return messages.append_messages(
        writer, "s", [{"role": roles[i % 2], "content": text, "timestamp": i + 1} for i, text in enumerate(texts)]
    )


def rows(writer: Writer) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in writer.rows("SELECT content, active, compacted FROM messages ORDER BY id")]


def counts(writer: Writer) -> tuple[int, int]:
    row = writer.row("SELECT message_count, tool_call_count FROM sessions WHERE id = 's'")
    assert row is not None
    return tuple(row)


def test_replaced_messages_are_the_new_ones_with_their_counts(store: Writer) -> None:
    talk(store, "old", "older")
    rewriting.replace_messages(
        store,
        "s",
        [
            {"role": "user", "content": "a", "timestamp": 5, "message_id": "pm", "reasoning": "r", "extra": 1},
            {"role": "assistant", "content": "b", "reasoning": "r", "tool_calls": '[{"id":1},{"id":2}]'},
            {"content": "no role", "timestamp": "bad"},
        ],
    )
    first, second, third = messages.get_messages(store, "s")
    assert (first["timestamp"], first["platform_message_id"], first["reasoning"]) == (5.0, "pm", None)
    assert (second["reasoning"], second["tool_calls"]) == ("r", [{"id": 1}, {"id": 2}])
    assert third["role"] == "unknown"
    assert second["timestamp"] < third["timestamp"]
    assert counts(store) == (3, 2)
    rewriting.replace_messages(store, "s", [])
    assert (messages.message_count(store), counts(store)) == (0, (0, 0))


def test_replacing_the_live_ones_alone_leaves_the_record(store: Writer) -> None:
    ids = talk(store, "a", "b", "c")
    rewriting.rewind_to_message(store, "s", ids[2])
    rewriting.replace_messages(store, "s", [{"role": "user", "content": "new"}], active_only=True)
    assert rows(store) == [("c", 0, 0), ("new", 1, 0)]
    assert counts(store) == (1, 0)


def test_a_replacement_that_fails_changes_nothing(store: Writer) -> None:
    talk(store, "a", "b")
    before = (rows(store), counts(store))
    for bad in (5, "text", {"role": "user", "tool_name": []}):
        with pytest.raises(TypeError):
            rewriting.replace_messages(store, "s", [{"role": "user", "content": "new"}, bad])  # type: ignore[list-item]
    with pytest.raises(OverflowError):
        rewriting.replace_messages(store, "s", [{"role": "user"}, {"role": "user", "token_count": 2**70}])
    with pytest.raises(sqlite3.IntegrityError):
        rewriting.replace_messages(store, "nope", [{"role": "user", "content": "x"}])
    rewriting.replace_messages(store, "nope", [])
    sessions.end_session(store, "s", "compression")
    with pytest.raises(CompressionSessionClosedError):
        rewriting.replace_messages(store, "s", [])
    assert (rows(store), counts(store)) == before


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)
MESSAGE = st.fixed_dictionaries(
    {
        "role": ROLES,
        "content": st.none() | st.text() | st.lists(st.dictionaries(st.text(), JSON)),
        "timestamp": st.floats(0, 2e9),
    },
    optional={
        "tool_calls": st.lists(st.dictionaries(st.text(), JSON), min_size=1),
        "tool_call_id": st.text(),
        "tool_name": st.text(),
        "api_content": st.text(),
        "observed": st.booleans(),
        "display_metadata": st.dictionaries(st.text(), JSON),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(turn=st.lists(MESSAGE, max_size=5))
def test_replacing_messages_by_themselves_keeps_all_but_their_ids(store: Writer, turn: list[dict[str, Any]]) -> None:
    rewriting.replace_messages(store, "s", turn)
    before, counted = messages.get_messages(store, "s"), counts(store)
    bytes_of = "SELECT CAST(content AS BLOB), tool_calls, display_metadata FROM messages ORDER BY id"
    stored = [tuple(row) for row in store.rows(bytes_of)]
    rewriting.replace_messages(store, "s", before)
    assert [{**row, "id": 0} for row in messages.get_messages(store, "s")] == [{**row, "id": 0} for row in before]
    assert [tuple(row) for row in store.rows(bytes_of)] == stored
    assert counts(store) == counted == (len(turn), sum(len(m.get("tool_calls", ())) for m in turn))


def test_compacted_messages_stay_in_the_record_and_in_search(store: Writer) -> None:
    ids = talk(store, "alpha", "beta", "gamma")
    rewriting.rewind_to_message(store, "s", ids[2])
    compact = [{"role": "user", "content": "sum"}, {"role": "assistant", "content": "k", "tool_calls": [1, 2]}]
    assert rewriting.archive_and_compact(store, "s", compact) == 2
    assert rows(store) == [("alpha", 0, 1), ("beta", 0, 1), ("gamma", 0, 0), ("sum", 1, 0), ("k", 1, 0)]
    assert counts(store) == (2, 2)
    assert store.value("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'alpha'") == ids[0]
    assert rewriting.archive_and_compact(store, "nope", []) == 0
    with pytest.raises(sqlite3.IntegrityError):
        rewriting.archive_and_compact(store, "nope", compact)


def test_rewinding_hides_a_message_and_what_follows_until_it_is_restored(store: Writer) -> None:
    ids = talk(store, "a", "b", "c", "d")
    found = rewriting.rewind_to_message(store, "s", ids[2])
    assert (found["rewound_count"], found["new_head_id"]) == (2, ids[1])
    assert (found["target_message"]["content"], found["target_message"]["active"]) == ("c", 1)
    assert rows(store) == [("a", 1, 0), ("b", 1, 0), ("c", 0, 0), ("d", 0, 0)]
    assert counts(store) == (4, 0)
    again = rewriting.rewind_to_message(store, "s", ids[2])
    assert (again["rewound_count"], again["target_message"]["active"]) == (0, 0)
    assert rewriting.rewind_to_message(store, "s", ids[0])["new_head_id"] is None
    assert store.value("SELECT rewind_count FROM sessions") == 3
    assert rewriting.restore_rewound(store, "s", ids[1]) == 3
    assert rewriting.restore_rewound(store, "s", ids[1]) == 0
    assert [row[1] for row in rows(store)] == [0, 1, 1, 1]


def test_only_a_message_of_the_user_in_this_session_can_be_rewound_to(store: Writer) -> None:
    ids = talk(store, "a", "b")
    sessions.create_session(store, "other", "cli")
    for session_id, target in (("s", ids[1]), ("s", 999), ("other", ids[0]), ("nope", ids[0])):
        with pytest.raises(ValueError, match="essage"):
            rewriting.rewind_to_message(store, session_id, target)
    assert [row[1] for row in rows(store)] == [1, 1]
    assert store.value("SELECT max(rewind_count) FROM sessions") == 0


def test_compacted_messages_are_restored_as_live(store: Writer) -> None:
    ids = talk(store, "a", "b")
    rewriting.archive_and_compact(store, "s", [])
    assert rewriting.restore_rewound(store, "s", ids[0]) == 2
    assert [message["content"] for message in messages.get_messages(store, "s")] == ["a", "b"]


def test_clearing_takes_the_messages_and_leaves_the_session(store: Writer) -> None:
    talk(store, "alpha", "b")
    store.write(lambda c: c.execute("UPDATE sessions SET title = 't', input_tokens = 7, end_reason = 'compression'"))
    rewriting.clear_messages(store, "s")
    assert (rows(store), counts(store)) == ([], (0, 0))
    assert tuple(store.rows("SELECT title, input_tokens FROM sessions")[0]) == ("t", 7)
    assert store.value("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'alpha'") == 0
    rewriting.clear_messages(store, "nope")


@pytest.mark.parametrize("content", ["sent", [{"type": "text", "text": "é"}], 5])
def test_what_was_sent_is_noted_at_the_newest_message_of_the_user_if_it_is_that_one(
    store: Writer, content: Any
) -> None:
    messages.append_message(store, "s", "user", content)
    row_id = messages.append_message(store, "s", "user", content)
    messages.append_message(store, "s", "assistant", content)
    assert rewriting.set_latest_user_api_content(store, "s", content, "api\ud800") == 1
    assert rewriting.set_latest_user_api_content(store, "s", "another", "no") == 0
    assert [tuple(r) for r in store.rows("SELECT id, api_content FROM messages WHERE api_content IS NOT NULL")] == [
        (row_id, "api\ufffd")
    ]


def test_the_newest_live_message_of_a_text_is_shown_otherwise(store: Writer) -> None:
    ids = talk(store, "go on", "yes", "go on", "yes", "go on")
    rewriting.rewind_to_message(store, "s", ids[4])

    def shown() -> list[tuple[int, Any, Any]]:
        rows = messages.get_messages(store, "s", include_inactive=True)
        return [(row["id"], row["display_kind"], row["display_metadata"]) for row in rows if row["display_kind"]]

    mark = rewriting.set_latest_matching_message_display_kind
    assert mark(store, "s", role="user", content="go on", display_kind="hidden", display_metadata={"why": 1})
    assert shown() == [(ids[2], "hidden", {"why": 1})]
    assert not mark(store, "s", role="assistant", content="go on", display_kind="hidden")
    assert not mark(store, "unknown", role="user", content="go on", display_kind="hidden")
    assert mark(store, "s", role="user", content="go on", display_kind=None)
    assert shown() == []
    parts = [{"type": "text", "text": "seen"}]
    last = messages.append_message(store, "s", "user", parts)
    assert mark(store, "s", role="user", content=parts, display_kind="hidden")
    assert shown() == [(last, "hidden", None)]
