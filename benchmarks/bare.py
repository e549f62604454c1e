"""The bare side of each ratio: the same SQL with the same values on a plain SQLite connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from state_ledger import ledger, questions
from state_ledger.ledger.days import local_day
from state_ledger.questions import Result
from state_ledger.search import functions
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection, read_only_uri, sqlite3
from state_ledger.stores import profile_of

Asked = tuple[str, dict[str, str]]
"""A question's name and the values it was given."""


def connect(path: Path, settings: Settings) -> Connection:
    """A connection with the semantic layer and nothing else: no guard, no bound on time."""
    connection = sqlite3.connect(read_only_uri(path), uri=True)
    functions.install(connection)
    ledger.install(connection, profile=profile_of(path), settings=settings)
    return connection


def statement(name: str, values: Mapping[str, str], settings: Settings) -> tuple[str, dict[str, str]]:
    """SQL and bindings of a question, as `questions.ask` runs them."""
    question = questions.load()[name]
    bound = {parameter.name: values.get(parameter.name, "") for parameter in question.parameters}
    if "limit" in bound:
        bound["limit"] = str(int(question.check(values, settings)["limit"]) + 1)
    return question.compiled(settings, spare_rows=1), bound


def run(connection: Connection, asked: list[Asked], settings: Settings) -> Callable[[], None]:
    """A job that runs questions one after the other and fetches all rows."""
    statements = [statement(name, values, settings) for name, values in asked]

    def job() -> None:
        for sql, bound in statements:
            connection.execute(sql, bound).fetchall()

    return job


@contextmanager
def recorded() -> Iterator[list[Asked]]:
    """Everything that is asked through `questions.ask` while the context is open, in order."""
    asked: list[Asked] = []
    real = questions.ask

    def recording(
        connection: Connection, name: str, parameters: Mapping[str, str] | None = None, **options: Any
    ) -> Result:
        asked.append((name, dict(parameters or {})))
        return real(connection, name, parameters, **options)

    questions.ask = recording
    try:
        yield asked
    finally:
        questions.ask = real


def last_day(connection: Connection, settings: Settings) -> date:
    """The last day of a store, which a benchmark takes for today: a store does not grow older with us."""
    rows = questions.ask(connection, "sessions_per_source", settings=settings).records()
    moments = [row["last_active"] for row in rows if row["last_active"] is not None]
    day = local_day(max(moments), settings.zone_name)
    assert day is not None
    return date.fromisoformat(day)
