"""Compressing a session: the continuation appears whole or not at all, and what is noted about failures."""

from __future__ import annotations

import time
from typing import Any

import pytest

from state_ledger.errors import CompressionSessionBusyError, CompressionSessionClosedError
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests.session_rows import add

SUMMARY = [
    {"role": "user", "content": "In short: the harbour is nine metres deep."},
    {"role": "assistant", "content": "Noted.", "tool_calls": [{"id": "a"}]},
]


@pytest.fixture
def talk(db: SessionDB) -> SessionDB:
    """A session with a messaging peer, in the middle of being compressed by `me`."""
    db.create_session("p", "telegram", user_id="u", session_key="k", chat_id="c", cwd="/work")
    db.append_message("p", "user", "How deep is the harbour?")
    assert db.try_acquire_compression_lock("p", "me")
    return db


def publish(db: SessionDB, **changed: Any) -> str:
    given: dict[str, Any] = {
        "parent_session_id": "p", "child_session_id": "n", "source": "telegram", "messages": SUMMARY,
        "compression_lock_holder": "me",
    }  # fmt: skip
    return db.publish_compression_child(**{**given, **changed})


def test_a_continuation_takes_the_place_of_its_parent(talk: SessionDB) -> None:
    assert publish(talk, model="a-model", system_prompt="Be brief.") == "n"
    parent, child = talk.get_session("p"), talk.get_session("n")
    assert parent is not None and child is not None
    assert parent["end_reason"] == "compression" and parent["ended_at"] <= child["started_at"]
    assert (child["message_count"], child["tool_call_count"], child["model"]) == (2, 1, "a-model")
    assert (child["user_id"], child["session_key"], child["chat_id"], child["cwd"]) == ("u", "k", "c", "/work")
    assert [row["content"] for row in talk.get_messages("n")] == [message["content"] for message in SUMMARY]
    assert talk.get_compression_tip("p") == "n"
    with pytest.raises(CompressionSessionClosedError):
        publish(talk, child_session_id="second")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"parent_session_id": "nobody"}, sqlite3.IntegrityError),
        ({"child_session_id": "p"}, sqlite3.IntegrityError),
        ({"compression_lock_holder": "another"}, CompressionSessionBusyError),
        ({"compression_lock_holder": None, "require_compression_lease": False}, CompressionSessionBusyError),
        ({"messages": [{"role": "user", "content": "fine"}, "no mapping"]}, TypeError),
    ],
)
def test_what_cannot_be_published_changes_nothing(
    talk: SessionDB, changed: dict[str, Any], error: type[Exception]
) -> None:
    before = (talk.get_session("p"), talk.message_count())
    with pytest.raises(error):
        publish(talk, **changed)
    assert (talk.get_session("p"), talk.message_count()) == before and talk.get_session("n") is None


def test_a_lost_lock_keeps_the_continuation_out_unless_none_is_needed(talk: SessionDB) -> None:
    talk.release_compression_lock("p", "me")
    with pytest.raises(CompressionSessionBusyError, match="nobody's"):
        publish(talk)
    assert publish(talk, require_compression_lease=False) == "n"


def test_a_parent_that_ended_otherwise_is_continued_all_the_same(talk: SessionDB) -> None:
    talk.end_session("p", "agent_close")
    publish(talk)
    assert talk.get_compression_lineage("n") == ["p", "n"]


def test_continuations_that_nobody_took_up_are_ended(db: SessionDB) -> None:
    old = time.time() - 8 * 86_400
    add(db, "closed", started_at=old, ended_at=old, end_reason="compression")
    for name, columns in {
        "orphan": {}, "silent": {}, "taken_up": {"api_call_count": 1}, "ended": {"ended_at": old, "end_reason": "x"},
        "young": {"started_at": time.time()}, "branch": {"model_config": '{"_branched_from": "closed"}'},
        "spoken_to": {},
    }.items():  # fmt: skip
        add(db, name, "closed", **{"started_at": old, **columns})
        if name != "silent":
            db.append_message(name, "user", "x", timestamp=old)
    db.append_message("spoken_to", "user", "x")
    add(db, "root", started_at=old)
    db.append_message("root", "user", "x", timestamp=old)
    before = {row["id"]: row for row in db.search_sessions()}
    assert db.finalize_orphaned_compression_sessions() == 1
    after = {row["id"]: row for row in db.search_sessions()}
    assert after["orphan"]["end_reason"] == "orphaned_compression" and after["orphan"]["ended_at"] > old
    assert [name for name in after if after[name] != before[name]] == ["orphan"]
    assert db.finalize_orphaned_compression_sessions() == 0


def test_a_cooldown_runs_out(db: SessionDB) -> None:
    db.create_session("s", "cli")
    assert db.get_compression_failure_cooldown("s") is None and db.get_compression_failure_cooldown("none") is None
    until = time.time() + 50
    db.record_compression_failure_cooldown("s", until, "too long")
    found = db.get_compression_failure_cooldown("s")
    assert found is not None and (found["cooldown_until"], found["error"]) == (until, "too long")
    assert 0 < found["remaining_seconds"] <= 50
    db.clear_compression_failure_cooldown("s")
    assert db.get_compression_failure_cooldown("s") is None
    db.record_compression_failure_cooldown("s", time.time() - 1, "past")
    assert db.get_compression_failure_cooldown("s") is None


@pytest.mark.parametrize("name", ["fallback_streak", "ineffective_count"])
def test_tallies_are_kept_and_never_below_zero(db: SessionDB, name: str) -> None:
    read, write = getattr(db, f"get_compression_{name}"), getattr(db, f"set_compression_{name}")
    db.create_session("s", "cli")
    assert (read("s"), read("none")) == (0, 0)
    write("s", 3)
    assert read("s") == 3
    write("s", -2)
    assert read("s") == 0
