"""Conversations in a live store: tips, roots, lineage, flags that go with a whole conversation."""

from __future__ import annotations

from typing import Any

import pytest

from state_ledger.session_db import SessionDB
from state_ledger.sessions.conversations import compression_tips, last_segments_first
from tests.session_rows import add


def compressed(db: SessionDB, session_id: str, parent: str | None = None, **columns: Any) -> None:
    add(db, session_id, parent, **{"ended_at": 150.0, "end_reason": "compression", **columns})


def family(db: SessionDB) -> None:
    """r → c1 → c2 with a branch, a delegate, a subagent, a tool's session and the delegate's own continuation."""
    compressed(db, "r")
    compressed(db, "c1", "r")
    add(db, "c2", "c1")
    add(db, "branch", "r", model_config='{"_branched_from": "r"}', started_at=900)
    compressed(db, "delegate", "r", model_config='{"_delegate_from": "r"}', started_at=900)
    add(db, "delegate2", "delegate", model_config='{"_delegate_from": "r"}')
    add(db, "subagent", "r", source="subagent", started_at=900)
    add(db, "tool", "r", source="tool", started_at=900)
    add(db, "broken", "c2", model_config="{not json")


def test_the_tip_is_the_last_segment_and_nothing_else(db: SessionDB) -> None:
    family(db)
    tips = {"r": "c2", "c1": "c2", "c2": "c2", "branch": "branch", "delegate": "delegate2", "nobody": "nobody"}
    assert {id: db.get_compression_tip(id) for id in tips} == tips
    assert compression_tips(db._writer, list(tips)) == {id: tip for id, tip in tips.items() if tip != id}


def test_the_lineage_goes_from_root_to_tip_from_wherever_it_is_asked(db: SessionDB) -> None:
    family(db)
    for segment in ("r", "c1", "c2"):
        assert db.get_compression_lineage(segment) == ["r", "c1", "c2"]
    assert db.get_compression_lineage("branch") == ["branch"]
    assert db.get_compression_lineage("delegate2") == ["delegate", "delegate2"]
    assert db.get_compression_lineage("nobody") == []


@pytest.mark.parametrize(
    ("rivals", "tip"),
    [
        ({"a": {"end_reason": "cli_close", "ended_at": 200, "started_at": 999}, "b": {}}, "b"),
        ({"a": {}, "b": {"end_reason": "compression", "ended_at": 200}}, "b"),
        ({"a": {"started_at": 101}, "b": {"started_at": 100}}, "a"),
        ({"a": {}, "b": {}}, "b"),
    ],
)
def test_of_several_children_one_continues(db: SessionDB, rivals: dict[str, dict[str, Any]], tip: str) -> None:
    compressed(db, "r")
    for session_id, columns in rivals.items():
        add(db, session_id, "r", **columns)
    assert db.get_compression_tip("r") == tip


def test_the_newest_message_decides_between_live_children(db: SessionDB) -> None:
    compressed(db, "r")
    add(db, "a", "r", started_at=100)
    add(db, "b", "r", started_at=200)
    db.append_message("a", "user", "hello")
    assert db.get_compression_tip("r") == "a"


def test_resuming_goes_to_the_deepest_session_with_messages(db: SessionDB) -> None:
    family(db)
    assert db.resolve_resume_session_id("r") == "c2"  # nothing has messages: the tip, where writing is allowed
    add(db, "next", "c2", started_at=200)
    add(db, "empty", "next", started_at=300)
    add(db, "later branch", "c2", model_config='{"_branched_from": "c2"}', started_at=999)
    for session_id in ("c2", "next", "later branch"):
        db.append_message(session_id, "user", "hello")
    assert db.resolve_resume_session_id("r") == "next"
    assert db.resolve_resume_session_id("empty") == "empty"
    assert db.resolve_resume_session_id("nobody") == "nobody"


def test_the_root_is_the_top_of_all_links_that_lead_somewhere(db: SessionDB) -> None:
    family(db)
    add(db, "orphan", "gone")
    add(db, "child", "orphan")
    roots = {"delegate2": "r", "c2": "r", "r": "r", "child": "orphan", "nobody": "nobody"}
    assert {id: db.get_conversation_root(id) for id in roots} == roots


def test_loops_end(db: SessionDB) -> None:
    compressed(db, "a", "b")
    compressed(db, "b", "a")
    compressed(db, "self", "self")
    assert db.get_compression_tip("a") == "b"
    assert sorted(db.get_compression_lineage("a")) == ["a", "b"]
    assert compression_tips(db._writer, ["a", "b", "self"]) == {"a": "b", "b": "a"}
    assert db.get_conversation_root("self") == "self"
    assert db.resolve_resume_session_id("a") in ("a", "b")
    assert db.set_session_archived("a", True) is True
    assert db.list_sessions_rich(order_by_last_active=True, include_children=True, include_archived=True)


def test_a_conversation_of_ten_thousand_segments_is_walked_whole(db: SessionDB) -> None:
    db._conn.execute("BEGIN")
    db._conn.executemany(
        "INSERT INTO sessions (id, source, started_at, parent_session_id, ended_at, end_reason)"
        " VALUES (?, 'cli', ?, ?, ?, 'compression')",
        ((f"s{n}", n, f"s{n - 1}" if n else None, n) for n in range(10_000)),
    )
    db._conn.execute("COMMIT")
    assert db.get_compression_tip("s0") == "s9999"
    assert len(db.get_compression_lineage("s5000")) == 10_000
    assert db.get_conversation_root("s9999") == "s0"
    assert db.set_session_title("s0", "deep") and db.set_session_title("s9999", "deep")
    assert db.set_session_archived("s5000", True)
    assert db.session_count(archived_only=True) == 10_000
    assert [row["id"] for row in db.list_sessions_rich(archived_only=True, order_by_last_active=True)] == ["s9999"]


@pytest.mark.parametrize("flag", ["archived", "pinned"])
def test_a_flag_goes_with_the_whole_conversation_and_with_nothing_else(db: SessionDB, flag: str) -> None:
    family(db)
    setter = getattr(db, f"set_session_{flag}")
    for segment in ("r", "c1", "c2"):
        assert setter(segment, True) is True
        assert {row["id"] for row in db.search_sessions(limit=-1) if row[flag]} == {"r", "c1", "c2"}
        assert setter(segment, False) is True
        assert not any(row[flag] for row in db.search_sessions(limit=-1))
    assert setter("nobody", True) is False


def test_the_live_continuation_is_given_only_if_there_is_one(db: SessionDB) -> None:
    family(db)
    found = db.find_live_compression_child("c1")
    assert found is not None and found["id"] == "c2"
    assert db.find_live_compression_child("r") is None  # it ended
    add(db, "rival", "c1")
    assert db.find_live_compression_child("c1") is None


def test_segments_come_before_what_they_continue() -> None:
    continues = {"b": "a", "d": "c", "c": "b", "e": "c", "x": "y", "y": "x"}
    order = list(last_segments_first(continues))
    assert sorted(order) == sorted(continues)
    for segment in "dec":
        assert order.index(segment) < order.index(continues[segment])
