"""Has a store changed? Asked again and again, for microseconds, without disturbing whoever writes it.

The answer comes from `PRAGMA data_version` on a connection that is kept and never in a transaction:
the number changes when another connection has committed (sqlite.org/pragma.html#pragma_data_version).
It means something only beside an earlier one of the same connection, so that each watch has its own.
Before it is asked, the sizes and times of the files are looked at: where they are the same and not fresh,
nothing can have been written, and SQLite is not touched at all.
"""

from __future__ import annotations

import secrets
import threading
import time
from pathlib import Path

from state_ledger import access
from state_ledger.access import Moment
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import Connection, read_only_uri, sqlite3

SETTLED_S = 2.0
"""Files that were written less than this ago may be written again within one tick of their clock."""

_PROCESS = secrets.token_hex(4)
"""Versions of two processes never agree: after a restart a reader asks once more, which does no harm."""


class Watch:
    """One store under watch. Safe to ask from several threads.

    path: what is opened. immutable: that nobody writes it, which then is not looked for.
    asked: how often SQLite was asked, to be seen in tests and measurements.
    """

    def __init__(self, path: str | Path, *, immutable: bool = False) -> None:
        self.path = Path(path)
        self.immutable = immutable
        self.asked = 0
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._files: Moment | None = None
        self._number: int | None = None
        self._changes = 0

    def version(self) -> str:
        """A text that is another one after each change of the store; never an error.

        A store that cannot be read has a version too, which changes when it can be read again. While a
        writer without a write-ahead log holds its lock, the last version stands: the change is told after.
        """
        with self._lock:
            files = access.moment(self.path, ("", "-wal"))
            if files != self._files or not _settled(files):
                self._ask(files)
            return f"{_PROCESS}-{self._changes}"

    def close(self) -> None:
        """Gives the connection back; the next question opens another."""
        with self._lock:
            self._let_go()

    def _ask(self, files: Moment) -> None:
        self.asked += 1
        replaced = self._files is None or _identity(files) != _identity(self._files)
        if replaced:
            self._let_go()
        try:
            number = self._data_version()
        except sqlite3.OperationalError as error:
            if "locked" in str(error) and not replaced:
                return  # files stay unlooked at, so that the next question asks again
            number = -1
        except (StoreAccessError, sqlite3.DatabaseError, OSError):
            number = -1
        if number < 0:
            self._let_go()
        if replaced or number != self._number:
            self._changes += 1
        self._files, self._number = files, number

    def _data_version(self) -> int:
        if self._connection is None:
            access.check(self.path)
            self._connection = sqlite3.connect(
                read_only_uri(self.path, immutable=self.immutable),
                uri=True, timeout=0, isolation_level=None, check_same_thread=False,
            )  # fmt: skip
            # Opening compares nothing yet: what is committed from here on counts as a change.
            self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        (row,) = self._connection.execute("PRAGMA data_version").fetchall()
        return int(row[0])

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Watches:
    """The watches of one process, one for each file."""

    def __init__(self) -> None:
        self._held: dict[tuple[Path, bool], Watch] = {}
        self._lock = threading.Lock()

    def of(self, path: str | Path, *, immutable: bool = False) -> Watch:
        """The watch of a file, made when it is first asked for."""
        key = (Path(path), immutable)
        with self._lock:
            return self._held.setdefault(key, Watch(path, immutable=immutable))

    def close(self) -> None:
        """Gives all connections back."""
        with self._lock:
            for watch in self._held.values():
                watch.close()
            self._held.clear()


def _settled(files: Moment) -> bool:
    now = time.time_ns()
    return all(each is None or now - each[3] > SETTLED_S * 1e9 for each in files)


def _identity(files: Moment) -> tuple[int, int] | None:
    """Which file is at the path; another one has to be opened anew."""
    return None if files[0] is None else files[0][:2]
