"""The rows of a search: what is shown of each message that was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from state_ledger import content, redact
from state_ledger.search import match, snippets
from state_ledger.search.request import Hit
from state_ledger.search.streams import MESSAGES
from state_ledger.search.term import Term
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection

_AT_ONCE = 500


def read(
    connection: Connection, shape: Shape, ids: Sequence[int], terms: tuple[Term, ...], *, inside: bool = False
) -> list[Hit]:
    """Hits for message ids, in their order; a message that was deleted a moment ago is left out."""
    found: dict[int, Hit] = {}
    for at in range(0, len(ids), _AT_ONCE):
        for hit in _some(connection, shape, ids[at : at + _AT_ONCE], terms, inside):
            found[hit.id] = hit
    return [found[each] for each in ids if each in found]


def _some(
    connection: Connection, shape: Shape, ids: Sequence[int], terms: tuple[Term, ...], inside: bool
) -> list[Hit]:
    def column(name: str, table: str, alias: str) -> str:
        return f"{alias}.{name}" if shape.has(table, name) else "NULL"

    def bytes_of(name: str) -> str:
        # Text that is not valid UTF-8 must not fail a search.
        return f"CAST({column(name, 'messages', 'm')} AS BLOB)"

    rows = connection.execute(
        f"SELECT m.id, m.session_id, m.role, {column('timestamp', 'messages', 'm')}, {bytes_of('content')},"
        f" {bytes_of('tool_name')}, {bytes_of('tool_calls')}, s.source, {column('model', 'sessions', 's')},"
        f" s.started_at, {column('title', 'sessions', 's')}"
        f" FROM {MESSAGES} WHERE m.id IN ({', '.join('?' * len(ids))})",
        tuple(ids),
    ).fetchall()
    shown = _redacted if connection.text_factory is redact.decode else _as_it_is
    return [
        Hit(
            id=row[0],
            session_id=row[1],
            role=row[2],
            snippet=snippets.snippet(terms, match.Fields(*map(shown, row[4:7])), inside=inside),
            timestamp=row[3],
            tool_name=None if row[5] is None else content.decode(shown(row[5])).text,
            source=row[7],
            model=row[8],
            title=row[10],
            session_started=row[9],
            context=snippets.context(connection, row, shown),
        )
        for row in rows
    ]


def _as_it_is(stored: Any) -> Any:
    return stored


def _redacted(stored: Any) -> Any:
    """Secrets are replaced before anything is cut out of a text: half a key is still half a secret."""
    return None if stored is None else redact.decode(content.decode(stored).text.encode("utf-8", "replace"))
