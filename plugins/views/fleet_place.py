"""The books of a fleet as a place that reads: narrowed by `?host=`, `?profile=` and `?store=` (`host/profile`).

Each may be given several times, or several names with commas between them. `profile` is the profile under which a
store is pushed, so that it means the same for every question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from datasette.utils import tilde_decode
from datasette.utils.asgi import Forbidden, NotFound, Response
from markupsafe import Markup

from state_ledger.fleet import sources
from state_ledger.fleet.reading import FleetReading, Selection
from state_ledger.pages import figures, fleet_hosts
from state_ledger.pages.asking import Ask
from state_ledger.pages.cost import OF_FLEET
from state_ledger.pages.home import Home
from state_ledger.pages.links import AllLinks, FleetLinks
from state_ledger.pages.sums import Record
from state_ledger.plugins import fleet
from state_ledger.plugins.routes import FLEET
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import fleet_session, live, page
from state_ledger.plugins.views.places import Find, Place

if TYPE_CHECKING:
    from datasette.app import Datasette

T = TypeVar("T")

MOST_OFFERED = 300
"""How many hosts or profiles a form offers."""


class FleetPlace(Place):
    """The books of a fleet, as far as a request is narrowed.

    told: what the last reading said of the fleet, for every page; nothing before it.
    """

    groups = OF_FLEET
    cache = ("cache_ratio_per_host", "cache_ratio_per_store", "cache_ratio_per_model", "cache_ratio_per_source",
             "cache_worst_sessions")  # fmt: skip

    def __init__(self, datasette: Datasette, desk: fleet.Desk, selection: Selection, request: Any) -> None:
        self.datasette = datasette
        self.desk = desk
        self.selection = selection
        self.known = sources.catalogue_of(desk.fleet.where)
        self.at: FleetLinks = _links(datasette, selection, desk.fleet.where.engine)
        self.taken: Mapping[str, str] = {name: ", ".join(values) for name, values in self.at.kept.items()}
        self.told: dict[str, Any] = {}
        self._request = request

    async def read(self, reader: Callable[[FleetReading], T]) -> T:
        def run(reading: FleetReading) -> T:
            self.told = self._tell(reading)
            return reader(reading)

        return await self.desk.read(run, self.selection)

    @property
    def live(self) -> dict[str, str]:
        return {"href": self.at.live, "version": self.desk.fleet.version}

    @property
    def shown(self) -> dict[str, Any]:
        return {"fleet": self.told} if self.told else {}

    def parts(self, ask: Ask, asked: Mapping[str, str]) -> list[Record]:
        """The hosts, or the stores of the one host that is chosen."""
        return fleet_hosts.read(ask, asked, self._kind)

    def home(self, home: Home, parts: list[Record]) -> dict[str, Any]:
        zone = registry(self.datasette).settings.zone_name
        chosen = self.told["chosen"]
        kind = self._kind
        context = {
            "facts": [
                figures.plural(len({each.host for each in chosen}), "host"),
                figures.plural(len(chosen), "store"),
                figures.plural(home.overview.sessions, "session"),
                f"last activity {figures.moment(home.overview.last_active, zone)}",
            ],
            "stores_heading": "Hosts" if kind is fleet_hosts.HOSTS else f"Stores of {chosen[0].host}",
            "stores": Markup(fleet_hosts.table(parts, kind, self._home_of, zone)),
            "stores_provenance": Markup(fleet_hosts.line(home.asked, kind, self.at)),
            "attention": [
                page.linked(notice, self.at)
                for notice in (*fleet_hosts.stale({each.name: each.pushed_at for each in chosen}), *home.notices)
            ],
        }
        return context

    async def transcript(self, request: Any) -> Response:
        """The messages of a session; conversations and pieces of work are on the page of its lineage."""
        session_id, kind = tilde_decode(request.url_vars["session"]), request.url_vars["kind"]
        if kind != "session":
            return Response.redirect(self.at.lineage(session_id, part=f"lineage_{kind}"))
        return await fleet_session.page_of(self, request, session_id)

    def has_texts(self, store: str) -> bool:
        """Whether what was said was pushed from a store."""
        return any(each.texts for each in self.told["chosen"] if each.name == store)

    def _home_of(self, name: str) -> str:
        """The home of one host, or of one store."""
        if self._kind is fleet_hosts.HOSTS:
            return _links(self.datasette, self.selection._replace(hosts=(name,))).home
        return _links(self.datasette, Selection(stores=(name,))).home

    @property
    def _kind(self) -> fleet_hosts.Kind:
        return fleet_hosts.kind_of([each.host for each in self.told["chosen"]])

    def _tell(self, reading: FleetReading) -> dict[str, Any]:
        """What every page says of the fleet: who is in it, as of when, and the form that narrows it."""
        zone = reading.settings.zone_name
        looked_at = self.desk.fleet.looked_at
        as_of = ""
        if reading.chosen:
            oldest, newest = (pick(reading.chosen, key=lambda each: each.pushed_at) for pick in (min, max))
            first, last = (figures.moment(each.pushed_at, zone) for each in (oldest, newest))
            as_of = f"As of pushes from {first} ({oldest.name}) to {last}"
            as_of += f"; looked at {figures.moment(looked_at, zone)}, times in {zone}."
        kept = [
            (name, value)
            for name in self._request.args
            if name not in self.at.kept
            for value in self._request.args.getlist(name)
        ]
        return {
            "chosen": reading.chosen,
            "narrowed": [(name, ", ".join(values)) for name, values in self.at.kept.items() if values],
            "said": figures.plural(len(reading.chosen), "store")
            + (f" of {len(reading.all):,}" if self.at.pairs else ""),
            "as_of": as_of,
            "whole": f"{self._request.path}?{urlencode(kept)}" if kept else self._request.path,
            "pairs": self.at.pairs,
            "kept": kept,
            "hosts": sorted({each.host for each in reading.all})[:MOST_OFFERED],
            "profiles": sorted({each.profile for each in reading.all})[:MOST_OFFERED],
            "host": ", ".join(self.selection.hosts),
            "profile": ", ".join(self.selection.profiles),
        }


class FindFleet(Find):
    """The books of the fleet, for who may see them."""

    async def __call__(self, datasette: Datasette, request: Any, question: str = "") -> FleetPlace:
        if not await fleet.may_view(datasette, request.actor):
            raise Forbidden("view-instance")
        return FleetPlace(datasette, _desk(datasette), _selection(request), request)

    async def version(self, datasette: Datasette, request: Any) -> str:
        async def ask() -> bool:
            if not await fleet.may_view(datasette, request.actor):
                raise Forbidden("view-instance")
            return True

        await live.granted(datasette, request, FLEET, ask)
        held = _desk(datasette).fleet
        held.look_if_due()
        return held.version

    def links(self, datasette: Datasette) -> AllLinks:
        return page.fleet_links(datasette)


FIND = FindFleet()


def _desk(datasette: Datasette) -> fleet.Desk:
    found = fleet.desk(datasette)
    if found is None:
        raise NotFound("No fleet is served here: `state-ledger serve --lake URL` shows one.")
    return found


def _selection(request: Any) -> Selection:
    def named(name: str) -> tuple[str, ...]:
        given = [each.strip() for text in request.args.getlist(name) for each in text.split(",")]
        return tuple(dict.fromkeys(each for each in given if each))

    return Selection(named("host"), named("profile"), named("store"))


def _links(datasette: Datasette, selection: Selection, engine: str = "") -> FleetLinks:
    return page.fleet_links(
        datasette, only=selection.stores, hosts=selection.hosts, profiles=selection.profiles, engine=engine
    )
