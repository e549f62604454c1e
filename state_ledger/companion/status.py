"""What state a companion is in, for `state-ledger index --status` and the status page."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from state_ledger.companion.file import is_current_format, read_identity, read_note
from state_ledger.companion.identity import companion_path
from state_ledger.companion.source import Source
from state_ledger.connection import read_only_uri
from state_ledger.sqlite import Connection, sqlite3

SIDECARS = ("", "-wal", "-shm")


@dataclass(frozen=True)
class Status:
    """A companion beside its store.

    path: where it is or would be. usable: whether a search would ask it; problem: why not, as a
    sentence. covered_up_to: the last message id that was read; behind: messages with greater ids.
    indexed: messages that hold a script without spaces. dropped: entries of the index that belong to
    messages deleted or changed since. unread_since: epoch seconds, since when no range of messages
    has been older than its last reading; None if nothing was read. bytes: on disk.
    """

    path: Path
    usable: bool
    problem: str = ""
    covered_up_to: int | None = None
    behind: int | None = None
    indexed: int = 0
    dropped: int = 0
    unread_since: float | None = None
    bytes: int = 0


def status(store: str | Path) -> Status:
    """The state of a store's companion. Raises StoreAccessError if the store cannot be read."""
    path = companion_path(store)
    with closing(Source(store)) as source:
        if not path.is_file():
            return Status(path, False, "There is none.")
        size = sum(file.stat().st_size for suffix in SIDECARS if (file := Path(f"{path}{suffix}")).exists())
        try:
            with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
                return _read(connection, path, source, size)
        except sqlite3.DatabaseError as error:
            return Status(path, False, f"It is damaged ({error}).", bytes=size)


def _read(connection: Connection, path: Path, source: Source, size: int) -> Status:
    if not is_current_format(connection):
        return Status(path, False, "It was made by another version.", bytes=size)
    made_of, covered = read_identity(connection), read_note(connection, "covered")
    if made_of is None or not isinstance(covered, int):
        return Status(path, False, "Nothing was read yet.", bytes=size)
    anchors = dict(connection.execute("SELECT id, mark FROM anchor"))
    if not made_of.agrees(source.identity) or source.contradicts(covered, anchors):
        return Status(path, False, "It is of another file that was here before.", bytes=size)
    stale = read_note(connection, "stale", 0)
    return Status(
        path,
        usable=True,
        covered_up_to=covered,
        behind=source.count_after(covered),
        indexed=connection.execute("SELECT count(*) FROM held").fetchone()[0],
        dropped=stale if isinstance(stale, int) else 0,
        unread_since=connection.execute("SELECT min(read_at) FROM chunk").fetchone()[0],
        bytes=size,
    )
