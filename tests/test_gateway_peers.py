"""Peers of a messaging gateway, and sessions handed over to one."""

from __future__ import annotations

from typing import Any

import pytest

from state_ledger.session_db import SessionDB
from tests.session_rows import add

PEER = {"source": "telegram", "user_id": "u", "chat_id": "c", "chat_type": "dm"}


def peer_of(db: SessionDB, session_id: str) -> tuple[Any, ...]:
    row = db.get_session(session_id)
    assert row is not None
    names = ("source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json")
    return tuple(row[name] for name in names)


def test_a_peer_replaces_the_one_before_but_for_name_and_origin(db: SessionDB) -> None:
    db.create_session("s", "telegram", user_id="u", session_key="k", chat_id="c", chat_type="dm")
    db.record_gateway_session_peer("s", source="telegram", session_key="k", display_name="Dee", origin_json='{"a":1}')
    assert peer_of(db, "s") == ("telegram", None, "k", None, None, None, "Dee", '{"a":1}')
    db.record_gateway_session_peer("s", session_key="k2", thread_id="9", **PEER)
    assert peer_of(db, "s") == ("telegram", "u", "k2", "c", "dm", "9", "Dee", '{"a":1}')
    db.record_gateway_session_peer("s", source="discord", user_id="without a key")
    db.record_gateway_session_peer("unknown", source="discord", session_key="k")
    assert peer_of(db, "s")[:3] == ("telegram", "u", "k2") and db.get_session("unknown") is None


def test_the_end_of_a_reset_is_noted(db: SessionDB) -> None:
    db.create_session("s", "telegram")
    for finalized in (True, False):
        db.set_expiry_finalized("s", finalized)
        row = db.get_session("s")
        assert row is not None and row["expiry_finalized"] == finalized


def test_the_newest_session_of_each_key_is_listed(db: SessionDB) -> None:
    add(db, "a1", session_key="a", source="telegram", started_at=1)
    add(db, "a2", session_key="a", source="telegram", started_at=2, ended_at=3, end_reason="x")
    add(db, "b", session_key="b", source="discord", started_at=3)
    add(db, "c", session_key="c", source="telegram", started_at=1)
    add(db, "no_key", source="telegram", started_at=9)
    db.append_message("c", "user", "later", timestamp=50)

    def listed(**chosen: Any) -> list[tuple[str, float]]:
        return [(row["id"], row["last_active"]) for row in db.list_gateway_sessions(**chosen)]

    assert listed() == [("c", 50), ("b", 3)]
    assert listed(active_only=False) == [("c", 50), ("b", 3), ("a2", 2)]
    assert listed(platform="Telegram") == [("c", 50)]


def test_a_session_is_found_by_chat_when_there_is_no_doubt(db: SessionDB) -> None:
    def find(**chosen: Any) -> str | None:
        return db.find_session_by_origin(platform="telegram", **chosen)

    def live(id: str, at: float, chat: str, user: str, **more: Any) -> None:
        add(db, id, source="telegram", session_key=id, chat_id=chat, user_id=user, started_at=at, **more)

    live("first", 1, "c", "u")
    live("over", 5, "c", "u", ended_at=6)
    assert (find(chat_id="c"), find(chat_id="c", user_id="somebody"), find(chat_id="d")) == ("first", "first", None)
    live("thread", 2, "c", "u", thread_id="7")
    assert (find(chat_id="c"), find(chat_id="c", thread_id="7"), find(chat_id="c", thread_id="8")) == (
        "thread", "thread", None,
    )  # fmt: skip
    live("another", 3, "c", "v")
    assert (find(chat_id="c"), find(chat_id="c", user_id="v"), find(chat_id="c", user_id="u")) == (
        None, "another", "thread",
    )  # fmt: skip
    assert find(chat_id="c", user_id="somebody") is None


@pytest.mark.parametrize(
    ("end", "goes_on"),
    [(None, True), ("agent_close", True), ("ws_orphan_reap", True), ("session_reset", False), ("compression", False)],
)
def test_a_talk_goes_on_unless_it_was_ended_on_purpose(db: SessionDB, end: str | None, goes_on: bool) -> None:
    add(db, "s", session_key="k", ended_at=None if end is None else 9, end_reason=end, **PEER)
    assert db.find_latest_gateway_session_for_peer(source="telegram", session_key="k") is None, "it has no messages"
    db._conn.execute("INSERT INTO messages(session_id, role, content, timestamp) VALUES ('s', 'user', 'hello', 1)")
    found = db.find_latest_gateway_session_for_peer(source="telegram", session_key="k")
    assert (found is not None) == goes_on
    if found:
        assert found == db.get_session("s")


def test_a_key_comes_before_the_peer_and_the_peer_before_nothing(db: SessionDB) -> None:
    add(db, "keyed", session_key="k", started_at=1, **PEER)
    add(db, "plain", started_at=2, **PEER)
    for id in ("keyed", "plain"):
        db.append_message(id, "user", "hello")

    def found(**chosen: Any) -> str | None:
        row = db.find_latest_gateway_session_for_peer(**chosen)
        return None if row is None else row["id"]

    assert found(session_key="k", **PEER) == "keyed"
    assert found(session_key="new", **PEER) == "plain"
    assert found(session_key="new", thread_id="7", **PEER) is None
    assert found(session_key="k", source="discord") is None
    assert found(**PEER) is None


def test_a_handoff_is_asked_for_claimed_once_and_ended(db: SessionDB) -> None:
    for id in ("one", "two"):
        db.create_session(id, "cli")
    assert db.get_handoff_state("one") == {"state": None, "platform": None, "error": None}
    assert db.get_handoff_state("none") is None and not db.request_handoff("none", "telegram")
    assert db.request_handoff("one", "telegram") and db.request_handoff("two", "discord")
    assert not db.request_handoff("one", "discord"), "it is on its way"
    assert [row["id"] for row in db.list_pending_handoffs()] == ["one", "two"]
    assert [db.claim_handoff("one"), db.claim_handoff("one")] == [True, False]
    assert not db.request_handoff("one", "discord"), "it is on its way"
    db.fail_handoff("one", "x" * 600)
    assert db.get_handoff_state("one") == {"state": "failed", "platform": "telegram", "error": "x" * 500}
    assert not db.claim_handoff("one") and db.request_handoff("one", "slack")
    assert db.get_handoff_state("one") == {"state": "pending", "platform": "slack", "error": None}
    db.complete_handoff("one")
    assert db.get_handoff_state("one") == {"state": "completed", "platform": "slack", "error": None}
    assert [row["id"] for row in db.list_pending_handoffs()] == ["two"]
