"""Files of sessions put into a store, session by session: each is stored as a whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from state_ledger import titles
from state_ledger.portability import files, imports
from state_ledger.portability.files import Found, Trouble
from state_ledger.portability.imports import Ready, Refused
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing.writer import Writer


@dataclass
class Summary:
    """What an import did.

    imported, messages: how many were stored. skipped: sessions that the store had. detached: sessions
    whose parent is not there or would close a loop. renamed: (session, title it had, title it has).
    troubles: what could not be taken.
    """

    imported: int = 0
    messages: int = 0
    skipped: int = 0
    detached: int = 0
    renamed: list[tuple[str, str, str]] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)


def import_files(writer: Writer, paths: Iterable[Path]) -> Summary:
    """Stores the sessions of files; what the store has already is left as it is.

    A title that is in use gets the next free number. Parents are linked as soon as they are there.
    Raises StoreBusyError, StoreFullError; what was stored until then stays, and a second run goes on.
    """
    summary = Summary()
    waiting: dict[str, str] = {}
    for path in paths:
        for found in files.read(path):
            if isinstance(found, Trouble):
                summary.troubles.append(found)
            else:
                _take(writer, found, str(path), summary, waiting)
    if waiting:
        summary.detached += writer.write(lambda connection: _link_late(connection, waiting))
    return summary


def _take(writer: Writer, found: Found, name: str, summary: Summary, waiting: dict[str, str]) -> None:
    session_id = imports.session_id_of(found.session)
    try:
        if not session_id:
            raise Refused("The session has no id.")
        ready = imports.make_ready(session_id, found.session, config_as_it_is=True)
        stored = writer.write(lambda connection: _store(connection, ready))
    except (Refused, sqlite3.IntegrityError) as refusal:
        why = f"The session {session_id or 'here'} was not imported: {refusal}"
        summary.troubles.append(Trouble(name, _line(found, str(refusal)), why))
        return
    if stored is None:
        summary.skipped += 1
        return
    title, linked = stored
    summary.imported += 1
    summary.messages += len(ready.messages)
    if title != ready.title:
        summary.renamed.append((ready.id, str(ready.title), str(title)))
    if ready.parent is not None and not linked:
        waiting[ready.id] = ready.parent


def _store(connection: Connection, ready: Ready) -> tuple[str | None, bool] | None:
    """Stores a session; its title then, and whether it is linked to its parent. None if it is there already."""
    if imports.exists(connection, ready.id):
        return None
    title = ready.title
    if title is not None:
        taken = connection.execute("SELECT 1 FROM sessions WHERE title = ?", (title,)).fetchone()
        title = title if taken is None else titles.next_free(connection, title)
    imports.store(connection, ready.with_title(title))
    return title, _link(connection, ready.id, ready.parent)


def _link(connection: Connection, session_id: str, parent: str | None) -> bool:
    if parent is None or not imports.exists(connection, parent):
        return False
    if imports.leads_to(connection, {}, parent, session_id):
        return False
    connection.execute("UPDATE sessions SET parent_session_id = ? WHERE id = ?", (parent, session_id))
    return True


def _link_late(connection: Connection, waiting: dict[str, str]) -> int:
    """Links the sessions whose parents came after them; returns how many have none."""
    return sum(not _link(connection, session_id, parent) for session_id, parent in waiting.items())


def _line(found: Found, refusal: str) -> int:
    """The line that a refusal speaks of, else the one where the session begins."""
    for word, lines in (("messages", found.lines), ("usage", found.usage_lines)):
        place = re.match(rf"{word}\[(\d+)\]", refusal)
        if place is not None and int(place[1]) < len(lines):
            return lines[int(place[1])]
    return found.line
