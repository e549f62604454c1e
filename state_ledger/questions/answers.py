"""Answers within bounds, for readers that take in everything they are given."""

from __future__ import annotations

from typing import Any

from state_ledger.questions import Result

MOST_CHARACTERS = 100_000
"""Of all cells of an answer, about; a row that would go over it, and all after it, are left out."""

LONGEST_TEXT = 8_000
"""Characters of one cell; the cell says how many more it had."""


def bounded(result: Result) -> dict[str, Any]:
    """An answer as its JSON on the pages, with long texts cut and no more rows than MOST_CHARACTERS hold.

    `truncated` says whether rows are missing, be it for this bound or for the parameter `limit`.
    """
    rows: list[dict[str, Any]] = []
    left = MOST_CHARACTERS
    for row in result.records():
        cut = {name: _cut(value) for name, value in row.items()}
        left -= sum(len(name) + len(str(value)) + 6 for name, value in cut.items())
        if left < 0 and rows:
            break
        rows.append(cut)
    head = result.question.head(result.parameters, result.columns)
    return {**head, "rows": rows, "truncated": result.truncated or len(rows) < len(result.rows)}


def _cut(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]}… ({len(value) - LONGEST_TEXT:,} characters more)"
    return value
