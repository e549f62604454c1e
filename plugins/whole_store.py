"""Who may not see the tables in which a store says what was said and what it cost sees nothing made of them.

Datasette asks for each table, view, query and file by its own name and lets the others stand: with `allow`
under the table `messages` alone, our pages, questions and views and the store's full-text indexes would go on
telling what is in it. Here they follow the tables. So do SQL of one's own and the download of the file.

Datasette 0.65 tells everybody the names, paths and sizes of all databases; here it tells of those that a
visitor may see, as 1.0 does.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from datasette.plugins import pm
from datasette.views.special import JsonDataView

from state_ledger import questions
from state_ledger.plugins import compat
from state_ledger.plugins.address import App, Scope
from state_ledger.plugins.stores import registry
from state_ledger.shape import READ_COLUMNS
from state_ledger.store_metadata import hidden_names

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.plugins.stores import StoreState

Actor = dict[str, Any] | None

FOLLOWING = frozenset({"view-table", "view-query", "execute-sql", "view-database-download"})
"""The permissions that are refused along with one of the tables."""

OURS = ("datasette.", "state_ledger.")
"""Whose rules are known: what Datasette reads from the configuration, and what stands here."""

RULES = ("allow", "permissions")

_known: ContextVar[dict[tuple[str, str], bool] | None] = ContextVar("state_ledger_whole_stores", default=None)
_asking: ContextVar[bool] = ContextVar("state_ledger_asks_for_tables", default=False)


async def may_view_store(datasette: Datasette, actor: Actor, database: str) -> bool:
    """Whether an actor may see what our pages tell of a store: the database, and the tables they read."""
    return await compat.may_view_database(datasette, actor, database) and await _sees_tables(
        datasette, actor, database
    )


async def _sees_tables(datasette: Datasette, actor: Actor, database: str) -> bool:
    """Whether an actor may see each of the tables of a store that our pages read; asked once a request."""
    if not _ruled_by_table(datasette, actor, database):
        return True
    known = _known.get()
    key = (json.dumps(actor, sort_keys=True, default=str), database)
    if known is not None and key in known:
        return known[key]
    shape = registry(datasette).stores[database].shape
    token = _asking.set(True)
    try:
        seen = True
        for table in filter(shape.has, READ_COLUMNS):
            seen = seen and (await compat.visibility(datasette, actor, "table", database, table))[0]
    finally:
        _asking.reset(token)
    if known is not None:
        known[key] = seen
    return seen


def _ruled_by_table(datasette: Datasette, actor: Actor, database: str) -> bool:
    """Whether anything can tell tables of one database apart: costs nothing where nobody wrote such a rule."""
    if (actor or {}).get("_r") or getattr(datasette, "default_deny", False):
        return True  # a token for a part of what its owner may see
    hooks = [pm.hook.permission_resources_sql] if compat.IS_1 else [pm.hook.permission_allowed, pm.hook.get_metadata]
    if any(not _module(implementation).startswith(OURS) for hook in hooks for implementation in hook.get_hookimpls()):
        return True
    given: Mapping[str, Any] = (datasette.config if compat.IS_1 else datasette._metadata_local) or {}
    own = (given.get("databases") or {}).get(database) or {}
    tables = own.get("tables") or {}
    return (
        "permissions" in given
        or "permissions" in own
        or any(rule in (table or {}) for table in tables.values() for rule in RULES)
    )


def _module(implementation: Any) -> str:
    return str(getattr(implementation.function, "__module__", ""))


def _is_made_of_them(state: StoreState, action: str, name: str | None) -> bool:
    """Whether what a permission is asked for tells what the tables hold."""
    if action == "view-query":
        return name in questions.load()
    return action != "view-table" or name in hidden_names(state.shape)


@hookimpl(specname="permission_allowed", trylast=True)
def follow_the_tables(
    datasette: Datasette, actor: Actor, action: str, resource: Any
) -> Callable[[], Awaitable[bool | None]] | None:
    """Datasette 0.65 asks for one thing at a time; of several who answer the last one counts."""
    database, name = resource if isinstance(resource, tuple) else (resource, None)
    state = registry(datasette).stores.get(database) if action in FOLLOWING else None
    if state is None or _asking.get() or not _is_made_of_them(state, action, name):
        return None

    async def refused() -> bool | None:
        return None if await _sees_tables(datasette, actor, database) else False

    return refused


@hookimpl(specname="permission_resources_sql")
def rules_that_follow(
    datasette: Datasette, actor: Actor, action: str
) -> Callable[[], Awaitable[list[Any]]] | None:
    """Datasette 1.0 takes rules as SQL: a refusal for each thing that is made of what an actor may not see."""
    stores = registry(datasette).stores
    if action not in FOLLOWING or _asking.get() or not stores:
        return None

    async def rules() -> list[Any]:
        from datasette.permissions import PermissionSQL

        refused = [
            (database, name)
            for database in stores
            if not await _sees_tables(datasette, actor, database)
            for name in _named(datasette, database, action)
        ]
        if not refused:
            return []
        return [
            PermissionSQL(
                "SELECT json_extract(value, '$[0]') AS parent, json_extract(value, '$[1]') AS child, 0 AS allow,"
                " 'made of tables that may not be seen' AS reason FROM json_each(:state_ledger_refused)",
                {"state_ledger_refused": json.dumps(refused)},
            )
        ]

    return rules


def _named(datasette: Datasette, database: str, action: str) -> Iterator[str | None]:
    """What is refused in a store, by name; None for all of it."""
    state = registry(datasette).stores[database]
    if action == "view-query":
        yield from questions.load()
    elif action == "view-table":
        yield from hidden_names(state.shape)
    else:
        yield None


if not compat.IS_1:

    @hookimpl
    def register_routes(datasette: Datasette) -> list[tuple[str, Any]]:
        """Stands before the route of Datasette 0.65 of the same address."""
        return [(r"/-/databases(\.(?P<format>json))?$", VisibleDatabases.as_view(datasette, "databases.json", list))]


class VisibleDatabases(JsonDataView):
    """The databases that a visitor may see."""

    async def get(self, request: Any) -> Any:
        visible = [
            each
            for each in self.ds._connected_databases()
            if await compat.may_view_database(self.ds, request.actor, each["name"])
        ]
        self.data_callback = lambda: visible
        return await super().get(request)


@hookimpl
def asgi_wrapper(datasette: Datasette) -> Callable[[App], App]:
    """What is asked once is known until the end of a request."""

    def wrap(app: App) -> App:
        async def remembering(scope: Scope, receive: Any, send: Any) -> None:
            _known.set({})
            await app(scope, receive, send)

        return remembering

    return wrap
