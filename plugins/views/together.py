"""Where questions over several stores are answered: one shelf for the instance, on a thread of its own.

Datasette's own threads stay free for the pages of single stores while a shelf reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from datasette.utils.asgi import Forbidden, NotFound

from state_ledger.errors import ParameterError
from state_ledger.pages.links import AllLinks
from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page
from state_ledger.questions import load
from state_ledger.shelf import Member, Reading, Shelf

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


class Place(NamedTuple):
    """What a request over several stores is about.

    names: the stores that this visitor may see; only: those to which it is narrowed, () for all of them;
    at: addresses that stay so. left_out: stores that could not be opened at start, with the reason.
    """

    datasette: Datasette
    names: list[str]
    only: tuple[str, ...]
    at: AllLinks
    left_out: dict[str, str]

    async def read(self, reader: Callable[[Reading], T]) -> T:
        """Runs a reader on all stores as one, on the thread of the shelf."""
        desk = _desk(self.datasette)
        members = [_member(self.datasette, name) for name in self.names]

        def run() -> T:
            with desk.shelf.reading(members, only=self.only, budget_s=READ_S) as reading:
                reading.missing.update(self.left_out)
                return reader(reading)

        return await asyncio.get_running_loop().run_in_executor(desk.thread, run)

    @property
    def live(self) -> dict[str, str]:
        """As `page.live`, for the stores that are shown."""
        return page.live(self.datasette, self.names, self.at)


async def place(datasette: Datasette, request: Any, question: str = "") -> Place:
    """The stores that a request asks about, of those that this visitor may see.

    question: whose rows are asked for; then only stores whose visitor may see these rows.
    Raises Forbidden for a visitor who may see none, NotFound where no store is served, and ParameterError
    for a store in the address that is not among them.
    """
    names = await page.visible_stores(datasette, request)
    if question in load():
        names = [each for each in names if await compat.may_view_query(datasette, request.actor, each, question)]
    return narrowed(datasette, request, names, await page.left_out(datasette, request))


def narrowed(
    datasette: Datasette, request: Any, names: list[str], left_out: Mapping[str, str] | None = None
) -> Place:
    """The stores of these names, narrowed as the address says. Raises as `place` does."""
    if not registry(datasette).stores:
        raise NotFound("No store is served here.")
    if not names:
        raise Forbidden("view-database")
    wanted = [each.strip() for text in request.args.getlist("store") for each in text.split(",")]
    only = tuple(dict.fromkeys(each for each in wanted if each))
    for each in only:
        if each not in names:
            raise ParameterError("store", each, f"choose among {', '.join(names)}")
    return Place(datasette, names, only, page.all_links(datasette, only), dict(left_out or {}))


def _desk(datasette: Datasette) -> _Desk:
    held: _Desk | None = getattr(datasette, "_state_ledger_desk", None)
    if held is None:
        held = datasette._state_ledger_desk = _Desk(datasette)
    return held


def _member(datasette: Datasette, name: str) -> Member:
    database = datasette.get_database(name)
    profile = registry(datasette).stores[name].store.profile
    return Member(name, Path(str(database.path)), profile, immutable=not database.is_mutable)
