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
    def answered_by(self) -> str:
        """A sentence that names who answers, '' for the store itself."""
        return ""

    @property
    def home(self) -> str:
        """The store's home."""
        return self.database

    @property
    def plain(self) -> str:
        """The stock Datasette page of the database: tables, views, own SQL."""
        return f"{self.database}/-/tables"

    @property
    def card(self) -> str:
        """The store's card on the index, with its figures: a piece of a page."""
        return f"{self.database}/-/card"

    @property
    def live(self) -> str:
        """What tells whether the store has changed."""
        return f"{self.database}/-/live.json"

    def cost(self, parameters: Mapping[str, str] | None = None) -> str:
        """The cost page."""
        return _with(f"{self.database}/-/cost", parameters)

    def ops(self, parameters: Mapping[str, str] | None = None, *, form: str = "", part: str = "") -> str:
        """The ops page; `form` is empty for the page, `json` for what is on it; `part` is the id of a part of it."""
        path = f"{self.database}/-/ops{f'.{form}' if form else ''}"
        return _with(path, parameters) + (f"#{part}" if part else "")

    def money(self, parameters: Mapping[str, str] | None = None) -> str:
        """The page of list prices: repriced history, cache savings, subscriptions, costs that look wrong."""
        return _with(f"{self.database}/-/money", parameters)

    @property
    def reconcile(self) -> str:
        """The page on which a bill is compared."""
        return f"{self.database}/-/reconcile"

    def session(self, session_id: str, parameters: Mapping[str, str] | None = None) -> str:
        """The transcript of a session."""
        return self.transcript("session", session_id, parameters)

    def conversation(self, session_id: str, parameters: Mapping[str, str] | None = None) -> str:
        """The transcript of the conversation that a session belongs to."""
        return self.transcript("conversation", session_id, parameters)

    def work(self, session_id: str, parameters: Mapping[str, str] | None = None) -> str:
        """The transcript of the piece of work that a session belongs to."""
        return self.transcript("work", session_id, parameters)

    def transcript(self, kind: str, session_id: str, parameters: Mapping[str, str] | None = None) -> str:
        """The transcript of a `session`, `conversation` or `work`."""
        return _with(f"{self.database}/-/{kind}/{tilde(session_id)}", parameters)

    def message(self, session_id: str, message_id: int) -> str:
        """A message in the transcript of its session, with what surrounds it."""
        return f"{self.session(session_id)}?message={message_id}#m{message_id}"

    def row(self, table: str, key: object, *, form: str = "") -> str:
        """One row on its stock Datasette page, or in another form: `json`."""
        return f"{self.database}/{tilde(table)}/{tilde(str(key))}{f'.{form}' if form else ''}"

    def search(self, parameters: Mapping[str, Any] | None = None, *, form: str = "") -> str:
        """The search page; `form` is empty for the page, `json` for what is on it, `count` for how many there are.

        A parameter may have several values.
        """
        return _with(f"{self.database}/-/{_SEARCH_FORMS[form]}", parameters)

    def table(self, name: str, filters: Mapping[str, str]) -> str:
        """A table on its stock Datasette page, with Datasette's own filters."""
        return _with(f"{self.database}/{name}", filters)

    def why(self, parameters: Mapping[str, str]) -> str:
        """The cost drivers of a session, conversation, work or day as JSON."""
        return _with(f"{self.database}/-/why.json", parameters)

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


@dataclass(frozen=True)
class AllLinks(Links):
    """Addresses of several stores as one; `database` is where their pages are.

    only: the stores to which every page stays narrowed; () for all.
    """

    only: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the stores as one are called."""
        return "All stores"

    @property
    def kept(self) -> dict[str, tuple[str, ...]]:
        """What every address stays narrowed to: the values of each parameter, none where it does not narrow."""
        return {"store": self.only}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The same as names and values, for the hidden fields of a form."""
        return [(name, value) for name, values in self.kept.items() for value in values]

    @property
    def sections(self) -> list[tuple[str, str, str]]:
        """The pages that the header leads to: what each is called, its address and its key."""
        return [
            ("Home", self.home, "home"),
            ("Cost", self.cost(), "cost"),
            ("Cache", self.cache, "cache"),
            ("Search", self.search(), "search"),
            ("Questions", f"{self.home}#queries", ""),
        ]

    @property
    def finder(self) -> str:
        """Where the search box of the header leads."""
        return self.search()

    @property
    def finds(self) -> str:
        """What that box looks for."""
        return "Search messages"

    @property
    def home(self) -> str:
        return self._at("")

    def cost(self, parameters: Mapping[str, str] | None = None) -> str:
        return self._at("/cost", parameters)

    def money(self, parameters: Mapping[str, str] | None = None) -> str:
        """History at list prices; the other questions of money are on the home."""
        given = {name: value for name, value in (parameters or {}).items() if name != "period"}
        return self.query("repriced", given)

    @property
    def reconcile(self) -> str:
        return self.query("reconcile")

    @property
    def cache(self) -> str:
        """The cache page: per store, model, source and profile."""
        return self._at("/cache")

    def transcript(self, kind: str, session_id: str, parameters: Mapping[str, str] | None = None) -> str:
        """Where the transcript is found: leads on to the store that has the session."""
        return self._at(f"/{kind}/{tilde(session_id)}", parameters)

    def search(self, parameters: Mapping[str, Any] | None = None, *, form: str = "") -> str:
        return self._at("/search.json" if form else "/search", parameters)

    def table(self, name: str, filters: Mapping[str, str]) -> str:
        """Stores have no table in common: the sessions whose id or title holds what the filters name."""
        return self.query("search_sessions", {"q": " ".join(filters.values())})

    def query(self, name: str, parameters: Mapping[str, str] | None = None, *, form: str = "") -> str:
        return self._at(f"/{name}{f'.{form}' if form else ''}", parameters)

    @property
    def live(self) -> str:
        """What tells whether any of the stores has changed."""
        return self._at("/live.json")

    def _at(self, path: str, parameters: Mapping[str, Any] | None = None) -> str:
        given = parameters or {}
        return _with(
            f"{self.database}{path}",
            {**given, **{name: given.get(name) or values for name, values in self.kept.items()}},
        )


@dataclass(frozen=True)
class FleetLinks(AllLinks):
    """Addresses of the books of a fleet.

    only: as there, each `host/profile`; hosts, profiles: those to which every page stays narrowed, () for all.
    engine: who answers, if that is known.
    """

    hosts: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    engine: str = ""

    @property
    def title(self) -> str:
        return "Fleet"

    @property
    def kept(self) -> dict[str, tuple[str, ...]]:
        return {"host": self.hosts, "profile": self.profiles, "store": self.only}

    @property
    def sections(self) -> list[tuple[str, str, str]]:
        return [
            ("Home", self.home, "home"),
            ("Cost", self.cost(), "cost"),
            ("Cache", self.cache, "cache"),
            ("Lineage", self.lineage(), "lineage"),
            ("Search", self.search(), "search"),
            ("Ops", self.ops(), "ops"),
            ("Questions", f"{self.home}#queries", ""),
        ]

    def message(self, session_id: str, message_id: int) -> str:
        """The messages of a session from one of them on."""
        return f"{self.session(session_id, {'after': str(message_id - 1)})}#m{message_id}"

    @property
    def answered_by(self) -> str:
        return f"Answered by {self.engine}." if self.engine else ""

    def lineage(self, session_id: str = "", *, part: str = "") -> str:
        """Conversations and what is wrong with parent links; with a session, where it belongs."""
        return self._at("/lineage", {"session": session_id}) + (f"#{part}" if part else "")

    def ops(self, parameters: Mapping[str, str] | None = None, *, form: str = "", part: str = "") -> str:
        """The ops page. It has no other form: each of its tables is a question, with JSON and CSV."""
        return self._at("/ops", parameters) + (f"#{part}" if part else "")

    def transcript(self, kind: str, session_id: str, parameters: Mapping[str, str] | None = None) -> str:
        """The messages of a session; conversations and work are on the lineage page."""
        return self._at(f"/{kind}/{tilde(session_id)}", parameters)


def message_link(links: Links, message_id: int, session_id: str) -> str:
    """Where a message is read: the transcript of its session opened at it."""
    return links.message(session_id, message_id)


def session_link(links: Links, session_id: str) -> str:
    """Where a session is read: its transcript."""
    return links.session(session_id)


def tilde(text: str) -> str:
    """Text as one part of a path, the way Datasette writes names: `a/b.c` is `a~2Fb~2Ec`, a blank is `+`."""
    return "".join(
        chr(byte) if byte in _PLAIN else "+" if byte == 0x20 else f"~{byte:02X}"
        for byte in text.encode("utf-8", "surrogatepass")
    )


_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def _with(path: str, parameters: Mapping[str, Any] | None) -> str:
    kept = {name: value for name, value in (parameters or {}).items() if value not in ("", None, (), [])}
    return f"{path}?{urlencode(kept, doseq=True)}" if kept else path
