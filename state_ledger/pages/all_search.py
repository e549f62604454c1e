"""The search page of several stores: hits by store and conversation, merged, and sessions by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from state_ledger.pages.asking import Ask
from state_ledger.pages.search import BUDGET_S, Conversation, by_conversation, sessions_by_name
from state_ledger.pages.search_address import Asked
from state_ledger.pages.sums import Record
from state_ledger.shelf import Reading
from state_ledger.shelf.search import Found, find


@dataclass(frozen=True)
class InStore:
    """The hits of one conversation and the name of the store that has it."""

    store: str
    conversation: Conversation


F = TypeVar("F")


@dataclass(frozen=True)
class AllFound(Generic[F]):
    """What the page shows; `found` is None where nothing was asked for. problems: sentences on what is missing."""

    found: F | None
    groups: Sequence[InStore] = ()
    sessions: Sequence[Record] = ()
    more_sessions: bool = False
    problems: Sequence[str] = ()


def read_all_search(reading: Reading, asked: Asked, after: str) -> AllFound[Found]:
    """Looks for what was asked in all stores of a reading, within BUDGET_S. Raises ParameterError for `after`."""
    if not asked.q:
        return AllFound(None)
    settings = reading.settings
    limit_ms = settings.query_time_limit_ms
    budget_s = limit_ms / 1000 if asked.longer else min(BUDGET_S, limit_ms / 1000)
    request = replace(asked, before=None).request(settings.zone_name)
    found = find(reading, request, after=after, budget_s=budget_s, limit_ms=limit_ms)
    problems: list[str] = []
    sessions: Sequence[Record] = ()
    more = False
    if not after:
        sessions, more = sessions_by_name(Ask(reading.source, settings), asked, problems)
    missing = {**reading.missing, **found.missing}
    problems += [f"{name} is left out: {why}" for name, why in missing.items()]
    return AllFound(found, _grouped(reading, found), sessions, more, problems)


def _grouped(reading: Reading, found: Found) -> list[InStore]:
    """Conversations at the place of their first hit; what surrounds them is asked of each store once."""
    place = {(each.store, each.hit.id): number for number, each in enumerate(found.hits)}
    groups: list[InStore] = []
    for member in reading.members:
        hits = [each.hit for each in found.hits if each.store == member.name]
        if not hits:
            continue
        with reading.shelf.opened(member) as store:
            conversations = by_conversation(Ask(store, reading.settings), hits)
        groups += [InStore(member.name, each) for each in conversations]
    return sorted(groups, key=lambda each: place[each.store, each.conversation.first.id])
