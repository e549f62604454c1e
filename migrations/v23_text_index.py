"""Version 23: the full-text indexes take their text from `messages` instead of keeping a copy.

Source: store-format, 1.6. Replaces the layouts of versions 1, 10 and 11 alike, and an index that
does not match its messages.
"""

from __future__ import annotations

from sqlite_utils import Database

from state_ledger.full_text import layout as text_layout
from state_ledger.migrate.migration_set import MIGRATIONS


@MIGRATIONS(name="v23_text_index")
def rewrite_text_index(db: Database) -> None:
    """Makes the indexes anew from all messages, unless that was done in steps before."""
    newer = text_layout.read(db.conn) is text_layout.Layout.NEWER
    if not newer and not text_layout.is_complete(db.conn):
        text_layout.rewrite(db.conn)
