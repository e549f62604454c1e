"""Asking named questions for a page: settings applied, time bounded, rows by column name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from state_ledger import questions
from state_ledger.errors import StateLedgerError
from state_ledger.pages.sums import Record
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection, sqlite3

_STEPS = 5000
"""Virtual-machine steps between two looks at the clock, about 0.1 ms."""


class OutOfTime(StateLedgerError):
    """A question did not answer within its time.

    name: the question; limit_ms: the time it had, in milliseconds.
    """

    def __init__(self, name: str, limit_ms: int) -> None:
        super().__init__(
            f"The question {name} did not answer within {limit_ms / 1000:g} seconds. "
            "Choose a shorter period, or raise the setting query_time_limit_ms."
        )
        self.name = name
        self.limit_ms = limit_ms


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
        limit_ms = self.settings.query_time_limit_ms
        deadline = time.perf_counter() + limit_ms / 1000
        self.connection.set_progress_handler(lambda: int(time.perf_counter() > deadline), _STEPS)
        try:
            result = questions.ask(self.connection, name, parameters or {}, settings=self.settings)
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise OutOfTime(name, limit_ms) from error
            raise
        finally:
            self.connection.set_progress_handler(None, 0)
        columns = result.columns
        return Answer([dict(zip(columns, row, strict=True)) for row in result.rows], result.parameters)
