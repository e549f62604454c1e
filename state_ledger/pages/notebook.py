"""Three lines that read a question's answer into a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from state_ledger.questions import Question


def snippets(question: Question, csv: str, parquet: str) -> list[tuple[str, str]]:
    """Library and code; each reads every row and sums the column that the question is about.

    csv, parquet: whole addresses of the rows.
    """
    summed = _summed(question)
    pandas = f'rows["{summed}"].sum()' if summed else "rows.head()"
    polars = f'rows["{summed}"].sum()' if summed else "rows.head()"
    what = f"sum({summed})" if summed else "*"
    return [
        ("pandas", f'import pandas as pd\nrows = pd.read_csv("{csv}")\n{pandas}'),
        (
            "polars",  # which would ask for pieces of the file by itself
            "import polars as pl, urllib.request\n"
            f'rows = pl.read_csv(urllib.request.urlopen("{csv}").read(), infer_schema_length=None)\n{polars}',
        ),
        (
            "DuckDB",
            f"import duckdb, urllib.request\n"
            f'path, _ = urllib.request.urlretrieve("{parquet}", "{question.name}.parquet")\n'
            f"duckdb.sql(\"SELECT {what} FROM '{question.name}.parquet'\")",
        ),
    ]


def block(lines: list[tuple[str, str]], addresses: Mapping[str, str]) -> str:
    """The lines as HTML, folded, with the addresses of all rows."""
    style = "white-space: pre-wrap; overflow-wrap: anywhere"
    code = "".join(
        f"<p><strong>{escape(name)}</strong></p><pre style='{style}'><code>{escape(text)}</code></pre>"
        for name, text in lines
    )
    links = " · ".join(f'<a href="{escape(href)}">{escape(form)}</a>' for form, href in addresses.items())
    return (
        "<details class='ledger-notebook'><summary>Use it in a notebook</summary>"
        f"<p>Every row of this answer, whatever the limits of this page: {links}</p>{code}</details>"
    )


def _summed(question: Question) -> str:
    """The first column of the answer that is money or calls."""
    for name in ("cost_usd", "api_call_count", "messages", "sessions"):
        if name in question.columns:
            return name
    return ""
