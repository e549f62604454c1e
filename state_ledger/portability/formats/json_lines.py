"""JSON Lines: everything of the scope, one thing a line, to be read back by `state-ledger import`.

The first line is the header, then come, session by session, the session, its rows of calls and its
messages, and last the trailer. A file without a trailer that says `"complete": true` was cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from state_ledger.portability.export import Export
from state_ledger.portability.formats.json_text import encode

FORMAT = "state-ledger"
VERSION = 1

_MESSAGE = {"type": "message"}

def write(export: Export) -> Iterator[bytes]:
    """The lines of the file."""
    begin = {"type": "header", "format": FORMAT, "version": VERSION}
    yield _line({**begin, **export.header(), "columns": _columns(export)})
    for part in export.plan.parts:
        session = export.session(part)
        calls = export.usage(part)
        lines = [_line({"type": "session", "messages": len(part.ids), "usage_rows": len(calls), **session})]
        lines += [_line({"type": "usage", **call}) for call in calls]
        yield b"".join(lines)
        record, states = export.messages.record, part.states
        for page in export.pages(part):
            text = "\n".join([encode(record(row, states, _MESSAGE)) for row in page])
            if text:
                yield f"{text}\n".encode()
    yield _line(
        {
            "type": "trailer",
            "complete": export.whole,
            "counts": {
                "sessions": export.given_sessions,
                "messages": export.given_messages,
                "usage_rows": export.given_usage,
            },
            "not_utf8": export.source.replaced,
            "redacted": export.report.as_dict(),
        }
    )


def _line(value: dict[str, Any]) -> bytes:
    return f"{encode(value)}\n".encode()


def _columns(export: Export) -> dict[str, list[str]]:
    return {table: list(columns) for table, columns in export.source.columns.items() if columns}
