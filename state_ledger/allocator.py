"""One arena for the C library's memory, so that what a big page needed is given back after it."""

from __future__ import annotations

import ctypes
import sys

_M_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's malloc.h."""


def keep_one_arena() -> bool:
    """Makes glibc serve all threads from one arena; returns whether it did (elsewhere it need not).

    By default each thread gets arenas of its own, and what SQLite frees in one of them stays with the
    process: after a walk through every page of a 1.5 GB store 171 MB above idle, with one arena 75.
    Python's threads take turns, so that they hardly meet at the arena's lock. Call it before threads
    that read are started.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1))
    except (OSError, AttributeError):
        return False
