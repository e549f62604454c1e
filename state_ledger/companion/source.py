"""The store as the companion reads it: by message id, in pieces, without harm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from state_ledger import access
from state_ledger.companion.identity import Identity, anchors_of, contradicts, identity_of
from state_ledger.companion.pairs import Message
from state_ledger.connection import guard, refusing
from state_ledger.errors import StoreAccessError
from state_ledger.shape import Shape
from state_ledger.sqlite import BUSY_TIMEOUT_S, Connection, read_only_uri, sqlite3


class Source:
    """A store that is read. Every call is one short read; nothing is held between two of them.

    Raises StoreAccessError, when made and by every call, if the store cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        access.check(self.path)
        with refusing(self.path):
            self.connection: Connection = sqlite3.connect(
                read_only_uri(path), uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
        try:
            with refusing(self.path):
                shape = Shape.read(self.connection)
                if not shape.is_store:
                    raise StoreAccessError(path, f"{path} is no Hermes store.", "Name a state.db file.")
                guard(self.connection)
                self.connection.text_factory = bytes
                self.identity: Identity = identity_of(path, self.connection)
        except BaseException:
            self.connection.close()
            raise
        self._columns = ", ".join(
            name if shape.has("messages", name) else f"NULL AS {name}"
            for name in ("id", "content", "tool_name", "tool_calls")
        )

    def is_in_place(self) -> bool:
        """Whether the file that is open is still the one at its path."""
        try:
            return identity_of(self.path).agrees(self.identity)
        except OSError:
            return False

    def anchors(self, ids: Sequence[int]) -> dict[int, int]:
        """What those of some messages that are there are recognised by: see `identity`."""
        with refusing(self.path):
            return anchors_of(self.connection, ids)

    def contradicts(self, covered: int, anchors: dict[int, int]) -> bool:
        """Whether this cannot be the store of which these messages were read: see `identity`."""
        with refusing(self.path):
            return contradicts(self.connection, covered, anchors)

    def piece(self, after: int, up_to: int | None, rows: int, most_bytes: int) -> list[Message]:
        """The next messages after an id, in order of id: at most `rows`, fewer where they are long.

        An empty list says that there are none up to `up_to` (None: at all).
        """
        bound = "" if up_to is None else f" AND id <= {up_to}"
        found: list[Message] = []
        size = 0
        with refusing(self.path):
            cursor = self.connection.execute(
                f"SELECT {self._columns} FROM main.messages WHERE id > ?{bound} ORDER BY id LIMIT ?", (after, rows)
            )
            for row in cursor:
                found.append(row)
                text, calls = row[1], row[3]
                if text.__class__ is bytes:
                    size += len(text)
                if calls.__class__ is bytes:
                    size += len(calls)
                if size > most_bytes:
                    break
            cursor.close()
        return found

    def count_up_to(self, covered: int) -> int:
        """How many messages there are up to an id; counted in an index."""
        with refusing(self.path):
            row = self.connection.execute(
                "SELECT count(*), (SELECT count(*) FROM main.messages WHERE id > ?) FROM main.messages", (covered,)
            ).fetchone()
        return int(row[0]) - int(row[1])

    def count_after(self, number: int) -> int:
        """How many messages there are with greater ids."""
        with refusing(self.path):
            row = self.connection.execute("SELECT count(*) FROM main.messages WHERE id > ?", (number,)).fetchone()
        return int(row[0])

    def count_by_chunk(self, covered: int, shift: int) -> dict[int, int]:
        """The messages up to an id, counted by `id >> shift`; one read of an index."""
        with refusing(self.path):
            counted = self.connection.execute(
                "SELECT id >> ?, count(*) FROM main.messages WHERE +id <= ? GROUP BY 1", (shift, covered)
            ).fetchall()
        return {int(number): int(count) for number, count in counted}

    def first_id(self) -> int:
        """The smallest message id there is now, 1 if there is none."""
        with refusing(self.path):
            return int(self.connection.execute("SELECT coalesce(min(id), 1) FROM main.messages").fetchone()[0])

    def last_id(self) -> int:
        """The greatest message id there is now, 0 if there is none."""
        with refusing(self.path):
            return int(self.connection.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchone()[0])

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()
