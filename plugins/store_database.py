"""A Datasette database over a store: its connections do no harm, cannot write, and follow the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from datasette.database import Database, QueryInterrupted, connections

from state_ledger import access
from state_ledger.errors import StateLedgerError, StoreAccessError, StoreUnreadableError
from state_ledger.full_text import cjk
from state_ledger.plugins import limits, visits
from state_ledger.plugins.visits import VISIT
from state_ledger.sqlite import BUSY_TIMEOUT_S, UNREADABLE, Connection, read_only_uri, says_damaged, sqlite3

if TYPE_CHECKING:
    from datasette.app import Datasette

SCHEMA_VERSION = "PRAGMA schema_version"

Stamp = tuple[int, int, int]
"""The file a connection has open, and the tables its views were made from: device, inode, schema_version."""


_waiting: ContextVar[limits.Waiting | None] = ContextVar("state_ledger_waiting", default=None)


class StoreRefused(click.ClickException):
    """A refusal as Datasette's command line and its pages can show it: a sentence, no traceback."""

    def __init__(self, reason: StateLedgerError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class StoreIsOnlyRead(sqlite3.OperationalError):
    """Datasette or a plugin wanted to write to a store; str() is a sentence for the visitor."""


class StoreDamaged(sqlite3.DatabaseError):
    """SQLite cannot read a part of a store; str() is a sentence for the visitor, which names the file."""


class StoreConnection(Connection):
    """A connection that knows what its views were made from."""

    stamp: Stamp | None = None

    def cursor(self, factory: Any = limits.BoundedCursor) -> Any:
        return super().cursor(factory)


class StoreDatabase(Database):
    """A Datasette database whose connections only read, and follow the file.

    A file that is migrated while it is served gets new columns, and one that is replaced becomes
    another; at most every `look_every_s` it is looked at, and connections that were made before
    the change are replaced, each by the thread that uses it.
    """

    look_every_s = 2.0

    def __init__(self, datasette: Datasette, path: str, *, is_mutable: bool) -> None:
        super().__init__(datasette, path=path, is_mutable=is_mutable)
        self._looked_at = 0.0
        self._seen: Stamp | None = None
        self.shape_stamp: Stamp | None = None
        self._schema_version: Any = None

    def connect(self, write: bool = False) -> StoreConnection:
        """A connection that reads, also where Datasette asks for one to write."""
        path = str(self.path)
        try:
            access.check(path)
        except StoreAccessError as refusal:
            raise StoreRefused(refusal) from refusal
        connection: StoreConnection = sqlite3.connect(
            read_only_uri(path, immutable=not self.is_mutable),
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            check_same_thread=False,
            factory=StoreConnection,
        )
        self._tracked().append(connection)
        cjk.load(connection)
        return connection

    async def execute(self, sql: str, params: Any = None, *args: Any, **options: Any) -> Any:
        """Rows of a visitor's question or of a page of Datasette's. Raises QueryInterrupted when its time is over.

        A store that breaks keeps the version of its schema that was last seen: Datasette asks every database for it
        before each of its own pages, and with an error for an answer one broken store would take those of all others
        with it.
        """
        if sql != SCHEMA_VERSION:
            return await self._within_limits(sql, params, *args, **options)
        try:
            self._schema_version = await super().execute(sql, params, *args, **options)
        except (StoreRefused, sqlite3.DatabaseError):
            if self._schema_version is None:
                raise
        return self._schema_version

    async def _within_limits(self, sql: str, params: Any, *args: Any, **options: Any) -> Any:
        waiting = limits.Waiting()
        token = _waiting.set(waiting)
        limit_s = self.ds.sql_time_limit_ms / 1000
        threads = visits.threads_for(VISIT.get(), self.ds.executor)
        try:
            answer = await waiting.for_answer(super().execute(sql, params, *args, **options), limit_s, threads)
        finally:
            _waiting.reset(token)
        if answer is None:
            raise QueryInterrupted("the time limit", sql, params)
        return answer

    async def execute_fn(self, fn: Callable[[Connection], Any]) -> Any:
        """As Datasette's own. Raises StoreDamaged where SQLite says that the file is, also while it is opened."""
        with self._damage_told(), visits.lane(VISIT.get()):
            return await super().execute_fn(self._on_current_connection(fn))

    async def execute_isolated_fn(self, fn: Callable[[Connection], Any]) -> Any:
        """Runs `fn` on a connection of its own, which has the views and cannot write."""

        def isolated(_shared: Connection) -> Any:
            connection = self._prepared()
            try:
                with visits.reading(visit, connection):
                    return fn(connection)
            finally:
                self._close(connection)

        visit = VISIT.get()
        return await self.execute_fn(isolated)

    async def execute_write_fn(self, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Refuses: raises StoreIsOnlyRead."""
        raise StoreIsOnlyRead(f"The store {self.name} is only read here; nothing writes to it.")

    # Datasette 1.0 runs its SQL through these two, 0.65 through the public ones above.

    async def _execute_fn(self, fn: Callable[[Connection], Any]) -> Any:
        with self._damage_told(), visits.lane(VISIT.get()):
            return await super()._execute_fn(self._on_current_connection(fn))

    async def _execute_write_fn(self, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return await self.execute_write_fn(fn)

    @contextmanager
    def _damage_told(self) -> Iterator[None]:
        try:
            yield
        except UNREADABLE as error:
            if isinstance(error, StoreDamaged) or not says_damaged(error):
                raise
            raise StoreDamaged(str(StoreUnreadableError(str(self.path), error))) from error

    def _on_current_connection(self, fn: Callable[[Connection], Any]) -> Callable[[Connection], Any]:
        waiting, visit = _waiting.get(), VISIT.get()

        def with_current(connection: Connection) -> Any:
            current = self._current(connection)
            if waiting is not None and waiting.begun is None:
                waiting.begun = time.monotonic()
            with visits.reading(visit, current):
                return limits.bounded(lambda: fn(current))

        with_current.__name__ = getattr(fn, "__name__", "fn")
        return with_current

    def _current(self, connection: Connection) -> Connection:
        """The connection, or a new one in its place if the file has changed its tables or was replaced."""
        if not isinstance(connection, StoreConnection):  # made before this class took the store over
            return self._replace(connection)
        now = time.monotonic()
        if self._seen is None or now - self._looked_at >= self.look_every_s:
            self._looked_at = now
            self._seen = self.look(connection)
        return connection if connection.stamp == self._seen else self._replace(connection)

    def look(self, connection: Connection) -> Stamp:
        """What is at the path now, the tables as this connection sees them."""
        try:
            status = Path(str(self.path)).stat()
        except OSError:
            # Between the two steps of a replacement, or gone for good: what is open stays readable.
            kept = connection.stamp if isinstance(connection, StoreConnection) else None
            return kept or (0, 0, 0)
        version: int = connection.execute("PRAGMA schema_version").fetchone()[0]
        return status.st_dev, status.st_ino, version

    def _replace(self, old: Connection) -> StoreConnection:
        connection = self._prepared()
        self._seen = connection.stamp
        self.cached_size = None
        if self.ds.executor is None:
            self._read_connection = connection
        else:
            setattr(connections, getattr(self, "_thread_local_id", self.name), connection)
        self._close(old)
        return connection

    def _prepared(self) -> StoreConnection:
        connection = self.connect()
        try:
            self.ds._prepare_connection(connection, self.name)
        except BaseException:
            self._close(connection)
            raise
        return connection

    def _close(self, connection: Connection) -> None:
        connection.close()
        if connection in self._tracked():
            self._tracked().remove(connection)

    def _tracked(self) -> list[Connection]:
        """The connections that Datasette closes in the end; 0.65 and 1.0 keep them under different names."""
        held: list[Connection] | None = getattr(self, "_all_connections", None)
        return self._all_file_connections if held is None else held
