"""Version 16: children that are neither continuations nor branches are marked as delegates.

Source: store-format, 3.3. `model_config` may hold anything; a row whose text is no JSON object cannot
carry the mark, is left as it is and counted, and stops nothing.
"""

from __future__ import annotations

import logging

from sqlite_utils import Database

from state_ledger.migrate.migration_set import MIGRATIONS

_log = logging.getLogger(__name__)

ORPHANED = "__orphaned__"
"""The mark of a delegate whose parent is not known."""

MAX_ORPHAN_MESSAGES = 25

_CONFIG = (
    "CASE WHEN json_valid(coalesce(model_config, '{}')) AND json_type(coalesce(model_config, '{}')) = 'object'"
    " THEN coalesce(model_config, '{}') END"
)
_CHILD = """
    parent_session_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM sessions AS p WHERE p.id = c.parent_session_id
        AND (p.end_reason = 'compression' OR (p.end_reason = 'branched' AND c.started_at >= p.ended_at)))
"""
_ORPHAN = f"""
    parent_session_id IS NULL AND title IS NULL AND message_count <= {MAX_ORPHAN_MESSAGES}
    AND EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = c.id AND m.role = 'tool')
    AND NOT EXISTS (SELECT 1 FROM sessions AS k WHERE k.parent_session_id = c.id)
"""


@MIGRATIONS(name="v16_delegates")
def mark_delegates(db: Database) -> None:
    """Writes `_delegate_from` into `model_config`: the parent's id, or `__orphaned__`."""
    db.conn.execute("DROP TABLE IF EXISTS temp.delegates")
    # Decided before anything is written: a mark must not change the answer for the next row.
    db.conn.execute(
        f"""CREATE TEMP TABLE delegates AS
        SELECT c.rowid AS number, coalesce(parent_session_id, '{ORPHANED}') AS parent, {_CONFIG} AS config
        FROM main.sessions AS c WHERE ({_CHILD}) OR ({_ORPHAN})"""
    )
    db.conn.execute(
        """DELETE FROM temp.delegates WHERE json_extract(config, '$._delegate_from') IS NOT NULL
        OR json_extract(config, '$._branched_from') IS NOT NULL"""
    )
    db.conn.execute(
        """UPDATE sessions SET model_config = (
            SELECT json_set(config, '$._delegate_from', parent) FROM temp.delegates WHERE number = sessions.rowid)
        WHERE rowid IN (SELECT number FROM temp.delegates WHERE config IS NOT NULL)"""
    )
    (unmarked,) = db.conn.execute("SELECT count(*) FROM temp.delegates WHERE config IS NULL").fetchone()
    db.conn.execute("DROP TABLE temp.delegates")
    if unmarked:
        _log.warning("%d delegate sessions could not be marked: their model_config is no JSON object.", unmarked)
