"""Cells of a store on Datasette's own pages: messages as Markdown, moments as local time.

Markdown is written by models and web pages, so it passes an allow-list (no images, no links but
http, https and mailto), and is shown as plain text where rendering it would take too long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from datasette import hookimpl
from markupsafe import Markup

from state_ledger import content
from state_ledger.markdown import CACHE, too_costly
from state_ledger.pages.links import Links
from state_ledger.plugins.address import App, Scope, path_of
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.settings import Settings


LIST_CHARACTERS = 2000
"""Where a message is cut on a page of many rows: 100 messages of 100 kB made a page of 10.2 MB."""

PAGE_BUDGET_S = 0.4
"""Seconds of Markdown on one page; after that, messages are shown as they are."""

MOMENTS = frozenset(
    {
        "timestamp", "started_at", "ended_at", "first_seen", "last_seen", "first_active", "last_active",
        "first_activity", "last_activity", "last_activity_at", "first_at", "last_at",
    }
)  # fmt: skip
"""Columns that hold epoch seconds, or milliseconds in stores that mixed them up."""

TRANSCRIPTS = {
    "session_id": "session", "link_session_id": "session", "tip_session_id": "session", "parent_session_id": "session",
    "conversation_id": "conversation", "work_id": "work",
}  # fmt: skip
"""Columns of questions and of the ledger's views that name a session, and the page that reads it."""

EARLIEST, LATEST = 946_684_800, 4_102_444_800
"""The years 2000 to 2099 in epoch seconds: what is outside is not a moment of an agent's life."""

class _Page:
    """The page being rendered. one_row: whether it is a row's own page; spent_s: on Markdown so far."""

    def __init__(self, one_row: bool) -> None:
        self.one_row = one_row
        self.spent_s = 0.0


_page: ContextVar[_Page | None] = ContextVar("state_ledger_cells_page", default=None)


@hookimpl(tryfirst=True)
def render_cell(
    row: Any, value: Any, column: str, table: str | None, database: str, datasette: Datasette
) -> Markup | Awaitable[Markup] | None:
    """A moment or a message of a store as HTML; None leaves the cell to others."""
    kind = type(value)
    if kind is float or kind is int:
        if column not in MOMENTS or database not in registry(datasette).stores:
            return None
        return moment(value, registry(datasette).settings.zone_name)
    # A blob is text that something stored as bytes: Datasette would offer it as a file to download.
    if (kind is not str and kind is not bytes) or not value:
        return None
    held = registry(datasette)
    if table is None or table.startswith("ledger_"):
        return _transcript(datasette, database, column, value)
    if database not in held.stores or column not in held.settings.markdown_columns.get(table, ()):
        return None
    return _message(datasette, held.settings, database, table, row, value)


def _transcript(datasette: Datasette, database: str, column: str, value: str | bytes) -> Markup | None:
    """An id in the answer to a question as a link to what it names."""
    if column not in TRANSCRIPTS or type(value) is not str or database not in registry(datasette).stores:
        return None
    href = Links(str(datasette.urls.database(database))).transcript(TRANSCRIPTS[column], value)
    return Markup('<a href="{}">{}</a>').format(href, value)


def moment(value: float, zone: str) -> Markup | None:
    """Epoch seconds or milliseconds as local time with its offset; None if it cannot be a moment.

    The title is the value as it is stored, and says so of milliseconds: queries that take every value
    for seconds sort such a row into the far future.
    """
    in_milliseconds = EARLIEST * 1000 <= value <= LATEST * 1000
    seconds = value / 1000 if in_milliseconds else value
    if not EARLIEST <= seconds <= LATEST:
        return None
    utc = datetime.fromtimestamp(seconds, tz=timezone.utc)
    local = utc.astimezone(ZoneInfo(zone))
    offset = f"{local:%z}"
    title = f"{value} (stored in milliseconds)" if in_milliseconds else f"{value}"
    return Markup(
        f'<time datetime="{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03}Z" title="{title}">'
        f"{local:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:]}</time>"
    )


def markdown(text: str, *, max_brackets: int) -> Markup:
    """Text as allow-listed HTML; escaped in a `<pre>` where rendering it would take too long."""
    body = CACHE.render(text, max_brackets=max_brackets)
    if body is None:
        return plain(text)
    # Datasette's cells keep white space as it is, which Markdown's lines must not.
    return Markup(f'<div class="ledger-markdown" style="white-space: normal">{body}</div>')


def plain(text: str) -> Markup:
    """Text as it is, wrapped to the width of the cell."""
    return Markup('<pre class="ledger-plain" style="white-space: pre-wrap">{}</pre>').format(text)


@hookimpl
def asgi_wrapper(datasette: Datasette) -> Callable[[App], App]:
    """Notes which kind of page is asked for: 0.65 does not tell `render_cell`."""

    def wrap(app: App) -> App:
        async def noting(scope: Scope, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                _page.set(_Page(is_row_path(scope, datasette.setting("base_url"))))
            await app(scope, receive, send)

        return noting

    return wrap


def is_row_path(scope: Scope, base_url: str) -> bool:
    """Whether a request is for `/<database>/<table>/<row>`."""
    segments = path_of(scope).removeprefix(base_url.rstrip("/")).strip("/").split("/")
    return len(segments) == 3 and not any(segment.startswith("-") for segment in segments)


async def _message(
    datasette: Datasette, settings: Settings, database: str, table: str, row: Any, value: str | bytes
) -> Markup:
    page = _page.get() or _Page(one_row=False)
    decoded = content.decode(value)
    most = settings.markdown_max_characters if page.one_row else LIST_CHARACTERS
    most = min(most, settings.markdown_max_characters)
    html = await _within_budget(page, decoded.text[:most], settings.markdown_max_brackets)
    if len(decoded.text) > most:
        html += _cut_note(datasette, database, table, row, page, len(decoded.text), most)
    if decoded.problem:
        html += Markup('<p class="ledger-note">{}</p>').format(decoded.problem)
    return html


async def _within_budget(page: _Page, text: str, max_brackets: int) -> Markup:
    """Text as Markdown while the page has time left for it, else as it is."""
    if page.spent_s > PAGE_BUDGET_S or too_costly(text, max_brackets):
        return plain(text)
    started = time.perf_counter()
    if len(text) > LIST_CHARACTERS:
        # Up to two seconds at the limits above: the other visitors' pages need not wait for it.
        html = await asyncio.to_thread(markdown, text, max_brackets=max_brackets)
    else:
        html = markdown(text, max_brackets=max_brackets)
    page.spent_s += time.perf_counter() - started
    await asyncio.sleep(0)  # between two messages, other visitors get their turn
    return html


def _cut_note(
    datasette: Datasette, database: str, table: str, row: Any, page: _Page, length: int, most: int
) -> Markup:
    note = f"Cut at {most:,} of {length:,} characters"
    try:
        key = str(int(row["id"]))
    except (KeyError, IndexError, TypeError, ValueError):
        return Markup('<p class="ledger-note">… {}.</p>').format(note)
    if page.one_row:
        href, label = datasette.urls.row(database, table, key, format="json"), "whole text as JSON"
    else:
        href, label = datasette.urls.row(database, table, key), "whole message"
    return Markup('<p class="ledger-note">… {}: <a href="{}">{}</a>.</p>').format(note, href, label)
