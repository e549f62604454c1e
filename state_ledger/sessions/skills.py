"""Sessions that began with a skill: the program wrote the first message, the user only chose it.

Source: session-db, section 8. A picker shows what the user asked for, not the frame around it.
"""

from __future__ import annotations

from typing import Any

from state_ledger import content as contents
from state_ledger.ledger.columns import column
from state_ledger.writing.writer import Writer

OPENING = "[IMPORTANT: The user has invoked the "
"""How such a message begins in stores of Hermes Agent."""


def list_skill_scaffolded_sessions(writer: Writer, limit: int = 200) -> list[dict[str, Any]]:
    """The sessions whose first message of the user is the frame of a skill: `{"id", "title", "content"}`.

    The newest start first; content: that message, decoded.
    """
    rows = writer.rows(
        f"SELECT s.id, {column(writer.shape, 'sessions', 'title', 's')} AS title, m.content"
        " FROM sessions AS s JOIN messages AS m ON m.id = (SELECT f.id FROM messages AS f"
        " WHERE f.session_id = s.id AND f.role = 'user' ORDER BY f.id LIMIT 1)"
        " WHERE instr(substr(CAST(m.content AS BLOB), 1, ?), CAST(? AS BLOB)) > 0"
        " ORDER BY s.started_at DESC, s.rowid DESC LIMIT ?",
        # Structured content has its parts before the text; of a plain text only the beginning counts.
        (len(OPENING) + 200, OPENING, -1 if limit is None else limit),
    )
    found = [{"id": row[0], "title": row[1], "content": contents.restore(row[2])} for row in rows]
    return [session for session in found if _text(session["content"]).startswith(OPENING)]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return contents.decode(contents.encode(content)).text
