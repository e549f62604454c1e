"""`SessionDB`, the flat public face of the storage core: one line per method, the work is in the nouns.

Names, arguments and results are those of the agent's own `SessionDB`, so that programs written for it
run on this one, on the same file. What a method does stands with the function it calls.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from state_ledger import (
    compatibility,
    compression,
    delegations,
    locks,
    messages,
    portability,
    retention,
    search,
    sessions,
    titles,
    usage,
)
from state_ledger.compatibility import *  # noqa: F403
from state_ledger.compatibility.opening import noted
from state_ledger.compatibility.private_names import PrivateNames
from state_ledger.errors import CompressionSessionBusyError, CompressionSessionClosedError, StoreBusyError
from state_ledger.full_text import rewrite as index_rewrite
from state_ledger.gateway import handoffs, peers, routing, topics
from state_ledger.messages import replay, rewriting
from state_ledger.messages import windows as message_windows
from state_ledger.portability import imports
from state_ledger.retention import deletion
from state_ledger.sessions import conversations, listing, routes, skills
from state_ledger.writing import meta
from state_ledger.writing.writer import Writer

__all__ = [
    "AsyncSessionDB",
    "CompressionSessionBusyError",
    "CompressionSessionClosedError",
    "SessionDB",
    "StoreBusyError",
]
__all__ += compatibility.__all__

P = ParamSpec("P")
R = TypeVar("R")


def method(work: Callable[Concatenate[Writer, P], R]) -> Callable[Concatenate[SessionDB, P], R]:
    """Makes a method of a function whose first parameter is the handle's writer."""

    def bound(self: SessionDB, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return work(self._writer, *args, **kwargs)

    functools.update_wrapper(bound, work)
    bound.__qualname__ = f"SessionDB.{work.__name__}"
    return bound


class SessionDB(PrivateNames):
    """A store of sessions and messages, open to write or only to read. Threads may share it.

    db_path: the file. read_only: whether it was opened to read only.
    Usable as a context manager, which closes it.
    """

    MAX_TITLE_LENGTH = titles.MAX_TITLE_LENGTH
    sanitize_title = staticmethod(titles.sanitize_title)

    def __init__(self, db_path: Path | str | None = None, read_only: bool = False) -> None:
        """Opens a store; makes it, with its folders, where there is none, unless it is to be read only.

        db_path: by default `$HERMES_HOME/state.db`, else `~/.hermes/state.db`.
        Raises StoreAccessError for a file that is no store or may not be opened, StoreBusyError if
        another program keeps it locked.
        """
        with noted():
            self._writer = Writer(db_path, read_only)

    @property
    def db_path(self) -> Path:
        return self._writer.path

    @property
    def read_only(self) -> bool:
        return self._writer.read_only

    def close(self) -> None:
        """Brings the write-ahead log in as far as nobody is in the way, and closes; again does nothing."""
        self._writer.close()

    def __enter__(self) -> SessionDB:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Sessions

    create_session = method(sessions.create_session)
    ensure_session = method(sessions.ensure_session)
    end_session = method(sessions.end_session)
    reopen_session = method(sessions.reopen_session)
    promote_to_session_reset = method(sessions.promote_to_session_reset)
    get_session = method(sessions.get_session)
    resolve_session_id = method(sessions.resolve_session_id)
    update_session_cwd = method(sessions.update_session_cwd)
    backfill_repo_roots = method(sessions.backfill_repo_roots)
    update_session_meta = method(sessions.update_session_meta)
    update_system_prompt = method(sessions.update_system_prompt)
    update_session_model = method(routes.update_session_model)
    update_session_billing_route = method(routes.update_session_billing_route)
    update_session_runtime_lock = method(routes.update_session_runtime_lock)
    distinct_session_cwds = method(sessions.distinct_session_cwds)

    # Messages

    append_message = method(messages.append_message)
    append_messages = method(messages.append_messages)
    get_messages = method(messages.get_messages)
    message_count = method(messages.message_count)
    get_first_assistant_text = method(messages.get_first_assistant_text)
    list_recent_user_messages = method(messages.list_recent_user_messages)
    has_platform_message_id = method(messages.has_platform_message_id)
    has_archived_messages = method(messages.has_archived_messages)
    get_messages_around = method(message_windows.get_messages_around)
    get_anchored_view = method(message_windows.get_anchored_view)
    get_messages_as_conversation = method(replay.get_messages_as_conversation)
    get_resume_conversations = method(replay.get_resume_conversations)
    get_ancestor_display_prefix = method(replay.get_ancestor_display_prefix)
    replace_messages = method(rewriting.replace_messages)
    archive_and_compact = method(rewriting.archive_and_compact)
    rewind_to_message = method(rewriting.rewind_to_message)
    restore_rewound = method(rewriting.restore_rewound)
    clear_messages = method(rewriting.clear_messages)
    set_latest_user_api_content = method(rewriting.set_latest_user_api_content)
    set_latest_matching_message_display_kind = method(rewriting.set_latest_matching_message_display_kind)

    # Titles and conversations

    set_session_title = method(titles.set_session_title)
    set_auto_title_if_empty = method(titles.set_auto_title_if_empty)
    get_session_title = method(titles.get_session_title)
    get_session_by_title = method(titles.get_session_by_title)
    resolve_session_by_title = method(titles.resolve_session_by_title)
    get_next_title_in_lineage = method(titles.get_next_title_in_lineage)
    get_compression_tip = method(conversations.get_compression_tip)
    resolve_resume_session_id = method(conversations.resolve_resume_session_id)
    get_conversation_root = method(conversations.get_conversation_root)
    get_compression_lineage = method(conversations.get_compression_lineage)
    find_live_compression_child = method(conversations.find_live_compression_child)
    set_session_archived = method(conversations.set_session_archived)
    set_session_pinned = method(conversations.set_session_pinned)

    # Search

    search_messages = method(search.search_messages)

    # Usage

    update_token_counts = method(usage.update_token_counts)
    record_auxiliary_usage = method(usage.record_auxiliary_usage)

    # Lists

    list_sessions_rich = method(listing.list_sessions_rich)
    session_count = method(listing.session_count)
    search_sessions = method(listing.search_sessions)
    search_sessions_by_id = method(listing.search_sessions_by_id)
    list_cron_job_runs = method(listing.list_cron_job_runs)
    list_skill_scaffolded_sessions = method(skills.list_skill_scaffolded_sessions)

    # Export and import

    export_session = method(portability.export_session)
    export_all = method(portability.export_all)
    export_session_lineage = method(portability.export_session_lineage)
    import_sessions = method(imports.import_sessions)

    # Cleanup

    prune_sessions = method(retention.prune_sessions)
    plan_prune = method(retention.plan_prune)
    list_prune_candidates = method(retention.list_prune_candidates)
    archive_sessions = method(retention.archive_sessions)
    archive_stale_sessions = method(retention.archive_stale_sessions)
    delete_session = method(deletion.delete_session)
    get_session_delete_targets = method(deletion.get_session_delete_targets)
    delete_sessions = method(deletion.delete_sessions)
    delete_session_if_empty = method(deletion.delete_session_if_empty)
    count_empty_sessions = method(deletion.count_empty_sessions)
    delete_empty_sessions = method(deletion.delete_empty_sessions)
    prune_empty_ghost_sessions = method(deletion.prune_empty_ghost_sessions)
    maybe_auto_prune_and_vacuum = method(retention.maybe_auto_prune_and_vacuum)
    maybe_auto_archive = method(retention.maybe_auto_archive)

    # Maintenance

    get_meta = method(meta.get_meta)
    set_meta = method(meta.set_meta)
    logical_size_bytes = method(meta.logical_size_bytes)
    vacuum = method(meta.vacuum)
    optimize_fts = method(index_rewrite.optimize_fts)
    rebuild_fts = method(index_rewrite.rebuild_fts)
    fts_optimize_available = method(index_rewrite.fts_optimize_available)
    optimize_fts_storage = method(index_rewrite.optimize_fts_storage)
    fts_rebuild_status = method(index_rewrite.fts_rebuild_status)
    fts_cjk_rebuild_status = method(index_rewrite.fts_cjk_rebuild_status)
    fts_rebuild_step = method(index_rewrite.fts_rebuild_step)
    fts_cjk_rebuild_step = method(index_rewrite.fts_cjk_rebuild_step)

    # Compression

    publish_compression_child = method(compression.publish_compression_child)
    finalize_orphaned_compression_sessions = method(compression.finalize_orphaned_compression_sessions)
    record_compression_failure_cooldown = method(compression.record_compression_failure_cooldown)
    get_compression_failure_cooldown = method(compression.get_compression_failure_cooldown)
    clear_compression_failure_cooldown = method(compression.clear_compression_failure_cooldown)
    get_compression_fallback_streak = method(compression.get_compression_fallback_streak)
    set_compression_fallback_streak = method(compression.set_compression_fallback_streak)
    get_compression_ineffective_count = method(compression.get_compression_ineffective_count)
    set_compression_ineffective_count = method(compression.set_compression_ineffective_count)
    try_acquire_compression_lock = method(locks.try_acquire_compression_lock)
    refresh_compression_lock = method(locks.refresh_compression_lock)
    release_compression_lock = method(locks.release_compression_lock)
    get_compression_lock_holder = method(locks.get_compression_lock_holder)

    # Messaging gateways and delegations

    record_gateway_session_peer = method(peers.record_gateway_session_peer)
    set_expiry_finalized = method(peers.set_expiry_finalized)
    list_gateway_sessions = method(peers.list_gateway_sessions)
    find_session_by_origin = method(peers.find_session_by_origin)
    find_latest_gateway_session_for_peer = method(peers.find_latest_gateway_session_for_peer)
    request_handoff = method(handoffs.request_handoff)
    claim_handoff = method(handoffs.claim_handoff)
    complete_handoff = method(handoffs.complete_handoff)
    fail_handoff = method(handoffs.fail_handoff)
    get_handoff_state = method(handoffs.get_handoff_state)
    list_pending_handoffs = method(handoffs.list_pending_handoffs)
    apply_telegram_topic_migration = method(topics.apply_telegram_topic_migration)
    enable_telegram_topic_mode = method(topics.enable_telegram_topic_mode)
    disable_telegram_topic_mode = method(topics.disable_telegram_topic_mode)
    is_telegram_topic_mode_enabled = method(topics.is_telegram_topic_mode_enabled)
    bind_telegram_topic = method(topics.bind_telegram_topic)
    delete_telegram_topic_binding = method(topics.delete_telegram_topic_binding)
    get_telegram_topic_binding = method(topics.get_telegram_topic_binding)
    get_telegram_topic_binding_by_session = method(topics.get_telegram_topic_binding_by_session)
    is_telegram_session_linked_to_topic = method(topics.is_telegram_session_linked_to_topic)
    list_telegram_topic_bindings_for_chat = method(topics.list_telegram_topic_bindings_for_chat)
    list_unlinked_telegram_sessions_for_user = method(topics.list_unlinked_telegram_sessions_for_user)
    save_gateway_routing_entry = method(routing.save_gateway_routing_entry)
    replace_gateway_routing_entries = method(routing.replace_gateway_routing_entries)
    load_gateway_routing_entries = method(routing.load_gateway_routing_entries)
    delete_gateway_routing_entries = method(routing.delete_gateway_routing_entries)
    record_async_delegation = method(delegations.record_async_delegation)
    complete_async_delegation = method(delegations.complete_async_delegation)
    list_async_delegations = method(delegations.list_async_delegations)


class AsyncSessionDB:
    """A `SessionDB` for asyncio: every method is a coroutine that runs on a thread; attributes pass through."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._db, name)
        if not callable(found):
            return found

        @functools.wraps(found)
        async def on_a_thread(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(found, *args, **kwargs)

        return on_a_thread

    async def __aenter__(self) -> AsyncSessionDB:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._db.close)
