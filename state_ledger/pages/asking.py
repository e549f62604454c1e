"""Asking named questions for a page: settings applied, time bounded, rows by column name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from state_ledger import questions
from state_ledger.questions import OutOfTime
from state_ledger.pages.sums import Record
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection

__all__ = ["Answer", "Ask", "OutOfTime"]


@dataclass(frozen=True)
class Answer:
    """Rows by column name, and the parameters as they were understood, defaults filled in."""

    rows: list[Record]
    parameters: Mapping[str, str]


class Ask:
    """Asks questions on one connection, for one page.

    `Ask(connection, settings)("cost_per_model", {"since": "2026-11-01"})` is an Answer. Raises
    ParameterError for a value that a question refuses and OutOfTime when it takes too long.
    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self.connection = connection
        self.settings = settings

    def __call__(self, name: str, parameters: Mapping[str, str] | None = None) -> Answer:
        result = questions.ask_in_time(self.connection, name, parameters, settings=self.settings)
        return Answer(result.records(), result.parameters)
