"""What is in a store, in numbers that a copy has to have too, and whether its pages are sound."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from state_ledger import access, ledger
from state_ledger.connection import decode_text
from state_ledger.errors import StoreAccessError
from state_ledger.full_text import cjk
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, read_only_uri, sqlite3

_OF_INDEXES = ("malformed inverted index", "unable to validate the inverted index")
"""How SQLite begins what it says about a full-text index, which can be made anew from the messages."""


@dataclass(frozen=True)
class Contents:
    """Numbers of a store at one moment.

    schema: its version, None where it says none. last_message: the greatest id, 0 without messages.
    calls, tokens (processed) and cost_usd: sums of `ledger_usage`, accounting rules 2, 5 and 8.
    """

    schema: int | None
    sessions: int
    messages: int
    last_message: int
    calls: int
    tokens: int
    cost_usd: float

    @property
    def sentence(self) -> str:
        """The numbers for a person."""
        return (
            f"{self.sessions:,} sessions, {self.messages:,} messages, {self.calls:,} calls, "
            f"{self.tokens:,} tokens processed, {self.cost_usd:,.2f} USD"
        )


def read(connection: Connection) -> Contents:
    """The contents of a store as this connection sees it; TEMP views are made on it.

    Raises StoreAccessError if it is a database of another program, sqlite3.DatabaseError if it cannot be read.
    """
    connection.text_factory = decode_text
    cjk.load(connection)
    shape = ledger.install(connection)
    if not shape.is_store:
        raise _foreign(connection)
    sessions, messages, last = connection.execute(
        "SELECT (SELECT count(*) FROM main.sessions), (SELECT count(*) FROM main.messages),"
        " (SELECT coalesce(max(id), 0) FROM main.messages)"
    ).fetchone()
    calls, tokens, cost = connection.execute(
        "SELECT coalesce(sum(api_call_count), 0), coalesce(sum(processed_tokens), 0), coalesce(sum(cost_usd), 0.0)"
        " FROM ledger_usage"
    ).fetchone()
    return Contents(shape.version, sessions, messages, last, calls, tokens, cost)


def read_file(path: Path) -> Contents:
    """The contents of a file that nobody writes. Raises as `read`."""
    with closing(connect(path)) as connection:
        return read(connection)


def connect(path: Path) -> Connection:
    """A connection to a file that nobody writes; it leaves nothing beside it. Raises StoreAccessError."""
    access.header_of(path)
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
    try:
        with closing(connect(path)) as connection:
            cjk.load(connection)
            pragma = "integrity_check" if full else "quick_check"
            said = [str(row[0]) for row in connection.execute(f"PRAGMA main.{pragma}(100)")]
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    lines = [line for text in said if text != "ok" for line in text.splitlines()]
    of_indexes = tuple(line for line in lines if line.startswith(_OF_INDEXES))
    return Soundness(tuple(line for line in lines if line not in of_indexes), of_indexes)


def is_store(path: Path) -> bool:
    """Whether a file that nobody writes has sessions and messages. Raises StoreAccessError, sqlite3.DatabaseError."""
    with closing(connect(path)) as connection:
        return Shape.read(connection).is_store


def _foreign(connection: Connection) -> StoreAccessError:
    path = connection.execute("PRAGMA database_list").fetchall()[0][2]
    return StoreAccessError(
        path, f"{path} is a database of another program: it has no sessions and messages.", "Name a state.db file."
    )
