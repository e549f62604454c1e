"""What programs written for the agent's own store module import from it beside the class.

A seam for such programs and nothing else: the project itself uses none of it. What each name does is
what session-db, sections 0 and 1, says of it; `docs/storage-core.md` lists them.
"""

from __future__ import annotations

from state_ledger.compatibility.declarations import (
    DEFERRED_INDEX_SQL,
    FTS_CJK_STALE_KEY,
    FTS_CJK_TABLE_SQL,
    FTS_CJK_TRIGGER_SQL,
    FTS_SQL,
    FTS_STORAGE_VERSION,
    FTS_TRIGRAM_SQL,
    SCHEMA_SQL,
)
from state_ledger.compatibility.opening import (
    apply_wal_with_fallback,
    format_session_db_unavailable,
    fts5_cjk_so_path,
    get_last_init_error,
    is_sqlite_wal_reset_vulnerable,
    load_fts5_cjk_extension,
    sqlite_source_id,
    workspace_key,
)
from state_ledger.compatibility.private_names import (
    _CHECKPOINT_EVERY_N_WRITES,
    _WRITE_MAX_RETRIES,
    _WRITE_RETRY_MAX_S,
    _WRITE_RETRY_MIN_S,
    DEFAULT_DB_PATH,
    MAX_FTS5_QUERY_CHARS,
    SCHEMA_VERSION,
)
from state_ledger.compatibility.repair import (
    is_malformed_db_error,
    is_zeroed_state_db,
    quarantine_zeroed_state_db,
    repair_state_db_schema,
)

__all__ = [
    "DEFAULT_DB_PATH",
    "DEFERRED_INDEX_SQL",
    "FTS_CJK_STALE_KEY",
    "FTS_CJK_TABLE_SQL",
    "FTS_CJK_TRIGGER_SQL",
    "FTS_SQL",
    "FTS_STORAGE_VERSION",
    "FTS_TRIGRAM_SQL",
    "MAX_FTS5_QUERY_CHARS",
    "SCHEMA_SQL",
    "SCHEMA_VERSION",
    "_CHECKPOINT_EVERY_N_WRITES",
    "_WRITE_MAX_RETRIES",
    "_WRITE_RETRY_MAX_S",
    "_WRITE_RETRY_MIN_S",
    "apply_wal_with_fallback",
    "format_session_db_unavailable",
    "fts5_cjk_so_path",
    "get_last_init_error",
    "is_malformed_db_error",
    "is_sqlite_wal_reset_vulnerable",
    "is_zeroed_state_db",
    "load_fts5_cjk_extension",
    "quarantine_zeroed_state_db",
    "repair_state_db_schema",
    "sqlite_source_id",
    "workspace_key",
]
