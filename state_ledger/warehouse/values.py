"""What an engine gives, as SQLite gives it: whole numbers where a column counts, no types of the engine's own."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from state_ledger.questions import Question

_NOT_COUNTED = frozenset({"dollars", "dollars per million", "0 to 1"})
"""Units whose values are no whole numbers by nature."""


def as_sqlite_gives(columns: Sequence[str], rows: Sequence[Sequence[Any]], question: Question) -> list[tuple[Any, ...]]:
    """The rows with plain values."""
    whole = [_counts(question, name) for name in columns]
    return [tuple(_plain(value, counts) for value, counts in zip(row, whole, strict=True)) for row in rows]


def _counts(question: Question, name: str) -> bool:
    meaning = question.columns.get(name)
    return meaning is None or meaning.unit not in _NOT_COUNTED


def _plain(value: Any, counts: bool) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        if value != value:  # not a number, which SQLite has no value for
            return None
        return int(value) if counts and value.is_integer() and abs(value) < 2**53 else value
    return value
