"""One store as a push reads it: rows of the semantic layer, some sessions at a time, never in one long read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from state_ledger.connection import decode_text, open_for_reading
from state_ledger.errors import StoreAccessError, StoreUnreadableError
from state_ledger.lake import parquet
from state_ledger.lake.names import month_of
from state_ledger.lake.tables import Table
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection, sqlite3

if TYPE_CHECKING:
    import pyarrow

MESSAGES_AT_ONCE = 20_000
SESSIONS_AT_ONCE = 500
"""What one read of a store takes at most, a session being read whole."""

SessionId = bytes | str | None
"""As it is stored: bytes of a text, which need not be UTF-8."""


class Sessions(NamedTuple):
    """The sessions of a store. months: of each, in the order of the store. messages: how many rows each has.

    Ids that only messages or usage rows have are among them, in the month `unknown`.
    """

    months: Mapping[SessionId, str]
    messages: Mapping[SessionId, int]

    def by_month(self) -> dict[str, list[SessionId]]:
        """The sessions of each month."""
        found: dict[str, list[SessionId]] = defaultdict(list)
        for session, month in self.months.items():
            found[month].append(session)
        return dict(found)

    def portions(self, sessions: Sequence[SessionId]) -> Iterator[list[SessionId]]:
        """Sessions in portions of which each is one read."""
        portion: list[SessionId] = []
        weight = 0
        for session in sessions:
            own = self.messages.get(session, 0)
            if portion and (weight + own > MESSAGES_AT_ONCE or len(portion) == SESSIONS_AT_ONCE):
                yield portion
                portion, weight = [], 0
            portion.append(session)
            weight += own
        if portion:
            yield portion


class Source:
    """A store that is read; every call is short reads, and nothing is held between two of them.

    Raises StoreAccessError, when made and by every call, if the store cannot be read.
    """

    def __init__(self, path: Path, settings: Settings, profile: str) -> None:
        self.path = path
        with self._reading():
            self.connection: Connection = open_for_reading(path, settings=settings, profile=profile)
        # Of millions of texts, most go on as the bytes that they are.
        self.connection.text_factory = bytes

    def close(self) -> None:
        self.connection.close()

    def sessions(self) -> Sessions:
        """Which sessions there are now."""
        with self._reading():
            months = {
                session: month_of(started)
                for session, started in self.connection.execute(
                    "SELECT session_id, started_at FROM ledger_session_facts"
                )
            }
            counted = "SELECT session_id, count(*) FROM main.messages GROUP BY session_id"
            messages = Counter(dict(map(tuple, self.connection.execute(counted))))
            used = self.connection.execute("SELECT DISTINCT session_id FROM ledger_usage_rows").fetchall()
        for session in (*messages, *(row[0] for row in used)):
            months.setdefault(session, month_of(None))
        return Sessions(months, messages)

    def whole(self, table: Table, hidden: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """All rows of a table. hidden: columns that are not looked at and NULL."""
        # Some of these rows are made by functions, which read names on this connection.
        self.connection.text_factory = decode_text if not table.session else bytes
        try:
            with self._reading():
                return list(map(tuple, self.connection.execute(_select(table, hidden))))
        finally:
            self.connection.text_factory = bytes

    def of_sessions(
        self, table: Table, sessions: Sequence[SessionId], hidden: Sequence[str] = ()
    ) -> pyarrow.Table:
        """The rows of some sessions."""
        known = [session for session in sessions if session is not None]
        listed = ", ".join(["CAST(? AS TEXT)"] * len(known))
        nameless = f" OR {table.session} IS NULL" if len(known) < len(sessions) else ""
        wanted = f"WHERE {table.session} IN ({listed}){nameless}"
        with self._reading():
            rows = self.connection.execute(f"{_select(table, hidden)} {wanted}", known).fetchall()
        return parquet.batch(table, rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreAccessError(
                self.path, f"{self.path} cannot be read just now ({error}).", "Try again in a moment."
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StoreUnreadableError(self.path, error) from error


def _select(table: Table, hidden: Sequence[str]) -> str:
    """The rows of a table; what is hidden is not even read."""
    names = [column.name for column in table.columns]
    listed = ", ".join(f"NULL AS {name}" if name in hidden else name for name in names)
    return f"WITH found ({', '.join(names)}) AS NOT MATERIALIZED ({table.select}) SELECT {listed} FROM found"
