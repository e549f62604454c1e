"""Where the pages and queries of one store are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

_SEARCH_FORMS = {"": "search", "json": "search.json", "count": "search-count.json"}


@dataclass(frozen=True)
class Links:
    """Addresses of one store; `database` is its path as the site gives it, base URL included."""

    database: str

    @property
    def home(self) -> str:
        """The store's home."""
        return self.database

    @property
    def plain(self) -> str:
        """The stock Datasette page of the database: tables, views, own SQL."""
        return f"{self.database}/-/tables"

    def cost(self, parameters: Mapping[str, str] | None = None) -> str:
        """The cost page."""
        return _with(f"{self.database}/-/cost", parameters)

    def search(self, parameters: Mapping[str, Any] | None = None, *, form: str = "") -> str:
        """The search page; `form` is empty for the page, `json` for what is on it, `count` for how many there are.

        A parameter may have several values.
        """
        return _with(f"{self.database}/-/{_SEARCH_FORMS[form]}", parameters)

    def table(self, name: str, filters: Mapping[str, str]) -> str:
        """A table on its stock Datasette page, with Datasette's own filters."""
        return _with(f"{self.database}/{name}", filters)

    def sessions(self, parameters: Mapping[str, str]) -> str:
        """The sessions behind a cost, as many as one page of Datasette gives, so that they add up to it."""
        return self.query("cost_sessions", {**parameters, "limit": "1000"})

    def export_page(self, scope: Mapping[str, str]) -> str:
        """The page on which to choose an export; `scope` is `{"session": id}` and the like, {} for all."""
        return _with(f"{self.database}/-/export", scope)

    def export(self, kind: str, value: str, form: str, parameters: Mapping[str, str] | None = None) -> str:
        """The file of a session, conversation, work, source or search (`kind`), or of `all`; `form` is its ending."""
        return _with(f"{self.database}/-/export/{kind}.{form}", {"id": value, **(parameters or {})})

    def whole_answer(self, name: str, form: str, parameters: Mapping[str, str] | None = None) -> str:
        """Every row of a canned query as a file: `csv`, `json`, `ndjson` or `parquet`."""
        return _with(f"{self.database}/-/export/question/{name}.{form}", parameters)

    def query(self, name: str, parameters: Mapping[str, str] | None = None, *, form: str = "") -> str:
        """A canned query; `form` is empty for its page, `json` for objects, `csv` for a file of all rows."""
        shape = {"_shape": "objects"} if form == "json" else {}
        suffix = f".{form}" if form else ""
        return _with(f"{self.database}/{name}{suffix}", {**(parameters or {}), **shape})


def message_link(links: Links, message_id: int, session_id: str) -> str:
    """Where a message is read: its row page."""
    del session_id  # a page of the whole session would need it
    return f"{links.database}/messages/{message_id}"


def session_link(links: Links, session_id: str) -> str:
    """Where a session is read: the conversation it belongs to."""
    return links.query("lineage_conversation", {"session": session_id})


def _with(path: str, parameters: Mapping[str, Any] | None) -> str:
    kept = {name: value for name, value in (parameters or {}).items() if value not in ("", None, (), [])}
    return f"{path}?{urlencode(kept, doseq=True)}" if kept else path
