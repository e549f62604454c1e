"""Every difference between Datasette 0.65 and 1.0 that a plugin of ours meets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette import __version__
from datasette.utils import tilde_decode

if TYPE_CHECKING:
    from datasette.app import Datasette

IS_1 = int(__version__.split(".")[0]) >= 1
"""Whether this is the 1.0 line."""


def database_in_address(request: Any) -> str | None:
    """The database that a request's route names, decoded; None where it names none."""
    named = request.url_vars.get("database")
    return tilde_decode(named) if named is not None else None


async def may(datasette: Datasette, actor: dict[str, Any] | None, action: str, database: str) -> bool:
    """Whether an actor may do `action` (`view-database`, `execute-sql`) on a database."""
    if IS_1:
        from datasette.resources import DatabaseResource

        return bool(await datasette.allowed(action=action, resource=DatabaseResource(database), actor=actor))
    allowed, _private = await datasette.check_visibility(actor, permissions=_chain(action, database))
    return bool(allowed)


def _chain(action: str, database: str) -> list[Any]:
    return [(action, database), "view-instance"] if action != "view-instance" else ["view-instance"]


async def may_view_database(datasette: Datasette, actor: dict[str, Any] | None, database: str) -> bool:
    """Whether an actor may see a database."""
    return await may(datasette, actor, "view-database", database)


async def may_view_query(datasette: Datasette, actor: dict[str, Any] | None, database: str, query: str) -> bool:
    """Whether an actor may see a canned query and its rows."""
    if IS_1:
        from datasette.resources import QueryResource

        return bool(await datasette.allowed(action="view-query", resource=QueryResource(database, query), actor=actor))
    permissions = [("view-query", (database, query)), ("view-database", database), "view-instance"]
    allowed, _private = await datasette.check_visibility(actor, permissions=permissions)
    return bool(allowed)


def set_default(datasette: Datasette, name: str, value: Any) -> bool:
    """Sets one of Datasette's own settings unless the user set it; returns whether it is ours now.

    Both lines merge the user's settings over their defaults, so a value that differs from the
    default is the user's.
    """
    from datasette.app import DEFAULT_SETTINGS

    settings = datasette._settings
    if settings.get(name) != DEFAULT_SETTINGS[name]:
        return False
    settings[name] = value
    return True
