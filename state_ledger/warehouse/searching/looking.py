"""Going through the messages of a warehouse for one query: candidates from the engine, decided on their texts.

Window by window in the order of the hits, so that the first hits cost little where there are many, and a search
whose time is over can be gone on with where it stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from typing import NamedTuple

from state_ledger.search import match
from state_ledger.search.query import Query, holds
from state_ledger.search.request import Request
from state_ledger.search.term import Term
from state_ledger.warehouse.books import Warehouse
from state_ledger.warehouse.dialect import Interrupted
from state_ledger.warehouse.searching.messages import Messages
from state_ledger.warehouse.searching.order import Axis, Place, Window

FIRST_WINDOW, LONGEST_WINDOW = 32_768, 1 << 22
"""Messages of a window. It grows while one takes less than QUICK_S or there is no hurry, and shrinks where one takes
more than SLOW_S."""

QUICK_S, SLOW_S = 0.25, 1.0
FIRST_PIECE, LONGEST_PIECE = 32, 256
"""Candidates that are read at a time, with their texts."""

LEAST_S = 2.0
"""Seconds that the first window may take, however little time there is: so that every search gets on."""


class Row(NamedTuple):
    """A message as it stands in its store."""

    place: int
    store: str
    host: str
    id: int
    session_id: str
    timestamp: float | None
    role: str
    text: str | None
    tool_name: str | None
    tool_calls: str | None

    @property
    def fields(self) -> match.Fields:
        """What a query is looked for in."""
        return match.Fields.decoded(self.text or "", self.tool_name, self.tool_calls)


class Looking:
    """One query on the stores of a warehouse that have texts.

    inside: whether words are looked for within longer words. stopped: where it stopped when the time was over,
    None where it did not. messages: those that it looks through. offered: whether the engine offered any.
    """

    def __init__(
        self, warehouse: Warehouse, request: Request, query: Query, deadline: float | None, *, inside: bool = False
    ) -> None:
        assert query.root is not None
        self.request, self.root, self.inside = request, query.root, inside
        self.stopped: Place | None = None
        self.offered = False
        self._deadline = deadline
        self._got_on = False
        self.messages = Messages(warehouse, request, query.root, inside=inside)
        self.axis: Axis = self.messages.axis

    def matches(self, start: Place | None) -> Iterator[list[Row]]:
        """Messages that match after a place, in order, some at a time.

        Raises EngineError, and Interrupted where not even a step could be done in LEAST_S.
        """
        for rows in self._candidates(start):
            yield [row for row in rows if self._is_match(row.fields)]

    @property
    def reached(self) -> float | None:
        """The time up to which it has looked, where it stopped."""
        return None if self.stopped is None else self.messages.time_at(self.stopped)

    def after(self, row: Row) -> Place:
        """The place after a message."""
        return Place(row.id if self.axis.whole else row.timestamp, row.place, row.id, inside=self.inside)

    # -- deciding ---------------------------------------------------------------------------------

    def _is_match(self, fields: match.Fields) -> bool:
        if not self.inside:
            return match.matches(self.root, fields)
        # The index of three characters, by which stores answer this, does not pass over accents.
        return match.matches(self.root, fields, inside=True) and holds(self.root, lambda term: _within(term, fields))

    # -- candidates ---------------------------------------------------------------------------------

    def _candidates(self, start: Place | None) -> Iterator[list[Row]]:
        if start is None or start.at is not None:
            yield from self._on_axis(start)
        if self.stopped is None and self.messages.has_timeless:
            hit = start if start is not None and start.at is None else None
            yield from self._pieces(Window(None, None, timeless=True), hit)

    def _on_axis(self, start: Place | None) -> Iterator[list[Row]]:
        hit = start if start is not None and start.id is not None else None
        position, messages = self._beginning(start), FIRST_WINDOW
        while True:
            window = self.axis.first(position, messages)
            if self._is_filtered_out(window):
                return
            began = time.monotonic()
            window = yield from self._pieces(window, hit)
            if self.stopped is not None:
                return
            position, hit = self.axis.last(window), None
            if position is None:
                return
            if self._late:
                self.stopped = Place(position, inside=self.inside)
                return
            took = time.monotonic() - began
            if took < QUICK_S or self._deadline is None:
                messages = min(messages * 4, LONGEST_WINDOW)
            elif took > SLOW_S:
                messages = max(messages // 4, 1)

    def _pieces(self, window: Window, hit: Place | None) -> Generator[list[Row], None, Window]:
        """The candidates of a window after a hit; returns the window, which is smaller where it took too long."""
        piece = FIRST_PIECE
        while True:
            try:
                rows = [Row(*row) for row in self.messages.read(window, hit, piece, self._limit_ms)]
            except Interrupted:
                if self._got_on and self._late:
                    beginning = window.high if self.axis.newest_first else window.low
                    self.stopped = hit or Place(beginning, inside=self.inside)
                    return window
                smaller = self.axis.halved(window)
                if smaller is None:
                    raise
                window = smaller
                continue
            self.offered = self.offered or bool(rows)
            yield rows
            self._got_on = True
            if len(rows) < piece:
                return window
            hit = self.after(rows[-1])
            if self._late:
                self.stopped = hit
                return window
            piece = min(piece * 4, LONGEST_PIECE)

    def _beginning(self, start: Place | None) -> float | None:
        """Where the first window begins."""
        newest_first = self.axis.newest_first
        if start is None:
            return None if self.axis.whole else self.request.until if newest_first else self.request.since
        if start.id is None or start.at is None:
            return start.at
        if self.axis.whole:
            return start.at if newest_first else start.at + 1
        # Other messages may have the same time.
        return math.nextafter(start.at, math.inf) if newest_first else start.at

    def _is_filtered_out(self, window: Window) -> bool:
        since, until = self.request.since, self.request.until
        if self.axis.whole:
            return False
        if self.axis.newest_first:
            return since is not None and window.high is not None and window.high <= since
        return until is not None and window.low is not None and window.low >= until

    @property
    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    @property
    def _limit_ms(self) -> int | None:
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        return round(1000 * max(left, 0.05 if self._got_on else LEAST_S))


def _within(term: Term, fields: match.Fields) -> bool:
    """Whether every word of a term stands somewhere, accents as they are."""
    texts = [text.lower() for text in fields.texts]
    return all(any(piece.text in text for text in texts) for piece in term.pieces)
