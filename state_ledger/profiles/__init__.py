"""The stores of a user at a glance: one that cannot be read never hides the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from state_ledger import access, copying, questions, stores
from state_ledger.backup import contents
from state_ledger.connection import open_for_reading
from state_ledger.errors import StateLedgerError
from state_ledger.pages.home import overview_of
from state_ledger.sqlite import sqlite3


@dataclass(frozen=True)
class Profile:
    """One store.

    name: what its URLs begin with. profile: the name of its folder below `profiles/`, else `default`. bytes:
    the file and its write-ahead log, None if there is none. last_active: epoch seconds, None if nothing was
    ever said in it. contents: its numbers. problem: why it cannot be read, and what to do; then all else that
    is not known is None.
    """

    path: Path
    name: str
    profile: str
    bytes: int | None = None
    last_active: float | None = None
    contents: contents.Contents | None = None
    problem: str | None = None


def read(paths: Sequence[Path]) -> list[Profile]:
    """The stores at these paths, in their order."""
    return [_read(store) for store in stores.name_stores(paths)]


def _read(store: stores.Store) -> Profile:
    size = None
    try:
        access.check(store.path)
        size = copying.size_of(store.path)
        with closing(open_for_reading(store.path)) as connection:
            answer = questions.ask(connection, "sessions_per_source", {"limit": "1000"})
            last_active = overview_of(answer.records()).last_active
            found = contents.sums(connection)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        problem = str(error) if isinstance(error, StateLedgerError) else f"{store.path} cannot be read ({error})."
        return Profile(store.path, store.name, store.profile, size, problem=problem)
    return Profile(store.path, store.name, store.profile, size, last_active, found)
