"""A connection that reads a PostgreSQL database as it is at one moment, and can neither write nor wait for long.

Imports the driver; `state_ledger.postgresql` imports this module when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg import conninfo
from psycopg.abc import Buffer
from psycopg.adapt import Loader

from state_ledger.errors import PostgresqlError
from state_ledger.postgresql.address import Address

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

CONNECT_S = 10
LOCK_MS = 5_000
"""Whoever alters a table keeps readers out; we do not queue up behind him, where others would queue behind us."""
STATEMENT_MS = 120_000
"""For one batch of rows, where the role or the address sets no limit of its own."""

_REMEDIES = {
    "28P01": "Look at the user and the password: PGPASSWORD, ~/.pgpass or the address.",
    "28000": "Look at the user, and at what pg_hba.conf lets it do.",
    "3D000": "Look at the database's name.",
    "42501": "Let the role read: GRANT USAGE ON SCHEMA, GRANT SELECT ON ALL TABLES IN SCHEMA.",
    "55P03": "A program is altering the tables; try again when it is done.",
    "57014": "Give it more time: add ?options=-cstatement_timeout%3D600000 to the address.",
}
_OTHERWISE = "Look at whether the server runs and lets this machine in, then try again."


class _Text(Loader):
    """Text in which bytes that are no UTF-8 are replaced: a database may keep text without knowing its encoding."""

    def load(self, data: Buffer) -> str:
        return str(bytes(data), "utf-8", "replace")


@contextmanager
def reading(address: Address) -> Iterator[Connection]:
    """A read-only transaction that sees one moment of the database from its first statement on.

    Raises PostgresqlError for whatever the server or the connection to it says, also in the body.
    """
    try:
        with _connect(address) as connection:
            connection.execute(
                "SELECT set_config('lock_timeout', %s, true), set_config('extra_float_digits', '1', true),"
                " CASE WHEN current_setting('statement_timeout') = '0'"
                " THEN set_config('statement_timeout', %s, true) END",
                (str(LOCK_MS), str(STATEMENT_MS)),
            )
            yield connection
            connection.rollback()
    except psycopg.Error as error:
        raise refusal(address, error) from None


def refusal(address: Address, error: psycopg.Error, doing: str = "read") -> PostgresqlError:
    """What the driver says as a sentence, with what to do; the error itself may quote the address and is let go."""
    said = (error.diag.message_primary or str(error)).strip().splitlines() or [type(error).__name__]
    remedy = next((text for state, text in _REMEDIES.items() if error.sqlstate == state), "")
    if not remedy and "password" in said[0]:  # while connecting, the driver knows no state
        remedy = _REMEDIES["28P01"]
    if not remedy and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        remedy = _OTHERWISE
    words = address.without_secrets(said[0]).rstrip(".")
    return PostgresqlError(f"{address.name} cannot be {doing}: {words}. {remedy}".rstrip())


def _connect(address: Address) -> Connection:
    given = conninfo.conninfo_to_dict(address.text)
    connection = psycopg.connect(
        address.text,
        connect_timeout=given.get("connect_timeout", CONNECT_S),
        fallback_application_name="state-ledger",
        client_encoding="UTF8",
        prepare_threshold=None,  # poolers hand a connection's statements to others
    )
    connection.adapters.register_loader("text", _Text)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    return connection
