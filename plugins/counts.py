"""Counts and facets that never hold up a table page of a big store.

Datasette counts the rows behind every table page and tries every column as a facet. With 700,000
messages (1.5 GB) that made pages of 3 to 5 s on 0.65: one second for the count, the rest for facets.
Its page of all tables counts each of them, the parts of full-text indexes too, and there SQLite looks at
the time limit too seldom: 0.4 s for numbers that tell nobody anything.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from datasette.database import QueryInterrupted

from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry
from state_ledger.store_metadata import hidden_names

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.plugins.stores import StoreState

COUNT = "select count(*) from "
"""How both lines begin the query that counts the rows of a table page."""

COUNT_LIMIT_MS = 200
"""Milliseconds after which a table page goes without its count."""

Execute = Callable[..., Awaitable[Any]]

_COUNTED = re.compile(
    r'select count\(\*\) from (?:\(select \* from )?(?:\[([^\]]+)\]|"((?:[^"]|"")+)"|(\w+))'
)
"""The table in a count of either line: 1.0 counts a limited selection, and each quotes in its own way."""


@hookimpl(specname="startup", trylast=True)
def bound_counts(datasette: Datasette) -> None:
    """Runs once the stores have their databases."""
    stores = registry(datasette).stores
    if not stores:
        return
    compat.set_default(datasette, "suggest_facets", False)
    for name, state in stores.items():
        database: Any = datasette.get_database(name)
        database.execute = bounded(database.execute, uncounted_in(state))


def uncounted_in(state: StoreState) -> Callable[[], Collection[str]]:
    """Tells, at any time, which tables of a store are not counted: the file may change its tables."""
    return lambda: hidden_names(state.shape)


def bounded(execute: Execute, uncounted: Callable[[], Collection[str]]) -> Execute:
    """`Database.execute` with a time limit for a page's count, and none of the time for `uncounted` tables.

    A query that a visitor wrote is truncated, the count of a table page comes without options, the
    counts of a page of all tables with a limit. Both lines show a count that ran out of time as none.
    """

    async def execute_within_limit(sql: str, params: Any = None, *args: Any, **options: Any) -> Any:
        if not args and options.keys() <= {"custom_time_limit"} and sql.startswith(COUNT):
            if counted_table(sql) in uncounted():
                raise QueryInterrupted("parts of an index are not counted", sql, params)
            if not options:
                options = {"custom_time_limit": COUNT_LIMIT_MS, "log_sql_errors": False}
        return await execute(sql, params, *args, **options)

    return execute_within_limit


def counted_table(sql: str) -> str | None:
    """The table whose rows a count of Datasette's counts; None if it is no such count."""
    match = _COUNTED.match(sql)
    if match is None:
        return None
    bracketed, quoted, bare = match.groups()
    return bracketed or (quoted.replace('""', '"') if quoted else bare)
