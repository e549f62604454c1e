"""The SQL functions that the views and the canned queries call.

| function | value |
|---|---|
| `local_day(epoch, zone)` | the calendar day `YYYY-MM-DD` of an instant in a zone; NULL for NULL |
| `day_start(day, zone)`, `day_end(day, zone)` | epoch seconds at which a day begins and is over; NULL for '' |
| `days_ago(days, zone)` | the calendar day, `YYYY-MM-DD`, that many days before today |
| `canonical_model(model)` | the name under which spellings of one model are summed |
| `price_spans(model, provider, base_url)` | JSON: the list prices of a model, each with the time in which it holds |
| `list_price(model, provider, base_url, bucket, epoch)` | dollars per million tokens of a bucket (`input`, …) or NULL |
| `priced_as(model, provider, base_url, epoch)` | what a model is priced as, how it was matched and by which list |
| `folded_name(name)` | a title or an id as it is searched: without case, `-`, `_` and `.` as blanks; '' for NULL |
| `message_text(content)` | stored content as a person reads it |
| `message_problem(content)` | what is wrong with stored content, or NULL |
| `message_parts(content)` | the number of parts of structured content, NULL for plain text |
| `message_shown_parts(content)` | JSON list of [type, text] of each part, images as placeholders; NULL for plain text |
| `untrue(literal, …)` | why the first of a row's counters and amounts, as `quote` wrote them, cannot be true |
| `lineage_places(row, parent_row, kind, dangling)` | an aggregate: JSON, one array per session |
| `session_sum(session, place)` | a sum over the usage of one session, by its place in `session_sums.SUMS` |
| `storage_parts()` | JSON: [name, kind, owner, bytes, rows, method] of everything with pages of its own |

All but the last two are deterministic. Text arguments are best given as BLOBs (`CAST(x AS BLOB)`): SQLite hands text
to Python as UTF-8, and a row that is not valid UTF-8 would fail the whole query.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from state_ledger import content
from state_ledger.ledger import days, session_sums
from state_ledger.ledger.columns import MOST
from state_ledger.ledger.models import canonical_model
from state_ledger.ledger.usage import AMOUNTS, COUNTERS
from state_ledger.lineage import Link, arrange
from state_ledger.sqlite import Connection, reference

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook


def register(connection: Connection, zone: str, book: Callable[[], PriceBook] | None = None) -> None:
    """Registers the functions on one connection; `zone` serves where a query names none ('').

    book: gives the price list when first asked for a price, by default the package's alone.
    """
    # Not at the top: the search imports what opens connections, and prices the ledger's names, which import this.
    from state_ledger.prices import sql as prices
    from state_ledger.search.sessions import folded_name

    def local_day(epoch: Any, name: Any) -> str | None:
        if not isinstance(epoch, (int, float)):
            return None
        # A day begins on a bucket, so the days of all instants of one are looked up once.
        return days.local_day(epoch // days.BUCKET_SECONDS * days.BUCKET_SECONDS, name or zone)

    def day_start(day: Any, name: Any) -> float | None:
        return _boundary(days.day_start, day, name or zone)

    def day_end(day: Any, name: Any) -> float | None:
        return _boundary(days.day_end, day, name or zone)

    def days_ago(count: Any, name: Any) -> str:
        return (days.today(name or zone) - timedelta(days=int(count))).isoformat()

    every: list[tuple[str, int, Callable[..., Any]]] = [
        ("local_day", 2, local_day),
        ("day_start", 2, day_start),
        ("day_end", 2, day_end),
        ("days_ago", 2, days_ago),
        ("canonical_model", 1, canonical_model),
        ("folded_name", 1, folded_name),
        ("message_text", 1, _message_text),
        ("message_problem", 1, _message_problem),
        ("message_parts", 1, _message_parts),
        ("message_shown_parts", 1, _message_shown_parts),
        ("untrue", -1, _untrue),
        *prices.functions(book),
    ]
    for name, arguments, function in every:
        connection.create_function(name, arguments, function, deterministic=True)
    itself = reference(connection)
    connection.create_function("storage_parts", 0, lambda: _storage_parts(itself()))
    session_sums.register(connection)
    connection.create_aggregate("lineage_places", 4, _LineagePlaces)  # type: ignore[arg-type]


def _boundary(function: Any, day: Any, zone: str) -> float | None:
    # Text that is no day raises: a bound that is silently left out would show other days' figures.
    return float(function(str(day), zone)) if day else None


_PREFIX = content.PREFIX.encode()


def _plain(stored: object) -> bytes | None:
    """Stored content without parts, which is nearly all of it and need not be taken apart; None for any other."""
    return stored if isinstance(stored, bytes) and not stored.startswith(_PREFIX) else None


def _message_text(stored: object) -> str | None:
    if stored is None:
        return None
    plain = _plain(stored)
    text = content.decode(stored).text if plain is None else plain.decode("utf-8", "replace")
    # An embedded NUL would end the text for SQLite's own functions and for the reader.
    return text.replace("\x00", "�")


def _message_problem(stored: object) -> str | None:
    plain = _plain(stored)
    return None if plain is not None and plain.isascii() else content.decode(stored).problem


def _message_parts(stored: object) -> int | None:
    parts = None if _plain(stored) is not None else content.decode(stored).parts
    return None if parts is None else len(parts)


def _message_shown_parts(stored: object) -> str | None:
    parts = content.decode(stored).parts
    return None if parts is None else json.dumps([content.shown(part) for part in parts]).replace("\\u0000", "\\ufffd")


def _storage_parts(connection: Connection) -> str:
    from state_ledger import storage  # few ask, and every start would import it

    sizes = storage.measure(connection)
    return json.dumps([(p.name, p.kind, p.owner, p.bytes, p.rows, sizes.method) for p in sizes.parts])


def _untrue(*literals: bytes) -> str | None:
    for column, literal in zip((*COUNTERS, *AMOUNTS), literals, strict=True):
        if literal.startswith(b"'"):
            return f"{column} is text"
        if literal.startswith(b"X'"):
            return f"{column} is binary data"
        if literal != b"NULL" and not 0 <= float(literal) <= float(MOST):
            return f"{column} is {'negative' if literal.startswith(b'-') else 'not a finite number'}"
    return None


class _LineagePlaces:
    """Collects all sessions of a store, then places them in one linear walk."""

    def __init__(self) -> None:
        self.links: list[Link] = []

    def step(self, row: int, parent: int | None, kind: str, dangling: int) -> None:
        self.links.append(Link(row, parent, kind, bool(dangling)))

    def finalize(self) -> str:
        return json.dumps(
            [
                (p.row, p.link, p.conversation, p.work, p.tip, p.segment, p.depth, p.trouble)
                for p in arrange(self.links)
            ],
            separators=(",", ":"),
        )
