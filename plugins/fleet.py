"""The books of a fleet on a Datasette instance: where they are, who may see them, and the threads that ask for them.

An engine is asked on threads of its own, so that the pages of single stores stay quick whatever it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from datasette import hookimpl
from datasette.utils import actor_matches_allow

from state_ledger.errors import StateLedgerError
from state_ledger.plugins import compat
from state_ledger.plugins.address import App, Scope
from state_ledger.plugins.store_database import StoreRefused
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.fleet.keeping import Fleet
    from state_ledger.fleet.reading import FleetReading, Selection

T = TypeVar("T")

WAIT_S = 5.0
"""Seconds that a page waits for books that are being read for the first time, or changed."""

AT_ONCE = 2
"""How many pages of the fleet are worked on at a time."""


class Desk:
    """The fleet of an instance and the threads on which it is asked."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._threads = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="state-ledger-fleet")

    async def read(self, reader: Callable[[FleetReading], T], selection: Selection) -> T:
        """What a reader makes of the books. Raises StateLedgerError."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.fleet.read, reader, selection, WAIT_S)


@hookimpl
def register_output_renderer(datasette: Datasette) -> None:
    """No renderer: this runs while an instance is made, so that two places for a fleet stop the start."""
    desk(datasette)


@hookimpl
def asgi_wrapper(datasette: Datasette) -> Callable[[App], App]:
    """Has the books read from when a server begins to serve, so that its first visitor need not wait for all of it."""

    def wrap(app: App) -> App:
        async def reading_ahead(scope: Scope, receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan":
                found = desk(datasette)
                if found is not None:
                    found.fleet.look_if_due()
            await app(scope, receive, send)

        return reading_ahead

    return wrap


def desk(datasette: Datasette) -> Desk | None:
    """What asks for the fleet of an instance; None if it shows none. Raises StoreRefused for two places."""
    held: Any = registry(datasette)
    if not hasattr(held, "fleet_desk"):
        from state_ledger.fleet.places import configured

        try:
            where = configured(held.settings)
        except StateLedgerError as error:
            raise StoreRefused(error) from error
        held.fleet_desk = None
        if where is not None:
            from state_ledger.fleet.keeping import Fleet

            held.fleet_desk = Desk(Fleet(where, held.settings))
    found: Desk | None = held.fleet_desk
    return found


async def may_view(datasette: Datasette, actor: dict[str, Any] | None) -> bool:
    """Whether an actor may see the fleet: the instance, and what the setting `fleet_allow` says."""
    allowed = registry(datasette).settings.fleet_allow
    allow = allowed if isinstance(allowed, bool) else dict(allowed)
    return bool(actor_matches_allow(actor, allow)) and await compat.may_view_instance(datasette, actor)


async def visible(datasette: Datasette, request: Any) -> bool:
    """Whether there is a fleet here that this visitor may see."""
    return desk(datasette) is not None and await may_view(datasette, request.actor)
