"""What of a message is shown for a hit: a piece of its text with the matches marked, and its neighbours."""

from __future__ import annotations

import re
from typing import Any

from state_ledger import content
from state_ledger.search import match
from state_ledger.search.query import Query
from state_ledger.search.routes import Hit
from state_ledger.search.text import UNSPACED
from state_ledger.sqlite import Row, sqlite3
from state_ledger.writing.writer import Writer

BEFORE, AFTER, CUT = ">>>", "<<<", "..."
TOKENS = 40
"""How many words FTS5 puts into a snippet."""
WINDOW = 120
LEAD = 40
"""Characters of a snippet made without FTS5, and how many of them stand before the first match."""
CONTEXT_CHARACTERS = 200

_MARKS_A_RUN = re.compile(f"{BEFORE}[^{AFTER[0]}]*[{UNSPACED}]")


def snippet(writer: Writer, query: Query, hit: Hit, row: Row, index: str | None) -> str:
    """The best piece of a message: FTS5's where it found the message, else a window on decoded text.

    row: has content, tool_name and tool_calls as stored.
    """
    if hit.expression is not None and index is not None:
        try:
            found = writer.value(
                f"SELECT snippet({index}, -1, ?, ?, ?, ?) FROM {index} WHERE {index} MATCH ? AND rowid = ?",
                (BEFORE, AFTER, CUT, TOKENS, hit.expression, hit.id),
            )
        except sqlite3.DatabaseError:
            found = None  # An index out of step finds rows whose words it cannot place.
        # A run without spaces is one word to FTS5: then our window marks the part that was meant.
        if isinstance(found, str) and BEFORE in found and not _MARKS_A_RUN.search(found):
            return found
    return _window(query, match.Fields.of(row["content"], row["tool_name"], row["tool_calls"]), hit.substrings)


def _window(query: Query, fields: match.Fields, substrings: bool) -> str:
    """A window on the first text with a match, with every match in it marked."""
    for text in fields.texts:
        found = sorted({span for term in query.wanted for span in match.spans(term, text, substrings=substrings)})
        if found:
            return _marked(text, found)
    return fields.texts[0][:WINDOW] if fields.texts else ""


def _marked(text: str, found: list[match.Span]) -> str:
    start = max(0, found[0][0] - LEAD)
    # The first match is shown whole, however long it is.
    end = max(start + WINDOW, found[0][1])
    out, at = ([CUT] if start else []), start
    for first, last in found:
        if first < at or last > end:
            continue
        out += [text[at:first], BEFORE, text[first:last], AFTER]
        at = last
    out.append(text[at:end])
    return "".join(out) + (CUT if end < len(text) else "")


def context(writer: Writer, row: Row) -> list[dict[str, Any]]:
    """The message before, the message itself and the one after, by time, within its session.

    Each is `{"role", "content"}` with at most 200 characters; rewound messages count too. Returns []
    where the store cannot be read.
    """
    beside = (
        "SELECT role, content FROM messages WHERE session_id = ?"
        " AND (timestamp, id) {0} (?, ?) ORDER BY timestamp {1}, id {1} LIMIT 1"
    )
    place = (row["session_id"], row["timestamp"], row["id"])
    try:
        before = writer.rows(beside.format("<", "DESC"), place)
        after = writer.rows(beside.format(">", "ASC"), place)
    except sqlite3.DatabaseError:
        return []
    entries = [(each["role"], each["content"]) for each in (*before, row, *after)]
    return [{"role": role, "content": _short(stored)} for role, stored in entries]


def _short(stored: object) -> str:
    if isinstance(stored, (int, float)):
        return ""
    decoded = content.decode(stored)
    if decoded.parts is None:
        return decoded.text[:CONTEXT_CHARACTERS]
    texts = [str(part["text"]) for part in decoded.parts if isinstance(part.get("text"), str)]
    return (" ".join(filter(None, texts)) or "[multimodal content]")[:CONTEXT_CHARACTERS]
