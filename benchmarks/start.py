"""From the command to the first page: the big store beside plain Datasette on an empty database."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.figure import Figure
from benchmarks.server import running
from state_ledger.sqlite import sqlite3

MOST = 1.2
TARGET = f"{MOST} × plain Datasette, empty file"


def measure(path: Path, runs: int) -> list[Figure]:
    """Wall and CPU time until `/` is answered, runs taking turns."""
    ours: list[tuple[float, float]] = []
    plain: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.db")
        with closing(sqlite3.connect(empty)) as connection:
            connection.execute("VACUUM")
        started(path, plain=False)
        started(empty, plain=True)
        for turn in range(runs):
            for is_plain in (True, False) if turn % 2 else (False, True):
                (plain if is_plain else ours).append(started(empty if is_plain else path, plain=is_plain))
    figures = []
    for at, kind in enumerate(("CPU", "wall")):
        measured, raw = (median(run[at] for run in each) * 1000 for each in (ours, plain))
        figures.append(Figure(f"start to first page, {kind}", measured, MOST * raw, "ms", TARGET, raw))
    return figures


def started(path: Path, *, plain: bool, page: str = "/") -> tuple[float, float]:
    """CPU and wall seconds of one start until its first page is there."""
    began = time.perf_counter()
    with running([str(path)], plain=plain) as server:
        server.wait_for(page)
        return server.cpu_s(), time.perf_counter() - began
