"""The search box of Datasette's own table pages: a search term filters, or the answer is an error.

Datasette drops `_search` without a word where it knows no index for a table, and every row comes back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from datasette.filters import FilterArguments
from datasette.utils.asgi import BadRequest

from state_ledger.plugins import compat
from state_ledger.plugins.address import App, Scope
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette



@hookimpl(tryfirst=True)
def filters_from_request(
    request: Any, database: str, table: str, datasette: Datasette
) -> Callable[[], Awaitable[FilterArguments]] | None:
    """Answers 400, with a sentence, to a search that cannot be done; otherwise adds nothing."""
    terms = search_terms(request.args)
    if not terms or database not in registry(datasette).stores:
        return None

    from state_ledger.full_text.health import why_unusable

    async def refuse_useless_search() -> FilterArguments:
        for term in terms:
            # What comes after a NUL never reaches the index.
            if not term.partition("\0")[0].replace('"', "").strip():
                raise BadRequest("The search term has no word in it.")
        index = await index_of(datasette, database, table, request.args.get("_fts_table"))
        reason = await datasette.get_database(database).execute_fn(
            lambda connection: why_unusable(connection, index, table)
        )
        if reason is not None:
            raise BadRequest(f"{reason} Nothing was searched; take _search out of the address to see all rows.")
        return FilterArguments([])

    return refuse_useless_search


@hookimpl
def asgi_wrapper(datasette: Datasette) -> Callable[[App], App]:
    """Takes an empty search box out of the address: a form sends it along with every filter.

    Datasette asks the index for nothing then, which is an error of syntax there.
    """

    def wrap(app: App) -> App:
        async def without_empty_search(scope: Scope, receive: Any, send: Any) -> None:
            query = scope.get("query_string", b"")
            if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and b"_search=" in query:
                parts = [part for part in query.split(b"&") if part != b"_search="]
                scope = {**scope, "query_string": b"&".join(parts)}
            await app(scope, receive, send)

        return without_empty_search

    return wrap


def search_terms(arguments: Any) -> list[str]:
    """What a request looks for: `_search` and `_search_<column>`."""
    names = [name for name in arguments if name.startswith("_search") and name != "_searchmode"]
    return [term for name in names for term in arguments.getlist(name)]


async def index_of(
    datasette: Datasette, database: str, table: str, asked_for: str | None = None
) -> str | None:
    """The index that Datasette will search for a table; None if it knows none and would not search.

    asked_for: `_fts_table` of the address, which 0.65 obeys and 1.0 refuses.
    """
    if compat.IS_1:
        configured = await datasette.table_config(database, table)
    else:
        configured = datasette.table_metadata(database, table)
        if asked_for:
            return asked_for
    found = configured.get("fts_table") or await datasette.get_database(database).fts_table(table)
    return str(found) if found else None
