"""The questions that can be asked of several stores at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from state_ledger import questions
from state_ledger.ledger.glossary import COLUMNS
from state_ledger.questions import Question
from state_ledger.shelf import views

SESSION_COLUMNS = ("session_id", "work_id", "conversation_id")
"""Columns that name a session, by which a row is known to be of one store."""


OF_ONE_FILE = frozenset({"cost_drivers", "runaway_sessions"})
"""Questions that read the texts of messages or the arguments of calls, of which only the number is kept here."""


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Question]:
    """All questions by name; those whose rows are about a session have the column `store` at their end.

    Not those that read what is only known of one file at a time: searches (`shelf.search`), locks, sizes.
    """
    known = {**questions.load(), **questions.of_stores()}
    return {
        name: _with_store(question)
        for name, question in known.items()
        if views.named_in(question.sql) <= views.PARTS.keys() and name not in OF_ONE_FILE
    }


def _with_store(question: Question) -> Question:
    column = next((name for name in SESSION_COLUMNS if name in question.columns), None)
    if column is None or "store" in question.columns:
        return question
    sql = (
        f"SELECT answer.*, (SELECT p.store FROM ledger_places AS p WHERE p.session_id = answer.{column}) AS store"
        f" FROM (\n{question.sql}\n) AS answer"
    )
    return replace(question, sql=sql, columns={**question.columns, "store": COLUMNS["store"]})
