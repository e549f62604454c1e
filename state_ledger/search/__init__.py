"""Searching the messages of a store: every message that holds what was typed, in any script.

`find` answers a `Request` on any connection that reads; `search_messages` is the method of `SessionDB`.
What matches is decided by `match` on decoded text and is the same whichever index serves (`plan`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from state_ledger.search.answering import count, find
    from state_ledger.search.contract import search_messages
    from state_ledger.search.query import MAX_CHARACTERS
    from state_ledger.search.request import BEST, NEWEST, OLDEST, SORTS, Answer, Count, Hit, Request
    from state_ledger.search.sanitize import sanitize_fts5_query
    from state_ledger.search.text import contains_cjk

__all__ = [
    "BEST",
    "MAX_CHARACTERS",
    "NEWEST",
    "OLDEST",
    "SORTS",
    "Answer",
    "Count",
    "Hit",
    "Request",
    "contains_cjk",
    "count",
    "find",
    "sanitize_fts5_query",
    "search_messages",
]

_HOMES = {
    "answering": ("count", "find"),
    "contract": ("search_messages",),
    "query": ("MAX_CHARACTERS",),
    "request": ("BEST", "NEWEST", "OLDEST", "SORTS", "Answer", "Count", "Hit", "Request"),
    "sanitize": ("sanitize_fts5_query",),
    "text": ("contains_cjk",),
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: every connection needs a part of this package, and few of them search.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
