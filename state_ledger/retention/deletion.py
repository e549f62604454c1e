"""Deleting sessions with all that belongs to them. Source: session-db, section 10; accounting rules 11 to 14.

Messages go before their session and usage rows by name: a store may be shared with programs whose
connections do not enforce foreign keys, and some triggers look the session of a message up.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from state_ledger.ledger.columns import column, json_marker
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, quoted
from state_ledger.writing.writer import Writer

_BATCH = 500

GHOST_AGE_S = 86_400
"""Seconds since its start after which an empty session of a terminal is one that nobody will use."""


def delete_session(
    writer: Writer,
    session_id: str,
    sessions_dir: Path | str | None = None,
    expected_delete_ids: Iterable[str] | None = None,
) -> bool:
    """Deletes a session, its messages and usage rows, and the runs delegated by it, at any depth.

    Every other child stays and becomes a root. sessions_dir: a folder whose transcript files of
    these sessions are removed too. expected_delete_ids: what the caller was shown; if the sessions to
    delete are not exactly these, nothing is deleted. Returns False for that, and for an unknown id.
    """

    def work(connection: Connection) -> list[str]:
        targets = with_delegates(connection, writer.shape, [session_id])
        if expected_delete_ids is not None and set(expected_delete_ids) != set(targets):
            return []
        remove(connection, writer.shape, targets)
        return targets

    deleted = writer.write(work)
    remove_files(writer, sessions_dir, deleted)
    return bool(deleted)


def get_session_delete_targets(writer: Writer, session_id: str) -> list[str]:
    """The sessions that `delete_session` would delete: the session, then its delegates by id; [] if unknown."""
    return writer.reading(lambda connection: with_delegates(connection, writer.shape, [session_id]))


def delete_sessions(writer: Writer, session_ids: Iterable[str], sessions_dir: Path | str | None = None) -> int:
    """Deletes several sessions with their delegates, in one transaction.

    Returns how many of the named ones existed; delegates are not counted, unknown ids passed over.
    """
    named = list(dict.fromkeys(session_ids))

    def work(connection: Connection) -> tuple[int, list[str]]:
        targets = with_delegates(connection, writer.shape, named)
        remove(connection, writer.shape, targets)
        return len(set(named) & set(targets)), targets

    count, deleted = writer.write(work)
    remove_files(writer, sessions_dir, deleted)
    return count


def delete_session_if_empty(writer: Writer, session_id: str, sessions_dir: Path | str | None = None) -> bool:
    """Deletes a session without messages, title and children; False if it has any of these or is unknown."""
    title = column(writer.shape, "sessions", "title", "s")
    empty = (
        f"s.id = ? AND {title} IS NULL AND {_no_messages('s')}"
        " AND NOT EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = s.id)"
    )
    return bool(_delete_where(writer, empty, (session_id,), sessions_dir))


def count_empty_sessions(writer: Writer) -> int:
    """How many sessions `delete_empty_sessions` would delete."""
    return int(writer.value(f"SELECT count(*) FROM sessions AS s WHERE {_empty(writer.shape)}"))


def delete_empty_sessions(writer: Writer, sessions_dir: Path | str | None = None) -> int:
    """Deletes the sessions that ended without a message and are not archived; returns their number.

    A counter may say 0 beside messages that are there: such a session stays.
    """
    return len(_delete_where(writer, _empty(writer.shape), (), sessions_dir))


def prune_empty_ghost_sessions(writer: Writer, sessions_dir: Path | str | None = None) -> int:
    """Deletes what a terminal that was opened and closed again leaves behind; returns the number of sessions.

    These are sessions of the source `tui` that began more than a day ago, have ended and have neither
    title nor message. Their children, if any, become roots.
    """
    ghost = (
        "s.source = 'tui' AND s.ended_at IS NOT NULL AND s.started_at < ?"
        f" AND {column(writer.shape, 'sessions', 'title', 's')} IS NULL AND {_no_messages('s')}"
    )
    return len(_delete_where(writer, ghost, (time.time() - GHOST_AGE_S,), sessions_dir))


def _delete_where(
    writer: Writer, condition: str, parameters: Sequence[object], sessions_dir: Path | str | None
) -> list[str]:
    """Finds and deletes sessions `s` in one transaction, then their files; returns their ids."""

    def work(connection: Connection) -> list[str]:
        found = connection.execute(f"SELECT s.id FROM sessions AS s WHERE {condition}", parameters)
        ids = [row[0] for row in found.fetchall()]
        remove(connection, writer.shape, ids)
        return ids

    deleted = writer.write(work)
    remove_files(writer, sessions_dir, deleted)
    return deleted


def remove(connection: Connection, shape: Shape, session_ids: Sequence[str]) -> Counter[str]:
    """Deletes sessions within the caller's transaction; what is left of their children become roots.

    Rows of every other table that refers to a session or to one of its messages go with it, also where
    foreign keys are off. Returns the rows removed by table.
    """
    removed: Counter[str] = Counter()
    if not session_ids:
        return removed
    owned = _owned_tables(connection, shape)
    of_messages = _referring(connection, shape, "messages")
    parents = shape.has("sessions", "parent_session_id")
    for ids in _batches(session_ids):
        marks = ", ".join("?" * len(ids))
        if parents:
            connection.execute(
                f"UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id IN ({marks})", ids
            )
        for table, key in of_messages:
            within = f"(SELECT id FROM messages WHERE session_id IN ({marks}))"
            removed[table] += connection.execute(
                f"DELETE FROM {quoted(table)} WHERE {quoted(key)} IN {within}", ids
            ).rowcount
        for table, key in owned:
            removed[table] += connection.execute(
                f"DELETE FROM {quoted(table)} WHERE {quoted(key)} IN ({marks})", ids
            ).rowcount
    for ids in _batches(session_ids):
        removed["sessions"] += connection.execute(
            f"DELETE FROM sessions WHERE id IN ({', '.join('?' * len(ids))})", ids
        ).rowcount
    return +removed


def remove_files(writer: Writer, sessions_dir: Path | str | None, session_ids: Sequence[str]) -> None:
    """Removes the transcript files of deleted sessions; one that cannot be removed stays.

    These are `<id>.json`, `<id>.jsonl` and `request_dump_<id>_*.json`, directly in the folder: an id
    is text that somebody chose, and never leads to another folder.
    """
    if sessions_dir is None or not session_ids:
        return
    folder = Path(sessions_dir)
    plain = [id for id in session_ids if id and not set(id) & {"/", "\\", "\0"}]
    doomed = [folder / f"{id}{ending}" for id in plain for ending in (".json", ".jsonl")]
    with suppress(OSError):
        dumps = [path for path in folder.iterdir() if path.name.startswith("request_dump_")]
        deleted = set(plain)
        for path in dumps:
            owner = _owner_of_dump(writer, path.name, deleted)
            if owner in deleted:
                doomed.append(path)
    for path in doomed:
        with suppress(OSError):
            path.unlink()


def _owner_of_dump(writer: Writer, name: str, deleted: set[str]) -> str | None:
    """Whose dump a file is: of ids that begin alike (`a` and `a_b`), the longest that is or was a session."""
    if not name.endswith(".json"):
        return None
    parts = name[len("request_dump_") :].split("_")
    for length in range(len(parts) - 1, 0, -1):
        id = "_".join(parts[:length])
        if id in deleted or writer.value("SELECT 1 FROM sessions WHERE id = ?", (id,)) is not None:
            return id
    return None


def with_delegates(connection: Connection, shape: Shape, session_ids: Sequence[str]) -> list[str]:
    """The known ones among these sessions, then their delegates, at any depth, by id.

    A delegate's continuation carries the mark of the session above both, so mark and parent link are
    followed alike. What the user branched off from a delegate is the user's own and no delegate.
    """
    config = column(shape, "sessions", "model_config", "c")
    parent = column(shape, "sessions", "parent_session_id", "c")
    known = {
        row[0]
        for ids in _batches(session_ids)
        for row in connection.execute(f"SELECT id FROM sessions WHERE id IN ({', '.join('?' * len(ids))})", ids)
    }
    # A mark is found by reading every session that has a configuration, once for all depths.
    marked = connection.execute(
        f"SELECT c.id, {parent}, {json_marker(config, '$._delegate_from')} AS mark"
        f" FROM sessions AS c WHERE mark IS NOT NULL AND {json_marker(config, '$._branched_from')} IS NULL"
    ).fetchall()
    below: dict[str, list[str]] = {}
    for id, above_it, mark in marked:
        for above in {above_it, mark if isinstance(mark, str) else None} - {None, id}:
            below.setdefault(above, []).append(id)
    named = [id for id in session_ids if id in known]
    found, waiting = set(named), list(named)
    while waiting:
        for id in below.get(waiting.pop(), ()):
            if id not in found:
                found.add(id)
                waiting.append(id)
    return [*named, *sorted(found - set(named))]


def children_that_stay(connection: Connection, shape: Shape, deleted: Sequence[str]) -> tuple[str, ...]:
    """The sessions that would lose their parent if these were deleted, by id."""
    if not deleted or not shape.has("sessions", "parent_session_id"):
        return ()
    gone = set(deleted)
    links = connection.execute("SELECT id, parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL")
    return tuple(sorted(row[0] for row in links if row[1] in gone and row[0] not in gone))


def _empty(shape: Shape) -> str:
    count = column(shape, "sessions", "message_count", "s")
    archived = column(shape, "sessions", "archived", "s")
    return (
        f"coalesce({count}, 0) = 0 AND s.ended_at IS NOT NULL AND coalesce({archived}, 0) = 0 AND {_no_messages('s')}"
    )


def _no_messages(session: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = {session}.id)"


def _owned_tables(connection: Connection, shape: Shape) -> list[tuple[str, str]]:
    """Tables whose rows belong to a session, with the column that names it; messages come first."""
    usage = ("session_model_usage", *shape.leftover_usage_tables)
    owned = [("messages", "session_id"), *((table, "session_id") for table in usage if shape.has(table))]
    known = {"sessions", "messages", *usage}
    return owned + [link for link in _referring(connection, shape, "sessions") if link[0] not in known]


def _referring(connection: Connection, shape: Shape, to: str) -> list[tuple[str, str]]:
    """Tables whose foreign key leads to a table, with the column that holds it."""
    return [
        (table, link[3])
        for table in sorted(set(shape.tables) - {to, *shape.virtual})
        for link in connection.execute(f"PRAGMA main.foreign_key_list({quoted(table)})").fetchall()
        if link[2] == to
    ]


def _batches(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _BATCH):
        yield list(ids[start : start + _BATCH])
