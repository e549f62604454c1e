"""Cleaning up: what is pruned and archived, what stays, and what the user is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger import retention
from state_ledger.retention import deletion
from state_ledger.search import search_messages
from state_ledger.writing import meta
from state_ledger.writing.writer import Writer
from tests import aged
from tests.aged import add, ago, assert_clean, ended, sessions


@pytest.fixture
def household(writer: Writer) -> Writer:
    """One session of every kind a clean-up has to tell apart."""
    aged.household(writer)
    return writer


def test_only_ended_idle_and_unpinned_sessions_are_pruned(household: Writer) -> None:
    before = set(sessions(household))
    plan = retention.plan_prune(household)
    assert set(sessions(household)) == before, "a plan deletes nothing"
    assert retention.prune_sessions(household) == 2
    assert before - set(sessions(household)) == {"finished", "silent"} == set(plan.delete)
    assert search_messages(household, "concluded") == []
    assert [row["session_id"] for row in search_messages(household, "continuing")] == ["sequel"]
    assert sessions(household)["sequel"] == "segment"
    assert_clean(household)


def test_a_plan_says_what_stays_and_why(household: Writer) -> None:
    plan = retention.plan_prune(household, 90)
    assert plan.stay == {"never_ended": ("left_open",), "pinned": ("keepsake",), "in_use": ("segment",), "archived": ()}
    assert (plan.messages, plan.orphaned) == (1, ())
    assert (plan.oldest, plan.newest) == (pytest.approx(ago(200)), pytest.approx(ago(199)))
    assert plan.sentence == (
        f"2 sessions with 1 message would be deleted, last active from {day(200)} to {day(199)}; 1 never ended, "
        "1 pinned, 1 part of a conversation still in use would stay."
    )
    assert retention.plan_prune(household, 10_000).sentence == "0 sessions with 0 messages would be deleted."


def day(days: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(ago(days)))


def test_a_read_only_handle_plans(household: Writer) -> None:
    reader = Writer(household.path, read_only=True)
    try:
        assert retention.plan_prune(reader) == retention.plan_prune(household)
    finally:
        reader.close()


def test_any_age_of_one_source(household: Writer) -> None:
    plan = retention.plan_prune(household, None, "cron")
    assert plan.delete == ("nightly",)
    assert retention.prune_sessions(household, None, source="cron") == 1
    assert "nightly" not in sessions(household)


def test_candidates_are_what_is_pruned_oldest_first(household: Writer) -> None:
    rows = retention.list_prune_candidates(household, 90)
    assert [row["id"] for row in rows] == ["finished", "silent"]
    assert list(rows[0]) == [
        "id", "source", "title", "model", "started_at", "ended_at", "message_count", "archived", "last_active",
    ]  # fmt: skip
    assert rows[0]["last_active"] == pytest.approx(ago(199))


def test_a_conversation_goes_as_a_whole_once_none_of_it_is_in_use(writer: Writer) -> None:
    add(writer, "first", "one", **ended(150, "compression"))
    add(writer, "second", "two", parent_session_id="first", started_at=ago(150), **ended(149, "compression"))
    add(writer, "third", "three", parent_session_id="second", started_at=ago(149), **ended(140))
    assert retention.prune_sessions(writer, 100) == 3
    assert sessions(writer) == {}


def test_a_later_segment_in_use_keeps_all_earlier_ones(writer: Writer) -> None:
    add(writer, "first", "one", **ended(150, "compression"))
    add(writer, "second", "two", parent_session_id="first", started_at=ago(150), **ended(149, "compression"))
    add(writer, "third", "three", parent_session_id="second", started_at=ago(149), at=ago(1), **ended(1))
    assert retention.plan_prune(writer, 100).stay["in_use"] == ("first", "second")
    assert retention.prune_sessions(writer, 100) == 0
    assert retention.prune_sessions(writer, 0.5) == 3


def test_children_of_a_pruned_session_become_roots(writer: Writer) -> None:
    add(writer, "parent", "one", **ended(190))
    marked = json.dumps({"_delegate_from": "parent"})
    add(writer, "errand", "two", parent_session_id="parent", model_config=marked, started_at=ago(1), **ended(1))
    plan = retention.plan_prune(writer)
    assert plan.orphaned == ("errand",)
    assert plan.sentence.endswith("1 session would lose the parent.")
    assert retention.prune_sessions(writer) == 1
    assert sessions(writer) == {"errand": None}
    assert_clean(writer)


def test_a_sign_of_life_counts_where_the_store_notes_it(writer: Writer) -> None:
    add(writer, "alive", "old words", **ended(1))
    assert retention.plan_prune(writer).delete == ("alive",)
    writer.connection.execute("ALTER TABLE sessions ADD COLUMN last_activity_at REAL")
    writer.connection.execute("UPDATE sessions SET last_activity_at = ?", (ago(1),))
    writer.renew_shape()
    assert writer.shape.has("sessions", "last_activity_at")
    assert retention.prune_sessions(writer) == 0
    writer.connection.execute("UPDATE sessions SET last_activity_at = NULL")
    assert retention.prune_sessions(writer) == 1


FILTERED = {
    "title_like": ("PLAN", {"title": "my plan"}), "model_like": ("opus", {"model": "Opus-9"}),
    "branch_like": ("fix", {"git_branch": "a/Fix-b"}), "end_reason": ("done", {"end_reason": "done"}),
    "user_id": ("u7", {"user_id": "u7"}), "chat_id": ("c7", {"chat_id": "c7"}),
    "chat_type": ("group", {"chat_type": "group"}), "provider": ("NOUS", {"billing_provider": "nous"}),
    "cwd_prefix": ("/home/a_b", {"cwd": "/home/a_b/c"}), "min_messages": (5, {"message_count": 5}),
    "min_tokens": (30, {"input_tokens": 10, "output_tokens": 20}), "min_cost": (0.5, {"estimated_cost_usd": 0.5}),
    "min_tool_calls": (2, {"tool_call_count": 2}), "archived": (True, {"archived": 1}),
    "started_before": (ago(300), {"started_at": ago(301)}), "last_active_before": (ago(300), {"started_at": ago(301)}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERED)
def test_each_filter_chooses_its_own(writer: Writer, name: str) -> None:
    value, columns = FILTERED[name]
    add(writer, "other", cwd="/home/aXb/c", **ended(199))
    add(writer, "wanted", **{**ended(199), **columns})
    assert retention.plan_prune(writer, None, **{name: value}).delete == ("wanted",)
    assert retention.plan_prune(writer, None, **{name: None}).delete in (("other", "wanted"), ("wanted", "other"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_messages", 4), ("max_tokens", 29), ("max_cost", 0.4), ("max_tool_calls", 1), ("started_after", ago(300)),
     ("last_active_after", ago(300)), ("archived", False)],
    ids=lambda given: given if isinstance(given, str) else "",
)  # fmt: skip
def test_filters_from_above(writer: Writer, name: str, value: Any) -> None:
    add(writer, "small", **ended(199))
    add(
        writer, "big", message_count=5, input_tokens=30, actual_cost_usd=0.5, estimated_cost_usd=0.1,
        tool_call_count=2, archived=1, started_at=ago(301), **ended(300),
    )  # fmt: skip
    assert retention.plan_prune(writer, None, **{name: value}).delete == ("small",)


def test_a_start_bound_takes_the_place_of_the_age(writer: Writer) -> None:
    add(writer, "young", started_at=ago(5), **ended(5))
    assert retention.prune_sessions(writer) == 0
    assert retention.prune_sessions(writer, started_before=ago(4)) == 1


def test_an_unknown_filter_is_refused_and_nothing_is_deleted(household: Writer) -> None:
    for call in (retention.prune_sessions, retention.plan_prune, retention.archive_sessions):
        with pytest.raises(TypeError, match="titel_like"):
            call(household, titel_like="x")
    assert len(sessions(household)) == 8


def test_archived_sessions_are_pruned_unless_left_out(writer: Writer) -> None:
    add(writer, "shelved", archived=1, **ended(199))
    plan = retention.plan_prune(writer, 90, archived=False)
    assert (plan.delete, plan.stay["archived"]) == ((), ("shelved",))
    assert retention.prune_sessions(writer, 90) == 1


# -- archiving -----------------------------------------------------------------------------------------


def archived(writer: Writer) -> set[str]:
    return {row[0] for row in writer.rows("SELECT id FROM sessions WHERE archived")}


def test_archiving_takes_the_candidates(household: Writer) -> None:
    assert retention.archive_sessions(household, 90) == 2
    assert archived(household) == {"finished", "silent"}
    assert retention.archive_sessions(household, 90) == 0


def test_stale_conversations_are_archived_open_ones_too(household: Writer) -> None:
    assert retention.archive_stale_sessions(household, 30) == 3
    assert archived(household) == {"left_open", "finished", "silent"}
    assert retention.archive_stale_sessions(household, 30, exclude_pinned=False) == 1
    assert "keepsake" in archived(household)


def test_a_stale_tip_takes_its_earlier_segments_along(household: Writer) -> None:
    assert retention.archive_stale_sessions(household, 0.5) == 6
    assert {"segment", "sequel"} <= archived(household)


@pytest.mark.parametrize("days", [None, -1])
def test_no_number_of_days_archives_nothing(household: Writer, days: float | None) -> None:
    assert retention.archive_stale_sessions(household, days) == 0
    assert archived(household) == set()


# -- by the clock ----------------------------------------------------------------------------------------


def test_pruning_by_the_clock(household: Writer) -> None:
    run = retention.maybe_auto_prune_and_vacuum
    assert run(household, vacuum=False) == {"skipped": False, "pruned": 2, "vacuumed": False}
    assert float(meta.get_meta(household, "last_auto_prune") or 0) == pytest.approx(time.time(), abs=60)
    assert run(household, 0, vacuum=False) == {"skipped": True, "pruned": 0, "vacuumed": False}
    meta.set_meta(household, "last_auto_prune", str(ago(1.5)))
    assert run(household, 0.5, vacuum=False)["pruned"] == 2
    meta.set_meta(household, "last_auto_prune", "not a number")
    assert run(household, 0.5) == {"skipped": False, "pruned": 0, "vacuumed": False}


def test_the_file_is_rewritten_after_something_was_pruned(writer: Writer) -> None:
    add(writer, "old", *(f"{number} " * 200 for number in range(500)), **ended(199))
    size = meta.logical_size_bytes(writer) or 0
    result = retention.maybe_auto_prune_and_vacuum(writer)
    assert result == {"skipped": False, "pruned": 1, "vacuumed": True}
    assert (meta.logical_size_bytes(writer) or 0) < size / 2


def test_what_runs_by_the_clock_raises_nothing(household: Writer) -> None:
    reader = Writer(household.path, read_only=True)
    try:
        for result in (retention.maybe_auto_prune_and_vacuum(reader), retention.maybe_auto_archive(reader)):
            assert "read only" in result["error"]
    finally:
        reader.close()


def test_archiving_by_the_clock(household: Writer) -> None:
    assert retention.maybe_auto_archive(household, 30) == {"skipped": False, "archived": 3}
    assert retention.maybe_auto_archive(household, 30) == {"skipped": True, "archived": 0}


@pytest.mark.parametrize("name", ["schema-11.db", "schema-19.db", "schema-22.db", "schema-23.db", "small-23.db"])
def test_stores_of_the_real_program_stay_whole(shared_store: Callable[[str], Path], name: str) -> None:
    writer = Writer(shared_store(name))
    try:
        before = len(sessions(writer))
        plan = retention.plan_prune(writer, 0)
        assert retention.prune_sessions(writer, 0) == len(plan.delete) == before - len(sessions(writer))
        assert plan.delete
        assert deletion.delete_sessions(writer, list(sessions(writer))) == before - len(plan.delete)
        assert writer.value("SELECT count(*) FROM messages") == 0
        assert writer.value("SELECT count(*) FROM session_model_usage") == 0
        assert writer.rows("PRAGMA foreign_key_check") == []
        for index in ("messages_fts", "messages_fts_trigram"):
            writer.connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
    finally:
        writer.close()
