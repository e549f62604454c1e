"""Cells of a store on Datasette's own pages: messages as Markdown, moments as local time.

Markdown is written by models and web pages, so it passes an allow-list (no images, no links but
http, https and mailto), and is shown as plain text where rendering it would take too long.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from bleach.html5lib_shim import Filter
from bleach.linkifier import LinkifyFilter
from bleach.sanitizer import Cleaner
from datasette import hookimpl
from markdown import markdown as to_html
from markupsafe import Markup

from state_ledger import content
from state_ledger.plugins.address import App, Scope, path_of
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.settings import Settings


EXTENSIONS = ["fenced_code", "tables"]
TAGS = frozenset(
    {
        "a", "abbr", "acronym", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6",
        "hr", "i", "li", "ol", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
    }
)  # fmt: skip
"""Every element that can come out of Markdown."""

LIST_CHARACTERS = 2000
"""Where a message is cut on a page of many rows: 100 messages of 100 kB made a page of 10.2 MB."""

PAGE_BUDGET_S = 0.4
"""Seconds of Markdown on one page; after that, messages are shown as they are."""

MARKER_LIMITS: Mapping[str, int] = {
    "<": 200, ">": 600, "`": 600, "(": 1000, "=": 1000, "|": 1500, "\n": 1500,
}  # fmt: skip
"""How often a character may occur in text that is rendered. Beside `[`, whose limit is a setting, these
are the ones whose cost grows with the square of their number: 20,000 `(` or `<a ` took 4 to 6 s."""

RUN_LIMITS: Mapping[str, int] = {"*": 1000, "_": 1500}
"""How many runs of a mark of emphasis may occur; one run is cheap whatever its length. Each run may be
an element, at 50 to 120 µs: 20,000 characters of `***a` or `_a__*` took 0.4 to 1 s."""

MOMENTS = frozenset(
    {
        "timestamp", "started_at", "ended_at", "first_seen", "last_seen", "first_active", "last_active",
        "first_activity", "last_activity", "last_activity_at", "first_at", "last_at",
    }
)  # fmt: skip
"""Columns that hold epoch seconds, or milliseconds in stores that mixed them up."""

EARLIEST, LATEST = 946_684_800, 4_102_444_800
"""The years 2000 to 2099 in epoch seconds: what is outside is not a moment of an agent's life."""

_LINK_TARGET = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)


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
    if (kind is not str and kind is not bytes) or not value or table is None:
        return None
    held = registry(datasette)
    if database not in held.stores or column not in held.settings.markdown_columns.get(table, ()):
        return None
    return _message(datasette, held.settings, database, table, row, value)


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
    if too_costly(text, max_brackets):
        return plain(text)
    try:
        body = _cleaner().clean(to_html(text, output_format="html", extensions=EXTENSIONS))
    except RecursionError:  # deeply nested quotes and lists
        return plain(text)
    # Datasette's cells keep white space as it is, which Markdown's lines must not.
    return Markup(f'<div class="ledger-markdown" style="white-space: normal">{body}</div>')


def plain(text: str) -> Markup:
    """Text as it is, wrapped to the width of the cell."""
    return Markup('<pre class="ledger-plain" style="white-space: pre-wrap">{}</pre>').format(text)


def too_costly(text: str, max_brackets: int) -> bool:
    """Whether text has so many Markdown marks that rendering it could take seconds."""
    return (
        text.count("[") > max_brackets
        or any(text.count(marker) > limit for marker, limit in MARKER_LIMITS.items())
        or any(len(re.findall(rf"\{marker}+", text)) > limit for marker, limit in RUN_LIMITS.items())
    )


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


class _Tame(Filter):  # type: ignore[misc]
    """An image becomes its description; a link tells its target nothing."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for token in Filter.__iter__(self):
            name, data = token.get("name"), token.get("data")
            if name == "img":
                alt = data.get((None, "alt"), "") if isinstance(data, dict) else ""
                yield {"type": "Characters", "data": f"[image: {alt}]" if alt else "[image]"}
                continue
            if name == "a" and token["type"] == "StartTag" and (None, "href") in data:
                data[(None, "rel")] = "nofollow noopener noreferrer"
            yield token


def _cleaner() -> Cleaner:
    # Not kept between calls: a Cleaner holds its parser's state.
    return Cleaner(
        tags=TAGS | {"img"},
        attributes=_may_keep,
        protocols={"http", "https", "mailto"},
        filters=[partial(LinkifyFilter, callbacks=[_written_out], skip_tags={"pre"}), _Tame],
    )


def _written_out(attributes: dict[Any, str], new: bool = False) -> dict[Any, str] | None:
    """Makes a link of a whole address in text, and none of a word with a dot: main.py, README.md."""
    return None if new and _LINK_TARGET.match(attributes["_text"]) is None else attributes


def _may_keep(tag: str, name: str, value: str) -> bool:
    if tag == "a" and name == "href":
        # Bleach lets addresses without a scheme pass, which would lead into this instance.
        return _LINK_TARGET.match(value) is not None
    return tag == "img" and name == "alt"
