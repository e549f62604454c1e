"""A request while it is answered: whether its client is still there, and what reads for it.

What a client asked for and no longer waits for is ended: the statements that run for it are interrupted, and
no further one is begun. So a search that a visitor left, or a download that was broken off, costs no more.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from state_ledger.sqlite import Connection, sqlite3

VISIT: ContextVar[Visit | None] = ContextVar("state_ledger_visit", default=None)
"""The request that is being answered; None where something reads for nobody in particular."""

IN_HEAVY_LANE: ContextVar[bool] = ContextVar("state_ledger_in_heavy_lane", default=False)
"""Whether what is handed to Datasette's executor now belongs on the threads for heavy work."""

AGAIN_S = 0.02
"""Seconds between interrupts: each ends what runs at that moment, and a page may ask one question after another."""


class ClientGone(Exception):
    """The client of a request has left; nothing is read for it any more."""


class Visit:
    """One request.

    heavy: whether it works on the threads for heavy work. gone: done once its client has left.
    sending_since: the time (of the event loop) since which the client has been waited for, or None.
    left: whether it has, without awaiting. cut_off: whether the visit was ended by us.
    """

    def __init__(self, receive: Any = None, *, heavy: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.heavy = heavy
        self.gone: asyncio.Future[None] = loop.create_future()
        self.left = False
        self.sending_since: float | None = None
        self.cut_off = False
        self._task = asyncio.current_task()
        self._receive = receive
        self._held: deque[Any] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._readers: list[Connection] = []
        self._failure: Exception | None = None

    def listen(self) -> None:
        """From now on it is known when the client leaves. Reads ahead no more than one message."""
        if self._listening is None and self._receive is not None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def receive(self) -> Any:
        """The next message of the client, for the application."""
        self.listen()
        while not self._held:
            if self._failure is not None:
                raise self._failure
            if self.left:
                return {"type": "http.disconnect"}
            self._news.clear()
            await self._news.wait()
        message = self._held.popleft()
        self._room.set()
        return message

    @contextmanager
    def reading(self, connection: Connection) -> Iterator[None]:
        """While a thread reads on this connection for the visit. Raises ClientGone."""
        with self._lock:
            if self.left:
                raise ClientGone
            self._readers.append(connection)
        try:
            yield
        finally:
            with self._lock:
                self._readers.remove(connection)

    def cut(self) -> None:
        """Ends the visit, wherever it is; its client gets no end of what is being sent."""
        self.cut_off = True
        if self._task is not None:
            self._task.cancel()

    async def end(self) -> None:
        """Stops listening; nothing reads for this visit after it."""
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
        if not self.gone.done():
            self.gone.cancel()

    async def _listen(self) -> None:
        whole = False
        while True:
            try:
                message = await self._receive()
            except Exception as failure:  # it is the application's, if it ever asks
                self._failure = failure
                self._news.set()
                return
            if message["type"] == "http.disconnect":
                break
            if whole:  # what a caller that is no server goes on saying, without ever waiting
                await asyncio.sleep(AGAIN_S)
                continue
            whole = not message.get("more_body")
            self._held.append(message)
            self._news.set()
            while message.get("more_body") and self._held:
                self._room.clear()
                await self._room.wait()
        with self._lock:
            self.left = True
        self._news.set()
        self.gone.set_result(None)
        while True:
            with self._lock:  # so that the connection is still busy with this visit, and with no other
                for connection in self._readers:
                    with suppress(sqlite3.ProgrammingError):  # closed, since the file was replaced meanwhile
                        connection.interrupt()
            await asyncio.sleep(AGAIN_S)


@contextmanager
def reading(visit: Visit | None, connection: Connection) -> Iterator[None]:
    """As `Visit.reading`; where nobody in particular is read for, nothing."""
    if visit is None:
        yield
    else:
        with visit.reading(connection):
            yield


@contextmanager
def for_everyone() -> Iterator[None]:
    """What is read inside goes on if the client leaves that asked first: others will have the answer too."""
    visit = VISIT.get()
    token = VISIT.set(Visit(heavy=visit is not None and visit.heavy))
    try:
        yield
    finally:
        VISIT.reset(token)


@contextmanager
def lane(visit: Visit | None) -> Iterator[None]:
    """What is handed to the executor inside goes to the threads on which this visit's work is done."""
    token = IN_HEAVY_LANE.set(visit is not None and visit.heavy)
    try:
        yield
    finally:
        IN_HEAVY_LANE.reset(token)


class Lanes(Executor):
    """Datasette's threads, and beside them a few for heavy work, so that this never takes all of the former."""

    def __init__(self, quick: ThreadPoolExecutor, heavy_threads: int) -> None:
        self.quick = quick
        self.heavy = ThreadPoolExecutor(max_workers=heavy_threads, thread_name_prefix="state-ledger-heavy")

    def submit(self, fn: Any, /, *args: Any, **named: Any) -> Future[Any]:
        return (self.heavy if IN_HEAVY_LANE.get() else self.quick).submit(fn, *args, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for pool in (self.heavy, self.quick):
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def __getattr__(self, name: str) -> Any:
        # Datasette 1.0 measures the queue of its own threads by a private attribute.
        return getattr(self.quick, name)


def threads_for(visit: Visit | None, executor: Any) -> Any:
    """The threads on which the work of a visit is done; None where Datasette has none."""
    if not isinstance(executor, Lanes):
        return executor
    return executor.heavy if visit is not None and visit.heavy else executor.quick
