"""Counts and facets that never hold up a table page of a big store.

Datasette counts the rows behind every table page and tries every column as a facet. With 700,000
messages (1.5 GB) that made pages of 3 to 5 s on 0.65: one second for the count, the rest for facets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from datasette import hookimpl

from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette

COUNT = "select count(*) from "
"""How both lines begin the query that counts the rows of a table page."""

COUNT_LIMIT_MS = 200
"""Milliseconds after which a table page goes without its count."""

Execute = Callable[..., Awaitable[Any]]


@hookimpl(specname="startup", trylast=True)
def bound_counts(datasette: Datasette) -> None:
    """Runs once the stores have their databases."""
    stores = registry(datasette).stores
    if not stores:
        return
    compat.set_default(datasette, "suggest_facets", False)
    for name in stores:
        database: Any = datasette.get_database(name)
        database.execute = bounded(database.execute)


def bounded(execute: Execute) -> Execute:
    """`Database.execute` with a time limit for a table page's count.

    A query that a visitor wrote comes with options (it is truncated), the count of a page with none;
    both lines show a page whose count ran out of time without one.
    """

    async def execute_within_limit(sql: str, params: Any = None, *args: Any, **options: Any) -> Any:
        if not args and not options and sql.startswith(COUNT):
            options = {"custom_time_limit": COUNT_LIMIT_MS, "log_sql_errors": False}
        return await execute(sql, params, *args, **options)

    return execute_within_limit
