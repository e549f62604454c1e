"""What a visitor's question may take besides the time that SQLite keeps itself.

SQLite looks at the time limit between the steps of a query, and not at all at memory. One step can make a
value of a gigabyte, sort in memory, or compare two long texts for minutes; and a thousand rows of a megabyte
each are a gigabyte in Python. So SQLite's memory has a limit of its own, an answer has one, and who waits for
a step that does not end is answered, with another thread for the others in the place of the one that is busy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from state_ledger.sqlite import sqlite3

if TYPE_CHECKING:
    pass

T = TypeVar("T")

ANSWER_BYTES = 64_000_000
"""What the texts and blobs of one answer may take; a page of them takes several times as much."""

GRACE_S = 0.5
"""How long after its time limit a question is waited for: ending in the middle takes SQLite a moment."""

LENT_AT_MOST = 8
"""Threads that stand in for those that are busy with what cannot be ended."""


class TooMuch(sqlite3.OperationalError):
    """A question that asks for more than it can be given; str() is a sentence for the visitor."""


class BoundedCursor(sqlite3.Cursor):
    """A cursor that gives no more at a time than an answer may hold."""

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Up to `size` rows. Raises TooMuch where their texts are longer than ANSWER_BYTES together."""
        rows: list[Any] = []
        left = ANSWER_BYTES
        for _ in range(self.arraysize if size is None else size):
            row = self.fetchone()
            if row is None:
                break
            left -= sum(len(value) for value in row if isinstance(value, (str, bytes)))
            if left < 0:
                self.close()
                raise TooMuch(
                    f"The first {len(rows) + 1} rows of this answer hold more than {ANSWER_BYTES // 1_000_000} MB"
                    " of text, which is more than a page can show. Ask for fewer rows or columns, or for a part of the"
                    " text."
                )
            rows.append(row)
        return rows


def limit_memory(megabytes: int) -> None:
    """Limits what SQLite may take in this process, whatever it is for; it is never raised again."""
    with_limit = sqlite3.connect(":memory:")
    with_limit.execute(f"PRAGMA hard_heap_limit = {int(megabytes) * 1_000_000}").fetchall()
    with_limit.close()


def bounded(run: Callable[[], T]) -> T:
    """What `run` gives. Raises TooMuch where SQLite has no memory left for it, or is asked several things at once.

    What a connection is not authorized to do raises sqlite3.OperationalError.
    """
    try:
        return run()
    except (sqlite3.Warning, sqlite3.ProgrammingError) as error:
        if "one statement" not in str(error):
            raise
        # Python has two names for this, neither of which Datasette expects.
        raise TooMuch("This is more than one statement. Ask for one at a time, without a semicolon.") from error
    except sqlite3.DatabaseError as error:
        if type(error) is not sqlite3.DatabaseError or "authoriz" not in str(error):
            raise
        # What the guard refuses, as the kind of error that pages of both lines show with their SQL.
        raise sqlite3.OperationalError(*error.args) from error
    except MemoryError as error:
        raise TooMuch(
            "This question needs more memory than there is for it. Ask for less, for instance for fewer columns,"
            " or without an order, or raise the setting query_memory_mb."
        ) from error


class Waiting:
    """Somebody who waits for a question; `begun` is set by the thread that works on it."""

    def __init__(self) -> None:
        self.begun: float | None = None

    async def for_answer(self, answer: Awaitable[T], limit_s: float, threads: ThreadPoolExecutor | None) -> T | None:
        """The answer; None once a step has gone on for longer than the limit and the grace."""
        task = asyncio.ensure_future(answer)
        patience = limit_s + GRACE_S
        try:
            while True:
                spent = 0.0 if self.begun is None else time.monotonic() - self.begun
                done, _ = await asyncio.wait({task}, timeout=max(0.05, patience - spent))
                if done:
                    return task.result()
                if threads is not None and self.begun is not None and time.monotonic() - self.begun > patience:
                    _lend(threads, task)
                    return None
        except asyncio.CancelledError:
            task.cancel()
            raise


def _lend(threads: Any, task: asyncio.Future[Any]) -> None:
    """One thread more for the others until this one is free again. The work goes on where nothing can end it."""
    lent = getattr(threads, "_state_ledger_lent", 0)
    more = 1 if lent < LENT_AT_MOST else 0
    threads._state_ledger_lent = lent + more
    threads._max_workers += more

    def returned(_task: asyncio.Future[Any]) -> None:
        threads._state_ledger_lent -= more
        threads._max_workers -= more
        if not task.cancelled():
            task.exception()  # nobody waits for it

    task.add_done_callback(returned)
