"""What Datasette's own templates leave out for those who do not see the page or use no mouse.

A language of the page, its main part, levels of headings, names of the fields that filter, a box of rows that
the keyboard can scroll, a name of the SQL editor. It is written into the text of Datasette's templates before
they are compiled; a text that a release of Datasette has otherwise stays as it is, and templates of other
plugins and of users are not touched.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import datasette
from datasette import hookimpl
from jinja2.ext import Extension

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(datasette.__file__).resolve().parent / "templates"

AMENDED: tuple[tuple[str, str], ...] = (
    ("<html>", '<html lang="en">'),
    ('<section class="content">', '<section class="content" role="main">'),
    ('<div class="table-wrapper">', '<div class="table-wrapper" role="region" tabindex="0" aria-label="Rows">'),
    ('<select name="_filter_column', '<select aria-label="Column" name="_filter_column'),
    ('<select name="_filter_op', '<select aria-label="Comparison" name="_filter_op'),
    ('<input type="text" name="_filter_value', '<input aria-label="Value" type="text" name="_filter_value'),
    ('<select name="_sort"', '<select aria-label="Sort by" name="_sort"'),
    # Below the name of the page comes the second level, whatever size it has.
    ("<h3>Custom SQL query", '<h3 aria-level="2">Custom SQL query'),
    ("<h3>{% if filtered_table_rows_count", '<h3 aria-level="2">{% if filtered_table_rows_count'),
    ('<h3 class="table-summary">', '<h3 aria-level="2" class="table-summary">'),
    # The editors that scripts put in the place of the text field: CodeMirror 5 of 0.65, CodeMirror 6 of 1.0.
    (
        'editor.setOption("extraKeys", {',
        'editor.getInputField().setAttribute("aria-label", "SQL");\n        editor.setOption("extraKeys", {',
    ),
    (
        "        schema,\n      }));",
        '        schema,\n      }));\n      editor.contentDOM.setAttribute("aria-label", "SQL");',
    ),
)
"""What stands in a template of Datasette, and what stands there for us."""


class StockMarkup(Extension):
    """Amends the text of Datasette's own templates, and of no others."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        if filename is None or Path(filename).resolve().parent != TEMPLATES:
            return source
        for found, amended in AMENDED:
            source = source.replace(found, amended)
        return source


@hookimpl
def prepare_jinja2_environment(env: Environment) -> None:
    env.add_extension(StockMarkup)
