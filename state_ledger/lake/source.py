"""One store as a push reads it: rows of the semantic layer, some sessions at a time, never in one long read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from state_ledger import redact
from state_ledger.companion import rollups
from state_ledger.companion.identity import identity_of
from state_ledger.connection import decode_text, open_for_reading, refusing
from state_ledger.errors import StoreAccessError
from state_ledger.lake import fingerprint
from state_ledger.lake.fingerprint import Rows, SessionId, Sessions
from state_ledger.lake.tables import Table, tables
from state_ledger.ledger.apportion import USED
from state_ledger.settings import Settings
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, sqlite3

MESSAGES_AT_ONCE, TEXTS_AT_ONCE = 20_000, 4_000
SESSIONS_AT_ONCE = 500
"""What one read of a store takes at most, a session being read whole; of messages with their texts fewer."""

_LISTED = (8, 64, SESSIONS_AT_ONCE)

RELATED = frozenset({"lineage", "continuations"})
"""Tables in which the rows of a session change by what happens to others: read whole. The session comes first."""

_PLACED = "time"

_MAKING = ("fingerprint", "gone", "names", "parquet", "privacy", "push", "source", "tables")
"""The modules beside this one that decide what rows a push writes."""


class Source:
    """A store that is read; every call is short reads, and nothing is held between two of them.

    with_texts: whether what was said is read. Raises StoreAccessError, when made and by every call, if the store
    cannot be read.
    """

    def __init__(self, path: Path, settings: Settings, profile: str, *, with_texts: bool) -> None:
        self.path = path
        self._messages_at_once = TEXTS_AT_ONCE if with_texts else MESSAGES_AT_ONCE
        with refusing(self.path):
            self.connection: Connection = open_for_reading(path, settings=settings, profile=profile)
            try:
                self.shape = Shape.read(self.connection)
                if not self.shape.is_store:
                    raise StoreAccessError(path, f"{path} is no Hermes store.", "Name a state.db file.")
                self.id = store_id(path, self.connection)
            except BaseException:
                self.connection.close()
                raise
        # Of millions of texts, most go on as the bytes that they are.
        self.connection.text_factory = bytes
        self._placing = _Placing()

    def close(self) -> None:
        """Gives back what is open."""
        self.connection.close()
        self._placing.close()

    def sessions(self, period_of: Callable[[str], str]) -> Sessions:
        """Which sessions there are now, and what tells whether they have changed."""
        related = {table.name: self.whole(table) for table in tables() if table.name in RELATED}
        with refusing(self.path):
            return fingerprint.take(self.connection, self.shape, period_of, related)

    def whole(self, table: Table) -> Rows:
        """All rows of a table."""
        # Rows of the store as a whole are made by functions that read names on this connection.
        self.connection.text_factory = bytes if table.session else decode_text
        try:
            with refusing(self.path):
                return list(map(tuple, self.connection.execute(_select(table, ()))))
        finally:
            self.connection.text_factory = bytes

    def portions(self, sessions: Sessions, wanted: Sequence[SessionId]) -> Iterator[list[SessionId]]:
        """Sessions in portions of which each is one read of every table."""
        portion: list[SessionId] = []
        weight = 0
        for session in wanted:
            own = sessions.messages.get(session, 0)
            if portion and (weight + own > self._messages_at_once or len(portion) == SESSIONS_AT_ONCE):
                yield portion
                portion, weight = [], 0
            portion.append(session)
            weight += own
        if portion:
            yield portion

    def rows(
        self, sessions: Sessions, portion: Sequence[SessionId], hidden: Mapping[str, Sequence[str]]
    ) -> Iterator[tuple[Table, Rows]]:
        """The rows of some sessions, table by table. hidden: by table, columns that are not looked at and NULL.

        Sessions come last, and what they used just before: what is written meanwhile may add a session, never
        take one from its usage.
        """
        read: dict[str, Rows] = {}
        for table in reversed(tables()):
            if not table.session or table.name == _PLACED:
                continue
            if table.name in RELATED:
                rows = [row for each in portion for row in sessions.related[table.name].get(each, ())]
            else:
                rows = self._of_sessions(table, portion, hidden.get(table.name, ()))
            if table.name in ("usage", "message_times"):
                read[table.name] = rows
            yield table, rows
        by_name = {table.name: table for table in tables()}
        used = [column.name for column in by_name["usage"].columns]
        placed = by_name[_PLACED]
        yield placed, self._placing.place(placed, used, read["usage"], read["message_times"])

    def _of_sessions(self, table: Table, sessions: Sequence[SessionId], hidden: Sequence[str]) -> Rows:
        known = [session for session in sessions if session is not None]
        nameless = f" OR {table.session} IS NULL" if len(known) < len(sessions) else ""
        # One of few numbers in every text, so that it is compiled once and compiles fast.
        number = next(each for each in _LISTED if each >= len(known))
        listed = ", ".join(["CAST(? AS TEXT)"] * number)
        sql = f"{_select(table, hidden)} WHERE {table.session} IN ({listed}){nameless}"
        with refusing(self.path):
            return self.connection.execute(sql, [*known, *[None] * (number - len(known))]).fetchall()


class _Placing:
    """Spreads usage over time by the layer's own rules, from rows that were read already.

    As the rollup of a companion does it: the view of the store would read the messages a second time.
    """

    def __init__(self) -> None:
        self._books = sqlite3.connect(":memory:", isolation_level=None)
        self._books.executescript(rollups.TABLES)
        self._books.text_factory = bytes

    def close(self) -> None:
        self._books.close()

    def place(self, table: Table, columns: Sequence[str], used: Rows, heard: Rows) -> Rows:
        """The rows of `time`. heard: session, 15 minutes, last moment and number of messages."""
        at = [columns.index(name) for name in USED]
        usage = [(number, *(row[place] for place in at)) for number, row in enumerate(used)]
        known: dict[Any, list[tuple[int, float]]] = {}
        for session, bucket, _last, number in heard:
            if bucket is not None:
                known.setdefault(session, []).append((bucket, number))
        shares: Rows = []
        for session in {row[1] for row in usage}:
            parts = known.get(session, [])
            whole = sum(number for _bucket, number in parts)
            shares += [(session, str(bucket), number / whole) for bucket, number in parts] or [(session, "", 1.0)]
        rollups.write(self._books, [("usage", usage), ("share_of_messages", shares)])
        return self._books.execute(_select(table, ())).fetchall()


def store_id(path: Path, connection: Connection) -> str:
    """What tells a store from another in its place: where it is and, if it has one, its own id, as digests."""
    identity = identity_of(path, connection)
    return f"{_short(identity.path)}:{'' if identity.instance is None else _short(identity.instance)}"


def may_be_one(first: str, second: str) -> bool:
    """Whether two ids may be of one store, which may have been moved, or have got an id of its own since."""
    (place, own), (other_place, other_own) = first.split(":"), second.split(":")
    return own == other_own if own and other_own else place == other_place


def rules(settings: Settings, profile: str) -> str:
    """A digest of all that decides what rows look like, besides the store: the code, the settings, the tables."""
    digest = hashlib.sha256(rollups.code().encode())
    own = Path(__file__).parent
    for file in (*(own / f"{name}.py" for name in _MAKING), *sorted(Path(redact.__file__).parent.glob("*.py"))):
        digest.update(file.read_bytes())
    bounds = (settings.max_cost_per_1000_tokens, settings.implausible_from_usd)
    digest.update(repr((tables(), bounds, profile)).encode())
    return digest.hexdigest()[:24]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _select(table: Table, hidden: Sequence[str]) -> str:
    """The rows of a table; what is hidden is not even read."""
    names = [column.name for column in table.columns]
    listed = ", ".join(f"NULL AS {name}" if name in hidden else name for name in names)
    return f"WITH found ({', '.join(names)}) AS NOT MATERIALIZED ({table.select}) SELECT {listed} FROM found"
