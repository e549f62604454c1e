"""Which store a companion belongs to, and how another one in its place is recognised.

A companion is found by the store's real path and holds what the store was when it was read: the
file (device and inode), the id that newer stores give themselves, and the last messages that were
read. Message ids are never used twice in one store (AUTOINCREMENT), so a message that has another
session, role or time under the same id belongs to another store, for instance to a backup that was
copied over this one. A VACUUM changes none of this.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from state_ledger.homes import cache_folder
from state_ledger.sqlite import Connection, sqlite3

ANCHORS = 64
"""How many of the last messages that were read are kept to recognise the store by."""


@dataclass(frozen=True)
class Identity:
    """A file as the system knows it; instance: the store's own id, None where it has none."""

    path: str
    device: int
    inode: int
    instance: str | None

    def agrees(self, other: Identity) -> bool:
        """Whether both may be the same store; one may have got its own id since."""
        same_file = (self.path, self.device, self.inode) == (other.path, other.device, other.inode)
        return same_file and (None in (self.instance, other.instance) or self.instance == other.instance)


def companion_path(store: str | Path) -> Path:
    """Where the companion of a store is, or would be: in the user's cache, never beside the store."""
    real = os.path.realpath(store)
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:24]
    return cache_folder() / "companions" / f"{name}.db"


def identity_of(store: str | Path, connection: Connection | None = None) -> Identity:
    """The identity of the file at a path; its own id is read if there is a connection. Raises OSError."""
    real = os.path.realpath(store)
    status = Path(real).stat()
    return Identity(real, status.st_dev, status.st_ino, None if connection is None else _instance(connection))


def anchors_of(store: Connection, ids: Iterable[int]) -> dict[int, int]:
    """What messages are recognised by besides their ids; one that was deleted is left out.

    A hash of session, role and time: the text may be changed and it be the same message.
    """
    listed = ", ".join(map(str, ids))
    found = store.execute(f"SELECT id, session_id, role, timestamp FROM main.messages WHERE id IN ({listed})")
    return {int(row[0]): _hash(row[1], row[2], row[3]) for row in found}


def contradicts(store: Connection, covered: int, anchors: dict[int, int]) -> bool:
    """Whether a store cannot be the one of which messages up to `covered` were read.

    anchors: what some of them are recognised by; those that were deleted say nothing. Look-ups by
    key only. Raises sqlite3.DatabaseError if the store cannot be read.
    """
    if not anchors:
        return False
    if any(anchors[number] != value for number, value in anchors_of(store, anchors).items()):
        return True
    last = _last_given_id(store)
    return last is not None and last < covered


def _hash(*values: object) -> int:
    named = "\0".join(each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in values)
    return int.from_bytes(hashlib.blake2b(named.encode("utf-8", "replace"), digest_size=7).digest(), "big")


def _last_given_id(store: Connection) -> int | None:
    """The greatest id that was ever given to a message, None where the store does not say."""
    try:
        row = store.execute("SELECT seq FROM main.sqlite_sequence WHERE name = 'messages'").fetchone()
    except sqlite3.OperationalError:  # no AUTOINCREMENT, in a file that others made
        row = store.execute("SELECT max(id) FROM main.messages").fetchone()
    return row[0] if row is not None and isinstance(row[0], int) else None


def _instance(connection: Connection) -> str | None:
    try:
        row = connection.execute("SELECT value FROM main.state_meta WHERE key = 'store_instance_id'").fetchone()
    except sqlite3.OperationalError:
        return None
    if row is None or row[0] is None:
        return None
    return row[0].decode("utf-8", "replace") if isinstance(row[0], bytes) else str(row[0])
