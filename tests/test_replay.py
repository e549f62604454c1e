"""A stored session becomes the conversation that a model can go on with."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import messages, sessions
from state_ledger.messages import alternation, replay
from state_ledger.writing.writer import Writer

REVIEW = "Review the conversation above and consider saving to memory if appropriate."


def u(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def a(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def t(content: Any, call: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": content, **({"tool_call_id": call} if call else {})}


def talk(writer: Writer, *turn: dict[str, Any], session_id: str = "s") -> None:
    messages.append_messages(writer, session_id, turn)


def pairs(conversation: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in conversation]


def test_only_keys_with_a_value_appear_and_some_for_the_assistant_alone(store: Writer) -> None:
    fields: dict[str, Any] = {
        "finish_reason": "stop", "reasoning": "r", "reasoning_content": "", "reasoning_details": [1],
        "codex_reasoning_items": [2], "codex_message_items": [3], "timestamp": 5.0,
    }  # fmt: skip
    talk(
        store,
        a("x", **fields, effect_disposition="none", api_content=" A ", tool_calls=[{"id": "c"}], observed=True,
          platform_message_id="pm", token_count=4, display_kind="hidden", display_metadata={"a": 1}),
        u("u", **fields, display_metadata={}), t("t", "c"), u(None), {"role": "tool", "content": "n", "timestamp": 0},
    )  # fmt: skip
    first, second, third, fourth, fifth = replay.get_messages_as_conversation(store, "s")
    assert first == {
        "role": "assistant", "content": "x", **fields, "effect_disposition": "none", "api_content": " A ",
        "tool_calls": [{"id": "c"}], "observed": True, "message_id": "pm", "display_kind": "hidden",
        "display_metadata": {"a": 1},
    }  # fmt: skip
    assert second == {"role": "user", "content": "u", "timestamp": 5.0}
    assert set(third) == {"role", "content", "timestamp", "tool_call_id"}
    assert fourth["content"] is None
    assert fifth == {"role": "tool", "content": "n"}


def test_broken_json_in_the_file_becomes_nothing(store: Writer) -> None:
    talk(store, a("x"))
    store.write(
        lambda c: c.execute("UPDATE messages SET tool_calls='[', reasoning_details='[', codex_message_items='x'")
    )
    [message] = replay.get_messages_as_conversation(store, "s")
    assert (message["tool_calls"], message["reasoning_details"], message["codex_message_items"]) == ([], None, None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" a <memory-context>secret</memory-context> b ", "a  b"),
        ("<MEMORY-CONTEXT>s\n\nt</Memory-Context>z", "z"),
        ("<memory-context> open only", "open only"),
        ("close </memory-context> x", "close  x"),
        ("hi <memory-context>a<memory-context>b</memory-context>c</memory-context>d", "hi cd"),
        ("[System note: The following is recalled memory context, NOT new user input.]\n\nhi", "hi"),
        ("[System note: something else] q", "[System note: something else] q"),
        ("my memory-context idea", "my memory-context idea"),
    ],
)
def test_injected_memory_is_taken_out_of_what_people_and_models_said(store: Writer, text: str, shown: str) -> None:
    talk(store, u(text), a(text), t(text), {"role": "system", "content": text}, u([{"type": "text", "text": text}]))
    contents = [message["content"] for message in replay.get_messages_as_conversation(store, "s")]
    assert contents == [shown, shown, text, text, [{"type": "text", "text": text}]]


def test_inactive_messages_come_only_when_asked_for(store: Writer) -> None:
    talk(store, u("a"), a("b"))
    store.write(lambda c: c.execute("UPDATE messages SET active = 0 WHERE role = 'assistant'"))
    assert pairs(replay.get_messages_as_conversation(store, "s")) == [("user", "a")]
    assert len(replay.get_messages_as_conversation(store, "s", include_inactive=True)) == 2
    assert replay.get_messages_as_conversation(store, "nope") == []


def test_background_reviews_are_left_out_with_the_answer_right_after(store: Writer) -> None:
    talk(
        store, u("a"), a("b"), u("  " + REVIEW), a("noted"), u("c"), u(REVIEW), t("t", "x"), a("kept"), u(REVIEW),
        {"role": "system", "content": REVIEW}, a("m"), a("n"), a(REVIEW), u([{"type": "text", "text": REVIEW}]), a("z"),
    )  # fmt: skip
    assert [content for _, content in pairs(replay.get_messages_as_conversation(store, "s"))] == [
        "a", "b", "c", "t", "kept", "n", REVIEW, [{"type": "text", "text": REVIEW}], "z",
    ]  # fmt: skip


def family(store: Writer) -> None:
    sessions.create_session(store, "child", "cli", parent_session_id="s")
    talk(store, u("hello"), a("x"), u("again"))
    talk(
        store, u("again"), a("y"), u("hello"), u("hello"), u("q"), t("t", "n"), u("q"), a(""), u("q"),
        a("", tool_calls=[{"id": "1"}]), u("q"), u([1]), u([1]), session_id="child",
    )  # fmt: skip


def test_ancestors_come_first_and_unanswered_repeats_of_the_user_once(store: Writer) -> None:
    family(store)
    assert pairs(replay.get_messages_as_conversation(store, "child", include_ancestors=True)) == [
        ("user", "hello"), ("assistant", "x"), ("user", "again"), ("assistant", "y"), ("user", "hello"), ("user", "q"),
        ("tool", "t"), ("assistant", ""), ("assistant", ""), ("user", "q"), ("user", [1]), ("user", [1]),
    ]  # fmt: skip
    assert len(replay.get_messages_as_conversation(store, "child")) == 13


def test_resuming_gives_a_history_for_the_model_and_one_to_show(store: Writer) -> None:
    family(store)
    for_model, to_show = replay.get_resume_conversations(store, "child")
    assert for_model == replay.get_messages_as_conversation(store, "child", repair_alternation=True)
    assert to_show == replay.get_messages_as_conversation(store, "child", include_ancestors=True)
    assert replay.get_resume_conversations(store, "nope") == ([], [])


def test_loops_missing_parents_and_very_deep_links_end(store: Writer) -> None:
    talk(store, u("in a loop"))
    sessions.create_session(store, "top", "cli", parent_session_id="s")

    def link(connection: Any) -> None:
        connection.execute("UPDATE sessions SET parent_session_id = 'top' WHERE id = 's'")
        connection.executemany(
            "INSERT INTO sessions(id, source, started_at, parent_session_id) VALUES (?, 'cli', 1, ?)",
            [(f"d{i}", f"d{i - 1}" if i else None) for i in range(10_000)],
        )

    store.write(link)
    talk(store, u("deep"), session_id="d9999")
    talk(store, u("near"), session_id="d9950")
    talk(store, u("too far"), session_id="d5")
    assert pairs(replay.get_messages_as_conversation(store, "s", include_ancestors=True)) == [("user", "in a loop")]
    assert pairs(replay.get_messages_as_conversation(store, "d9999", include_ancestors=True)) == [
        ("user", "near"),
        ("user", "deep"),
    ]


CALL = [{"id": "1"}]


@pytest.mark.parametrize(
    ("given_turn", "expected"),
    [
        ([u("a"), u("b"), a("c"), a("d"), u("e")], [u("a\n\nb"), a("c\nd"), u("e")]),
        ([u("a"), u(""), u("b"), u(None)], [u("a\n\nb")]),
        ([u("a", api_content="A!"), u("b", message_id="q")], [u("a\n\nb")]),
        ([a("lead"), t("orphan", "z"), t("no id"), u("x")], [a("lead"), u("x")]),
        ([a("c", tool_calls=CALL), t("r", "1"), t("twice", "1")], [a("c", tool_calls=CALL), t("r", "1")]),
        ([a("c", tool_calls=CALL), a("d"), t("late", "1")], [a("c\nd", tool_calls=CALL), t("late", "1")]),
        (
            [a("c", tool_calls=CALL), a(None, tool_calls=[{"call_id": "2"}]), t("2", "2"), t("1", "1")],
            [a("c", tool_calls=[*CALL, {"call_id": "2"}]), t("2", "2"), t("1", "1")],
        ),
        ([a("c", tool_calls=CALL), u("x"), t("too late", "1")], [a("c", tool_calls=CALL), u("x")]),
        ([a("c", reasoning_details=[1]), a("d")], [a("c", reasoning_details=[1]), a("d")]),
        ([u([1]), u("b"), u([2])], [u([1]), u("b"), u([2])]),
        ([a(None), a(None)], [a(None)]),
        ([a("x", tool_calls=[5, {"id": ["odd"]}]), t("r", "1")], [a("x", tool_calls=[5, {"id": ["odd"]}])]),
    ],
)
def test_roles_are_made_to_alternate(given_turn: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    before = [dict(message) for message in given_turn]
    assert alternation.repair(given_turn) == expected
    assert given_turn == before


TURN = st.lists(
    st.one_of(
        st.builds(u, st.none() | st.text()),
        st.builds(a, st.none() | st.text(), tool_calls=st.lists(st.sampled_from("123").map(lambda i: {"id": i}))),
        st.builds(t, st.text(), st.sampled_from("123")),
    )
)


@given(turn=TURN)
def test_a_repaired_conversation_alternates_loses_no_words_and_needs_no_more_repair(turn: list[dict[str, Any]]) -> None:
    repaired = alternation.repair(turn)
    roles = [message["role"] for message in repaired]
    assert all(one != other or one == "tool" for one, other in itertools.pairwise(roles))
    said = "".join(message["content"] or "" for message in repaired if message["role"] != "tool")
    for message in turn:
        assert message["role"] == "tool" or (message["content"] or "") in said
    assert alternation.repair(repaired) == repaired


def test_the_prefix_is_what_ancestors_put_before_a_session(store: Writer) -> None:
    messages.append_messages(store, "s", [u("one"), a("two"), u("three")])
    sessions.end_session(store, "s", "compression")
    sessions.create_session(store, "n", "cli", parent_session_id="s")
    messages.append_messages(store, "n", [u("four")])
    prefix = replay.get_ancestor_display_prefix(store, "n")
    assert [message["content"] for message in prefix] == ["one", "two", "three"]
    whole = replay.get_messages_as_conversation(store, "n", include_ancestors=True)
    assert whole == [*prefix, *replay.get_messages_as_conversation(store, "n")]
    assert replay.get_ancestor_display_prefix(store, "s") == []
    assert replay.get_ancestor_display_prefix(store, "unknown") == []
