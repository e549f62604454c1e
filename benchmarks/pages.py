"""Our own pages over the store's last 30 days beside the questions that they ask."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlencode

from benchmarks import bare
from benchmarks.application import Application
from benchmarks.clock import beside
from benchmarks.figure import Figure
from state_ledger.pages.cost import GROUPS

RAW, PAGES = 1.3, 3
TARGET = f"{RAW} raw + {PAGES} one-row pages"


async def measure(application: Application, path: Path, turns: int) -> list[Figure]:
    """A figure for the index, the card it fetches, the home and the cost page in each of its groupings."""
    settings = application.settings
    connection = bare.connect(path, settings)
    today = bare.last_day(connection, settings)
    measured = []
    # The pages would show the last 30 days of the calendar, in which an older store has nothing.
    with patch("state_ledger.pages.home.today", lambda _zone: today):
        for name, address in _addresses(application.name, today).items():
            with bare.recorded() as asked:
                await application.get(address)
            raw = bare.run(connection, list(asked), settings)
            measured.append((f"{name} ({len(asked)} questions)", *await beside(application.page(address), raw, turns)))
            await application.look_at_one()
    connection.close()
    one = application.one_ms
    return [Figure(name, ms, RAW * raw_ms + PAGES * one, "ms", TARGET, raw_ms) for name, ms, raw_ms in measured]


def _addresses(store: str, today: date) -> dict[str, str]:
    period = {"since": (today - timedelta(days=29)).isoformat(), "until": today.isoformat()}
    cost = {f"cost page by {group}": f"/{store}/-/cost?{urlencode({**period, 'group': group})}" for group in GROUPS}
    return {"index page": "/", "card of the index": f"/{store}/-/card", "home page": f"/{store}", **cost}
