"""Damaged files: told apart, set aside, mended. Only when called: opening a store does nothing of this.

Source: session-db, sections 1 and 2; store-format, section 4 ("Damage"). Opening refuses a damaged
file and leaves it as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from state_ledger import access, full_text, migrate
from state_ledger.errors import StoreAccessError
from state_ledger.full_text import layout as text_layout
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing import contention

_PROBE_BYTES = 100


def is_malformed_db_error(exc: BaseException) -> bool:
    """Whether an error says that a database is damaged inside, as against one that is no database."""
    return isinstance(exc, (sqlite3.DatabaseError, StoreAccessError)) and "malformed" in str(exc).lower()


def is_zeroed_state_db(path: Path | str, *, probe_bytes: int = _PROBE_BYTES, force: bool = False) -> bool:
    """Whether a file that is not empty begins with nothing but zero bytes, as after a crash of a disk.

    probe_bytes: how many are looked at. force: for callers of the agent's own function, which does not
    look at a file that its process has open; here that does no harm, so it is always looked at.
    """
    try:
        beginning = access.first_bytes(path, max(int(probe_bytes), 1))
    except OSError:
        return False
    return bool(beginning) and not beginning.strip(b"\0")


def quarantine_zeroed_state_db(path: Path | str) -> Path | None:
    """Renames a file of zero bytes, with what lies beside it, so that a new store can be made; never deletes.

    Returns the new path, `<name>.zeroed-<time>-<process>.bak`; None if the file is not zeroed.
    Raises OSError if it cannot be renamed.
    """
    path = Path(path)
    if not is_zeroed_state_db(path):
        return None
    target = path.with_name(f"{path.name}.zeroed-{time.strftime('%Y%m%d_%H%M%S')}-{os.getpid()}.bak")
    path.rename(target)
    for ending in ("-wal", "-shm", "-journal"):
        beside = Path(f"{path}{ending}")
        if beside.exists():
            beside.rename(f"{target}{ending}")
    return target


def repair_state_db_schema(db_path: Path | str, *, backup: bool = True) -> dict[str, Any]:
    """Mends what can be mended without losing a row: full-text indexes, indexes, doubled schema entries.

    backup: copies the file, its log and journal to `<name>.malformed-backup-<time>` first. Nobody may
    have the store open meanwhile.
    Returns `{"repaired", "strategy", "backup_path", "error"}`: whether the store is sound now, what
    did it (`already_healthy`, `fts_rebuild`, `reindex`, `schema_dedupe`), and a sentence if it is not.
    """
    path = Path(db_path)
    result: dict[str, Any] = {"repaired": False, "strategy": None, "backup_path": None, "error": None}
    if not path.is_file():
        return {**result, "error": f"{path} does not exist"}
    complaint = _complaint(path)
    if complaint is None:
        return {**result, "repaired": True, "strategy": "already_healthy"}
    if backup:
        result["backup_path"] = str(_copied(path))
    for strategy, work in _STRATEGIES.items():
        try:
            _in_transaction(path, work)
        except sqlite3.DatabaseError as error:
            complaint = str(error)
            continue
        complaint = _complaint(path)
        if complaint is None:
            return {**result, "repaired": True, "strategy": strategy}
    return {**result, "error": complaint}


def _complaint(path: Path) -> str | None:
    """What is wrong with a store, None if nothing is: its pages, its indexes, and whether messages fit in."""
    try:
        with closing(_connect(path)) as connection:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                return str(found)
            connection.execute("BEGIN IMMEDIATE")
            for index in text_layout.expected():
                if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (index.name,)).fetchone():
                    full_text.check(connection, index)
            connection.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


def _rebuild_indexes(connection: Connection) -> None:
    if not migrate.is_newer(connection):
        text_layout.rewrite(connection)


def _reindex(connection: Connection) -> None:
    connection.execute("REINDEX")


def _drop_doubles(connection: Connection) -> None:
    """Of schema entries with one kind and name, the first stays."""
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "DELETE FROM sqlite_master WHERE rowid NOT IN (SELECT min(rowid) FROM sqlite_master GROUP BY type, name)"
    )
    connection.execute("PRAGMA writable_schema = RESET")


_STRATEGIES: dict[str, Callable[[Connection], None]] = {
    "fts_rebuild": _rebuild_indexes,
    "reindex": _reindex,
    "schema_dedupe": _drop_doubles,
}


def _in_transaction(path: Path, work: Callable[[Connection], None]) -> None:
    with closing(_connect(path)) as connection:
        if work is _drop_doubles:
            # Before anything makes SQLite read the schema, which is what it cannot do.
            connection.execute("PRAGMA writable_schema = ON")
        connection.execute("BEGIN IMMEDIATE")
        try:
            work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _connect(path: Path) -> Connection:
    connection: Connection = sqlite3.connect(path, timeout=contention.BUSY_TIMEOUT_S, isolation_level=None)
    return connection


def _copied(path: Path) -> Path:
    target = path.with_name(f"{path.name}.malformed-backup-{time.strftime('%Y%m%d_%H%M%S')}")
    for ending in ("", "-wal", "-shm", "-journal"):
        if Path(f"{path}{ending}").exists():
            access.copy_bytes(f"{path}{ending}", Path(f"{target}{ending}"))
    return target
