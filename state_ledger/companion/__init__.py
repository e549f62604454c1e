"""The companion of a store: what an index would answer and the store does not have.

One SQLite file per store in the user's cache folder, made from the store by reading it, thrown away
and made again at will. Nothing depends on it: what it answers is answered without it, slower.

It holds an index over pairs of characters for scripts without spaces, over all messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from state_ledger.companion.reading import Companion
    from state_ledger.sqlite import Connection

__all__ = ["open_for_search"]


def open_for_search(store_path: str | Path, connection: Connection | None = None) -> Companion | None:
    """The companion of a store, for a search: `companion.reading.open_for_search`.

    Imported when it is called: the search asks the companion, whose rules of text are the search's own.
    """
    from state_ledger.companion import reading

    return reading.open_for_search(store_path, connection)
