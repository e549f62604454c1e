"""The companion as an SQLite file: its tables, its notes, making it, throwing it away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from state_ledger import private
from state_ledger.companion import pairs, rollups
from state_ledger.companion.identity import Identity
from state_ledger.errors import StateLedgerError
from state_ledger.sqlite import Connection, sqlite3

APPLICATION_ID = 0x534C4350
"""`SLCP`, in the header of the file."""

FORMAT = 2
"""Raised when the tables change: a companion of another format is thrown away."""

PATIENCE_S = 60.0
"""How long a process waits while another one writes a batch into the same companion."""

TABLES = f"""
CREATE TABLE note (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE held (id INTEGER PRIMARY KEY, mark INTEGER NOT NULL);
CREATE TABLE chunk (number INTEGER PRIMARY KEY, messages INTEGER NOT NULL, read_at REAL NOT NULL);
CREATE TABLE anchor (id INTEGER PRIMARY KEY, mark INTEGER NOT NULL);
CREATE VIRTUAL TABLE found USING fts5(
  pairs, words, content = '', columnsize = 0, detail = full, tokenize = 'ascii'
);
INSERT INTO found(found, rank) VALUES ('automerge', 16);
{rollups.TABLES}"""
"""held: the messages in `found`, each with a hash of what is stored. chunk: how many messages of each
range of ids were read, and since when none of them was read again. anchor: see `identity`. The rest:
see `rollups`.

`ascii` takes every character beyond ASCII for a letter, so that a pair is one token whatever it
consists of, and costs half of unicode61."""


class CompanionBusyError(StateLedgerError):
    """Another process writes to the companion for longer than one waits for it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"Another process has been writing to {path} for more than {PATIENCE_S:.0f} s. Try again when it is done."
        )
        self.path = path


class CompanionFile:
    """A companion that is open to be written. Only `open_or_make` makes one."""

    def __init__(self, path: Path, connection: Connection) -> None:
        self.path = path
        self.connection = connection
        self._inode = path.stat().st_ino

    @classmethod
    def open_or_make(cls, path: Path) -> CompanionFile:
        """The companion at a path; a new one where there is none or what is there is damaged or foreign.

        The folder gets mode 0700, the file 0600. Raises OSError.
        """
        private.folder(path.parent)
        path.parent.chmod(0o700)
        for _ in range(3):
            with suppress(FileExistsError):
                private.new_file(path)
            path.chmod(0o600)
            connection = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                connection.execute("PRAGMA synchronous = NORMAL")
                # What is thrown away is somebody's conversations.
                connection.execute("PRAGMA secure_delete = ON").fetchone()
                file = cls(path, connection)
                file._make_tables()
                return file
            except sqlite3.DatabaseError as error:
                connection.close()
                if not is_damage(error):
                    raise CompanionBusyError(path) from error
                discard(path)
        raise OSError(f"{path} cannot be made: what is there is damaged again and again.")

    def _make_tables(self) -> None:
        with self.transaction():
            if is_current_format(self.connection):
                return
            for name, kind in self.connection.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
                " AND name NOT LIKE 'found_%'"
            ).fetchall():
                self.connection.execute(f'DROP {kind} "{name}"')
            for statement in TABLES.split(";\n"):
                if statement.strip():
                    self.connection.execute(statement)
            self.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.note("rules", _rules())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One write; it is also the lock that lets processes take turns. Raises CompanionBusyError."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise CompanionBusyError(self.path) from error
            raise
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def empty(self) -> None:
        """Removes all that was read of a store, within a transaction."""
        for table in ("held", "chunk", "anchor", "note", "usage", "placed", "session_place"):
            self.connection.execute(f"DELETE FROM {table}")
        self.connection.execute("INSERT INTO found(found) VALUES ('delete-all')")
        self.note("rules", _rules())

    def note(self, key: str, value: object) -> None:
        """Keeps a note; within a transaction."""
        self.connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (key, value))

    def read(self, key: str, absent: object = None) -> object:
        """A note, or `absent`."""
        return read_note(self.connection, key, absent)

    def number(self, key: str) -> int:
        """A note that is a number, 0 if there is none."""
        value = self.read(key, 0)
        return value if isinstance(value, int) else 0

    def is_in_place(self) -> bool:
        """Whether the file is still the one at its path, and not one that was thrown away."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def is_sound(self) -> bool:
        """Whether SQLite finds nothing wrong in the file; reads all of it."""
        try:
            if self.connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                return False
            with self.transaction():
                self.connection.execute("INSERT INTO found(found) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            return not is_damage(error)
        return True

    def close(self) -> None:
        """Closes the file; SQLite then puts its write-ahead log into it."""
        self.connection.close()


def is_current_format(connection: Connection) -> bool:
    """Whether a file is a companion that this version can use. Raises sqlite3.DatabaseError if it is damaged."""
    try:
        return read_note(connection, "rules") == _rules()
    except sqlite3.OperationalError:  # another program's file, or a new one
        return False


def _rules() -> str:
    return f"{FORMAT} {pairs.rules()}"


def read_note(connection: Connection, key: str, absent: object = None) -> object:
    """A note of a companion, or `absent`."""
    row = connection.execute("SELECT value FROM note WHERE key = ?", (key,)).fetchone()
    return absent if row is None else row[0]


def write_identity(identity: Identity) -> str:
    """An identity as a note."""
    return json.dumps(asdict(identity))


def read_identity(connection: Connection) -> Identity | None:
    """The store a companion was made of, None if it was made of none yet or the note is damaged."""
    stored = read_note(connection, "store")
    try:
        return Identity(**json.loads(stored)) if isinstance(stored, str) else None
    except (ValueError, TypeError):
        return None


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error says that the file is no sound companion, and not that it is in use or the disk is full."""
    harmless = ("locked", "busy", "full", "readonly", "unable to open", "interrupted")
    return not any(word in str(error) for word in harmless)


def discard(path: Path) -> None:
    """Removes a companion with what SQLite keeps beside it; the main file first, so that nobody opens a part."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
