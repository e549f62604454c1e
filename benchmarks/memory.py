"""Memory of the server after a walk through every page of the big store."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from benchmarks.bench import Bench
from benchmarks.figure import Figure
from benchmarks.server import Server, running
from state_ledger import questions
from state_ledger.connection import open_for_reading
from state_ledger.pages.cost import GROUPS
from state_ledger.stores import name_stores

MOST_MB = 100.0
TARGET = f"idle + {MOST_MB:g} MB"


def measure(bench: Bench) -> Iterator[Figure]:
    """Memory above that of the idle server: now, and at its highest."""
    path, name = bench.path, name_stores([bench.path])[0].name
    with running([str(path)]) as server:
        server.wait_for("/-/versions.json")
        time.sleep(1)
        idle = server.memory_mb("VmRSS")
        slowest = _walk(server, addresses(path, name))
        now, highest = (server.memory_mb(field) - idle for field in ("VmRSS", "VmHWM"))
    yield Figure("memory of the idle server", idle, None, "MB", "before any page")
    yield Figure("memory above idle after all pages", now, MOST_MB, "MB", TARGET, of="memory")
    yield Figure("memory above idle at its highest", highest, MOST_MB, "MB", TARGET, of="memory")
    yield Figure(f"slowest page of the walk, wall: {slowest[1]}", slowest[0] * 1000, None, "ms", "")


def addresses(path: Path, name: str) -> list[str]:
    """Every kind of page: ours, each canned query as page, JSON and CSV, Datasette's own of each table."""
    home = f"/{name}"
    ours = ["/", "/?figures=1", f"{home}/-/card", home]
    ours += [f"{home}/-/cost?period={p}&group={g}" for p in ("30d", "all") for g in GROUPS]
    asked = [f"{home}/{query}{form}" for query in questions.load() for form in ("", ".json?_shape=objects", ".csv")]
    connection = open_for_reading(path)
    tables = [row[0] for row in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
    connection.close()
    stock = ["/-/datasette", f"{home}/-/tables"]
    stock += [f"{home}/{quote(table)}{form}" for table in tables for form in ("", ".json?_shape=objects")]
    searches = [f"{home}/messages?_search={words}" for words in ("error", "%EB%8D%B0%EC%9D%B4%ED%84%B0")]
    return [*ours, *asked, *stock, *searches, f"{home}/messages/1"]


def _walk(server: Server, pages: list[str]) -> tuple[float, str]:
    """Asks for every page; returns the seconds and the address of the slowest."""
    slowest = (0.0, "")
    for page in pages:
        began = time.perf_counter()
        status, body = server.get(page)
        slowest = max(slowest, (time.perf_counter() - began, page))
        # Datasette 1.0 shows nobody the shadow tables of an index.
        if status >= 400 and status != 403:
            print(f"{page} answered {status}: {body[-200:]!r}", file=sys.stderr)
    return slowest
