"""The stores that are measured on: made once with the project's own generator, then used again."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from benchmarks import longer
from benchmarks.sizes import Size
from state_ledger import private
from state_ledger.demo import make_demo
from state_ledger.homes import cache_folder
from state_ledger.sqlite import read_only_uri, sqlite3

VERSION = 1
"""Counted up when what is made changes, so that no older store is measured on."""


def default_path(size: Size) -> Path:
    """Where the store of a size is kept, in the user's cache."""
    return cache_folder() / f"benchmark-v{VERSION}-{size.name}.db"


def find_or_make(size: Size) -> Path:
    """The store of a size; made if it is not there, which takes minutes. Raises OSError."""
    path = default_path(size)
    if path.exists():
        return path
    private.folder(path.parent)
    print(f"Making the store {size.name}, {size.told}, at {path}", file=sys.stderr)
    began = time.process_time()
    if size.copies > 1:
        longer.make(path, find_or_make(size.drawn), size.copies, size.days, thin=size.thin)
    else:
        make_demo(
            path, sessions=size.sessions, messages_per_session=size.messages_per_session, days=size.days,
            full_text=size.full_text,
        )  # fmt: skip
    path.chmod(0o600)
    print(f"{told(path)}, {time.process_time() - began:,.0f} s of CPU", file=sys.stderr)
    return path


def told(path: Path) -> str:
    """How big a store is, in words."""
    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        sessions, messages, usage = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("sessions", "messages", "session_model_usage")
        )
    megabytes = path.stat().st_size / 1e6
    return f"{sessions:,} sessions, {messages:,} messages, {usage:,} usage rows, {megabytes:,.0f} MB"
