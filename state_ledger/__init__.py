"""The books of a Hermes Agent `state.db`, and the storage core that writes such files.

`from state_ledger import SessionDB, AsyncSessionDB`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from state_ledger.session_db import AsyncSessionDB, SessionDB

    __version__: str

__all__ = ["AsyncSessionDB", "SessionDB", "__version__"]

def __getattr__(name: str) -> Any:
    # Loaded when asked for: the pages and most commands only read.
    if name in ("AsyncSessionDB", "SessionDB"):
        from state_ledger import session_db

        return getattr(session_db, name)
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("state-ledger")
        except PackageNotFoundError:  # a source tree on sys.path without an install
            return "0+unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
