"""The JSON of every canned query beside its SQL on a bare connection."""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchmarks import bare
from benchmarks.application import serving
from benchmarks.bench import Bench
from benchmarks.clock import beside
from benchmarks.figure import Figure
from benchmarks.growth import QUERY
from state_ledger import questions

RAW, PAGES = 1.3, 2
TARGET = f"{RAW} raw + {PAGES} one-row pages"


async def measure(bench: Bench) -> AsyncIterator[Figure]:
    """A figure for each canned query, asked with a bare address."""
    async with serving(bench.path) as application:
        connection = bare.connect(bench.path, application.settings)
        await application.look_at_one()
        for name in questions.load():
            if not bench.wants(f"{QUERY}{name}"):
                continue
            page = application.page(f"/{application.name}/{name}.json?_shape=objects")
            raw = bare.run(connection, [(name, {})], application.settings)
            ms, raw_ms = await beside(page, raw, bench.turns)
            await application.look_at_one()
            allowed = RAW * raw_ms + PAGES * application.one_ms
            yield Figure(f"{name}.json", ms, allowed, "ms", TARGET, raw_ms, of="json")
        connection.close()
        yield Figure("one.json, the one-row page", application.one_ms, None, "ms", "canned query `select 1`")
