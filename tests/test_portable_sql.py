"""The canned SQL stays within what can be carried to other engines: only the views are SQLite's own."""

from __future__ import annotations

import pytest
import sqlglot

from state_ledger import questions

OWN = {"local_day", "day_start", "day_end", "days_ago", "canonical_model", "folded_name", "message_text",
       "list_price", "priced_as"}  # fmt: skip
"""Our functions, which another engine gets under the same names."""

FULL_TEXT = {"search"}
"""Questions that each engine answers in its own way."""


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    "question", [q for q in questions.load().values() if q.name not in FULL_TEXT], ids=lambda q: q.name
)
def test_a_question_can_be_carried_over(question: questions.Question, dialect: str) -> None:
    tree = sqlglot.parse_one(question.sql, read="sqlite")
    carried = tree.sql(dialect=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)
    assert sqlglot.parse_one(carried, read=dialect)
    foreign = {call.name.lower() for call in tree.find_all(sqlglot.exp.Anonymous)} - OWN
    assert not foreign, f"functions that only SQLite has: {foreign}"
