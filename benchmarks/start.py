"""From the command to the first page: the big store beside plain Datasette on an empty database."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench
from benchmarks.figure import Figure
from benchmarks.server import running
from state_ledger.sqlite import sqlite3

MOST = 1.2
TARGET = f"{MOST} × plain Datasette, empty file"


def measure(bench: Bench) -> Iterator[Figure]:
    """Wall and CPU time until `/` is answered, runs taking turns."""
    path = bench.path
    ours: list[tuple[float, float]] = []
    plain: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.db")
        with closing(sqlite3.connect(empty)) as connection:
            connection.execute("VACUUM")
        started(path, plain=False)
        started(empty, plain=True)
        for turn in range(bench.runs):
            for is_plain in (True, False) if turn % 2 else (False, True):
                (plain if is_plain else ours).append(started(empty if is_plain else path, plain=is_plain))
    cpu, wall = ([median(run[at] for run in each) * 1000 for each in (ours, plain)] for at in (0, 1))
    yield Figure("start to first page, CPU", cpu[0], MOST * cpu[1], "ms", TARGET, cpu[1], of="start")
    yield Figure("start to first page, wall", wall[0], None, "ms", "", wall[1])


def started(path: Path, *, plain: bool, page: str = "/") -> tuple[float, float]:
    """CPU and wall seconds of one start until its first page is there."""
    began = time.perf_counter()
    with running([str(path)], plain=plain) as server:
        server.wait_for(page)
        return server.cpu_s(), time.perf_counter() - began
