"""The full-text indexes of an open store: merged, filled anew, brought to the present layout.

Source: session-db, section 11. A rewrite goes in small steps, each a transaction of its own, so that
other processes write meanwhile, and is taken up again where it was left.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlite_utils import Database

from state_ledger import full_text
from state_ledger.full_text import CJK, WORDS, TextIndex, cjk
from state_ledger.full_text import layout as text_layout
from state_ledger.full_text.layout import Layout
from state_ledger.migrate import migration_set
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing import checkpoints
from state_ledger.writing.writer import Writer

ROWS_PER_STEP = 500
PAUSE_S = 0.01
"""Between two steps, so that a writer who waits for the lock gets it."""

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Room:
    """Space on the disk of a store, in bytes: what a rewrite may need at most, and what is free."""

    needed: int
    free: int

    @property
    def enough(self) -> bool:
        """Whether the rewrite may be begun."""
        return self.free >= self.needed


def optimize_fts(writer: Writer) -> int:
    """Merges each index into one piece; returns the number of indexes."""
    names = _present(writer.connection)
    for name in names:
        writer.write(lambda connection, name=name: _command(connection, name, "optimize"))  # type: ignore[misc]
    return len(names)


def rebuild_fts(writer: Writer) -> int:
    """Fills each index anew, at once; returns the number of indexes.

    An index in an earlier layout is brought to the present one, unless the schema is newer.
    """

    def work(connection: Connection) -> int:
        names = _present(connection)
        if text_layout.read(connection) in (Layout.CURRENT, Layout.NEWER):
            for name in names:
                if name != CJK.name:
                    _command(connection, name, "rebuild")
            if text_layout.read(connection) is Layout.CURRENT:
                text_layout.finish(connection)
        else:
            text_layout.rewrite(connection)
        if CJK.name in names:
            cjk.fill(connection)
        _record_when_done(connection)
        return len(_present(connection))

    return writer.write(work)


def fts_optimize_available(writer: Writer) -> bool:
    """Whether the indexes wait to be brought to the present layout."""
    with writer.lock:
        return not writer.too_new and _has_meta(writer) and not text_layout.is_complete(writer.connection)


def fts_rebuild_status(writer: Writer) -> dict[str, Any] | None:
    """`{"pending": True, "total", "indexed", "percent"}`, both counts as message ids; None if complete."""
    return _status(writer, WORDS)


def fts_cjk_rebuild_status(writer: Writer) -> dict[str, Any] | None:
    """As `fts_rebuild_status`, of the CJK index."""
    return _status(writer, CJK)


def fts_rebuild_step(writer: Writer) -> bool:
    """Indexes the next 500 messages of a rewrite under way; returns whether any are left."""

    def work(connection: Connection) -> bool:
        if text_layout.gate(connection, WORDS) is None:
            return False
        if text_layout.step(connection, text_layout.expected(), ROWS_PER_STEP):
            return True
        text_layout.finish(connection)
        return False

    return _step(writer, WORDS, work)


def fts_cjk_rebuild_step(writer: Writer) -> bool:
    """Indexes the next 500 messages in the CJK index, where it is being filled and can be used here."""

    def work(connection: Connection) -> bool:
        return (
            text_layout.gate(connection, CJK) is not None
            and cjk.usable(connection)
            and cjk.step(connection, ROWS_PER_STEP)
        )

    return _step(writer, CJK, work)


def optimize_fts_storage(writer: Writer, *, progress_cb: Progress | None = None, vacuum: bool = True) -> dict[str, Any]:
    """Brings the indexes to the present layout while others read and write; begins where it was left.

    progress_cb: called with `{"phase", "percent", "indexed", "total"}`; phases are backfill, teardown,
    vacuum and done. vacuum: give the freed pages back to the disk, which locks the store for long.
    Returns `{"ok": True, "vacuumed": bool}`, or `{"ok": False, "reason"}`: read_only, schema_too_new
    or fts5_unavailable. Raises StoreBusyError, StoreFullError; what was done until then stays.
    """
    if writer.read_only:
        return {"ok": False, "reason": "read_only"}
    if writer.too_new:
        return {"ok": False, "reason": "schema_too_new"}
    report = progress_cb or (lambda state: None)
    try:
        writer.write(_begin)
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            return {"ok": False, "reason": "fts5_unavailable"}
        raise
    for status, step in ((fts_rebuild_status, fts_rebuild_step), (fts_cjk_rebuild_status, fts_cjk_rebuild_step)):
        _backfill(writer, status, step, report)
    writer.write(_record_when_done)
    report(_state("teardown", 0, 0))
    replaced = bool(text_layout.leftovers(writer.connection))
    while writer.write(text_layout.teardown):
        time.sleep(PAUSE_S)
    vacuumed = vacuum and replaced
    if vacuumed:
        report(_state("vacuum", 0, 0))
        writer.alone("VACUUM")
        checkpoints.truncate(writer.connection)
    writer.renew_shape()
    report(_state("done", 1, 1))
    return {"ok": True, "vacuumed": vacuumed}


def room(writer: Writer, *, vacuum: bool = True) -> Room:
    """What `optimize_fts_storage` may need on the disk of the store, and what there is.

    The new indexes are never bigger than what the file holds now; VACUUM writes the file once more,
    into a temporary file and the log.
    """
    pages = writer.value("PRAGMA page_count") - writer.value("PRAGMA freelist_count")
    size = int(pages * writer.value("PRAGMA page_size"))
    return Room(size * (3 if vacuum else 1), shutil.disk_usage(writer.path.parent).free)


def _begin(connection: Connection) -> None:
    if cjk.in_the_way(connection):
        cjk.step_aside(connection)
    offered = text_layout.mark(connection, text_layout.OFFER_KEY) == "1"
    under_way = text_layout.gate(connection, WORDS) is not None
    layout = text_layout.read(connection)
    if layout is not Layout.NEWER and (layout is not Layout.CURRENT or (offered and not under_way)):
        text_layout.begin(connection)
        if text_layout.gate(connection, WORDS) is None:  # there is no message
            text_layout.finish(connection)
    if text_layout.gate(connection, CJK) is None and cjk.wanting(connection):
        cjk.begin(connection)
        if text_layout.gate(connection, CJK) is None:
            cjk.step(connection, ROWS_PER_STEP)


def _record_when_done(connection: Connection) -> None:
    database = Database(connection)
    migrations = migration_set.load()
    names = {migration.name for migration in migrations.pending(database)}
    if migration_set.TEXT_INDEX in names and text_layout.is_complete(connection):
        migrations.apply(database)


def _backfill(
    writer: Writer,
    status: Callable[[Writer], dict[str, Any] | None],
    step: Callable[[Writer], bool],
    report: Progress,
) -> None:
    while True:
        state = status(writer)
        if state is not None:
            report(_state("backfill", state["indexed"], state["total"]))
        if not step(writer):
            return
        time.sleep(PAUSE_S)


def _step(writer: Writer, index: TextIndex, work: Callable[[Connection], bool]) -> bool:
    with writer.lock:
        if not _has_meta(writer) or text_layout.gate(writer.connection, index) is None:
            return False  # without taking the write lock
    return writer.write(work)


def _status(writer: Writer, index: TextIndex) -> dict[str, Any] | None:
    with writer.lock:
        found = text_layout.gate(writer.connection, index) if _has_meta(writer) else None
    if found is None:
        return None
    done, goal = found
    return {"pending": True, "total": goal, "indexed": done, "percent": 100 * done // goal}


def _state(phase: str, indexed: int, total: int) -> dict[str, Any]:
    return {"phase": phase, "percent": 100 * indexed // total if total else 0, "indexed": indexed, "total": total}


def _command(connection: Connection, name: str, command: str) -> None:
    connection.execute(f"INSERT INTO {name}({name}) VALUES (?)", (command,))


def _present(connection: Connection) -> list[str]:
    """The indexes that there are and that can be used here."""
    names = [index.name for index in full_text.INDEXES]
    found = {
        str(row[0])
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%fts5%'")
    }
    present = [name for name in names if name in found]
    return [*present, CJK.name] if CJK.name in found and cjk.usable(connection) else present


def _has_meta(writer: Writer) -> bool:
    return writer.shape.has("state_meta")
