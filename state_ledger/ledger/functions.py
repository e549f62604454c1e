"""The SQL functions that the views and the canned queries call.

| function | value |
|---|---|
| `local_day(epoch, zone)` | the calendar day `YYYY-MM-DD` of an instant in a zone; NULL for NULL |
| `day_start(day, zone)`, `day_end(day, zone)` | epoch seconds at which a day begins and is over; NULL for '' |
| `days_ago(days, zone)` | the calendar day, `YYYY-MM-DD`, that many days before today |
| `canonical_model(model)` | the name under which spellings of one model are summed |
| `folded_name(name)` | a title or an id as it is searched: without case, `-`, `_` and `.` as blanks; '' for NULL |
| `message_text(content)` | stored content as a person reads it |
| `message_problem(content)` | what is wrong with stored content, or NULL |
| `message_parts(content)` | the number of parts of structured content, NULL for plain text |
| `untrue(column, type, negative, sound)` | why a stored counter or amount cannot be true, NULL where it can |
| `lineage_places(row, parent_row, kind, dangling)` | an aggregate: JSON, one array per session |

All are deterministic. Text arguments are best given as BLOBs (`CAST(x AS BLOB)`): SQLite hands text
to Python as UTF-8, and a row that is not valid UTF-8 would fail the whole query.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from state_ledger import content
from state_ledger.ledger import days
from state_ledger.ledger.models import canonical_model
from state_ledger.lineage import Link, arrange
from state_ledger.sqlite import Connection


def register(connection: Connection, zone: str) -> None:
    """Registers the functions on one connection; `zone` serves where a query names none ('')."""
    # Not at the top: the search imports what opens connections, which imports this.
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

    for name, arguments, function in (
        ("local_day", 2, local_day),
        ("day_start", 2, day_start),
        ("day_end", 2, day_end),
        ("days_ago", 2, days_ago),
        ("canonical_model", 1, canonical_model),
        ("folded_name", 1, folded_name),
        ("message_text", 1, _message_text),
        ("message_problem", 1, _message_problem),
        ("message_parts", 1, _message_parts),
        ("untrue", 4, _untrue),
    ):
        connection.create_function(name, arguments, function, deterministic=True)
    connection.create_aggregate("lineage_places", 4, _LineagePlaces)  # type: ignore[arg-type]


def _boundary(function: Any, day: Any, zone: str) -> float | None:
    # Text that is no day raises: a bound that is silently left out would show other days' figures.
    return float(function(str(day), zone)) if day else None


def _message_text(stored: object) -> str | None:
    # An embedded NUL would end the text for SQLite's own functions and for the reader.
    return None if stored is None else content.decode(stored).text.replace("\x00", "�")


def _message_problem(stored: object) -> str | None:
    return content.decode(stored).problem


def _message_parts(stored: object) -> int | None:
    parts = content.decode(stored).parts
    return None if parts is None else len(parts)


def _untrue(column: str, kind: str, negative: int | None, sound: int) -> str | None:
    if sound:
        return None
    if kind in ("text", "blob"):
        return f"{column} is {'text' if kind == 'text' else 'binary data'}"
    return f"{column} is {'negative' if negative else 'not a finite number'}"


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
