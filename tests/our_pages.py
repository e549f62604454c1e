"""Every page of ours, from the table of routes: a page that is added is loaded by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from datasette.app import Datasette
from datasette.plugins import pm

from state_ledger import questions
from state_ledger.plugins import assets
from state_ledger.plugins.routes import EVERY, FLEET
from state_ledger.portability.formats import FORMATS
from state_ledger.portability.question_file import FORMS
from state_ledger.portability.scope import KINDS
from state_ledger.shelf.catalogue import catalogue
from state_ledger.stores import name_stores
from tests.routes import addresses

MISSING = () if find_spec("pyarrow") else ("parquet",)
SEARCHES = ("search", "search.json", "search-count.json", "find")


def pages(path: Path, session: str, word: str, *, every: bool = True) -> list[str]:
    """An address for each route of ours, on a store, or for each thing that a route may name if `every`.

    session: one of the store's, of the source cli. word: stands in one of its messages.
    """
    name = name_stores([path])[0].name
    asked = list(questions.load())
    values: dict[str, Sequence[str]] = {
        "database": [name], "session": [session], "query": asked, "scope": KINDS,
        "version": [assets.version()], "file": ["ledger.css", "ledger.js"],
    }  # fmt: skip
    found = ["/", "/?figures=1", f"/{name}", f"/{name}/sessions", f"/{name}/sessions/{session}", f"/{name}/messages"]
    for number, (pattern, _view) in enumerate(routes(path)):
        forms = [each for each in (FORMS if "/question/" in pattern.pattern else FORMATS) if each not in MISSING]
        over_all = {"query": list(catalogue())} if pattern.pattern.startswith(EVERY) else {}
        if pattern.pattern.startswith(FLEET):  # no store has a fleet beside it: any of its questions is one page
            over_all = {"query": ["hosts"]}
        made = addresses(pattern, {**values, "format": forms, **over_all})
        found += made if every else [made[number % len(made)]]
    found += [f"/{name}/{each}{end}" for each in asked[: None if every else 1] for end in ("", ".json", ".csv")]
    return [f"{each}{_query(each, session, word)}" for each in found]


def routes(path: Path) -> Iterator[tuple[Any, Any]]:
    """Pattern and view of each route that a plugin of ours adds."""
    import re

    datasette = Datasette([str(path)])
    try:
        for made in pm.hook.register_routes(datasette=datasette):
            for pattern, view in made:
                if str(view.__module__).startswith("state_ledger."):
                    yield re.compile(pattern), view
    finally:
        for database in datasette.databases.values():
            database.close()


def _query(address: str, session: str, word: str) -> str:
    """What an address has to be asked with, to be about something."""
    page = address.rpartition("/")[2]
    is_export = "/-/export/" in address
    if page in SEARCHES and not is_export:
        return f"?q={word}"
    if page == "why.json":
        return f"?session={session}"
    if is_export and "/question/" not in address:
        scope = page.partition(".")[0]
        return {"search": f"?id={word}", "source": "?id=cli", "all": ""}.get(scope, f"?id={session}")
    return ""
