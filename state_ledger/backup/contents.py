"""What is in a store, in numbers that a copy has to have too, and whether its pages are sound."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from state_ledger import ledger
from state_ledger.connection import decode_text
from state_ledger.errors import StoreAccessError
from state_ledger.full_text import cjk
from state_ledger.pages import figures
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, read_only_uri, sqlite3, store_path


@dataclass(frozen=True)
class Contents:
    """Numbers of a store at one moment.

    schema: its version, None where it says none. last_message: the greatest id, 0 without messages.
    calls, tokens (processed) and cost_usd: sums of `ledger_usage`, accounting rules 2, 5 and 8. by_basis:
    the cost by its basis, rule 6; None where no price is known.
    """

    schema: int | None
    sessions: int
    messages: int
    last_message: int
    calls: int
    tokens: int
    cost_usd: float
    by_basis: Mapping[str, float | None]

    @property
    def sentence(self) -> str:
        """The numbers for a person."""
        known = (f"{basis} {figures.money(cost)}" for basis, cost in self.by_basis.items() if cost is not None)
        bases = ", ".join((*known, *(["some calls without a price"] if None in self.by_basis.values() else [])))
        return (
            f"{figures.plural(self.sessions, 'session')}, {figures.plural(self.messages, 'message')}, "
            f"{figures.plural(self.calls, 'call')}, {self.tokens:,} tokens processed, "
            f"{figures.money(self.cost_usd)}{f' ({bases})' if bases else ''}"
        )


def read(connection: Connection) -> Contents:
    """The contents of a store as this connection sees it, which is prepared for it. Raises as `prepare`."""
    prepare(connection)
    return sums(connection)


def prepare(connection: Connection) -> None:
    """Makes the views of the semantic layer on a connection; ends a transaction that was open.

    Raises StoreAccessError if it is a database of another program, sqlite3.DatabaseError if it cannot be read.
    """
    connection.text_factory = decode_text
    cjk.load(connection)
    shape = ledger.install(connection)
    if not shape.is_store:
        raise _foreign(connection)


def sums(connection: Connection) -> Contents:
    """The contents of a store on a connection that has the semantic layer. Raises sqlite3.DatabaseError."""
    sessions, messages, last = connection.execute(
        "SELECT (SELECT count(*) FROM main.sessions), (SELECT count(*) FROM main.messages),"
        " (SELECT coalesce(max(id), 0) FROM main.messages)"
    ).fetchone()
    usage = connection.execute(
        "SELECT basis, coalesce(sum(api_call_count), 0), coalesce(sum(processed_tokens), 0), sum(cost_usd)"
        " FROM ledger_usage GROUP BY basis ORDER BY basis"
    ).fetchall()
    return Contents(
        Shape.read(connection).version,
        sessions,
        messages,
        last,
        sum(row[1] for row in usage),
        sum(row[2] for row in usage),
        sum(row[3] or 0.0 for row in usage),
        {row[0]: row[3] for row in usage},
    )


def read_file(path: Path) -> Contents:
    """The contents of a file that nobody writes. Raises as `read`."""
    with closing(connect(path)) as connection:
        return read(connection)


def connect(path: Path) -> Connection:
    """A connection to a file that nobody writes; it leaves nothing beside it."""
    connection: Connection = sqlite3.connect(read_only_uri(path, immutable=True), uri=True, isolation_level=None)
    return connection


@dataclass(frozen=True)
class Soundness:
    """What SQLite finds wrong: damage to the tables, and damage to full-text indexes only."""

    damage: tuple[str, ...]
    index_damage: tuple[str, ...]


def soundness(path: Path, *, full: bool = False) -> Soundness:
    """What is wrong with a file that nobody writes.

    full: also whether each index agrees with its table (`integrity_check`), which takes several times as long.
    """
    pragma = "integrity_check" if full else "quick_check"
    try:
        with closing(connect(path)) as connection:
            cjk.load(connection)
            said = _said(connection, f"PRAGMA main.{pragma}(100)")
            if any(map(_is_of_index, said)):
                # That may have ended the check before it came to the tables.
                for (table,) in connection.execute(
                    "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0"
                ).fetchall():
                    said += _said(connection, f"PRAGMA main.{pragma}({_quoted(table)})")
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    of_indexes = tuple(filter(_is_of_index, said))
    return Soundness(tuple(line for line in said if line not in of_indexes), of_indexes)


def _said(connection: Connection, pragma: str) -> list[str]:
    """What a check complains of."""
    try:
        return [line for row in connection.execute(pragma) for line in str(row[0]).splitlines() if line != "ok"]
    except sqlite3.DatabaseError as error:
        return [str(error)]


def _is_of_index(line: str) -> bool:
    """Whether SQLite speaks of a full-text index, which can be made anew from the messages."""
    return "fts5" in line.lower()


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _foreign(connection: Connection) -> StoreAccessError:
    path = store_path(connection)
    return StoreAccessError(
        path, f"{path} is a database of another program: it has no sessions and messages.", "Name a state.db file."
    )
