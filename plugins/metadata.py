"""Gives every store its descriptions, its search and its table settings; what the user set wins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from jinja2 import Environment

from state_ledger import store_metadata
from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry
from state_ledger.store_metadata import additions, of_instance, shipped

if TYPE_CHECKING:
    from datasette.app import Datasette

TABLE_CONFIGURATION = frozenset(
    {
        "hidden", "sort", "sort_desc", "size", "sortable_columns", "label_column", "facets", "fts_table",
        "fts_pk", "searchmode",
    }
)  # fmt: skip
"""What 1.0 reads from the configuration and 0.65 from the metadata."""

PERMISSION_LOOKUPS = frozenset({"allow", "allow_sql", "permissions", "plugins", "queries", "tables"})
"""Keys under which 0.65 looks for what we never say, up to several times for each table of a page."""


@hookimpl
def prepare_jinja2_environment(env: Environment, datasette: Datasette) -> None:
    """Takes back what Datasette itself read from the shipped file, as it does in a checkout.

    There it would stand for a database named like the template, whatever tables that has. This hook
    is the one that both lines call before they use what they read.
    """
    datasette._metadata_local = store_metadata.without(datasette._metadata_local, shipped())
    if compat.IS_1:
        datasette.config = store_metadata.without(datasette.config or {}, shipped())


@hookimpl(specname="startup", trylast=True)
def describe_stores(datasette: Datasette) -> Callable[[], Awaitable[None]]:
    """Runs once the stores have their names."""

    async def describe() -> None:
        stores = {}
        for name, state in registry(datasette).stores.items():
            database = datasette.get_database(name)
            tables = store_metadata.described_tables(state.shape)
            columns = {table: await database.table_columns(table) for table in tables}
            stores[name] = store_metadata.of_store(state.shape, columns)
        if not stores:
            return
        if compat.IS_1:
            _configure_tables(datasette, stores)
            await _describe(datasette, stores)
        else:
            ours = {**of_instance(), "databases": stores}
            datasette._state_ledger_metadata = additions(datasette._metadata_local, ours)

    return describe


@hookimpl(tryfirst=True)
def get_metadata(datasette: Datasette, key: str | None) -> dict[str, Any]:
    """0.65 asks this for every lookup, and changes what it gets.

    First of all plugins, since what comes later wins.
    """
    if key in PERMISSION_LOOKUPS:
        return {}
    return store_metadata.copy(getattr(datasette, "_state_ledger_metadata", {}))


@hookimpl
def extra_template_vars(
    datasette: Datasette, template: str, database: str | None, request: Any
) -> Callable[[], Awaitable[dict[str, Any]]] | dict[str, Any]:
    """Leaves the hidden views out of the stock page of a store: Datasette lists every view there is."""
    state = registry(datasette).stores.get(database) if database is not None else None
    if template != "database.html" or state is None:
        return {}

    async def views() -> dict[str, Any]:
        hidden = store_metadata.hidden_names(state.shape)
        actor = request.actor if request else None
        listed = []
        for view in await datasette.get_database(state.store.name).view_names():
            if view not in hidden:
                visible, private = await compat.visibility(datasette, actor, "table", state.store.name, view)
                if visible:
                    listed.append({"name": view, "private": private})
        return {"views": listed}

    return views


def _configure_tables(datasette: Datasette, stores: Mapping[str, Any]) -> None:
    databases = datasette.config.setdefault("databases", {})
    for name, store in stores.items():
        tables = (databases.setdefault(name, {})).setdefault("tables", {})
        for table, metadata in store["tables"].items():
            given = tables.setdefault(table, {})
            ours = {key: value for key, value in metadata.items() if key in TABLE_CONFIGURATION}
            given.update(additions(given, ours))


async def _describe(datasette: Datasette, stores: Mapping[str, Any]) -> None:
    """Writes the descriptions to 1.0's internal database, in one go: there are hundreds."""
    instance = additions(await datasette.get_instance_metadata(), of_instance())
    databases, tables, columns = [], [], []
    for name, store in stores.items():
        databases.append((name, "description", store["description"]))
        for table, metadata in store["tables"].items():
            if "description" in metadata:
                tables.append((name, table, "description", metadata["description"]))
            for column, text in metadata.get("columns", {}).items():
                columns.append((name, table, column, "description", text))
    internal = datasette.get_internal_database()
    for target, rows in (
        ("metadata_instance (key, value)", list(instance.items())),
        ("metadata_databases (database_name, key, value)", databases),
        ("metadata_resources (database_name, resource_name, key, value)", tables),
        ("metadata_columns (database_name, resource_name, column_name, key, value)", columns),
    ):
        places = ", ".join("?" * (target.count(",") + 1))
        await internal.execute_write_many(f"INSERT INTO {target} VALUES ({places}) ON CONFLICT DO NOTHING", rows)
