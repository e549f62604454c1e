"""Exporting sessions before they are deleted, and proof that the export holds them whole.

Source: accounting rules 15 and 16. What was not read back from the disk is not deleted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from state_ledger import private, unfinished
from state_ledger.errors import StateLedgerError
from state_ledger.portability import plan as export_plans
from state_ledger.portability.export import Export, Options
from state_ledger.portability.formats import json_lines
from state_ledger.portability.scope import SESSIONS, Scope
from state_ledger.portability.source import Source
from state_ledger.retention import record
from state_ledger.retention.record import Record
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection


class SafekeepingError(StateLedgerError):
    """Sessions could not be exported or the export could not be read back; nothing was deleted."""


@dataclass(frozen=True)
class Kept:
    """An export that was read back.

    path: the file. records: what it holds of each session that it holds whole, by id. unlike: sessions
    that it does not hold exactly: what is stored of them is more than JSON can say, or it changed.
    messages, usage_rows: rows that were compared with the store.
    """

    path: Path
    records: Mapping[str, Record]
    unlike: tuple[str, ...]
    messages: int = 0
    usage_rows: int = 0

    def holds(self, connection: Connection, shape: Shape, session_id: str) -> bool:
        """Whether the session is in the store, as this connection sees it now, exactly as in the export."""
        return session_id in self.records and record.stored(connection, shape, session_id) == self.records[session_id]


def keep(
    connection: Connection,
    ids: Sequence[str],
    folder: Path,
    *,
    store: str,
    progress: Callable[[int, int], None] | None = None,
) -> Kept:
    """Writes these sessions to a new file of JSON Lines in a folder, and compares it with the store.

    The file has every row as it is stored, taken back and repeated ones too, and nothing is redacted; it
    may be read by this user only. `state-ledger import` reads it. store: its name, for the file's.
    progress: told of messages written and messages in all.
    Raises SafekeepingError, no file left behind.
    """
    shape = Shape.read(connection)
    source = Source(connection, shape)
    plan = export_plans.of_every_row(source, ids)
    made = Export(source, Scope(SESSIONS, f"{len(ids)} of a clean-up"), plan, Options(taken_back=True), store)
    target = _free_name(folder, store)
    try:
        private.folder(folder)
        with _whole_file(target, f"{store}-pruned") as file:
            for piece in json_lines.write(made):
                file.write(piece)
                if progress is not None:
                    progress(made.given_messages, plan.messages)
        found = record.exported(target, record.columns_of(shape))
    except (OSError, ValueError, KeyError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SafekeepingError(
            f"The sessions could not be exported to {folder} ({why}). Nothing was deleted."
        ) from error
    same = {id: kept for id, kept in found.items() if record.stored(connection, shape, id) == kept}
    return Kept(
        target,
        same,
        tuple(id for id in ids if id not in same),
        sum(kept.messages for kept in same.values()),
        sum(kept.usage_rows for kept in same.values()),
    )


def _free_name(folder: Path, store: str) -> Path:
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 1
    while True:
        name = f"{store}-pruned-{moment}{'' if number == 1 else f'-{number}'}.jsonl"
        if not (folder / name).exists():
            return folder / name
        number += 1


@contextmanager
def _whole_file(target: Path, beginning: str) -> Iterator[IO[bytes]]:
    """A file that has its name, which begins so, only when all of it is on the disk."""
    part = unfinished.place(beginning, target.parent)
    try:
        with private.writing(part) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink()
