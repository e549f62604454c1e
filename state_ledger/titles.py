"""Titles of sessions: unique among those that have one, and moving along a conversation.

Source: session-db, section 5; bug-log 82 and 83.
"""

from __future__ import annotations

import re
from typing import Any

from state_ledger.sessions import begins_with, select_columns
from state_ledger.sessions.conversations import earlier_segments
from state_ledger.sqlite import Connection
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer

MAX_TITLE_LENGTH = 100
"""Characters of a title, after cleaning."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f"  # control characters that are no white space
    "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffc]"  # zero width, direction, annotation
)
_NUMBERED = re.compile(r"(?P<base>.*?) #(?P<number>[0-9]{1,18})", re.DOTALL)


def sanitize_title(title: str | None) -> str | None:
    """A title as it is stored: visible characters, single spaces, None if nothing is left.

    Raises ValueError if more than 100 characters are left.
    """
    if not title:
        return None
    cleaned = " ".join(_INVISIBLE.sub("", scrub(title)).split())
    if len(cleaned) > MAX_TITLE_LENGTH:
        raise ValueError(f"Title too long ({len(cleaned)} chars, max {MAX_TITLE_LENGTH})")
    return cleaned or None


def set_session_title(writer: Writer, session_id: str, title: str | None) -> bool:
    """Names a session; an empty title takes its name away. False if there is no such session.

    A title held by a session that this one continues moves here.
    Raises ValueError if the title is too long or any other session has it.
    """
    wanted = sanitize_title(title)

    def work(connection: Connection) -> bool:
        if not _exists(connection, session_id):
            return False
        if wanted is not None:
            holder = _foreign_holder(writer, connection, session_id, wanted)
            if holder is not None:
                raise ValueError(f"Title '{wanted}' is already in use by session {holder}")
        _store(writer, connection, session_id, wanted)
        return True

    return writer.write(work)


def set_auto_title_if_empty(writer: Writer, session_id: str, title: str | None) -> bool:
    """Names a session that has no title yet; True if it did.

    Where another conversation has the title, this one gets the next free number: `Debug #2`.
    Raises ValueError if the title is too long.
    """
    wanted = sanitize_title(title)
    if wanted is None:
        return False

    def work(connection: Connection) -> bool:
        unnamed = connection.execute("SELECT 1 FROM sessions WHERE id = ? AND title IS NULL", (session_id,))
        if unnamed.fetchone() is None:
            return False
        chosen = wanted
        if _foreign_holder(writer, connection, session_id, wanted) is not None:
            chosen = next_free(connection, wanted)
        _store(writer, connection, session_id, chosen)
        return True

    return writer.write(work)


def get_session_title(writer: Writer, session_id: str) -> str | None:
    """The title of a session, None if it has none or there is no such session."""
    if not _titled(writer):
        return None
    title: str | None = writer.value("SELECT title FROM sessions WHERE id = ?", (session_id,))
    return title


def get_session_by_title(writer: Writer, title: str) -> dict[str, Any] | None:
    """All columns of the session with exactly this title, or None."""
    if not _titled(writer):
        return None
    row = writer.row(
        f"SELECT {select_columns(writer.shape, 's')} FROM sessions AS s WHERE s.title = ?", (scrub(title),)
    )
    return None if row is None else dict(row)


def resolve_session_by_title(writer: Writer, title: str) -> str | None:
    """The id of the newest `<title> #…`, else of the session with exactly this title, else None."""
    if not _titled(writer):
        return None
    with writer.lock:
        numbered = writer.value(
            r"SELECT id FROM sessions WHERE title LIKE ? ESCAPE '\' ORDER BY started_at DESC, rowid DESC LIMIT 1",
            (begins_with(f"{title} #"),),
        )
        found = numbered or writer.value("SELECT id FROM sessions WHERE title = ?", (scrub(title),))
    return None if found is None else str(found)


def get_next_title_in_lineage(writer: Writer, base_title: str) -> str:
    """The title for what follows on `base_title`: `plan` → `plan #2` → `plan #3`.

    A number at the end of `base_title` is passed over. A base that nobody has is free as it is.
    """
    if not _titled(writer):
        return _base_of(scrub(base_title))
    with writer.lock:
        return _next_title(writer.connection, base_title)


def _next_title(connection: Connection, base_title: str) -> str:
    base = _base_of(scrub(base_title))
    rows = connection.execute(
        "SELECT title FROM sessions WHERE title = ?"
        r" UNION ALL SELECT title FROM sessions WHERE title LIKE ? ESCAPE '\'",
        (base, begins_with(f"{base} #")),
    )
    # LIKE takes A for a; two titles that differ in case are two titles.
    taken = [title for (title,) in rows if title == base or title.startswith(f"{base} #")]
    if not taken:
        return base
    numbers = [int(found["number"]) for found in map(_NUMBERED.fullmatch, taken) if found and found["base"] == base]
    return f"{base} #{max([1, *numbers]) + 1}"


def next_free(connection: Connection, title: str) -> str:
    """The next title in the lineage, its base cut where the number would make it too long."""
    base = _base_of(title)
    while True:
        numbered = _next_title(connection, base)
        if len(numbered) <= MAX_TITLE_LENGTH:
            return numbered
        base = base[: len(base) - (len(numbered) - MAX_TITLE_LENGTH)].rstrip()


def _base_of(title: str) -> str:
    numbered = _NUMBERED.fullmatch(title)
    return numbered["base"] if numbered and numbered["base"] else title


def _titled(writer: Writer) -> bool:
    """Whether the file knows titles: one of an old schema, open to read only, may not."""
    return writer.shape.has("sessions", "title")


def _exists(connection: Connection, session_id: str) -> bool:
    return connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is not None


def _holder(connection: Connection, session_id: str, title: str) -> str | None:
    """Another session that has this title."""
    row = connection.execute("SELECT id FROM sessions WHERE title = ? AND id <> ?", (title, session_id)).fetchone()
    return None if row is None else str(row[0])


def _foreign_holder(writer: Writer, connection: Connection, session_id: str, title: str) -> str | None:
    """Another session that has this title and is no earlier segment of the same conversation."""
    holder = _holder(connection, session_id, title)
    return None if holder is None or holder in earlier_segments(writer, session_id) else holder


def _store(writer: Writer, connection: Connection, session_id: str, title: str | None) -> None:
    if title is not None:
        # Whoever still has it by now is an earlier segment of this conversation, which gives it up.
        connection.execute("UPDATE sessions SET title = NULL WHERE title = ? AND id <> ?", (title, session_id))
    connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (title, session_id))
