"""Who answers a question: the store itself, the rollup that its companion keeps, several stores as one, or books
that another engine holds.

The rollup is asked only where it has all that the question reads and is known to give the same.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from state_ledger.companion import open_for_search
from state_ledger.sqlite import Connection, store_path

if TYPE_CHECKING:
    from state_ledger.questions import Question
    from state_ledger.questions.parameters import ParameterSettings

Name = Literal["store", "companion", "stores", "duckdb", "clickhouse", "postgresql"]

ROLLED_UP = frozenset({"ledger_time"})
"""The views whose rows a companion keeps."""

_SOURCES = re.compile(
    r"\bFROM\b(.*?)(?=\bFROM\b|\bWHERE\b|\bGROUP\b|\bORDER\b|\bLIMIT\b|\bUNION\b|\)|$)", re.IGNORECASE | re.DOTALL
)
"""All that stands between a FROM and what may follow it: joins, aliases, further tables."""


class Engine(NamedTuple):
    """A connection that can run a question's SQL, and whose it is."""

    name: Name
    connection: Connection


class Books(ABC):
    """The books of many stores in an engine that is not SQLite, which answers the same questions.

    name: the engine. questions: what can be asked of it, by name.
    """

    name: Name
    questions: Mapping[str, Question]

    @abstractmethod
    def answer(
        self, question: Question, settings: ParameterSettings, bound: Mapping[str, str], limit_ms: int | None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows of an answer, with values as SQLite would give them.

        bound: every parameter as it was given, '' for one that was not; `limit` may exceed its bound by 1.
        limit_ms: after how long it is interrupted, None for never. Raises OutOfTime, and EngineError with
        what the engine says.
        """


class Several(Connection):
    """A connection to the books of several stores, kept together (`state_ledger.shelf`).

    questions: what can be asked of it. prepare: called with a question's SQL before it runs, to read of
    the stores what it needs.
    """

    questions: Mapping[str, Question]
    prepare: Callable[[str], None]


@contextmanager
def engine_for(sql: str, store: Connection, zone: str) -> Iterator[Engine]:
    """The engine for a question's SELECT; `store` is the connection it was asked on.

    zone: where the SQL names none. Costs a look at the file system where there is no companion.
    """
    if isinstance(store, Several):
        store.prepare(sql)
        yield Engine("stores", store)
        return
    path = store_path(store) if reads_only_rolled_up(sql) else ""
    companion = open_for_search(path, store) if path else None
    if companion is None:
        yield Engine("store", store)
        return
    with companion:
        rollup = companion.rollup(path, store, zone)
        yield Engine("store", store) if rollup is None else Engine("companion", rollup)


@lru_cache(maxsize=256)
def reads_only_rolled_up(sql: str) -> bool:
    """Whether all that a SELECT reads is rolled up; False where that cannot be told from its text."""
    sources = {match.strip() for match in _SOURCES.findall(sql)}
    return bool(sources) and sources <= ROLLED_UP
