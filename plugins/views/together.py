"""All stores of this instance that a visitor may see: one shelf, on a thread of its own.

Datasette's own threads stay free for the pages of single stores while a shelf reads. `?store=` narrows each
address; it may be given several times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from datasette.utils import tilde_decode
from datasette.utils.asgi import Forbidden, NotFound, Response
from markupsafe import Markup

from state_ledger.errors import ParameterError, StateLedgerError
from state_ledger.pages import figures, provenance, tables
from state_ledger.pages.asking import Ask
from state_ledger.pages.cost import OF_STORES
from state_ledger.pages.home import Home
from state_ledger.pages.links import AllLinks
from state_ledger.pages.sums import Record
from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import live, page
from state_ledger.plugins.views.places import Find, Place
from state_ledger.questions import load
from state_ledger.shelf import Member, Reading, Shelf
from state_ledger.shelf.catalogue import catalogue
from state_ledger.shelf.keeping import of_one_session

if TYPE_CHECKING:
    from datasette.app import Datasette

T = TypeVar("T")

READ_S = 10.0
"""Seconds after which a page goes without the stores that were not read yet; asking again goes on."""


class _Desk:
    """The shelf of an instance and the thread on which it is asked."""

    def __init__(self, datasette: Datasette) -> None:
        held = registry(datasette)
        self.shelf = Shelf(held.settings, held.watches)
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="state-ledger-shelf")


class Together(Place):
    """Stores of this instance as one.

    names: the stores that this visitor may see. left_out: those that could not be opened at start, with the reason.
    """

    groups = OF_STORES
    cache = ("cache_ratio_per_store", "cache_ratio_per_model", "cache_ratio_per_source", "cache_worst_sessions")
    taken: Mapping[str, str] = {}

    def __init__(self, datasette: Datasette, names: list[str], at: AllLinks, left_out: Mapping[str, str]) -> None:
        self.datasette = datasette
        self.names = names
        self.at = at
        self.left_out = dict(left_out)
        self.known = catalogue()

    async def read(self, reader: Callable[[Reading], T]) -> T:
        """Runs a reader on all stores as one, on the thread of the shelf."""
        desk = _desk(self.datasette)
        members = [_member(self.datasette, name) for name in self.names]

        def run() -> T:
            with desk.shelf.reading(members, only=self.at.only, budget_s=READ_S) as reading:
                reading.missing.update(self.left_out)
                return reader(reading)

        return await asyncio.get_running_loop().run_in_executor(desk.thread, run)

    @property
    def live(self) -> dict[str, str]:
        return page.live(self.datasette, self.names, self.at)

    def parts(self, ask: Ask, asked: Mapping[str, str]) -> list[Record]:
        """Every store with what it cost in a period; one without usage in it has no sums."""
        try:
            spent = {row["store"]: row for row in ask("cost_per_store", asked).rows}
            return [{**row, "sums": spent.get(row["store"])} for row in ask("stores").rows]
        except StateLedgerError:
            return []  # the home says of the same figures what is late

    def home(self, home: Home, parts: list[Record]) -> dict[str, Any]:
        zone = registry(self.datasette).settings.zone_name
        said = provenance.basis(home.asked["tz"], home.asked["day_rule"])
        return {
            "facts": [
                figures.plural(len(self.at.only or self.names), "store"),
                figures.plural(home.overview.sessions, "session"),
                f"last activity {figures.moment(home.overview.last_active, zone)}",
            ],
            "stores": Markup(_stores_table(parts, self.datasette)),
            "stores_provenance": Markup(provenance.line(said, self.at, "cost_per_store", home.asked)),
        }

    def elsewhere(self, reading: Reading, name: str, values: Mapping[str, str]) -> str:
        """Messages are in their store alone."""
        if not of_one_session(self.known[name]):
            return ""
        store, session_id = reading.owner(values.get("session", ""))
        return page.links(self.datasette, store).query(name, {**values, "session": session_id}, form="csv")

    async def transcript(self, request: Any) -> Response:
        """Leads to the transcript in the store whose copy of the session counts."""
        found = await self.read(lambda reading: reading.place(tilde_decode(request.url_vars["session"])))
        if found is None:
            raise NotFound("No store that you may see has this session.")
        member, session_id = found
        kept = {name: request.args.get(name) for name in ("message",) if request.args.get(name)}
        at = page.links(self.datasette, member.name)
        return Response.redirect(at.transcript(request.url_vars["kind"], session_id, kept))


class FindTogether(Find):
    """The stores that a request asks about, of those that this visitor may see."""

    async def __call__(self, datasette: Datasette, request: Any, question: str = "") -> Together:
        """With a question, only stores whose visitor may see its rows. Raises Forbidden for who may see none."""
        names = await page.visible_stores(datasette, request)
        if question in load():
            names = [each for each in names if await compat.may_view_query(datasette, request.actor, each, question)]
        return _narrowed(datasette, request, names, await page.left_out(datasette, request))

    async def version(self, datasette: Datasette, request: Any) -> str:
        names = await live.granted(datasette, request, "", lambda: page.visible_stores(datasette, request))
        return _narrowed(datasette, request, names, {}).live["version"]

    def links(self, datasette: Datasette) -> AllLinks:
        return page.all_links(datasette)


FIND = FindTogether()


def _narrowed(datasette: Datasette, request: Any, names: list[str], left_out: Mapping[str, str]) -> Together:
    """The stores of these names, narrowed as the address says."""
    if not registry(datasette).stores:
        raise NotFound("No store is served here.")
    if not names:
        raise Forbidden("view-database")
    wanted = [each.strip() for text in request.args.getlist("store") for each in text.split(",")]
    only = tuple(dict.fromkeys(each for each in wanted if each))
    for each in only:
        if each not in names:
            raise ParameterError("store", each, f"choose among {', '.join(names)}")
    return Together(datasette, names, page.all_links(datasette, only), left_out)


def _desk(datasette: Datasette) -> _Desk:
    held: _Desk | None = getattr(datasette, "_state_ledger_desk", None)
    if held is None:
        held = datasette._state_ledger_desk = _Desk(datasette)
    return held


def _member(datasette: Datasette, name: str) -> Member:
    database = datasette.get_database(name)
    profile = registry(datasette).stores[name].store.profile
    return Member(name, Path(str(database.path)), profile, immutable=not database.is_mutable)


def _stores_table(rows: list[Record], datasette: Datasette) -> str:
    zone = registry(datasette).settings.zone_name
    columns = [tables.Column("Store"), tables.Column("Cost", True), tables.Column("Cache read", True),
               tables.Column("Sessions", True), tables.Column("Last activity")]  # fmt: skip
    cells = []
    for row in rows:
        sums = row["sums"] or {}
        ratio = sums.get("cache_read_ratio")
        cost = figures.money(sums.get("cost_usd")) if sums else "none"
        cells.append([
            tables.Cell(row["store"], page.links(datasette, row["store"]).home, sub=f"profile {row['profile']}"),
            tables.Cell(cost, word=not cost.startswith("$")),
            tables.Cell(figures.ratio(ratio), word=ratio is None),
            tables.Cell(figures.count(row["sessions"])),
            tables.Cell(figures.moment(row["last_active"], zone)),
        ])  # fmt: skip
    return tables.table("Cost of the last 30 days; all sessions of each store", columns, cells, name="stores-table")
