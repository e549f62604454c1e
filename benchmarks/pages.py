"""Our own pages over the store's last 30 days beside the questions that they ask."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import date, timedelta
from unittest.mock import patch
from urllib.parse import urlencode

from benchmarks import bare
from benchmarks.application import serving
from benchmarks.bench import Bench
from benchmarks.clock import beside
from benchmarks.figure import Figure
from state_ledger.pages.cost import GROUPS
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection

RAW, PAGES, STRICT_PAGES = 1.3, 3, 1.5
TARGET = f"{RAW} raw + {PAGES} one-row pages"
STRICT = f"{RAW} raw + {STRICT_PAGES} one-row pages"

READS_MESSAGES = re.compile(r"^SCAN (?:m|o|messages)(?: |$)")
"""A step through all messages: a plan names a table by its alias, and the views call messages `m` or `o`."""


async def measure(bench: Bench) -> AsyncIterator[Figure]:
    """Figures for the index, the card it fetches, the home and the cost page in each of its groupings."""
    async with serving(bench.path) as application:
        settings = application.settings
        connection = bare.connect(bench.path, settings)
        today = bare.last_day(connection, settings)
        await application.look_at_one()
        scans = []
        # The pages would show the last 30 days of the calendar, in which an older store has nothing.
        with patch("state_ledger.pages.home.today", lambda _zone: today):
            for name, address in _addresses(application.name, today).items():
                with bare.recorded() as asked:
                    await application.get(address)
                scans += [question for question in asked if _scans(connection, question, settings)]
                raw = bare.run(connection, list(asked), settings)
                ms, raw_ms = await beside(application.page(address), raw, bench.turns)
                await application.look_at_one()
                one = application.one_ms
                told = f"{name} ({len(asked)} questions)"
                allowed, strict = (RAW * raw_ms + pages * one for pages in (PAGES, STRICT_PAGES))
                yield Figure(told, ms, allowed, "ms", TARGET, raw_ms, of="pages")
                yield Figure(f"{told}, strict", ms, strict, "ms", STRICT, raw_ms, of="own pages")
        connection.close()
    yield Figure("questions that read through all messages", len(scans), 0, "", "by SQLite's own plans", of="no scan")


def _scans(connection: Connection, asked: bare.Asked, settings: Settings) -> bool:
    sql, bound = bare.statement(*asked, settings)
    plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound)
    return any(READS_MESSAGES.match(row[3]) for row in plan)


def _addresses(store: str, today: date) -> dict[str, str]:
    period = {"since": (today - timedelta(days=29)).isoformat(), "until": today.isoformat()}
    cost = {f"cost page by {group}": f"/{store}/-/cost?{urlencode({**period, 'group': group})}" for group in GROUPS}
    return {"index page": "/", "card of the index": f"/{store}/-/card", "home page": f"/{store}", **cost}
