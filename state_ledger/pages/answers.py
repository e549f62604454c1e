"""The answer to any question as a table on a page of ours: figures written by the units of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from markupsafe import Markup

from state_ledger.ledger.glossary import Meaning
from state_ledger.pages import figures, provenance, tables
from state_ledger.pages.links import Links, session_link
from state_ledger.pages.tables import Cell, Column
from state_ledger.questions import Question, Result
from state_ledger.settings import Settings

SHOWN = 1000
"""How many rows a page shows; the CSV has all."""

_UNKNOWN = Meaning("", "")
_PROSE = frozenset({"title", "preview", "text"})
"""Columns whose values are several words."""

_LINKED = {"session_id": "session", "parent_session_id": "session", "link_session_id": "session",
           "tip_session_id": "session", "conversation_id": "conversation", "work_id": "work"}  # fmt: skip


def shown(result: Result, at: Links, zone: str) -> dict[str, Any]:
    """Title, description, table and provenance of an answer."""
    question = result.question
    meanings = [question.columns.get(name, _UNKNOWN) for name in result.columns]
    columns = [
        Column(name.replace("_", " "), bool(meaning.unit), meaning.description, wide=name in _PROSE)
        for name, meaning in zip(result.columns, meanings, strict=True)
    ]
    units = [meaning.unit for meaning in meanings]
    rows = [
        [_cell(name, unit, value, at, zone) for name, unit, value in zip(result.columns, units, row, strict=True)]
        for row in result.rows[:SHOWN]
    ]
    more = result.truncated or len(result.rows) > SHOWN
    said = figures.plural(len(rows), "row") + ("; there are more" if more else "")
    asked = {name: value for name, value in result.parameters.items() if value}
    zone_said = f"Times in {zone}." if "epoch seconds" in units else ""
    return {
        "name": question.name,
        "title": question.title,
        "description": question.description,
        "table": Markup(tables.table(said, columns, rows, name=f"{question.name}-table", heading=question.name))
        if rows
        else Markup('<p class="all-well">No rows.</p>'),
        "provenance": Markup(provenance.line(zone_said, at, question.name, asked)),
    }


def unanswered(
    question: Question, values: Mapping[str, str], at: Links, error: Exception
) -> dict[str, Any]:
    """As `shown`, of a question that could not be answered."""
    return {
        "name": question.name,
        "title": question.title,
        "description": question.description,
        "table": Markup(f'<p class="problem" role="alert">{escape(str(error))}</p>'),
        "provenance": Markup(provenance.line("", at, question.name, values)),
    }


def fields(question: Question, values: Mapping[str, str], settings: Settings) -> list[dict[str, Any]]:
    """The parameters of a question as fields of a form."""
    return [
        {
            "name": each.name,
            "label": each.label,
            "value": values.get(each.name, ""),
            "placeholder": each.default,
            "choices": [{"value": "", "label": "default"}, *({"value": c, "label": c} for c in each.choices)]
            if each.choices
            else [],
        }
        for each in question.for_settings(settings)
    ]


def _cell(name: str, unit: str, value: Any, at: Links, zone: str) -> Cell:
    if value is None or value == "":
        return Cell("")
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if name in _LINKED:
        return Cell(text, session_link(at, text) if name == "session_id" else at.transcript(_LINKED[name], text))
    if not isinstance(value, (int, float)):
        return Cell(text)
    if unit == "dollars":
        return Cell(figures.money(value), title=figures.exact_money(value))
    if unit == "epoch seconds":
        return Cell(figures.moment(value, zone))
    if unit == "0 to 1":
        return Cell(figures.ratio(value))
    return Cell(figures.count(value), title=text) if unit and unit != "0 or 1" else Cell(text)
