"""A search over several stores: each looks for itself, and the hits are merged as they come.

By time, the store whose next hit is the newest (or oldest) gives it; within one store the order is the
store's own. By best match, ranks of two indexes cannot be compared, so that the best of each store come
first, then the second best of each. A page is continued by where each store stands, so that no hit is
shown twice and none is passed over, whatever is written meanwhile.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from state_ledger import questions, search
from state_ledger.companion import beside
from state_ledger.errors import ParameterError, StateLedgerError
from state_ledger.questions import OutOfTime
from state_ledger.search import BEST, OLDEST, Hit, Request
from state_ledger.shelf.keeping import Member, Reading
from state_ledger.sqlite import Connection, sqlite3

END = "end"
"""Where a store stands that has no further hit."""

LEAST_S = 0.05
"""Seconds that each store may look at least, however many there are."""

_PLACES = re.compile(r"(?:[A-Za-z0-9_-]+:(?:\d{1,18}|end))(?:,[A-Za-z0-9_-]+:(?:\d{1,18}|end))*")


@dataclass(frozen=True)
class StoreHit:
    """A hit and the name of its store."""

    store: str
    hit: Hit


@dataclass(frozen=True)
class Found:
    """What was found. after: where the next page begins, None where nothing follows. complete: False when
    the time was over before every message had been looked at. missing: stores that could not be searched,
    with the reason. routes: what served the search of each store.
    """

    hits: Sequence[StoreHit]
    after: str | None
    complete: bool
    missing: dict[str, str]
    notices: tuple[str, ...]
    hint: str | None
    routes: dict[str, str | None]


def read_places(text: str) -> dict[str, str]:
    """Where each store stands, from an address. Raises ParameterError."""
    if not text:
        return {}
    if not _PLACES.fullmatch(text):
        raise ParameterError("after", text, "take it from the link to the next page")
    return dict(piece.split(":") for piece in text.split(","))


def find(
    reading: Reading, request: Request, *, after: str = "", budget_s: float, limit_ms: int
) -> Found:
    """The first `request.limit` hits of all stores of a reading after a place.

    budget_s: how long all stores together look for what no index knows. limit_ms: after which a single
    store is given up. Raises ParameterError for a place that is none.
    """
    places = read_places(after)
    deadline = time.monotonic() + budget_s
    missing: dict[str, str] = {}
    with ExitStack() as open_stores:
        streams: list[_Stream] = []
        searched = [each for each in reading.members if not reading.only or each.name in reading.only]
        for number, member in enumerate(searched):
            try:
                store = open_stores.enter_context(reading.shelf.opened(member))
                share = max(LEAST_S, (deadline - time.monotonic()) / (len(searched) - number))
                stream = _Stream(member, store, request, places.get(member.name, ""), share, limit_ms)
                stream.head()
            except OutOfTime:
                missing[member.name] = f"its search took more than {limit_ms / 1000:g} seconds."
            except StateLedgerError as error:
                missing[member.name] = str(error)
            except sqlite3.DatabaseError as error:
                missing[member.name] = f"SQLite cannot search it ({error})."
            else:
                streams.append(stream)
        hits = list(_merged(reading, streams, request, missing))
        going_on = [each for each in streams if not each.ended]
        stands = ",".join(f"{each.member.name}:{each.place}" for each in streams if each.place)
        notices = dict.fromkeys(notice for each in streams for notice in each.notices)
        return Found(
            hits,
            stands if going_on and stands else None,
            all(each.complete for each in streams),
            missing,
            tuple(notices),
            next((each.hint for each in streams if each.hint), None),
            {each.member.name: each.route for each in streams},
        )


def _merged(
    reading: Reading, streams: list[_Stream], request: Request, missing: dict[str, str]
) -> Iterator[StoreHit]:
    by_name = {each.member.name: each for each in streams}
    count = 0
    while count < request.limit:
        heads = []
        for order, stream in enumerate(list(streams)):
            try:
                head = stream.head()
            except (StateLedgerError, sqlite3.DatabaseError) as error:
                missing[stream.member.name] = str(error)
                streams.remove(stream)
                continue
            if head is not None:
                heads.append((_rank(head, stream, request.sort, order), stream))
        if not heads:
            return
        _least, stream = min(heads, key=lambda each: each[0])
        hit = stream.take()
        if not _is_shown_elsewhere(reading, stream.member, hit, by_name):
            count += 1
            yield StoreHit(stream.member.name, hit)


def _rank(hit: Hit, stream: _Stream, sort: str, order: int) -> tuple[Any, ...]:
    moment = hit.timestamp if isinstance(hit.timestamp, (int, float)) else 0.0
    if sort == OLDEST:
        return moment, order
    return (stream.taken, -moment, order) if sort == BEST else (-moment, order)


def _is_shown_elsewhere(reading: Reading, member: Member, hit: Hit, streams: dict[str, _Stream]) -> bool:
    """Whether the session's copy that counts has the same message and is searched too."""
    counts = reading.counting_copy(member, hit.session_id)
    stream = streams.get(counts) if counts is not None else None
    if stream is None:
        return False
    same = "SELECT 1 FROM ledger_message_times WHERE session_id = ? AND timestamp IS ? LIMIT 1"
    return stream.store.execute(same, (hit.session_id, hit.timestamp)).fetchone() is not None


class _Stream:
    """The hits of one store in order, read some at a time.

    place: after which message (by best match: after how many) the next hit comes; '' at the beginning.
    """

    def __init__(
        self, member: Member, store: Connection, request: Request, place: str, budget_s: float, limit_ms: int
    ) -> None:
        self.member, self.store, self.request, self.place = member, store, request, place
        self._budget_s, self._limit_ms = budget_s, limit_ms
        self._held: deque[Hit] = deque()
        self._next: int | None = None if place in ("", END) else int(place)
        self._more = place != END
        self.complete = True
        self.taken = int(place) if request.sort == BEST and place not in ("", END) else 0
        self.notices: tuple[str, ...] = ()
        self.hint: str | None = None
        self.route: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return not self._held and not self._more

    def head(self) -> Hit | None:
        """The next hit, None where there is none, or none that could be found in time."""
        if not self._held and self._more and self.complete:
            self._read()
        return self._held[0] if self._held else None

    def take(self) -> Hit:
        """The next hit, which then is behind."""
        hit = self._held.popleft()
        self.taken += 1
        self.place = str(self.taken if self.request.sort == BEST else hit.id)
        if not self._held:
            self._pass()
        return hit

    def _read(self) -> None:
        best = self.request.sort == BEST
        where = {"offset": self.taken} if best else {"before": self._next}
        request = replace(self.request, **where)
        with questions.in_time(self.store, "search", self._limit_ms), beside(self.store) as companion:
            answer = search.find(self.store, request, companion=companion, budget_s=self._budget_s)
        self._held.extend(answer.hits)
        self.complete, self.notices, self.hint, self.route = (
            answer.complete, answer.notices, answer.hint, answer.route,
        )  # fmt: skip
        self._next = answer.next_before
        self._more = len(answer.hits) == request.limit if best else answer.next_before is not None
        if not self._held:
            self._pass()

    def _pass(self) -> None:
        """What was held is behind: the place is where the store itself would go on."""
        if not self._more:
            self.place = END
        elif self._next is not None:
            self.place = str(self._next)
