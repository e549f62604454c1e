"""Version 22: the task is part of the key of a usage row.

Source: store-format, 3.3. The table is made anew where its key lacks it, whatever the version says.
"""

from __future__ import annotations

from sqlite_utils import Database

from state_ledger.migrate import key_shapes
from state_ledger.migrate.migration_set import MIGRATIONS


@MIGRATIONS(name="v22_usage_key")
def widen_usage_key(db: Database) -> None:
    """Gives `session_model_usage` its key of six columns; existing rows are main-loop calls (task '')."""
    key_shapes.repair(db.conn, "session_model_usage")
