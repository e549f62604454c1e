"""Tables whose primary key was another one once: made anew with the key of schema 23, no row lost.

Source: store-format, section 3. A key that lacks a column makes every later write to the table fail,
whatever the version number says, so that this goes by the key columns alone. Foreign keys have to be
off: rows whose session is gone are kept.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from state_ledger import schema
from state_ledger.sqlite import Connection

KEYED = ("session_model_usage", "gateway_routing")
"""The tables of which older shapes are in the field."""

LEFTOVERS: Mapping[str, str] = {
    "session_model_usage_v21": "session_model_usage",
    "session_model_usage_legacy_pk": "session_model_usage",
    "gateway_routing_legacy_pk": "gateway_routing",
}
"""What interrupted rebuilds left behind, with the table that the rows belong to."""

_log = logging.getLogger(__name__)
_ADDED_UP = ("api_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
             "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd")  # fmt: skip


def is_old(connection: Connection, table: str) -> bool:
    """Whether a table that exists has another primary key than schema 23 gives it."""
    live = _live(connection, table)
    return bool(live) and _key(live) != [column.name for column in schema.TABLES[table] if column.key]


def repair(connection: Connection, table: str) -> bool:
    """Makes a table with an old key anew; returns whether it had one.

    Rows that the old key told apart and the new one cannot (a NULL in the key) become one row, their
    counters and costs added up.
    """
    if not is_old(connection, table):
        return False
    old = f"{table}_old_key"
    connection.execute(f"ALTER TABLE {table} RENAME TO {old}")
    connection.execute(schema.create_table_sql(table))
    for name, kind in _live(connection, old).items():
        if name not in schema.declared_columns(table):
            connection.execute(f'ALTER TABLE {table} ADD COLUMN "{name}" {kind[0]}')
    _copy(connection, old, table)
    connection.execute(f"DROP TABLE {old}")
    if table == "session_model_usage":
        orphans = count_orphans(connection)
        if orphans:
            _log.warning("%d usage rows belong to sessions that are no longer there; they are kept.", orphans)
    return True


def count_orphans(connection: Connection) -> int:
    """Usage rows whose session is not in the store."""
    return int(
        connection.execute(
            "SELECT count(*) FROM session_model_usage AS u"
            " WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = u.session_id)"
        ).fetchone()[0]
    )


def leftovers(connection: Connection) -> list[str]:
    """Left-over tables that `restore` has something to do with."""
    return [
        name
        for name, table in LEFTOVERS.items()
        if _live(connection, name)
        and (not _live(connection, table) or _lacks(connection, name, table) or not _differing(connection, name, table))
    ]


def restore(connection: Connection, leftover: str) -> int:
    """Copies the rows of a left-over table that its table lacks, and drops it; returns how many.

    A row whose key the table has already is the same calls, copied before the rebuild was
    interrupted. Where such a row counts more than its copy, the left-over table stays.
    """
    table = LEFTOVERS[leftover]
    differing = _differing(connection, leftover, table)
    before = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    _copy(connection, leftover, table)
    if differing:
        _log.warning("%s counts more than %s for the same calls; both are kept.", leftover, table)
    else:
        connection.execute(f"DROP TABLE {leftover}")
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] - before)


def _lacks(connection: Connection, leftover: str, table: str) -> bool:
    missing = f"NOT EXISTS (SELECT 1 FROM {table} AS n WHERE {_same_key(connection, leftover, table)})"
    return connection.execute(f"SELECT 1 FROM {leftover} AS t WHERE {missing} LIMIT 1").fetchone() is not None


def _differing(connection: Connection, leftover: str, table: str) -> bool:
    live = _live(connection, leftover)
    counted = [name for name in _ADDED_UP if name in live and name in _live(connection, table)]
    if not live or not counted:
        return False
    more = " OR ".join(f"coalesce(t.{name}, 0) > coalesce(n.{name}, 0)" for name in counted)
    return bool(
        connection.execute(
            f"SELECT 1 FROM {leftover} AS t JOIN {table} AS n ON {_same_key(connection, leftover, table)}"
            f" WHERE {more} LIMIT 1"
        ).fetchone()
    )


def _copy(connection: Connection, source: str, table: str) -> None:
    """Inserts the rows of `source` whose key `table` does not have yet."""
    live = _live(connection, source)
    names, values = [], []
    key = []
    for column in schema.TABLES[table]:
        if column.name not in live:
            continue
        value = f't."{column.name}"'
        if column.key:
            value = f"coalesce({value}, {column.default or _LAST_RESORT})"
            key.append(value)
        elif column.name in _ADDED_UP:
            value = f"sum(coalesce({value}, 0))"
        elif column.name == "first_seen":
            value = f"min({value})"
        else:
            value = f"max({value})"
        names.append(column.name)
        values.append(value)
    declared = set(schema.declared_columns(table))
    extras = [name for name in live if name not in declared and name in _live(connection, table)]
    names += [f'"{name}"' for name in extras]
    values += [f'max(t."{name}")' for name in extras]
    connection.execute(
        f"INSERT INTO {table}({', '.join(names)}) SELECT {', '.join(values)} FROM {source} AS t"
        f" WHERE NOT EXISTS (SELECT 1 FROM {table} AS n WHERE {_same_key(connection, source, table)})"
        f" GROUP BY {', '.join(key)}"
    )


_LAST_RESORT = "'unknown'"
"""What stands for a NULL in a key column without a default: the model that nobody named."""


def _same_key(connection: Connection, source: str, table: str) -> str:
    live = _live(connection, source)
    terms = []
    for column in schema.TABLES[table]:
        if column.key:
            default = column.default or _LAST_RESORT
            terms.append(f"n.{column.name} = " + (f"coalesce(t.{column.name}, {default})" if column.name in live
                                                  else default))  # fmt: skip
    return " AND ".join(terms)


def _live(connection: Connection, table: str) -> dict[str, tuple[str, int]]:
    return {row[1]: (row[2], row[5]) for row in connection.execute(f"PRAGMA main.table_info({table})")}


def _key(live: Mapping[str, tuple[str, int]]) -> list[str]:
    placed = sorted((place, name) for name, (_, place) in live.items() if place)
    return [name for _, name in placed]
