"""Datasette's own page of a canned query, fifty rows, beside its SQL: a watch, as it is not ours to make quicker."""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchmarks import bare
from benchmarks.application import serving
from benchmarks.bench import Bench
from benchmarks.clock import beside
from benchmarks.figure import Figure

RAW, PAGES = 1.3, 4
TARGET = f"{RAW} raw + {PAGES} one-row pages"
QUESTIONS = ("recent_sessions", "sessions_started_between", "top_conversations")
LIMIT = {"limit": "50"}


async def measure(bench: Bench) -> AsyncIterator[Figure]:
    """A figure for each of a few questions that have fifty rows and more."""
    async with serving(bench.path) as application:
        connection = bare.connect(bench.path, application.settings)
        await application.look_at_one()
        for name in QUESTIONS:
            page = application.page(f"/{application.name}/{name}?limit=50")
            raw = bare.run(connection, [(name, LIMIT)], application.settings)
            ms, raw_ms = await beside(page, raw, bench.turns)
            await application.look_at_one()
            allowed = RAW * raw_ms + PAGES * application.one_ms
            yield Figure(f"{name}, stock page", ms, allowed, "ms", TARGET, raw_ms, of="stock page")
        connection.close()
