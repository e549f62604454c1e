"""The formats of an export, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from state_ledger.portability.export import Export

Writer = Callable[["Export"], Iterator[bytes]]


@dataclass(frozen=True)
class Format:
    """One format.

    name: also the ending of its files. label: for people. media_type: of HTTP. module: where its
    `write(export)` is. shared: whether it is meant to be shown to others, hence redacted unless it is
    said otherwise. rows: whether it holds messages alone, so that an export without any is empty.
    """

    name: str
    label: str
    media_type: str
    module: str
    what: str
    shared: bool = False
    rows: bool = False

    def write(self, export: Export) -> Iterator[bytes]:
        """The bytes of the file, piece by piece. Raises ExportBroken where it cannot be whole."""
        found = importlib.import_module(f"state_ledger.portability.formats.{self.module}")
        pieces: Iterator[bytes] = found.write(export)
        return pieces


FORMATS = {
    each.name: each
    for each in (
        Format("jsonl", "JSON Lines", "application/jsonl; charset=utf-8", "json_lines",
               "everything, to be read back by state-ledger import"),
        Format("json", "JSON", "application/json; charset=utf-8", "json_sessions",
               "sessions with their messages, as SessionDB.export_session gives them"),
        Format("html", "HTML", "text/html; charset=utf-8", "html_page", "one page to read and to share", shared=True),
        Format("md", "Markdown", "text/markdown; charset=utf-8", "markdown_text", "text to read and to share",
               shared=True),
        Format("csv", "CSV", "text/csv; charset=utf-8", "csv_rows", "messages as rows", rows=True),
        Format("ndjson", "NDJSON", "application/x-ndjson; charset=utf-8", "ndjson_rows", "messages as rows of JSON",
               rows=True),
        Format("parquet", "Parquet", "application/vnd.apache.parquet", "parquet_rows",
               "messages as columns, for DuckDB and data frames", rows=True),
    )
}  # fmt: skip
"""By name, which is also the ending of a file."""

ALIASES = {"markdown": "md"}
