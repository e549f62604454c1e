"""A companion that is asked: which messages may hold a run of characters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from state_ledger import access
from state_ledger.companion import pairs, rollups
from state_ledger.companion.file import is_current_format, read_identity, read_note
from state_ledger.companion.identity import companion_path, contradicts, identity_of
from state_ledger.connection import BUSY_TIMEOUT_S, read_only_uri
from state_ledger.errors import StateLedgerError
from state_ledger.ledger import functions
from state_ledger.sqlite import Connection, sqlite3

LOOKED_AT = 8
"""How many of the last messages that were read are looked at in the store when a companion is opened."""


class CompanionDamaged(StateLedgerError, sqlite3.DatabaseError):
    """A companion turned out to be damaged while it was read; other routes answer as well."""


class Companion:
    """A companion of a store, open for reading, for one thread at a time.

    covered_up_to: every message with this id or a smaller one was read when it was made; those
        after it are not in it. It does not grow while the companion is open.
    """

    def __init__(self, connection: Connection, covered_up_to: int, *, dropped: bool) -> None:
        self.connection = connection
        self.covered_up_to = covered_up_to
        # What was deleted is left out here; the index itself forgets it later.
        self._still_held = " AND EXISTS (SELECT 1 FROM held WHERE held.id = found.rowid)" if dropped else ""

    def ids(
        self,
        run: str,
        *,
        before: int | None = None,
        after: int | None = None,
        newest: bool = True,
        prefix: bool = False,
    ) -> Iterator[int]:
        """Ids of the messages that may hold a literal run of text, newest first, or oldest first.

        before, after: only ids smaller and greater than these. None above `covered_up_to` is told.

        A run with characters of a script without spaces: every message up to `covered_up_to` whose
        decoded content, tool name or tool calls hold the run (folded by `state_ledger.search.text`)
        is told. Others may be, so each has to be looked at. Other runs have to be one word: every message is
        told in which that word, with prefix=True a word that begins so, touches such a script, as `youer` does in
        `修改youer服务端`; where it stands by itself a word index finds it.
        Raises ValueError for a run that is neither, CompanionDamaged while iterating.
        """
        expression = pairs.expression(run, prefix=prefix)
        if expression is None:
            raise ValueError(f"{run!r} is neither one word nor a run with a script without spaces")
        return self._ids(expression, before, after, newest)

    def _ids(self, expression: str, before: int | None, after: int | None, newest: bool) -> Iterator[int]:
        bounds, parameters = ["rowid <= ?"], [self.covered_up_to]
        if before is not None:
            bounds.append("rowid < ?")
            parameters.append(before)
        if after is not None:
            bounds.append("rowid > ?")
            parameters.append(after)
        try:
            for row in self.connection.execute(
                f"SELECT rowid FROM found WHERE found MATCH ? AND {' AND '.join(bounds)}{self._still_held}"
                f" ORDER BY rowid {'DESC' if newest else 'ASC'}",
                (expression, *parameters),
            ):
                yield row[0]
        except sqlite3.DatabaseError as error:
            raise CompanionDamaged(f"The companion cannot be read ({error}). Run state-ledger index again.") from error

    def rollup(self, store_path: str | Path, store: Connection, zone: str) -> Connection | None:
        """A connection on which `ledger_time` has the rows of the view; None if it might not.

        store: an open connection to the store with the semantic layer, whose views are to be stood in
        for. zone: as for `ledger.functions.register`, whose functions the connection has. It is
        that of the companion and closed with it. `session_place` on it has what `ledger_lineage` says
        of each session. None, and never an exception, where the rollup is missing, older than the last
        write to the store, made by other views, or damaged.
        """
        try:
            if not rollups.is_fresh(self.connection, store_path, store):
                return None
            functions.register(self.connection, zone)
        except (OSError, ValueError, KeyError, TypeError, sqlite3.Error):
            return None
        return self.connection

    def close(self) -> None:
        """Closes the file."""
        self.connection.close()

    def __enter__(self) -> Companion:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_for_search(store_path: str | Path, connection: Connection | None = None) -> Companion | None:
    """The companion of a store; None if there is none, it is of another file, or cannot be read.

    connection: one to the store that is open already, by which the store is looked at; without one,
    a connection is made for it. Never raises, never makes a companion.
    """
    path = companion_path(store_path)
    try:
        if not path.is_file():
            return None
        opened = sqlite3.connect(read_only_uri(path), uri=True, isolation_level=None, check_same_thread=False)
    except (OSError, ValueError, sqlite3.Error):
        return None
    try:
        companion = _examined(opened, store_path, connection)
    except (OSError, ValueError, TypeError, KeyError, sqlite3.Error, StateLedgerError):
        companion = None
    if companion is None:
        opened.close()
    return companion


def _examined(opened: Connection, store_path: str | Path, connection: Connection | None) -> Companion | None:
    if not is_current_format(opened):
        return None
    made_of = read_identity(opened)
    covered = read_note(opened, "covered")
    if made_of is None or not isinstance(covered, int) or not made_of.agrees(identity_of(store_path)):
        return None
    anchors = dict(opened.execute("SELECT id, mark FROM anchor ORDER BY id DESC LIMIT ?", (LOOKED_AT,)))
    if connection is not None:
        wrong = contradicts(connection, covered, anchors)
    else:
        access.check(store_path)
        own = sqlite3.connect(read_only_uri(store_path), uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            own.text_factory = bytes
            wrong = contradicts(own, covered, anchors)
        finally:
            own.close()
    return None if wrong else Companion(opened, covered, dropped=bool(read_note(opened, "stale", 0)))
