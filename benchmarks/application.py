"""The installed Datasette in this process, with the installed plugins, over one store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from datasette.app import Datasette

from benchmarks.clock import cpu_ms_async
from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry
from state_ledger.settings import PLUGIN, Settings
from state_ledger.stores import name_stores

ONE = "one"
"""A canned query of one row: what any page of Datasette costs at the least."""

TIME_LIMIT_MS = 300_000
"""By the clock, for one question: on a busy machine many times what it takes."""


LOOK_S, QUIET_LOOKS, SETTLED_WITHIN = 0.25, 8, 1200


class NotReached(Exception):
    """A page did not answer in TIME_LIMIT_MS, and said so."""


class Application:
    """Asks pages through Datasette's own client, which goes through every layer but the socket."""

    def __init__(self, datasette: Datasette, name: str) -> None:
        self.datasette = datasette
        self.name = name
        self._one: list[float] = []

    @property
    def settings(self) -> Settings:
        return registry(self.datasette).settings

    async def get(self, path: str) -> Any:
        """The answer to a page, which must be a good one. Raises NotReached for one that ran out of time."""
        answer = await self.datasette.client.get(path)
        if answer.status_code == 503 or (answer.status_code == 400 and "SQL query took too long" in answer.text):
            raise NotReached(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[-300:]}"
        return answer

    def page(self, path: str) -> Callable[[], Awaitable[Any]]:
        """A job that asks for one page."""
        return lambda: self.get(path)

    async def look_at_one(self, times: int = 5) -> None:
        """Measures the one-row page now; done between other figures, it ages with them."""
        for _ in range(times):
            self._one.append(await cpu_ms_async(self.page(f"/{self.name}/{ONE}.json?_shape=objects")))

    async def settle(self) -> None:
        """Waits until nothing is done in the background: the first search has the words of a store read."""
        for word in ("word", "%EB%8D%B0%EC%9D%B4%ED%84%B0"):
            await self.get(f"/{self.name}/-/search?q={word}")
        quiet = 0
        for _ in range(SETTLED_WITHIN):
            began = time.process_time()
            await asyncio.sleep(LOOK_S)
            quiet = quiet + 1 if time.process_time() - began < LOOK_S / 20 else 0
            if quiet == QUIET_LOOKS:
                return

    @property
    def one_ms(self) -> float:
        """CPU milliseconds of the one-row page, the median of all looks."""
        return median(self._one)


@asynccontextmanager
async def serving(path: Path) -> AsyncIterator[Application]:
    """A started instance with the one-row query beside the canned ones."""
    name = name_stores([path])[0].name
    queries = {ONE: {"sql": "select 1 as one"}}
    # What is measured must not end early on a machine that is slow today.
    given: dict[str, Any] = {"plugins": {PLUGIN: {"query_time_limit_ms": TIME_LIMIT_MS}}}
    options = {"config": given} if compat.IS_1 else {"metadata": {**given, "databases": {name: {"queries": queries}}}}
    datasette = Datasette([str(path)], **options)
    await datasette.invoke_startup()
    if compat.IS_1:
        await datasette.add_query(name, ONE, queries[ONE]["sql"], is_trusted=True)
    application = Application(datasette, name)
    await application.look_at_one()
    application._one.clear()
    try:
        yield application
    finally:
        for database in datasette.databases.values():
            database.close()
        datasette.executor.shutdown(wait=False)
