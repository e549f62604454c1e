"""The search page of a fleet: hits by store and conversation, and sessions by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from state_ledger.pages import figures
from state_ledger.pages.all_search import AllFound, InStore
from state_ledger.pages.asking import Ask, OutOfTime
from state_ledger.pages.search import BUDGET_S, TOO_MANY, grouped, sessions_by_name
from state_ledger.pages.search_address import Asked
from state_ledger.pages.sums import Record

if TYPE_CHECKING:
    from state_ledger.fleet.reading import FleetReading
    from state_ledger.warehouse import Warehouse
    from state_ledger.warehouse.searching.finding import FleetHit, Found

ROUTES = {
    "text index": "the text index of ClickHouse",
    "scan": "the engine reading messages one by one",
}
"""Who answered, in words."""

SORTS = ("newest", "oldest")
"""A fleet has no ranks: those of two indexes cannot be compared."""


def read_fleet_search(reading: FleetReading, asked: Asked, after: str) -> AllFound[Found]:
    """Looks for what was asked in the stores of a reading, within BUDGET_S. Raises ParameterError, EngineError."""
    from state_ledger.warehouse.searching.finding import find

    if not asked.q:
        return AllFound(None, problems=reading.notices)
    settings = reading.settings
    limit_s = settings.query_time_limit_ms / 1000
    request = replace(asked, before=None).request(settings.zone_name)
    problems = list(reading.notices)
    try:
        budget_s = limit_s if asked.longer else min(BUDGET_S, limit_s)
        found = find(reading.narrowed, request, after=after, budget_s=budget_s)
    except OutOfTime:
        return AllFound(None, problems=[*problems, TOO_MANY])
    sessions: Sequence[Record] = ()
    more = False
    if not after:
        sessions, more = sessions_by_name(Ask(reading.source, settings), asked, problems)
    return AllFound(found, _grouped(reading.narrowed, found.hits), sessions, more, problems)


def looked_back(found: Found, zone: str) -> str:
    """How far a search came whose time is over; '' for one that came to its end."""
    if found.complete:
        return ""
    where = f" as far as {figures.moment(found.reached, zone)}" if found.reached is not None else ""
    return f"Messages were looked at{where} in the time that a page has."


def _grouped(warehouse: Warehouse, hits: Sequence[FleetHit]) -> list[InStore]:
    """Conversations of each store at the place of their first hit."""
    of_session = _conversations(warehouse, {each.hit.session_id for each in hits})
    place = {(each.store, each.hit.id): number for number, each in enumerate(hits)}
    groups = [
        InStore(store, conversation)
        for store in dict.fromkeys(each.store for each in hits)
        for conversation in grouped([each.hit for each in hits if each.store == store], of_session, _no_beginnings)
    ]
    return sorted(groups, key=lambda each: place[each.store, each.conversation.first.id])


def _conversations(warehouse: Warehouse, sessions: Iterable[str]) -> dict[str, str]:
    bound = {f"s{number}": each for number, each in enumerate(sorted(sessions))}
    if not bound:
        return {}
    marks = ", ".join(f":{name}" for name in bound)
    sql = f"SELECT session_id, conversation_id FROM ledger_lineage WHERE session_id IN ({marks})"
    return dict(warehouse.run(sql, bound, warehouse.settings)[1])


def _no_beginnings(names: Iterable[str]) -> dict[str, str | None]:
    """Titles alone: what a conversation began with is read where it is opened."""
    return {}
