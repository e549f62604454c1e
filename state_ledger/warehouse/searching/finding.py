"""A search over the stores of a warehouse, from the request to what a reader is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from state_ledger import content, redact
from state_ledger.questions import OutOfTime
from state_ledger.search import BEST, Count, Hit, Request, match, snippets
from state_ledger.search.engine import INSIDE_NOTICE
from state_ledger.search.query import parse
from state_ledger.search.term import Term
from state_ledger.warehouse.books import Store, Warehouse
from state_ledger.warehouse.dialect import Interrupted
from state_ledger.warehouse.searching import order
from state_ledger.warehouse.searching.looking import Looking, Row
from state_ledger.warehouse.searching.messages import stores_with_texts
from state_ledger.warehouse.searching.neighbours import contexts
from state_ledger.warehouse.searching.order import Place
from state_ledger.warehouse.searching.sessions import Session, Sessions

INSIDE_AT_LEAST = 3
"""Characters of a word that is looked for within longer words."""

NO_RANKS = "Best match compares a message with all others of one index, which a fleet does not have: newest come first."
NO_TEXTS = (
    "No store here was pushed with its messages, so that there is nothing to search."
    " Push them with: state-ledger lake push --with-messages"
)
NAMED = 5
"""Stores without texts that a notice names."""

ROUTES = {"duckdb": "scan", "clickhouse": "text index", "postgresql": "scan"}
QUESTION = "search"


@dataclass(frozen=True)
class FleetHit:
    """A hit and where it is. store: `host/profile`."""

    store: str
    host: str
    hit: Hit


@dataclass(frozen=True)
class Found:
    """What was found.

    hits: in order. after: where the next page begins, None where nothing follows. complete: False when the time was
    over before every message had been looked at. reached: as far back (or forward) as was looked, epoch seconds,
    where that is known. route: `scan` or `text index`, None where there was nothing to look for. notices: sentences
    on how it was answered; hint: on what was read leniently, or why there was nothing to look for.
    """

    hits: Sequence[FleetHit]
    after: str | None = None
    complete: bool = True
    reached: float | None = None
    route: str | None = None
    notices: tuple[str, ...] = ()
    hint: str | None = None


def find(warehouse: Warehouse, request: Request, *, after: str = "", budget_s: float | None = None) -> Found:
    """The first `request.limit` messages after a place that hold what was typed, with snippets; no text is an error.

    request: `before`, `offset` and rank are not for several stores. after: of an answer before, '' for the
    beginning. budget_s: how long to look, in seconds; None for as long as it takes.
    Raises ParameterError for a place that is none, OutOfTime where not even a step could be done, EngineError.
    """
    place = order.read(after)
    asked = _Asked(warehouse, request, budget_s)
    if not asked.query or not asked.stores or request.limit == 0 or request.sources == ():
        return Found([], notices=asked.notices, hint=asked.hint)
    try:
        return asked.found(place)
    except Interrupted as error:
        raise OutOfTime(QUESTION, round(1000 * (budget_s or 0))) from error


def count(warehouse: Warehouse, request: Request, *, most: int = 1000, budget_s: float | None = None) -> Count:
    """How many messages match, counted up to `most`. Raises OutOfTime, EngineError."""
    asked = _Asked(warehouse, request, budget_s)
    if not asked.query or not asked.stores or request.sources == ():
        return Count(0)
    try:
        return asked.counted(most)
    except Interrupted as error:
        raise OutOfTime(QUESTION, round(1000 * (budget_s or 0))) from error


class _Asked:
    def __init__(self, warehouse: Warehouse, request: Request, budget_s: float | None) -> None:
        self.warehouse, self.request = warehouse, request
        self.query = parse(request.q, edges_in_any_case=request.edges_in_any_case)
        self.stores = stores_with_texts(warehouse)
        self.hint = " ".join(self.query.hints) or None
        self.notices = tuple(_notices(warehouse, request, self.stores))
        self._deadline = None if budget_s is None else time.monotonic() + budget_s

    def found(self, place: Place | None) -> Found:
        looking = self._looking(inside=place is not None and place.inside)
        hits, more = self._first(looking, place)
        nothing_yet = not hits and not (place is not None and (place.found or place.inside))
        notices = self.notices
        # What is within longer words is offered as well: where nothing is, there is nothing.
        some_offered = looking.offered or place is not None
        if nothing_yet and looking.stopped is None and some_offered and self._may_be_inside:
            wider = self._looking(inside=True)
            hits, more = self._first(wider, None)
            if hits or wider.stopped is not None:
                looking = wider
        if looking.inside and hits:
            notices = (*notices, INSIDE_NOTICE)
        return Found(
            self._shown(looking, hits),
            self._after(looking, hits, more, place),
            looking.stopped is None or more,
            None if looking.stopped is None else looking.reached,
            ROUTES[self.warehouse.name],
            notices,
            self.hint,
        )

    def counted(self, most: int) -> Count:
        for inside in (False, True):
            looking = self._looking(inside=inside)
            number = sum(1 for _ in islice(self._with_sessions(looking, None), most + 1))
            if number or looking.stopped is not None or not looking.offered or not self._may_be_inside:
                break
        return Count(min(number, most), number > most or looking.stopped is not None)

    def _looking(self, *, inside: bool) -> Looking:
        return Looking(self.warehouse, self.request, self.query, self._deadline, inside=inside)

    @property
    def _may_be_inside(self) -> bool:
        """Whether words may be looked for within longer words, as a store does it: in no output of tools."""
        return "tool" not in self.request.roles and all(
            term.spaced and all(len(piece.text) >= INSIDE_AT_LEAST for piece in term.pieces)
            for term in self.query.terms
        )

    def _first(self, looking: Looking, place: Place | None) -> tuple[list[tuple[Row, Session]], bool]:
        """The hits of a page, and whether another one follows."""
        found = self._with_sessions(looking, place)
        if self.request.limit < 0:
            return list(found), False
        hits = list(islice(found, self.request.limit))
        return hits, len(hits) == self.request.limit and next(found, None) is not None

    def _with_sessions(self, looking: Looking, place: Place | None) -> Iterator[tuple[Row, Session]]:
        sessions = Sessions(self.warehouse, looking.messages)
        for rows in looking.matches(place):
            yield from sessions.shown(rows)

    def _after(
        self, looking: Looking, hits: list[tuple[Row, Session]], more: bool, place: Place | None
    ) -> str | None:
        """Where to go on: after the last hit if another one is known, else where the search stopped."""
        found = bool(hits) or (place is not None and place.found)
        if more:
            return order.written(replace(looking.after(hits[-1][0]), found=True))
        return None if looking.stopped is None else order.written(replace(looking.stopped, found=found))

    def _shown(self, looking: Looking, found: list[tuple[Row, Session]]) -> list[FleetHit]:
        shown = _redacted if self.warehouse.settings.redact else _as_it_is
        rows = [row for row, _ in found]
        around = contexts(self.warehouse, looking.messages, rows, shown)
        return [
            FleetHit(
                row.store,
                row.host,
                Hit(
                    id=row.id,
                    session_id=session.name,
                    role=row.role,
                    snippet=_snippet(self.query.wanted, row, shown, inside=looking.inside),
                    timestamp=row.timestamp,
                    tool_name=None if row.tool_name is None else shown(content.decode(row.tool_name).text),
                    source=session.source,
                    model=session.model,
                    title=None if session.title is None else shown(session.title),
                    session_started=session.started_at,
                    context=context,
                ),
            )
            for (row, session), context in zip(found, around, strict=True)
        ]


def _snippet(terms: tuple[Term, ...], row: Row, shown: Callable[[str], str], *, inside: bool) -> str:
    called = (None if each is None else shown(content.decode(each).text) for each in (row.tool_name, row.tool_calls))
    return snippets.snippet(terms, match.Fields.decoded(shown(row.text or ""), *called), inside=inside)


def _as_it_is(text: str) -> str:
    return text


def _redacted(text: str) -> str:
    """Secrets are replaced before anything is cut out of a text: half a key is still half a secret."""
    return redact.decode(text.encode("utf-8", "replace"))


def _notices(warehouse: Warehouse, request: Request, searched: Sequence[Store]) -> Iterator[str]:
    if not searched:
        yield NO_TEXTS
        return
    if request.sort == BEST:
        yield NO_RANKS
    silent = [each.name for each in warehouse.chosen if not each.texts]
    if silent:
        more = f" and {len(silent) - NAMED:,} more" if len(silent) > NAMED else ""
        yield (
            f"Not searched, since pushed without messages: {', '.join(silent[:NAMED])}{more}."
            " Push them with: state-ledger lake push --with-messages"
        )
