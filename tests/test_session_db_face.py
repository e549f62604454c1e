"""The face of the storage core: every promised method with its arguments, and the names programs reach for."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import state_ledger
from state_ledger import AsyncSessionDB, SessionDB, session_db
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import sqlite3

PROMISED = """
create_session(session_id, source, model, model_config, system_prompt, user_id, session_key, chat_id, chat_type, thread_id, parent_session_id, cwd, profile_name, git_repo_root)
ensure_session(session_id, source, model)
end_session(session_id, end_reason)
reopen_session(session_id)
get_session(session_id)
resolve_session_id(id_or_prefix)
update_session_cwd(session_id, cwd, git_branch, git_repo_root)
update_session_meta(session_id, model_config_json, model)
update_system_prompt(session_id, system_prompt)
update_session_model(session_id, model)
update_session_billing_route(session_id, provider, base_url, billing_mode)
distinct_session_cwds(include_archived)
set_session_archived(session_id, archived)
set_session_pinned(session_id, pinned)
append_message(session_id, role, content, tool_name, tool_calls, tool_call_id, token_count, finish_reason, reasoning, reasoning_content, reasoning_details, codex_reasoning_items, codex_message_items, platform_message_id, observed, effect_disposition, timestamp, api_content, display_kind, display_metadata, compression_lock_holder)
append_messages(session_id, messages)
get_messages(session_id, include_inactive, limit, offset)
get_messages_as_conversation(session_id, include_ancestors, include_inactive, repair_alternation)
get_messages_around(session_id, around_message_id, window)
get_anchored_view(session_id, around_message_id, window, bookend, keep_roles)
message_count(session_id)
get_first_assistant_text(session_id)
list_recent_user_messages(session_id, limit, include_inactive)
has_platform_message_id(session_id, platform_message_id)
has_archived_messages(session_id)
get_resume_conversations(session_id)
replace_messages(session_id, messages, active_only)
archive_and_compact(session_id, compacted_messages)
rewind_to_message(session_id, target_message_id)
restore_rewound(session_id, since_message_id)
clear_messages(session_id)
set_session_title(session_id, title)
set_auto_title_if_empty(session_id, title)
get_session_title(session_id)
get_session_by_title(title)
resolve_session_by_title(title)
get_next_title_in_lineage(base_title)
get_compression_tip(session_id)
resolve_resume_session_id(session_id)
get_conversation_root(session_id)
get_compression_lineage(session_id)
search_messages(query, source_filter, exclude_sources, role_filter, limit, offset, sort, include_inactive)
search_sessions(source, limit, offset)
search_sessions_by_id(query, limit, include_archived)
update_token_counts(session_id, input_tokens, output_tokens, model, cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated_cost_usd, actual_cost_usd, cost_status, cost_source, pricing_version, billing_provider, billing_base_url, billing_mode, api_call_count, absolute)
record_auxiliary_usage(session_id, task, model, billing_provider, billing_base_url, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, estimated_cost_usd)
list_sessions_rich(source, exclude_sources, cwd_prefix, limit, offset, include_children, min_message_count, project_compression_tips, order_by_last_active, include_archived, archived_only, id_query, search_query, compact_rows)
session_count(source, cwd_prefix, min_message_count, include_archived, archived_only, exclude_children, exclude_sources)
export_session(session_id)
export_all(source)
export_session_lineage(session_id)
import_sessions(sessions)
prune_sessions(older_than_days, source, sessions_dir, filters)
plan_prune(older_than_days, source, filters)
list_prune_candidates(older_than_days, source, filters)
archive_sessions(older_than_days, source, filters)
archive_stale_sessions(idle_days, exclude_pinned)
delete_session(session_id, sessions_dir, expected_delete_ids)
get_session_delete_targets(session_id)
delete_sessions(session_ids, sessions_dir)
delete_session_if_empty(session_id, sessions_dir)
count_empty_sessions()
delete_empty_sessions(sessions_dir)
vacuum()
optimize_fts()
rebuild_fts()
logical_size_bytes()
maybe_auto_prune_and_vacuum(retention_days, min_interval_hours, vacuum, sessions_dir)
maybe_auto_archive(idle_days, min_interval_hours, exclude_pinned)
fts_optimize_available()
optimize_fts_storage(progress_cb, vacuum)
fts_rebuild_status()
fts_cjk_rebuild_status()
get_meta(key)
set_meta(key, value, cursor)
try_acquire_compression_lock(session_id, holder, ttl_seconds)
refresh_compression_lock(session_id, holder, ttl_seconds)
release_compression_lock(session_id, holder)
get_compression_lock_holder(session_id)
save_gateway_routing_entry(session_key, entry_json, scope)
replace_gateway_routing_entries(entries, scope)
load_gateway_routing_entries(scope)
delete_gateway_routing_entries(session_keys, scope)
promote_to_session_reset(session_id, reason)
backfill_repo_roots()
update_session_runtime_lock(session_id, model, provider, model_options, route_source, confirmed)
set_latest_user_api_content(session_id, content, api_content)
set_latest_matching_message_display_kind(session_id, role, content, display_kind, display_metadata)
get_ancestor_display_prefix(session_id)
find_live_compression_child(parent_session_id)
publish_compression_child(parent_session_id, child_session_id, source, messages, model, model_config, system_prompt, cwd, profile_name, compression_lock_holder, require_compression_lease)
finalize_orphaned_compression_sessions()
record_compression_failure_cooldown(session_id, cooldown_until, error)
get_compression_failure_cooldown(session_id)
clear_compression_failure_cooldown(session_id)
get_compression_fallback_streak(session_id)
set_compression_fallback_streak(session_id, streak)
get_compression_ineffective_count(session_id)
set_compression_ineffective_count(session_id, count)
list_cron_job_runs(job_id, limit, offset)
list_skill_scaffolded_sessions(limit)
prune_empty_ghost_sessions(sessions_dir)
fts_rebuild_step()
fts_cjk_rebuild_step()
record_gateway_session_peer(session_id, source, user_id, session_key, chat_id, chat_type, thread_id, display_name, origin_json)
set_expiry_finalized(session_id, finalized)
list_gateway_sessions(platform, active_only)
find_session_by_origin(platform, chat_id, thread_id, user_id)
find_latest_gateway_session_for_peer(source, user_id, session_key, chat_id, chat_type, thread_id)
request_handoff(session_id, platform)
claim_handoff(session_id)
complete_handoff(session_id)
fail_handoff(session_id, error)
get_handoff_state(session_id)
list_pending_handoffs()
apply_telegram_topic_migration()
enable_telegram_topic_mode(chat_id, user_id, has_topics_enabled, allows_users_to_create_topics)
disable_telegram_topic_mode(chat_id, clear_bindings)
is_telegram_topic_mode_enabled(chat_id, user_id)
bind_telegram_topic(chat_id, thread_id, user_id, session_key, session_id, managed_mode)
delete_telegram_topic_binding(chat_id, thread_id)
get_telegram_topic_binding(chat_id, thread_id)
get_telegram_topic_binding_by_session(session_id)
is_telegram_session_linked_to_topic(session_id)
list_telegram_topic_bindings_for_chat(chat_id)
list_unlinked_telegram_sessions_for_user(chat_id, user_id, limit)
"""  # noqa: E501
"""Names and order of arguments, from session-db; those without one there are the real program's."""


@pytest.mark.parametrize("promise", PROMISED.split("\n")[1:-1], ids=lambda promise: promise.partition("(")[0])
def test_a_promised_method_takes_what_it_has_to(db: SessionDB, promise: str) -> None:
    name, _, arguments = promise.rstrip(")").partition("(")
    names = list(inspect.signature(getattr(db, name)).parameters)
    wanted = [argument for argument in arguments.split(", ") if argument]
    assert names[: len(wanted)] == wanted
    assert getattr(SessionDB, name).__doc__, "it says what it does"


def test_a_turn_is_written_and_read(db: SessionDB) -> None:
    db.create_session("s", "cli", model="a-model")
    first = db.append_message("s", "user", "How deep is the harbour?")
    assert db.append_messages("s", [{"role": "assistant", "content": "Nine metres."}]) == [first + 1]
    assert [row["content"] for row in db.get_messages("s")] == ["How deep is the harbour?", "Nine metres."]
    assert [hit["session_id"] for hit in db.search_messages("harbour")] == ["s"]
    with SessionDB(db.db_path, read_only=True) as reader:
        assert [hit["id"] for hit in reader.search_messages("harbour")] == [first]


def test_it_closes_at_the_end_of_its_block(tmp_path: Path) -> None:
    with SessionDB(db_path=tmp_path / "state.db") as db:
        assert (db.db_path, db.read_only) == (tmp_path / "state.db", False)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.get_session("s")
    db.close()


def test_private_names_of_programs_in_the_field(db: SessionDB) -> None:
    assert db._fts_enabled
    with db._lock:
        db._conn.execute("INSERT INTO sessions (id, source, started_at) VALUES ('raw', 'cli', 1)")
        assert db._conn.execute("SELECT id FROM sessions").fetchone()["id"] == "raw"
    assert db._execute_write(lambda connection: connection.execute("DELETE FROM sessions").rowcount) == 1
    assert SessionDB._contains_cjk("港 deep") and not SessionDB._contains_cjk("harbour")
    query = SessionDB._sanitize_fts5_query('chat-send AND "open')
    assert db._conn.execute("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH ?", (query,)).fetchone()
    assert session_db.SCHEMA_VERSION == 23
    assert session_db.MAX_FTS5_QUERY_CHARS == 2048
    assert (db._WRITE_MAX_RETRIES, db._CHECKPOINT_EVERY_N_WRITES) == (15, 50)
    assert (session_db._WRITE_RETRY_MIN_S, session_db._WRITE_RETRY_MAX_S) == (0.020, 0.150)


def test_missing_columns_are_added_when_asked_for(db: SessionDB) -> None:
    db._conn.execute("ALTER TABLE sessions DROP COLUMN pinned")
    db._reconcile_columns(db._conn.cursor())
    assert db._writer.shape.has("sessions", "pinned")


def test_a_failed_write_through_the_private_name_is_undone(db: SessionDB) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO sessions (id, source, started_at) VALUES ('half', 'cli', 1)")
        raise KeyError

    with pytest.raises(KeyError):
        db._execute_write(half)
    assert db.get_session("half") is None


async def test_every_method_is_a_coroutine_of_the_asynchronous_face(tmp_path: Path) -> None:
    async with AsyncSessionDB(SessionDB(tmp_path / "state.db")) as db:
        assert db.read_only is False
        await db.create_session("s", "cli")
        await asyncio.gather(*(db.append_message("s", "user", str(number)) for number in range(20)))
        assert sorted(row["content"] for row in await db.get_messages("s")) == sorted(map(str, range(20)))
        assert inspect.iscoroutinefunction(db.get_session)
        with pytest.raises(AttributeError):
            db.no_such_method  # noqa: B018
    with pytest.raises(sqlite3.ProgrammingError):
        await db.get_session("s")


def test_a_handle_to_read_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreAccessError, match="no file"):
        SessionDB(tmp_path / "absent.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_the_package_loads_the_storage_core_only_when_asked() -> None:
    code = (
        "import sys, state_ledger; assert 'state_ledger.session_db' not in sys.modules; "
        "from state_ledger import SessionDB; assert 'state_ledger.session_db' in sys.modules; "
        "assert not any(name.partition('.')[0] == 'datasette' for name in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    with pytest.raises(AttributeError, match="no_such_name"):
        state_ledger.no_such_name  # noqa: B018
