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


async def visibility(
    datasette: Datasette, actor: dict[str, Any] | None, kind: str, database: str, name: str = ""
) -> tuple[bool, bool]:
    """Whether an actor may see something, and whether others may not.

    kind: `database`, or `table` (also a view) or `query` of that `name` in it.
    """
    if IS_1:
        from datasette import resources

        resource: Any = {
            "database": lambda: resources.DatabaseResource(database),
            "table": lambda: resources.TableResource(database, name),
            "query": lambda: resources.QueryResource(database, name),
        }[kind]()
        visible, private = await datasette.check_visibility(actor, f"view-{kind}", resource)
    else:
        chain: list[Any] = [("view-database", database), "view-instance"]
        if kind != "database":
            chain.insert(0, (f"view-{kind}", (database, name)))
        visible, private = await datasette.check_visibility(actor, permissions=chain)
    return bool(visible), bool(private)


async def may_view_instance(datasette: Datasette, actor: dict[str, Any] | None) -> bool:
    """Whether an actor may see the instance at all."""
    if IS_1:
        return bool(await datasette.allowed(action="view-instance", actor=actor))
    visible, _private = await datasette.check_visibility(actor, permissions=["view-instance"])
    return bool(visible)


async def may_view_database(datasette: Datasette, actor: dict[str, Any] | None, database: str) -> bool:
    """Whether an actor may see a database."""
    return (await visibility(datasette, actor, "database", database))[0]


async def may_view_query(datasette: Datasette, actor: dict[str, Any] | None, database: str, query: str) -> bool:
    """Whether an actor may see a canned query and its rows."""
    return (await visibility(datasette, actor, "query", database, query))[0]


def jinja_environment(datasette: Datasette) -> Any:
    """What templates of ours are found and rendered in."""
    return datasette.get_jinja_environment() if IS_1 else datasette.jinja_env


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
