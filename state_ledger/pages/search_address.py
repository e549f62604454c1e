"""What the address of the search page asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from state_ledger import questions
from state_ledger.errors import ParameterError
from state_ledger.ledger import days
from state_ledger.questions.parameters import validate
from state_ledger.search.request import Request
from state_ledger.settings import Settings

QUESTION, SESSIONS_QUESTION = "search", "search_sessions"
"""The canned queries that answer the same."""

MOST_HITS = 200
"""On one page, whatever `limit` asks for; the canned query gives more."""

ROLES_BUT_TOOL = ("user", "assistant", "system", "unknown")
"""Every role there is (store-format, section 6) but that of tool output."""

LISTS = ("source", "exclude_source", "role", "model")
"""The parameters that may have several values, each given by itself or separated by commas."""


@dataclass(frozen=True)
class Asked:
    """What a search asks for. since, until: days of `tz`, both inclusive; before: a message's id.

    hide_tools: without the output of tools, unless `role` says which roles to look at. longer: look for as
    long as a question may take.
    """

    q: str = ""
    source: tuple[str, ...] = ()
    exclude_source: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    tz: str = ""
    sort: str = "newest"
    before: int | None = None
    limit: int = 20
    hide_tools: bool = False
    longer: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of an address that asks the same; what has its default is left out."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = {name: value for name, value in given.items() if value != getattr(Asked, name, None) and value != ()}
        return {name: "1" if value is True else value for name, value in kept.items()}

    def but(self, **changes: Any) -> dict[str, Any]:
        """The parameters of the first page of the same search with something changed."""
        return replace(self, **{"before": None, "longer": False, **changes}).parameters

    def without(self, name: str, value: str) -> dict[str, Any]:
        """The same search without one of the values of a list."""
        return self.but(**{name: tuple(kept for kept in getattr(self, name) if kept != value)})

    @property
    def filtered(self) -> bool:
        """Whether anything but the words decides what is found."""
        return bool(self.source or self.exclude_source or self.role or self.model or self.since or self.until)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles looked at; empty for all."""
        return self.role or (ROLES_BUT_TOOL if self.hide_tools else ())

    @property
    def canned(self) -> dict[str, str]:
        """Parameters of the canned query `search` that ask for the same."""
        same = {"q": self.q, "since": self.since, "until": self.until, "sort": self.sort, "limit": str(self.limit)}
        lists = {name: ",".join(getattr(self, name)) for name in ("source", "exclude_source", "model")}
        before = "" if self.before is None else str(self.before)
        return {**same, **lists, "role": ",".join(self.roles), "tz": self.tz, "before": before}

    def request(self, zone: str) -> Request:
        """The same for the core; `zone` serves where no time zone was asked for."""
        zone = self.tz or zone
        return Request(
            q=self.q,
            sources=self.source or None,
            exclude_sources=self.exclude_source,
            roles=self.roles,
            models=self.model,
            since=days.day_start(self.since, zone) if self.since else None,
            until=days.day_end(self.until, zone) if self.until else None,
            sort=self.sort,
            before=self.before,
            limit=self.limit,
        )


def read_asked(values: Mapping[str, Sequence[str]], settings: Settings) -> tuple[Asked, list[ParameterError]]:
    """What an address asks for, and every parameter that cannot be meant, which then has its default."""
    question = questions.load()[QUESTION]
    wrong: list[ParameterError] = []
    given: dict[str, Any] = {}
    for parameter in question.for_settings(settings):
        name = parameter.name
        texts = [value.strip() for value in values.get(name, ()) if value.strip()]
        text = ",".join(texts) if name in LISTS else next(iter(texts), "")
        try:
            given[name] = validate(parameter, text)
        except ParameterError as error:
            wrong.append(error)
            given[name] = ""
    since, until = given["since"], given["until"]
    if since and until and since > until:
        wrong.append(ParameterError("since", since, f"it is after the last day, {until}"))
        given["since"] = ""
    asked = Asked(
        q=given["q"],
        source=_listed(given["source"]),
        exclude_source=_listed(given["exclude_source"]),
        role=_listed(given["role"]),
        model=_listed(given["model"]),
        since=given["since"],
        until=given["until"],
        tz=given["tz"],
        sort=given["sort"] or Asked.sort,
        before=int(given["before"]) if given["before"] else None,
        limit=min(int(given["limit"] or Asked.limit), MOST_HITS),
        hide_tools=_on(values.get("hide_tools", ())),
        longer=_on(values.get("longer", ())),
    )
    return asked, wrong


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def _on(values: Sequence[str]) -> bool:
    return any(value.strip() not in ("", "0") for value in values)
