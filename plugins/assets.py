"""Templates and static files of state-ledger, found in a checkout and in a wheel alike.

Static files have a hash of their content in the URL, so that a browser may keep them for ever.
Stock Datasette pages get one small stylesheet and a way back to the store's home.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from datasette.utils.asgi import NotFound, Response
from jinja2 import ChoiceLoader, Environment, FileSystemLoader

from state_ledger.assets import folder

if TYPE_CHECKING:
    from datasette.app import Datasette

CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml; charset=utf-8",
}  # fmt: skip
ROUTE = r"/-/state-ledger/static/(?P<version>[0-9a-f]+)/(?P<file>[^/]+)$"
OURS = "ledger_"
"""How the names of our own pages' templates begin; every other template is a stock page's."""


@lru_cache(maxsize=1)
def _files() -> dict[str, bytes]:
    """Every static file by name: a dozen kilobytes, read once."""
    return {path.name: path.read_bytes() for path in sorted(folder("static").iterdir()) if path.suffix in CONTENT_TYPES}


@lru_cache(maxsize=1)
def version() -> str:
    """A hash over all static files, the part of their URLs that changes when they do."""
    digest = hashlib.sha256()
    for name, body in _files().items():
        digest.update(name.encode() + b"\0" + body)
    return digest.hexdigest()[:12]


def static_path(name: str) -> str:
    """The path of a static file, before Datasette's base URL is put in front of it."""
    return f"/-/state-ledger/static/{version()}/{name}"


async def static_file(request: Any) -> Response:
    """Serves one static file. Cached for a year under its own version, not at all under another."""
    name = request.url_vars["file"]
    body = _files().get(name)
    if body is None:
        raise NotFound(f"No static file named {name}")
    current = request.url_vars["version"] == version()
    cache = "public, max-age=31536000, immutable" if current else "no-cache"
    return Response(
        body,
        headers={"Cache-Control": cache, "X-Content-Type-Options": "nosniff"},
        content_type=CONTENT_TYPES[name[name.rindex(".") :]],
    )


@hookimpl
def register_routes() -> list[tuple[str, Any]]:
    return [(ROUTE, static_file)]


@hookimpl
def prepare_jinja2_environment(env: Environment) -> None:
    """Puts our templates before Datasette's own and after the user's and other plugins'."""
    loaders = env.loader.loaders if isinstance(env.loader, ChoiceLoader) else []
    ours = str(folder("templates"))
    for loader in loaders:
        if isinstance(loader, FileSystemLoader):
            # `datasette serve .` in a checkout has this folder already, as --template-dir.
            if not any(_same(ours, known) for known in loader.searchpath):
                loader.searchpath.insert(len(loader.searchpath) - 1, ours)
            return
    env.loader = ChoiceLoader([*([env.loader] if env.loader else []), FileSystemLoader(ours)])


def _same(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


@hookimpl
def extra_css_urls(template: str) -> list[str]:
    """The stylesheet of stock pages; our own pages name theirs in their template."""
    return [] if template.startswith(OURS) else [static_path("stock.css")]


@hookimpl
def menu_links(datasette: Datasette) -> list[dict[str, str]]:
    return [{"href": datasette.urls.path("/"), "label": "All stores (state-ledger)"}]
