"""The questions that can be asked of a warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from state_ledger import questions
from state_ledger.ledger.glossary import COLUMNS
from state_ledger.questions import Question
from state_ledger.shelf.catalogue import SESSION_COLUMNS

__all__ = ["SESSION_COLUMNS", "catalogue", "is_of_files", "lacks_session", "reads_texts"]

_OF_FULL_TEXT = frozenset({"search"})
"""Questions that each engine answers in its own way."""

_OF_FILES = frozenset({"locks", "delegations", "routing", "orphans", "storage_sizes"})
"""Questions whose rows are about the file of a store (`views.OF_FILES`)."""

_OF_TEXTS = frozenset({"session_messages", "cost_drivers"})
"""Questions that read what was said."""


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Question]:
    """All questions by name; those whose rows are about a session or a file have `store` and `host` at their end."""
    known = {**questions.load(), **questions.of_stores(), **questions.of_fleet()}
    return {name: _with_places(question) for name, question in known.items() if name not in _OF_FULL_TEXT}


def is_of_files(question: Question) -> bool:
    """Whether the rows of a question are about the file of a store."""
    return question.name in _OF_FILES


def reads_texts(question: Question) -> bool:
    """Whether a question needs the texts of messages."""
    return question.name in _OF_TEXTS


def lacks_session(question: Question, bound: Mapping[str, str]) -> bool:
    """Whether a question about one session means the newest, since none is named."""
    newest = any(each.name == "session" for each in question.parameters) and "ORDER BY started_at DESC" in question.sql
    return newest and not bound.get("session")


def _with_places(question: Question) -> Question:
    of_session = any(name in question.columns for name in SESSION_COLUMNS)
    if "store" in question.columns or not (of_session or is_of_files(question)):
        return question
    return replace(question, columns={**question.columns, "store": COLUMNS["store"], "host": COLUMNS["host"]})
