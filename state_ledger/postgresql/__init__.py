"""Stores in PostgreSQL: read into a private copy, a SQLite file that is then a store like any other.

The rules of the ledger live in SQLite's views alone, so rows are copied as they are and nothing is asked of
the server but rows. Nothing is written there, and no lock is taken that a writer could meet.

Source: the documentation of Hermes Agent's PostgreSQL backend (the tables and columns of `state.db` under the
same names, in PostgreSQL's types; structured content begins with U+0001, since text there holds no NUL).
"""

from __future__ import annotations

from collections.abc import Callable

from state_ledger.errors import PostgresqlError
from state_ledger.postgresql.address import Address, is_address
from state_ledger.postgresql.copies import Copy, copy_at

__all__ = ["VARIABLE", "Address", "Copy", "PostgresqlError", "copy_at", "is_address", "refresh"]

VARIABLE = "STATE_LEDGER_POSTGRESQL_STORES"
"""Addresses, a line each, whose copies the app keeps up to date while it shows them."""


def refresh(address: str, tell: Callable[[str], None] = lambda _what: None) -> Copy:
    """The private copy of a database, brought up to date, or made; at the end it is as the server was at one moment.

    address: `postgresql://…`. tell: told what is being done. Raises PostgresqlError if the server does not let
    it be read, or psycopg is not installed; what was copied before then stays as it was.
    """
    try:
        from state_ledger.postgresql import copying
    except ImportError as error:
        raise PostgresqlError(
            f"Reading PostgreSQL needs psycopg ({error}). Install it with: pip install 'state-ledger[postgresql]'"
        ) from error
    return copying.refresh(Address.of(address), tell)
