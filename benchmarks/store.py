"""The big store that is measured on: made once with the project's own generator, then used again."""

from __future__ import annotations

import sys
from pathlib import Path

from state_ledger.demo import make_demo
from state_ledger.homes import cache_folder

SESSIONS = 10_000
MESSAGES_PER_SESSION = 70


def default_path(sessions: int, messages_per_session: int) -> Path:
    """Where the store of a size is kept, in the user's cache."""
    return cache_folder() / f"benchmark-{sessions}x{messages_per_session}.db"


def find_or_make(path: Path | None, sessions: int, messages_per_session: int) -> Path:
    """The store to measure on; made if it is not there, which takes minutes. Raises OSError."""
    path = path or default_path(sessions, messages_per_session)
    if path.exists():
        return path
    print(f"Making a store of {sessions:,} sessions at {path}", file=sys.stderr)
    demo = make_demo(path, sessions=sessions, messages_per_session=messages_per_session)
    print(f"{demo.messages:,} messages, {demo.bytes / 1e6:,.0f} MB", file=sys.stderr)
    return path
