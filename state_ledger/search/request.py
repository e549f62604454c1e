"""What is asked of a search, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

NEWEST, OLDEST, BEST = "newest", "oldest", "best"
SORTS = (NEWEST, OLDEST, BEST)

ROUTES = {
    "index": "the index of words",
    "companion": "the companion's index",
    "cjk": "the index of Chinese, Japanese and Korean",
    "trigram": "the index of three characters",
    "scan": "reading messages one by one",
}
"""Who answered, in words; a route that is not here is shown by its name."""

RANKED = 2000
"""How many of the newest matches are ranked by "best match": ranking costs 2 to 4 µs for every match."""


@dataclass(frozen=True)
class Request:
    """One question.

    q: what a person typed. sources: only sessions of these sources (None: all, (): none);
    exclude_sources: none of these; roles, models: only these ((): all). since, until: epoch seconds,
    from and up to but not including. sort: `newest` and `oldest` by message id, which counts up with
    time; `best` by rank among the newest 2,000 matches. before: only messages before this id (with
    `oldest`: after it), for paging. limit: how many, -1 for all. offset: how many of the first ones to
    leave out; for `best`, which has no key to page by. inactive: also messages that were taken back.
    edges_in_any_case: see `query.parse`.
    """

    q: str
    sources: tuple[str, ...] | None = None
    exclude_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    sort: str = NEWEST
    before: int | None = None
    limit: int = 20
    offset: int = 0
    inactive: bool = False
    edges_in_any_case: bool = False

    @property
    def newest_first(self) -> bool:
        return self.sort != OLDEST


@dataclass(frozen=True)
class Hit:
    """One message that matches.

    snippet: a piece of its text with `marks.START` and `marks.END` around the matches. timestamp,
    session_started: epoch seconds. context: up to three `{"role", "content"}`: the message before, the
    message itself, the one after; 200 characters each. title: of its session.
    """

    id: int
    session_id: str
    role: str
    snippet: str
    timestamp: Any
    tool_name: str | None
    source: str
    model: str | None
    title: str | None
    session_started: Any
    context: list[dict[str, Any]]


@dataclass(frozen=True)
class Answer:
    """What a search found.

    route: what served it (`index`, `companion`, `cjk`, `trigram`, `scan`), None when there was nothing
    to look for. complete: False when the time was over before every message that no index knows had
    been looked at: every hit is one, but some may be missing. next_before: the value of `before` that
    goes on after the last hit or, where there is none, after what was looked at; None when there is
    nothing more. notices: sentences on how it was
    answered. hint: a sentence when there was nothing to look for or something was read leniently.
    """

    hits: list[Hit]
    route: str | None
    complete: bool = True
    next_before: int | None = None
    notices: tuple[str, ...] = ()
    hint: str | None = None


@dataclass(frozen=True)
class Count:
    """How many messages match. more: whether there are more than `number`, or may be."""

    number: int
    more: bool = field(default=False)


def names(given: Sequence[str] | str | None) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)
