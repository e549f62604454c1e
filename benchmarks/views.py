"""What a new connection pays for the semantic layer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.clock import least_and_median
from benchmarks.figure import Figure
from state_ledger import ledger
from state_ledger.connection import open_for_reading
from state_ledger.settings import Settings
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, read_only_uri, sqlite3

MOST_MS = 2.0
CONNECTIONS = 60


def measure(bench: Bench) -> Iterator[Figure]:
    """Least and median over new connections; the shape is read apart, since it is kept between them."""
    path, settings = bench.path, Settings()
    with sqlite3.connect(read_only_uri(path), uri=True) as connection:
        shape = Shape.read(connection)
    connection.close()
    reading = _on_new_connections(path, lambda connection: Shape.read(connection))
    making = _on_new_connections(path, lambda connection: ledger.install(connection, shape=shape, settings=settings))
    whole = [_opened(path, settings) for _ in range(CONNECTIONS)]
    least, middle = least_and_median(making)
    yield Figure("reading the shape, median", least_and_median(reading)[1], None, "ms", "once per file")
    yield Figure("creating the views, least", least, MOST_MS, "ms", f"{MOST_MS} ms", of="views")
    yield Figure("creating the views, median", middle, None, "ms", "")
    opened = least_and_median(whole)[1]
    yield Figure("open_for_reading, all of it, median", opened, None, "ms", "check, open, shape, views, guard")


def _on_new_connections(path: Path, job: Callable[[Connection], object]) -> list[float]:
    """CPU milliseconds of a job on each of several connections that have read the schema."""
    taken = []
    for _ in range(CONNECTIONS):
        connection = sqlite3.connect(read_only_uri(path), uri=True)
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        began = time.thread_time()
        job(connection)
        taken.append((time.thread_time() - began) * 1000)
        connection.close()
    return taken


def _opened(path: Path, settings: Settings) -> float:
    began = time.thread_time()
    open_for_reading(path, settings=settings).close()
    return (time.thread_time() - began) * 1000
