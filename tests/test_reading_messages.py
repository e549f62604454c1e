"""Messages are read back in order, in pages, in windows, whatever the file is like."""

from __future__ import annotations

from typing import Any

from state_ledger import messages, sessions
from state_ledger.schema import declared_columns
from state_ledger.writing.writer import Writer


def talk(writer: Writer, *turns: tuple[str, Any], session_id: str = "s") -> list[int]:
    return messages.append_messages(writer, session_id, [{"role": role, "content": text} for role, text in turns])


def test_messages_come_by_id_in_pages_and_only_live_ones(store: Writer) -> None:
    for number in range(6):
        messages.append_message(store, "s", "user", str(number), timestamp=100 - number)
    store.write(lambda connection: connection.execute("UPDATE messages SET active = 0 WHERE content = '1'"))

    def texts(**options: Any) -> list[str]:
        return [message["content"] for message in messages.get_messages(store, "s", **options)]

    assert texts() == ["0", "2", "3", "4", "5"]
    assert texts(include_inactive=True) == ["0", "1", "2", "3", "4", "5"]
    assert texts(limit=2) == ["0", "2"]
    assert texts(limit=2, offset=1) == ["2", "3"]
    assert texts(offset=3) == ["4", "5"]
    assert (texts(limit=0), texts(limit=-1)) == ([], ["0", "2", "3", "4", "5"])
    assert messages.get_messages(store, "nope") == []
    assert (messages.message_count(store, "s"), messages.message_count(store), messages.message_count(store, "x")) == (
        6, 6, 0,
    )  # fmt: skip
    assert messages.has_archived_messages(store, "s") is True
    assert messages.has_archived_messages(store, "nope") is False


def test_what_is_broken_in_the_file_does_not_stop_reading(store: Writer) -> None:
    talk(store, ("user", "a"))
    store.write(
        lambda connection: connection.execute(
            "UPDATE messages SET tool_calls = '[bad', display_metadata = '{bad', content = CAST(x'41ff42' AS TEXT)"
        )
    )
    message = messages.get_messages(store, "s")[-1]
    assert (message["tool_calls"], message["display_metadata"], message["content"]) == ([], None, "A\ufffdB")


def test_a_read_only_handle_reads_an_old_file_with_none_for_what_it_lacks(small_store: Any) -> None:
    reader = Writer(small_store(), read_only=True)
    [message] = messages.get_messages(reader, "first")
    assert tuple(message) == declared_columns("messages")
    assert (message["content"], message["active"], message["display_kind"]) == ("hello", None, None)
    assert messages.get_messages_around(reader, "first", 1)["window"] == [message]
    assert messages.has_archived_messages(reader, "first") is False
    assert messages.has_platform_message_id(reader, "first", "1") is False
    reader.close()


def test_a_window_is_the_messages_on_both_sides_of_its_anchor(store: Writer) -> None:
    ids = talk(store, *[("user", str(number)) for number in range(9)])

    def around(anchor: int, window: int) -> tuple[list[str], int, int]:
        found = messages.get_messages_around(store, "s", anchor, window)
        texts = [message["content"] for message in found["window"]]
        return texts, found["messages_before"], found["messages_after"]

    store.write(lambda connection: connection.execute("UPDATE messages SET active = 0 WHERE content = '3'"))
    assert around(ids[4], 2) == (["2", "3", "4", "5", "6"], 2, 2)
    assert around(ids[0], 2) == (["0", "1", "2"], 0, 2)
    assert around(ids[4], -3) == (["4"], 0, 0)
    assert around(ids[4], 50) == ([str(number) for number in range(9)], 4, 4)
    assert around(10**6, 2) == ([], 0, 0)
    sessions.create_session(store, "other", "cli")
    assert messages.get_messages_around(store, "other", ids[4])["window"] == []


def test_an_anchored_view_has_the_roles_that_matter_and_both_ends(store: Writer) -> None:
    ids = talk(
        store, ("user", "a"), ("assistant", ""), ("tool", "t"), ("assistant", None), ("user", "b"), ("tool", "t2"),
        ("assistant", "c"), ("user", [{"type": "text", "text": "d"}]), ("tool", "t3"), ("assistant", "e"),
    )  # fmt: skip

    def view(anchor: int, **options: Any) -> dict[str, Any]:
        found = messages.get_anchored_view(store, "s", anchor, **options)
        return {
            key: [message["content"] for message in value] if isinstance(value, list) else value
            for key, value in found.items()
        }

    assert view(ids[5], window=1, bookend=2) == {
        "window": ["b", "t2", "c"], "messages_before": 1, "messages_after": 1, "bookend_start": ["a"],
        "bookend_end": [[{"type": "text", "text": "d"}], "e"],
    }  # fmt: skip
    assert view(ids[4], window=1)["window"] == [None, "b"]
    assert view(ids[4], window=1)["messages_after"] == 1
    assert view(ids[5], window=0, bookend=9, keep_roles=["tool"])["bookend_end"] == ["t3"]
    assert view(ids[5], window=0, bookend=2, keep_roles=None)["bookend_start"] == ["a", "t"]
    nothing = {"window": ["t2"], "messages_before": 1, "messages_after": 1, "bookend_start": [], "bookend_end": []}
    assert view(ids[5], window=1, keep_roles=()) == nothing
    assert view(ids[5], window=1, bookend=-1)["bookend_end"] == []
    assert view(10**6) == {
        "window": [], "messages_before": 0, "messages_after": 0, "bookend_start": [], "bookend_end": [],
    }  # fmt: skip


def test_the_first_text_of_the_assistant(store: Writer) -> None:
    assert messages.get_first_assistant_text(store, "s") == ""
    talk(store, ("user", "q"), ("assistant", ""), ("assistant", None), ("assistant", "answer"), ("assistant", "more"))
    assert messages.get_first_assistant_text(store, "s") == "answer"
    sessions.create_session(store, "parts", "cli")
    talk(store, ("assistant", [{"type": "text", "text": "x"}]), session_id="parts")
    assert messages.get_first_assistant_text(store, "parts") == ""


def test_recent_messages_of_the_user_with_a_line_of_each(store: Writer) -> None:
    ids = talk(
        store, ("user", " a\n\n b "), ("assistant", "no"), ("user", "x" * 80), ("user", "x" * 81), ("user", None),
        ("user", [{"type": "text", "text": "hello \n world"}, {"type": "image_url"}, {"type": "text", "text": "b"}]),
        ("user", [{"type": "image_url"}]),
    )  # fmt: skip
    found = messages.list_recent_user_messages(store, "s")
    assert [row["preview"] for row in found] == [
        "[multimodal content]", "hello world b", "", "x" * 77 + "...", "x" * 80, "a b",
    ]  # fmt: skip
    assert [row["id"] for row in found] == [ids[6], ids[5], ids[4], ids[3], ids[2], ids[0]]
    assert set(found[0]) == {"id", "timestamp", "preview"}
    store.write(lambda connection: connection.execute("UPDATE messages SET active = 0 WHERE id = ?", (ids[6],)))
    assert [row["id"] for row in messages.list_recent_user_messages(store, "s", limit=1)] == [ids[5]]
    assert messages.list_recent_user_messages(store, "s", 1, include_inactive=True)[0]["id"] == ids[6]


def test_ids_of_the_chat_system_are_found_in_their_session_only(store: Writer) -> None:
    sessions.create_session(store, "other", "cli")
    messages.append_message(store, "s", "user", "x", platform_message_id="p1")
    assert messages.has_platform_message_id(store, "s", "p1") is True
    assert messages.has_platform_message_id(store, "other", "p1") is False
    assert messages.has_platform_message_id(store, "s", "") is False
