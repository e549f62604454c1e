"""CSV: one message a row, text decoded, for every spreadsheet and data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from state_ledger.portability.export import Export
from state_ledger.portability.plan import LIVE

RISKY = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""What a cell begins with that a spreadsheet may run (case 19)."""

BOM = "\ufeff"
"""Tells spreadsheets that the file is UTF-8."""


def write(export: Export) -> Iterator[bytes]:
    """A line of names, then the messages; the transfer breaks where it cannot be whole."""
    safe = export.options.spreadsheet_safe
    yield head((*export.messages.columns, "state"), safe)
    rows = _Rows(export)
    for part in export.plan.parts:
        for page in export.pages(part):
            text = lines(rows.of(page, part.states), safe)
            if "\x00" in text:  # in a column that is not looked at
                text = lines([export.messages.flat(row, part.states) for row in page], safe)
            if text:
                yield text.encode()
    export.must_be_whole()


def head(columns: Sequence[str], safe: bool = False) -> bytes:
    """The line of names."""
    return ((BOM if safe else "") + lines([columns])).encode()


def lines(rows: Sequence[Sequence[Any]], safe: bool = False) -> str:
    """Rows as CSV. safe: a quote goes before text that a spreadsheet would take for a formula."""
    out = io.StringIO()
    csv.writer(out).writerows(map(_safe, rows) if safe else rows)
    return out.getvalue()


class _Rows:
    """The messages of a page as rows of cells, those that need no decoding as they are: most of them."""

    def __init__(self, export: Export) -> None:
        columns = export.messages.columns
        self._flat = export.messages.flat
        self._content = columns.index("content")
        self._active = columns.index("active")
        self._all = export.redactor is not None

    def of(self, page: list[tuple[Any, ...]], states: dict[int, str]) -> list[tuple[Any, ...]]:
        """Rows with their state at the end."""
        flat, content, active = self._flat, self._content, self._active
        if self._all or states:
            return [flat(row, states) for row in page]
        return [
            (*row, LIVE) if row[active] != 0 and _is_plain(row[content]) else flat(row, states) for row in page
        ]


def _is_plain(content: Any) -> bool:
    return content is None or (content.__class__ is str and content[:1] != "\x00")


def _safe(row: Sequence[Any]) -> list[Any]:
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(RISKY) else cell for cell in row]
