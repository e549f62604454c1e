"""What of a message is shown for a hit: the piece of its text around the best match, and its neighbours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from state_ledger import content
from state_ledger.search import marks, match
from state_ledger.search.term import Term
from state_ledger.sqlite import Connection, Row, sqlite3

WINDOW = 240
"""Characters of a snippet, marks and cuts not counted."""

LEAD = 60
"""How many of them stand before the first match."""

CUT = "..."
CONTEXT_CHARACTERS = 200

_SPACE = re.compile(r"\s+")


def snippet(terms: tuple[Term, ...], fields: match.Fields, *, inside: bool = False) -> str:
    """A window on decoded text with every match in it between `marks.START` and `marks.END`.

    The window that holds most of the terms, in the content if any is there, else in the tool's name or
    call. A message without a match in a text of its own begins at its beginning.
    """
    best: tuple[int, str, list[match.Span]] | None = None
    for text in (*fields.texts, *filter(None, (fields.unescaped,))):
        found = match.spans(terms, text, inside=inside)
        if not found:
            continue
        start, different = _best_start(found)
        if best is None or different > best[0]:
            best = different, text, [span for span, _ in found if span[0] >= start]
        if different == len(terms):
            break
    if best is None:
        first = fields.texts[0] if fields.texts else ""
        return _flat(marks.free(first[:WINDOW])) + (CUT if len(first) > WINDOW else "")
    return _window(best[1], best[2])


def _best_start(found: Sequence[tuple[match.Span, int]]) -> tuple[int, int]:
    """Where the window with most different terms begins, and how many they are; the first of the best."""
    many = len({number for _, number in found})
    if many == 1:
        return found[0][0][0], 1
    best = (0, 0)
    for place, (first, _) in enumerate(found):
        seen = set()
        for span, term in found[place:]:
            if span[1] - first[0] > WINDOW - LEAD:
                break
            seen.add(term)
        if len(seen) > best[1]:
            best = first[0], len(seen)
        if best[1] == many:
            break
    return best if best[1] else (found[0][0][0], 1)


def _window(text: str, found: Sequence[match.Span]) -> str:
    start = _word_start(text, max(0, found[0][0] - LEAD), found[0][0])
    # The first match is shown whole, however long it is.
    end = max(min(start + WINDOW, len(text)), found[0][1])
    out, at = ([CUT] if start else []), start
    for first, last in found:
        if first < at or last > end:
            continue
        out += [marks.free(text[at:first]), marks.START, marks.free(text[first:last]), marks.END]
        at = last
    out.append(marks.free(text[at:end]))
    return _flat("".join(out)) + (CUT if end < len(text) else "")


def _word_start(text: str, start: int, match_at: int) -> int:
    """The next beginning of a word, where one is near."""
    if start == 0:
        return 0
    blank = _SPACE.search(text, start, min(start + 20, match_at))
    return blank.end() if blank and blank.end() <= match_at else start


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def context(
    connection: Connection, row: Row | Sequence[Any], shown: Callable[[Any], Any] = lambda stored: stored
) -> list[dict[str, Any]]:
    """The message before, the message itself and the one after, by time, within its session.

    row: id, session_id, role, timestamp, content first. shown: what of stored content may be shown. Each
    is `{"role", "content"}` with at most 200 characters of decoded text; rewound messages count too. []
    where the store cannot be read.
    """
    beside = (
        "SELECT role, CAST(content AS BLOB) FROM main.messages WHERE session_id = ?"
        " AND (timestamp, id) {0} (?, ?) ORDER BY timestamp {1}, id {1} LIMIT 1"
    )
    place = (row[1], row[3], row[0])
    try:
        before = connection.execute(beside.format("<", "DESC"), place).fetchall()
        after = connection.execute(beside.format(">", "ASC"), place).fetchall()
    except sqlite3.DatabaseError:
        return []
    entries = [(each[0], each[1]) for each in (*before, (row[2], row[4]), *after)]
    return [{"role": role, "content": short(shown(stored))} for role, stored in entries]


def short(stored: object) -> str:
    """The first 200 characters of a message; `[multimodal content]` for parts without text."""
    if isinstance(stored, (int, float)):
        return ""
    if isinstance(stored, bytes) and not stored.startswith(b"\x00"):
        # The beginning is enough; a character takes at most four bytes.
        stored = stored[: CONTEXT_CHARACTERS * 4 + 4].decode("utf-8", "replace")
        return stored[:CONTEXT_CHARACTERS]
    decoded = content.decode(stored)
    if decoded.parts is None:
        return decoded.text[:CONTEXT_CHARACTERS]
    texts = [str(part["text"]) for part in decoded.parts if isinstance(part.get("text"), str)]
    return (" ".join(filter(None, texts)) or "[multimodal content]")[:CONTEXT_CHARACTERS]
