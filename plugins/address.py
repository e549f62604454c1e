"""The address of a request as it was sent: read and rewritten by wrappers around the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasette.app import Datasette

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


def path_of(scope: Scope) -> str:
    """The path, still encoded (`foo~2Fbar` is not `foo/bar`), without the query string."""
    raw = scope.get("raw_path")
    # Latin-1 knows every byte: what a client may send must not fail here.
    return (raw.decode("latin-1") if raw else str(scope["path"])).partition("?")[0]


def split_base(datasette: Datasette, path: str) -> tuple[str, str]:
    """A path as (the base URL without its last slash, the rest); ('', path) where it is not below it."""
    base = str(datasette.setting("base_url")).rstrip("/")
    return (base, path[len(base) :]) if base and path.startswith(base + "/") else ("", path)


def at(scope: Scope, path: str) -> Scope:
    """The same request for another path."""
    return {**scope, "path": path, "raw_path": path.encode("latin-1")}
