"""Where the messages of an answer may be: ids in order, read piece by piece, never more than needed.

A stream reads a bounded piece at a time and lets go of the store in between, so that no reading lasts.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from state_ledger.search.filters import Condition
from state_ledger.sqlite import Connection

FIRST_PIECE, LONGEST_PIECE = 24, 2001
FIRST_WINDOW, LONGEST_WINDOW = 256, 16384
WINDOW_S = 0.02
"""A window of a scan grows until it takes so long: between two of them the time is looked at."""

MESSAGES = "main.messages m CROSS JOIN main.sessions s ON s.id = m.session_id"
"""Messages as `m`, each with its session as `s`; messages whose session is gone are none."""


def found_by(index: str) -> str:
    """FROM and WHERE of the messages that an index finds for one parameter, as `m`, with their session, as `s`."""
    # CROSS JOIN: the index is asked first, once, and not for each message.
    return (
        f"FROM main.{index} CROSS JOIN main.messages m ON m.id = {index}.rowid"
        f" CROSS JOIN main.sessions s ON s.id = m.session_id WHERE {index} MATCH ?"
    )


@dataclass
class Store:
    """One store while one search looks through it.

    where: what filters allow. newest_first: the order of ids. start: only ids beyond this one, in that
    order. deadline: `time.monotonic()` at which scans stop, None for never. stopped: whether one did;
    stopped_at: from there on it had not looked, as a `start`. piece: how many rows are read at first.
    ranks: bm25 by id of what the sure streams found, where it is asked for: the smaller, the better.
    """

    connection: Connection
    where: Condition
    newest_first: bool
    start: int | None
    deadline: float | None
    stopped: bool = False
    stopped_at: int | None = None
    piece: int = FIRST_PIECE
    ranks: dict[int, float] | None = None

    def rows(self, sql: str, parameters: Iterable[Any]) -> list[Any]:
        return self.connection.execute(sql, tuple(parameters)).fetchall()

    @property
    def direction(self) -> str:
        return "DESC" if self.newest_first else "ASC"

    def beyond(self, column: str, last: int | None) -> Condition:
        """Ids after the last one, in order."""
        if last is None:
            return "1", []
        return f"{column} {'<' if self.newest_first else '>'} ?", [last]

    @property
    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def merged(self, streams: Iterable[Iterator[int]]) -> Iterator[int]:
        """Several streams as one, each id once."""
        return (each for each, _ in self.labelled(streams, ()))

    def labelled(
        self, sure: Iterable[Iterator[int]], maybe: Iterable[Iterator[int]]
    ) -> Iterator[tuple[int, bool]]:
        """Several streams as one, each id once, with whether one of the sure ones has it."""
        # Of two entries of one id the sure one comes first.
        best = 1 if self.newest_first else 0
        marked = [((each, best) for each in stream) for stream in sure]
        marked += [((each, 1 - best) for each in stream) for stream in maybe]
        last = None
        for each, mark in heapq.merge(*marked, reverse=self.newest_first):
            if each != last:
                yield each, mark == best
            last = each


def from_index(
    store: Store, index: str, expression: str, also: Condition = ("1", []), *, ranked: bool = False
) -> Iterator[int]:
    """The messages that an index finds. also: a further condition on `m` and `s`. ranked: notes their rank."""
    last, piece = store.start, store.piece
    ranks = store.ranks if ranked else None
    rank = "NULL" if ranks is None else f"{index}.rank"
    while True:
        beyond, place = store.beyond(f"{index}.rowid", last)
        found = store.rows(
            f"SELECT m.id, {rank} {found_by(index)} AND {beyond} AND {store.where[0]} AND {also[0]}"
            f" ORDER BY {index}.rowid {store.direction} LIMIT {piece}",
            [expression, *place, *store.where[1], *also[1]],
        )
        if ranks is not None:
            ranks.update(found)
        yield from (row[0] for row in found)
        if len(found) < piece:
            return
        last, piece = found[-1][0], min(piece * 4, LONGEST_PIECE)


def from_scan(
    store: Store, among: Condition, after: int | None = None, up_to: int | None = None
) -> Iterator[int]:
    """The messages for which a condition holds that can only be found by reading every message.

    after, up_to: only ids in between. Stops, and says so in `store.stopped`, when the time is over.
    """
    # Each by itself: asked for both at once, SQLite reads through all there are.
    ends = store.rows("SELECT (SELECT min(id) FROM main.messages), (SELECT max(id) FROM main.messages)", [])[0]
    if ends[0] is None:
        return
    low, high = ends[0] - 1, ends[1]
    if after is not None:
        low = max(low, after)
    if up_to is not None:
        high = min(high, up_to)
    if store.start is not None:
        low, high = (low, min(high, store.start - 1)) if store.newest_first else (max(low, store.start), high)
    window = FIRST_WINDOW
    while low < high:
        if store.late:
            store.stopped = True
            store.stopped_at = high + 1 if store.newest_first else low
            return
        began = time.monotonic()
        first, last = (max(low, high - window), high) if store.newest_first else (low, min(high, low + window))
        found = store.rows(
            f"SELECT m.id FROM {MESSAGES} WHERE m.id > ? AND m.id <= ? AND {store.where[0]} AND {among[0]}"
            f" ORDER BY m.id {store.direction}",
            [first, last, *store.where[1], *among[1]],
        )
        yield from (row[0] for row in found)
        low, high = (low, first) if store.newest_first else (last, high)
        if time.monotonic() - began < WINDOW_S:
            window = min(window * 2, LONGEST_WINDOW)
