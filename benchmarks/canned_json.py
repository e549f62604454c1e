"""The JSON of every canned query beside its SQL on a bare connection."""

from __future__ import annotations

from pathlib import Path

from benchmarks import bare
from benchmarks.application import Application
from benchmarks.clock import beside
from benchmarks.figure import Figure
from state_ledger import questions

RAW, PAGES = 1.3, 2
TARGET = f"{RAW} raw + {PAGES} one-row pages"


async def measure(application: Application, path: Path, turns: int) -> list[Figure]:
    """A figure for each canned query, asked with a bare address."""
    connection = bare.connect(path, application.settings)
    measured = []
    for name in questions.load():
        page = application.page(f"/{application.name}/{name}.json?_shape=objects")
        raw = bare.run(connection, [(name, {})], application.settings)
        measured.append((name, *await beside(page, raw, turns)))
        await application.look_at_one()
    connection.close()
    one = application.one_ms
    return [
        Figure("one.json, the one-row page", one, None, "ms", "canned query `select 1`"),
        *(
            Figure(f"{name}.json", ms, RAW * raw_ms + PAGES * one, "ms", TARGET, raw_ms)
            for name, ms, raw_ms in measured
        ),
    ]
