"""Asking named questions for a page: settings applied, time bounded, rows by column name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state_ledger import questions
from state_ledger.errors import StateLedgerError
from state_ledger.pages.sums import Record
from state_ledger.questions import EngineError, OutOfTime
from state_ledger.questions.engines import Books
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection, says_damaged, sqlite3

__all__ = ["Answer", "Ask", "OutOfTime", "Unanswered"]


class Unanswered(StateLedgerError):
    """SQLite cannot answer a question on this file, as where a page of it is damaged, or another engine cannot."""

    def __init__(self, name: str, error: Exception) -> None:
        if isinstance(error, EngineError):
            super().__init__(f"The question {name} cannot be answered: {error}")
        else:
            damage = " `state-ledger check` says what is damaged in it." if says_damaged(error) else ""
            super().__init__(f"The question {name} cannot be answered on this file: {error}.{damage}")
        self.name = name


@dataclass(frozen=True)
class Answer:
    """Rows by column name, and the parameters as they were understood, defaults filled in.

    truncated: whether there are more rows than the limit let through.
    """

    rows: Sequence[Record]
    parameters: Mapping[str, str]
    truncated: bool


class Ask:
    """Asks questions on one connection, or of the books that another engine holds, for one page.

    `Ask(connection, settings)("cost_per_model", {"since": "2026-11-01"})` is an Answer. Raises
    ParameterError for a value that a question refuses, OutOfTime when it takes too long, Unanswered
    when SQLite cannot answer it on this file, or the engine not at all.
    """

    def __init__(self, source: Connection | Books, settings: Settings) -> None:
        self.source = source
        self.settings = settings

    @property
    def connection(self) -> Connection:
        """The connection to the store, for what only a page of one store reads beside its questions."""
        assert not isinstance(self.source, Books), "there is no store behind the books of another engine"
        return self.source

    def __call__(self, name: str, parameters: Mapping[str, str] | None = None) -> Answer:
        try:
            result = questions.ask_in_time(self.source, name, parameters, settings=self.settings)
        except (sqlite3.DatabaseError, EngineError) as error:
            raise Unanswered(name, error) from error
        return Answer(result.records(), result.parameters, result.truncated)
