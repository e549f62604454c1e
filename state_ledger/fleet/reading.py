"""A fleet while the questions of one page are asked: narrowed, within a time, redacted where that is wanted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from state_ledger import questions, redact
from state_ledger.errors import ParameterError
from state_ledger.questions import OutOfTime, Question, Result
from state_ledger.questions.engines import Books
from state_ledger.settings import Settings

if TYPE_CHECKING:
    from state_ledger.questions.parameters import ParameterSettings
    from state_ledger.warehouse.books import Store, Warehouse

PAGE_FACTOR = 3
"""All questions of a page together may take so many times what one may."""

OFFERED = 20
"""How many hosts or profiles a refusal names."""


class Selection(NamedTuple):
    """The hosts, profiles and stores (`host/profile`) to which a page is narrowed; () is all."""

    hosts: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()

    def check(self, stores: Sequence[Store]) -> None:
        """Raises ParameterError for a name that is none of the fleet's."""
        for name, wanted, column in (
            ("host", self.hosts, "host"), ("profile", self.profiles, "profile"), ("store", self.stores, "name")
        ):  # fmt: skip
            known = {getattr(each, column) for each in stores} if wanted else set()
            for each in wanted:
                if each not in known:
                    offered = sorted(known)
                    more = f" and {len(offered) - OFFERED:,} more" if len(offered) > OFFERED else ""
                    raise ParameterError(name, each, f"choose among {', '.join(offered[:OFFERED])}{more}")


class FleetReading:
    """The books of a fleet as of one moment.

    books: what questions are asked of. chosen: the stores that are in the answers.
    """

    def __init__(
        self, warehouse: Warehouse, selection: Selection, settings: Settings, notices: Sequence[str] = ()
    ) -> None:
        selection.check(warehouse.stores)
        self.narrowed = warehouse.narrowed(
            hosts=selection.hosts, profiles=selection.profiles, stores=selection.stores
        )
        self.settings = settings
        self.all = warehouse.stores
        self.chosen = self.narrowed.chosen
        self.missing: dict[str, str] = {}
        self._said = list(notices)
        self._books = _Bounded(self.narrowed, settings)

    @property
    def source(self) -> Books:
        """What questions are asked of: by `questions.ask`, or `pages.Ask`."""
        return self._books

    @property
    def notices(self) -> list[str]:
        """Sentences on what is not in the answers or not up to date."""
        return [*self._said, *(() if self.chosen else ["No store is in this choice of hosts and profiles."])]

    @property
    def copies(self) -> int:
        """How many copies of sessions do not count, since another store has more of the record."""
        _, rows = self.narrowed.run("SELECT count(*) AS number FROM ledger_copies", {}, self.settings)
        return int(rows[0][0])

    @property
    def about(self) -> dict[str, Any]:
        """Of which hosts and how many stores an answer is, as of when, and who answered, for programs."""
        pushed = [each.pushed_at for each in self.chosen]
        return {
            "engine": self._books.name,
            "hosts": sorted({each.host for each in self.chosen}),
            "stores": len(self.chosen),
            "oldest_push": min(pushed, default=None),
            "newest_push": max(pushed, default=None),
            "notices": self.notices,
        }

    def prepare(self, sql: str) -> None:
        """Nothing: an engine has all that can be asked."""

    def ask(self, name: str, parameters: Mapping[str, str] | None = None) -> Result:
        """Answers a question in the time that a question has. Raises what `questions.ask_in_time` raises."""
        return questions.ask_in_time(self._books, name, parameters, settings=self.settings)


class _Bounded(Books):
    """Books that end with the time of a page, and give no secret where texts are redacted.

    What has a longer time of its own is a file. A host redacts what it pushes, but by the rules that it had then, and
    only if its owner did not turn that off.
    """

    def __init__(self, books: Warehouse, settings: Settings) -> None:
        self.name = books.name
        self.questions = books.questions
        self._books = books
        self._redactor = redact.Redactor() if settings.redact else None
        self._longest_ms = settings.query_time_limit_ms
        self._deadline = time.monotonic() + PAGE_FACTOR * settings.query_time_limit_ms / 1000

    def answer(
        self, question: Question, settings: ParameterSettings, bound: Mapping[str, str], limit_ms: int | None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        left_ms = int((self._deadline - time.monotonic()) * 1000)
        if limit_ms is not None and left_ms < limit_ms <= self._longest_ms:
            if left_ms <= 0:
                raise OutOfTime(question.name, limit_ms)
            limit_ms = left_ms
        columns, rows = self._books.answer(question, settings, bound, limit_ms)
        if self._redactor is not None:
            shown = self._redactor.text
            rows = [tuple(shown(cell) if isinstance(cell, str) else cell for cell in row) for row in rows]
        return columns, rows
