"""How a session began, in a few words: what a picker shows of it (session-db, section 8)."""

from __future__ import annotations

from collections.abc import Sequence

from state_ledger.content import decode
from state_ledger.writing.writer import Writer

_READ = 63
_SHOWN = 60


def first_words(writer: Writer, session_ids: Sequence[str]) -> dict[str, str]:
    """How the first message of the user with content begins, by session; without those that have none.

    At most 60 characters on one line, and `...` where there is more. Structured content is decoded.
    """
    # Structured content begins with a NUL and has to come whole; of a text, its beginning does.
    marked = "substr(CAST(m.content AS BLOB), 1, 6) = x'006a736f6e3a'"
    beginning = f"CASE WHEN {marked} THEN CAST(m.content AS BLOB) ELSE CAST(substr(m.content, 1, {_READ}) AS BLOB) END"
    rows = writer.rows(
        f"SELECT s.id, (SELECT {beginning} FROM messages AS m WHERE m.session_id = s.id AND m.role = 'user'"
        " AND m.content <> '' ORDER BY m.timestamp, m.id LIMIT 1) FROM sessions AS s"
        f" WHERE s.id IN ({', '.join('?' * len(session_ids))})",
        session_ids,
    )
    return {row[0]: preview(row[1]) for row in rows if row[1] is not None}


def preview(content: object) -> str:
    """The beginning of one message's content."""
    line = decode(content).text.replace("\r", " ").replace("\n", " ")[:_READ].strip()
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
