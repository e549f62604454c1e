"""Session rows: making, filling, ending, finding and altering them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger.schema import declared_columns
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3


def stored(db: SessionDB, session_id: str, *names: str) -> Any:
    row = db.get_session(session_id)
    assert row is not None
    return row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)


def test_a_new_session_starts_now_and_has_every_declared_column(db: SessionDB) -> None:
    before = time.time()
    assert db.create_session("a", "cli", model="m", model_config={"max": 3}, user_id="u") == "a"
    row = db.get_session("a")
    assert row is not None and tuple(row) == declared_columns("sessions")
    assert before <= row["started_at"] <= time.time()
    assert (row["source"], row["model"], row["user_id"], row["message_count"]) == ("cli", "m", "u", 0)
    assert json.loads(row["model_config"]) == {"max": 3}
    assert row["ended_at"] is None and row["estimated_cost_usd"] is None


def test_creating_again_fills_what_is_null_and_changes_nothing_else(db: SessionDB) -> None:
    db.create_session("root", "cli")
    db.create_session("a", "cli", model="first")
    before = db.get_session("a")
    fillable = {
        "system_prompt": "p", "session_key": "k", "chat_id": "c", "chat_type": "dm", "thread_id": "t",
        "parent_session_id": "root", "cwd": "/w", "profile_name": "work", "git_repo_root": "/r",
    }  # fmt: skip
    db.create_session("a", "telegram", model="second", user_id="late", model_config={"x": 1}, **fillable)
    after = db.get_session("a")
    assert before is not None and after == {**before, **fillable, "model_config": '{"x": 1}'}
    db.create_session("a", "cli", **{name: "other" for name in fillable if name != "parent_session_id"})
    assert db.get_session("a") == after


def test_ensuring_a_session_is_creating_one_of_unknown_source(db: SessionDB) -> None:
    assert db.ensure_session("a") == "a"
    assert stored(db, "a", "source", "model") == ("unknown", None)
    db.ensure_session("a", "cli", "m", cwd="/w")
    assert stored(db, "a", "source", "model", "cwd") == ("unknown", "m", "/w")


def test_an_empty_model_config_is_null_and_an_unknown_argument_is_refused(db: SessionDB) -> None:
    db.create_session("a", "cli", model_config={})
    assert stored(db, "a", "model_config") is None
    with pytest.raises(TypeError):
        db.create_session("b", "cli", started_at=1.0)  # type: ignore[call-arg]
    assert db.get_session("b") is None


def test_an_unknown_parent_is_refused_and_nothing_is_stored(db: SessionDB) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        db.create_session("a", "cli", parent_session_id="nobody")
    assert db.get_session("a") is None


PLACE = ("cwd", "git_repo_root", "git_branch", "profile_name")
PEER = ("user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json")


@pytest.mark.parametrize(("reason", "peer_too"), [(None, False), ("cli_close", False), ("compression", True)])
def test_a_child_takes_over_what_it_lacks(db: SessionDB, reason: str | None, peer_too: bool) -> None:
    db.create_session("p", "telegram")
    db._conn.execute(f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in PLACE + PEER)}", [*(PLACE + PEER)])
    if reason:
        db.end_session("p", reason)
    db.create_session("c", "telegram", parent_session_id="p", cwd="/own", chat_id="own")
    assert stored(db, "c", *PLACE) == ("/own", *PLACE[1:])
    expected = [name if peer_too else None for name in PEER]
    expected[PEER.index("chat_id")] = "own"
    assert stored(db, "c", *PEER) == tuple(expected)


def test_the_first_end_wins_until_the_session_is_reopened(db: SessionDB) -> None:
    db.create_session("a", "cli")
    db.end_session("a", "compression")
    first = stored(db, "a", "ended_at", "end_reason")
    db.end_session("a", "cli_close")
    assert stored(db, "a", "ended_at", "end_reason") == first and first[1] == "compression"
    db.reopen_session("a")
    assert stored(db, "a", "ended_at", "end_reason") == (None, None)
    db.end_session("a", "cli_close")
    assert stored(db, "a", "end_reason") == "cli_close"
    db.end_session("nobody", "x")


@pytest.mark.parametrize(
    ("reason", "promoted"),
    [(None, True), ("agent_close", True), ("ws_orphan_reap", True), ("compression", False)],
)
def test_a_reset_is_noted_on_live_sessions_and_on_lost_clients(
    db: SessionDB, reason: str | None, promoted: bool
) -> None:
    db.create_session("a", "cli")
    if reason:
        db.end_session("a", reason)
    ended = stored(db, "a", "ended_at")
    assert db.promote_to_session_reset("a") is promoted
    assert stored(db, "a", "end_reason") == ("session_reset" if promoted else reason)
    assert ended is None or stored(db, "a", "ended_at") == ended
    assert db.promote_to_session_reset("nobody") is False


def test_an_id_is_found_by_itself_or_by_a_prefix_of_its_own(db: SessionDB) -> None:
    for session_id in ("20260101_a", "20260101_ab", "x%1", "xy1", "x\\2", "MiXed"):
        db.create_session(session_id, "cli")
    found = {
        "20260101_a": "20260101_a",  # exact, although another begins so
        "20260101_": None,
        "x%": "x%1",
        "x_": None,  # no wildcard
        "x\\": "x\\2",
        "mixe": "MiXed",
        "": None,
        "nobody": None,
        "x%1\0": None,
        "y" * 60_000: None,
        "\ud800": None,
    }
    assert {asked: db.resolve_session_id(asked) for asked in found} == found


def test_an_empty_prefix_is_the_only_session_of_a_store(db: SessionDB) -> None:
    db.create_session("only", "cli")
    assert db.resolve_session_id("") == "only"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.text("aAb%_\\", min_size=1, max_size=4), min_size=1, max_size=5), st.text("aAb%_\\", max_size=3))
def test_a_prefix_is_resolved_as_plain_text(db: SessionDB, ids: set[str], asked: str) -> None:
    db._conn.execute("DELETE FROM sessions")
    for session_id in ids:
        db.create_session(session_id, "cli")
    begun = [id for id in ids if id.lower().startswith(asked.lower())]
    expected = asked if asked in ids else begun[0] if len(begun) == 1 else None
    assert db.resolve_session_id(asked) == expected


def test_the_folder_is_noted_and_blanks_are_kept_out(db: SessionDB) -> None:
    db.create_session("a", "cli")
    db.update_session_cwd("a", "/w", "main", "/r")
    db.update_session_cwd("a", "", "other")
    db.update_session_cwd("a", "/v", "  ", "")
    assert stored(db, "a", "cwd", "git_branch", "git_repo_root") == ("/v", "main", "/r")


def test_empty_repository_roots_are_filled_by_folder(db: SessionDB) -> None:
    db.create_session("a", "cli", cwd="/w")
    db.create_session("b", "cli", cwd="/w", git_repo_root="/own")
    db.create_session("c", "cli", cwd="/v")
    db.backfill_repo_roots({"/w": "/r", "": "/no", "/v": ""})
    assert [stored(db, id, "git_repo_root") for id in "abc"] == ["/r", "/own", None]


def test_meta_replaces_the_configuration_and_keeps_the_model_unless_one_is_given(db: SessionDB) -> None:
    db.create_session("a", "cli", model="m", model_config={"x": 1})
    db.update_session_meta("a", '{"y": 2}')
    assert stored(db, "a", "model_config", "model") == ('{"y": 2}', "m")
    db.update_session_meta("a", "not json", "n")
    assert stored(db, "a", "model_config", "model") == ("not json", "n")


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ('{"browser_model_lock": {"model": "m"}, "x": 1}', '{"x":1}'),
        ('{"x":  1}', '{"x":  1}'),
        ("{broken", "{broken"),
        (None, None),
    ],
)
def test_a_new_model_drops_the_lock_and_the_prompt(db: SessionDB, config: str | None, left: str | None) -> None:
    db.create_session("a", "cli", model="m", system_prompt="p")
    db.update_session_meta("a", config)
    db.update_session_model("a", "n")
    assert stored(db, "a", "model", "system_prompt", "model_config") == ("n", None, left)


def test_a_new_billing_route_is_set_whole_but_for_the_mode(db: SessionDB) -> None:
    db.create_session("a", "cli", system_prompt="p")
    db.update_session_billing_route("a", provider="q", base_url="u", billing_mode="mode")
    db.update_system_prompt("a", "again")
    db.update_session_billing_route("a", provider="r", base_url=None)
    columns = ("billing_provider", "billing_base_url", "billing_mode", "system_prompt")
    assert stored(db, "a", *columns) == ("r", None, "mode", None)


def test_text_that_no_file_can_hold_is_mended(db: SessionDB) -> None:
    db.create_session("a", "cli", system_prompt="x\ud800y", model_config={"k": "\udfff"})
    assert stored(db, "a", "system_prompt") == "x\ufffdy"
    assert json.loads(stored(db, "a", "model_config")) == {"k": "\ufffd"}


def test_folders_are_counted_with_their_last_use(db: SessionDB) -> None:
    for session_id, cwd in (("a", "/w"), ("b", "/w"), ("c", "/v"), ("d", None), ("e", "/hidden")):
        db.create_session(session_id, "cli", cwd=cwd)
    db._conn.execute("UPDATE sessions SET started_at = 10")
    db._conn.execute("UPDATE sessions SET ended_at = 30 WHERE id = 'b'")
    db.set_session_archived("e", True)
    seen = [{"cwd": "/w", "sessions": 2, "last_active": 30.0}, {"cwd": "/v", "sessions": 1, "last_active": 10.0}]
    assert db.distinct_session_cwds() == seen
    assert {row["cwd"] for row in db.distinct_session_cwds(include_archived=True)} == {"/w", "/v", "/hidden"}


@pytest.mark.parametrize("name", ["small-1.db", "small-5.db", "small-15.db"])
def test_an_old_store_open_to_read_only_answers_with_what_it_has(
    shared_store: Callable[[str], Path], name: str
) -> None:
    path = shared_store(name)
    with SessionDB(path, read_only=True) as db:
        rows = db.search_sessions(limit=-1)
        assert rows
        for row in rows:
            whole = db.get_session(row["id"])
            assert whole is not None and tuple(whole) == declared_columns("sessions")
            assert db.resolve_session_id(row["id"]) == row["id"]
            assert db.get_session_title(row["id"]) == whole["title"]
            assert row["id"] in db.get_compression_lineage(row["id"])
        assert db.session_count(include_archived=True) == len(rows)
        assert (
            db.list_sessions_rich(limit=-1)
            and db.list_sessions_rich(order_by_last_active=True, search_query="a") is not None
        )
        assert db.distinct_session_cwds() is not None and db.get_next_title_in_lineage("free") == "free"


def test_a_chosen_model_is_kept_beside_the_rest_of_the_configuration(db: SessionDB) -> None:
    db.create_session("s", "desktop", model_config={"_branched_from": "x"})
    db.update_session_runtime_lock("s", model="a-model", provider="a-provider", model_options={"effort": "high"})
    db.update_session_runtime_lock("s", provider="another", route_source="picker", confirmed=True)
    assert json.loads(stored(db, "s", "model_config")) == {
        "_branched_from": "x",
        "browser_model_lock": {
            "model": "a-model", "provider": "another", "model_options": {"effort": "high"}, "route_source": "picker",
            "confirmed": True,
        },
    }  # fmt: skip
    db.update_session_model("s", "b-model")
    assert json.loads(stored(db, "s", "model_config")) == {"_branched_from": "x"}
    db.update_session_runtime_lock("unknown", model="m")


@pytest.mark.parametrize("broken", ["{broken", "[1]", '"text"'])
def test_a_broken_configuration_is_not_overwritten_by_a_chosen_model(db: SessionDB, broken: str) -> None:
    db.create_session("s", "desktop")
    db.update_session_meta("s", broken)
    with pytest.raises(ValueError, match="model_config"):
        db.update_session_runtime_lock("s", model="m")
    assert stored(db, "s", "model_config") == broken


def test_sessions_that_began_with_a_skill_are_listed(db: SessionDB) -> None:
    frame = '[IMPORTANT: The user has invoked the "tides" skill, and so on.]'
    begins = {
        "framed": [frame, "more"], "plain": ["hello"], "later": ["hello", frame], "empty": [],
        "quoted": [f"What does {frame} mean?"], "parts": [[{"type": "text", "text": frame}]],
    }  # fmt: skip
    for id, contents in begins.items():
        db.create_session(id, "cli")
        for content in contents:
            db.append_message(id, "user", content)
    db.set_session_title("framed", "Tides")
    found = {row["id"]: row for row in db.list_skill_scaffolded_sessions()}
    assert set(found) == {"framed", "parts"}
    assert found["framed"] == {"id": "framed", "title": "Tides", "content": frame}
    assert found["parts"]["content"] == [{"type": "text", "text": frame}]
    assert [row["id"] for row in db.list_skill_scaffolded_sessions(limit=1)] == ["parts"]
