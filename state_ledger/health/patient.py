"""The store under examination: a connection that only reads, and what is known of its file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from state_ledger import access, connection, snapshot
from state_ledger.errors import StoreAccessError
from state_ledger.settings import Settings
from state_ledger.shape import Shape
from state_ledger.sqlite import BUSY_TIMEOUT_S, UNREADABLE, Connection, read_only_uri, sqlite3

LIVE, AT_REST, SNAPSHOT = "live", "at rest", "snapshot"


@dataclass(frozen=True)
class Patient:
    """path: the store, also where a copy of it is read. shape: None where SQLite cannot read the schema.

    how: `live`, `at rest` or `snapshot`. settings: those of the ledger.
    """

    path: Path
    connection: Connection
    shape: Shape | None
    how: str
    settings: Settings

    def command(self, verb: str, *rest: str) -> str:
        """A command of ours on this store."""
        return command(self.path, verb, *rest)


def command(path: Path, verb: str, *rest: str) -> str:
    """A command of ours on a store, as a shell takes it."""
    return " ".join(["state-ledger", verb, shlex.quote(str(path)), *rest])


@contextmanager
def admit(path: Path, settings: Settings | None = None, *, copied: bool = False) -> Iterator[Patient]:
    """Opens a store so that nothing is changed or left behind, however damaged it is.

    A file in write-ahead mode that nobody has open is read as immutable: any other way of reading would
    leave two files beside it. Where only a copy can be read without harm, or `copied` asks for one, a
    private copy is read. Raises StoreAccessError where there is nothing to read.
    """
    settings = Settings() if settings is None else settings
    how, source = _way(path, copied)
    opened: Connection = sqlite3.connect(
        read_only_uri(source, immutable=how == AT_REST), uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    try:
        try:
            shape: Shape | None = connection.furnish(opened, path, settings=settings)
        except UNREADABLE:
            shape = None  # damaged: the checks of its pages say more
            connection.guard(opened)
        yield Patient(path, opened, shape, how, settings)
    finally:
        opened.close()


def _way(path: Path, copied: bool) -> tuple[str, Path]:
    if copied:
        return SNAPSHOT, snapshot.take(path).path
    if access.at_rest(path):
        # A log without its index was left by a crash; reading it would make that index beside the store.
        return (SNAPSHOT, snapshot.take(path).path) if access.Sidecars.of(path).wal_bytes else (AT_REST, path)
    try:
        access.check(path)
    except StoreAccessError as refusal:
        if not refusal.snapshot_possible:
            raise
        return SNAPSHOT, snapshot.take(path).path
    return LIVE, path
