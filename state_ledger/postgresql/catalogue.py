"""What a PostgreSQL database has of a store: tables, columns with their types, keys, and what the role may read."""

from __future__ import annotations

from typing import NamedTuple

from state_ledger import schema
from state_ledger.errors import PostgresqlError
from state_ledger.postgresql.address import Address
from state_ledger.postgresql.server import Connection
from state_ledger.shape import LEFTOVER_USAGE_TABLES, OPERATED_TABLES, READ_COLUMNS

TABLES = tuple(dict.fromkeys((*schema.TABLES, *LEFTOVER_USAGE_TABLES, *OPERATED_TABLES, "system_prompts")))
"""What is copied of a schema, where it is there; other programs may keep tables of theirs beside it."""

REQUIRED = {"sessions": ("id", "source", "started_at"), "messages": ("id", "session_id", "role", "content")}
"""Without these it is no store."""


class Column(NamedTuple):
    """type: the name of its type, of a domain the one that is below it; `[]` for every array."""

    name: str
    type: str


class Table(NamedTuple):
    """key: its primary key, of a view the key that the table would have; () where none is known.

    versioned: whether its rows tell which transaction wrote them.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    versioned: bool


class Layout(NamedTuple):
    """server: which server this is, with its history: another one may give old numbers to new transactions.

    schema: where the tables are.
    """

    server: str
    schema: str
    tables: tuple[Table, ...]


def read(connection: Connection, address: Address) -> Layout:
    """Raises PostgresqlError where there is no store, or the role may not read all that the ledger reads."""
    row = connection.execute(
        "SELECT n.nspname, c.relnamespace FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass('sessions')"
    ).fetchone()
    if row is None:
        raise PostgresqlError(
            f"{address.name} has no table named sessions that this role sees. If it is in a schema of its own, add "
            "?options=-csearch_path%3DSCHEMA to the address; the role needs USAGE on that schema."
        )
    namespace, number = row
    tables = _tables(connection, address, namespace, number)
    for name, columns in REQUIRED.items():
        live = next((table.columns for table in tables if table.name == name), ())
        absent = set(columns) - {column.name for column in live}
        if absent:
            raise PostgresqlError(
                f"{address.name} is no store of Hermes Agent: in its schema {namespace}, {name} has no "
                f"{', '.join(sorted(absent))}."
            )
    return Layout(_server(connection), str(namespace), tables)


def _tables(connection: Connection, address: Address, namespace: str, number: int) -> tuple[Table, ...]:
    keys: dict[str, list[str]] = {}
    for table, column in connection.execute(
        "SELECT c.relname, a.attname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid"
        " CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)"
        " JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum"
        " WHERE i.indisprimary AND c.relnamespace = %s ORDER BY c.relname, k.place",
        (number,),
    ):
        keys.setdefault(table, []).append(column)
    found: dict[str, list[Column]] = {}
    kinds: dict[str, str] = {}
    for table, kind, column, type_name, readable in connection.execute(
        "SELECT c.relname, c.relkind::text, a.attname,"
        " CASE t.typcategory WHEN 'A' THEN '[]' ELSE coalesce(b.typname, t.typname) END,"
        " has_column_privilege(c.oid, a.attnum, 'SELECT')"
        " FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
        " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype"
        " WHERE c.relnamespace = %s AND c.relname = ANY(%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
        " ORDER BY c.relname, a.attnum",
        (number, list(TABLES)),
    ):
        kinds[table] = kind
        columns = found.setdefault(table, [])
        if readable:
            columns.append(Column(column, type_name))
        elif column in READ_COLUMNS.get(table, ()) or table not in READ_COLUMNS:
            # Left out, it would be an absent one, and figures would be wrong without a word.
            raise PostgresqlError(
                f"{address.name}: this role may not read {namespace}.{table}, column {column}. Let it: "
                f"GRANT SELECT ON ALL TABLES IN SCHEMA {namespace} TO … ."
            )
    return tuple(
        Table(name, tuple(found[name]), _key(name, keys.get(name, []), found[name]), kinds[name] in "rp")
        for name in TABLES
        if name in found
    )


def _key(table: str, primary: list[str], columns: list[Column]) -> tuple[str, ...]:
    live = {column.name for column in columns}
    declared = sorted((column for column in schema.TABLES.get(table, ()) if column.key), key=lambda each: each.key)
    key = tuple(primary) or tuple(column.name for column in declared)
    return key if live.issuperset(key) else ()


def _server(connection: Connection) -> str:
    """Tells a server and its history; a standby that is promoted goes on with a history of its own."""
    row = connection.execute(
        "SELECT concat_ws('/', (SELECT system_identifier FROM pg_catalog.pg_control_system()),"
        " (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()), to_regclass('sessions')::oid)"
        " WHERE has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')"
        " AND has_function_privilege('pg_catalog.pg_control_checkpoint()', 'EXECUTE')"
    ).fetchone()
    return "" if row is None else str(row[0])
