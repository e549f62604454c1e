"""Snippets on Datasette's own pages of canned queries and of people's own SQL: matches marked, the rest text.

A column named `snippet` is one. Which of its text is a match is never read from the text: `>>>` may
stand in a message. It is told either by the marks of `state_ledger.search.marks`, private-use
characters that a snippet's text cannot hold, or by a column `matches` beside it: the places of the
matches as JSON, as the canned query `search` gives them. Without either, the snippet is plain text.

Own SQL can mark as it likes: `snippet(messages_fts, -1, char(0xE000), char(0xE001), '…', 20) AS snippet`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from markupsafe import Markup

from state_ledger import content
from state_ledger.pages.links import message_link
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page
from state_ledger.search import marks

if TYPE_CHECKING:
    from datasette.app import Datasette

COLUMN, PLACES = "snippet", "matches"


@hookimpl(tryfirst=True)
def render_cell(
    row: Any, value: Any, column: str, table: str | None, database: str, datasette: Datasette
) -> Markup | None:
    """A snippet as escaped HTML with its matches in `<mark>`; None leaves the cell to others."""
    if column != COLUMN or table is not None or not isinstance(value, (str, bytes)) or not value:
        return None
    if database not in registry(datasette).stores:
        return None
    text = content.decode(value).text
    spans = _spans(row)
    snippet = marks.marked(text, spans) if spans else text
    # Datasette cuts no cell that a plugin renders; 0 is its word for no limit.
    most = datasette.setting("truncate_cells_html")
    length = len(marks.unmarked(snippet))
    html = Markup(marks.html(marks.cut(snippet, most) if most else snippet))
    note = _cut_note(datasette, database, row, length, most) if most and length > most else Markup("")
    return Markup('<span class="ledger-snippet">{}</span>{}').format(html, note)


def _spans(row: Any) -> list[Any]:
    """The places of the matches, where the query gives them; what is no list of places is none."""
    try:
        found = json.loads(_cell(row, PLACES))
    except (TypeError, ValueError, RecursionError):
        return []
    return [span for span in found if isinstance(span, list)] if isinstance(found, list) else []


def _cut_note(datasette: Datasette, database: str, row: Any, length: int, most: int) -> Markup:
    said = f"Cut at {most:,} of {length:,} characters"
    try:
        href = message_link(page.links(datasette, database), int(_cell(row, "id")), str(_cell(row, "session_id")))
    except (TypeError, ValueError):
        return Markup('<p class="ledger-note">… {}.</p>').format(said)
    return Markup('<p class="ledger-note">… {}: <a href="{}">whole message</a>.</p>').format(said, href)


def _cell(row: Any, name: str) -> Any:
    try:
        return row[name]
    except (KeyError, IndexError, TypeError):
        return None
