"""Our own limiter: what takes long takes turns, on threads of its own, so that small pages never wait for it.

Datasette reads on three threads, whatever they are asked. An export, a search that scans or a question over
all time can take all three for seconds, and then not even the list of sessions is shown. So every address of
a store is heavy work unless it is known to be small: `heavy_at_once` of it are worked on at a time, in the
order of asking, `heavy_waiting` may wait, and who comes then is told to come again. A turn lasts while
something is made, not while a client takes it: one who reads slowly keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from datasette import hookimpl
from datasette.utils import tilde_decode
from datasette.utils.asgi import Response

from state_ledger.plugins import address, fleet, json_answer
from state_ledger.plugins.routes import EVERY, FLEET
from state_ledger.plugins.stores import registry
from state_ledger.plugins.turns import TooBusyError, Turns
from state_ledger.plugins.views import page
from state_ledger.plugins.visits import VISIT, ClientGone, Lanes, Visit

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.plugins.stores import StoreState

SMALL, PAGE, STREAM, TOGETHER, OF_FLEET = "small", "page", "stream", "together", "fleet"
"""Kinds of requests: not heavy; made in one go; sent in pieces, of any length; about all stores as one, or a fleet."""

PATIENCE_S = 30.0
"""Seconds that a request waits for its turn; browsers and proxies give up not much later."""

RETRY_AFTER_S = 10

STREAMS_PER_TURN = 4
"""Streams that may be open for each that is worked on: the others wait for their clients."""

STALLED_S = 60.0
"""A client that has not taken a piece (256 kB) of a stream in this time loses its place to one that asks for it."""

LISTEN_AFTER_S = 0.3
"""Seconds after which a small page is worth being stopped if its client leaves."""

SMALL_PAGES = re.compile(r"-/(home|card|live\.json|tables|schema|(session|conversation|work)/[^/]+)")
SMALL_QUESTIONS = frozenset({"recent_sessions"})
_BY_KEY = frozenset({"_next", "_size", "_shape"})
"""What a table's page may be asked for without that SQLite has to look at more rows than it shows."""


class Limits:
    """Who may work at once, on one instance.

    works: heavy work on single stores. together: on all stores, which one thread reads. fleet: on the books of a
    fleet, which an engine reads. streams: places for what is sent in pieces. open: the visits that have such a place.
    """

    def __init__(self, at_once: int, at_most_waiting: int) -> None:
        self.works = Turns(at_once, at_most_waiting, PATIENCE_S, "heavy requests")
        self.together = Turns(1, at_most_waiting, PATIENCE_S, "pages of all stores")
        self.fleet = Turns(fleet.AT_ONCE, at_most_waiting, PATIENCE_S, "pages of the fleet")
        self.streams = Turns(STREAMS_PER_TURN * at_once, at_most_waiting, PATIENCE_S, "downloads")
        self.open: set[Visit] = set()

    @asynccontextmanager
    async def place(self, visit: Visit) -> AsyncIterator[bool]:
        """A place for a stream; False if its client left before there was one. Raises TooBusyError."""
        if self.streams.held >= self.streams.at_once:
            self._cut_off_one()
        if not await self.streams.take(visit.gone):
            yield False
            return
        self.open.add(visit)
        try:
            yield True
        finally:
            self.open.remove(visit)
            self.streams.give_back()

    def _cut_off_one(self) -> None:
        """Ends the stream whose client has been waited for longest, if that is long."""
        waited_for = [visit for visit in self.open if visit.sending_since is not None and not visit.cut_off]
        if not waited_for:
            return
        slowest = min(waited_for, key=lambda visit: visit.sending_since or 0.0)
        if asyncio.get_running_loop().time() - (slowest.sending_since or 0.0) > STALLED_S:
            slowest.cut()


class _Turn:
    """The turn of one request: taken, given back while its client is waited for, taken again."""

    def __init__(self, turns: Turns, visit: Visit, send: Any) -> None:
        self._turns = turns
        self._visit = visit
        self._send = send
        self.held = False

    async def take(self) -> bool:
        self.held = await self._turns.take(self._visit.gone)
        return self.held

    def give_back(self) -> None:
        if self.held:
            self.held = False
            self._turns.give_back()

    async def send(self, message: Any) -> None:
        """Sends without the turn: a client takes its time."""
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        self.give_back()
        self._visit.sending_since = asyncio.get_running_loop().time()
        try:
            await self._send(message)
        finally:
            self._visit.sending_since = None
        if message.get("more_body"):
            await self._turns.take_again()
            self.held = True


def limits(datasette: Datasette) -> Limits:
    """The limits of an instance."""
    held: Any = registry(datasette)
    if not hasattr(held, "limits"):
        held.limits = Limits(held.settings.heavy_at_once, held.settings.heavy_waiting)
    found: Limits = held.limits
    return found


@hookimpl
def register_output_renderer(datasette: Datasette) -> None:
    """No renderer: this runs while an instance is made, before anything is read (see `plugins/stores.py`)."""
    if isinstance(datasette.executor, ThreadPoolExecutor):
        datasette.executor = Lanes(datasette.executor, registry(datasette).settings.heavy_at_once)


@hookimpl
def handle_exception(exception: Exception) -> Any:
    """Nobody is there to read what went wrong for a client that has left."""
    return Response("", status=499) if isinstance(exception, ClientGone) else None


# First, because each wrapper goes around the ones before it: what is asked for is known when all have rewritten it.
@hookimpl(tryfirst=True)
def asgi_wrapper(datasette: Datasette) -> Callable[[address.App], address.App]:
    def wrap(app: address.App) -> address.App:
        async def in_turn(scope: address.Scope, receive: Any, send: Any) -> None:
            kind = _kind_of(datasette, scope) if scope["type"] == "http" and VISIT.get() is None else None
            if kind is None:
                await app(scope, receive, send)
                return
            visit = Visit(receive, heavy=kind != SMALL)
            loop, listening = asyncio.get_running_loop(), None
            # The body of a POST is its reader's alone.
            if scope["method"] in ("GET", "HEAD"):
                listening = loop.call_later(LISTEN_AFTER_S if kind == SMALL else 0, visit.listen)
            token = VISIT.set(visit)
            try:
                if kind == SMALL:
                    await app(scope, visit.receive, send)
                else:
                    await _answer(limits(datasette), kind, visit, app, scope, send)
            except TooBusyError as error:
                await (await _busy(datasette, scope, str(error))).asgi_send(send)
            except asyncio.CancelledError:
                if not visit.cut_off:
                    raise
            finally:
                VISIT.reset(token)
                if listening is not None:
                    listening.cancel()
                await visit.end()

        return in_turn

    return wrap


async def _answer(
    limits: Limits, kind: str, visit: Visit, app: address.App, scope: address.Scope, send: Any
) -> None:
    if kind == STREAM:
        async with limits.place(visit) as placed:
            if placed:
                await _answer(limits, PAGE, visit, app, scope, send)
        return
    turns = {TOGETHER: limits.together, OF_FLEET: limits.fleet}.get(kind, limits.works)
    turn = _Turn(turns, visit, send)
    if await turn.take():
        try:
            await app(scope, visit.receive, turn.send)
        finally:
            turn.give_back()


@asynccontextmanager
async def turn_of_a_call(datasette: Datasette) -> AsyncIterator[None]:
    """A turn for heavy work that no request of its own asked for. Raises TooBusyError."""
    turns = limits(datasette).works
    await turns.take()
    visit = Visit(heavy=True)
    token = VISIT.set(visit)
    try:
        yield
    finally:
        VISIT.reset(token)
        turns.give_back()


def _kind_of(datasette: Datasette, scope: address.Scope) -> str | None:
    _base, local = address.split_base(datasette, address.path_of(scope))
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    return kind_of(local, query, registry(datasette).stores)


def kind_of(path: str, query: Collection[str], stores: Mapping[str, StoreState]) -> str | None:
    """What kind of request an address is, by its path below the base URL; None for what is not about stores.

    query: the names of its parameters. An address of a store that is not known to be small is heavy work.
    """
    if path == "/":
        return PAGE if "figures" in query else SMALL
    if f"{path}/".startswith(f"{EVERY}/"):
        return SMALL if path.endswith("/live.json") else TOGETHER
    if f"{path}/".startswith(f"{FLEET}/"):
        return SMALL if path.endswith("/live.json") else OF_FLEET
    if path == "/-/ledger/metrics":
        return PAGE
    first, _, rest = path.removeprefix("/").partition("/")
    bare, _, ending = first.partition(".")
    state = stores.get(tilde_decode(bare))
    if state is None:
        return None
    if path.endswith(".csv") or rest.startswith("-/export/"):
        return STREAM
    if not rest:
        return None if ending == "db" else PAGE if "sql" in query else SMALL
    if SMALL_PAGES.fullmatch(rest):
        return PAGE if "why" in query else SMALL
    named, _, row = rest.partition("/")
    named = tilde_decode(named.removesuffix(".json"))
    if named in SMALL_QUESTIONS or (named in state.shape.tables and (row or _BY_KEY.issuperset(query))):
        return SMALL
    return PAGE


async def _busy(datasette: Datasette, scope: address.Scope, sentence: str) -> Response:
    """The refusal: made without a look at any store, since many may be due at once."""
    path = address.path_of(scope)
    if path.endswith(".json"):
        answer = json_answer.refuse(sentence, 503)
    elif "/-/export/" in path or path.endswith(".csv"):
        answer = Response.text(f"{sentence}\n", status=503)
    else:
        answer = await page.refuse(datasette, "ledger_notice.html", {"problem": sentence}, title="Busy", status=503)
    answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    return answer
