"""The companion: what it costs to make, how big it is, and how fast it answers."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.clock import cpu_ms
from benchmarks.figure import Figure
from state_ledger import questions
from state_ledger.companion import pairs
from state_ledger.companion.building import refresh
from state_ledger.companion.identity import companion_path
from state_ledger.companion.reading import Companion, open_for_search
from state_ledger.companion.report import FAST
from state_ledger.companion.source import Source
from state_ledger.connection import open_for_reading
from state_ledger.search.text import UNSPACED
from state_ledger.sqlite import Connection, sqlite3

BUILD = 1.5
SIZE = 1.3
FASTER = 500
OPENINGS = 50
ALL_TIME = {"since": "2000-01-01"}


def measure(path: Path) -> list[Figure]:
    """All figures, on a companion of its own in a temporary cache."""
    with _own_cache():
        reading = cpu_ms(lambda: _read(path))
        building = cpu_ms(lambda: refresh(path, rebuild=True, roll_up=False))
        rolling_up = cpu_ms(lambda: refresh(path, reread=0))
        again = cpu_ms(lambda: refresh(path, reread=0))
        rows = _prepared(path)
        bare = cpu_ms(lambda: _insert(rows, ""))
        leanest = cpu_ms(lambda: _insert(rows, ", content = '', columnsize = 0, tokenize = 'ascii'"))
        figures = [
            Figure("companion: reading the store", reading, None, "ms", "every row once, nothing done with it"),
            Figure("companion: making it, all of it", building, None, "ms", "", reading),
            Figure(
                "companion: making it, without the reading",
                building - reading, BUILD * bare, "ms", f"{BUILD} x the pairs into a bare FTS5 table", bare,
            ),
            Figure("the same pairs into a table like its own", leanest, None, "ms", "contentless, ASCII", bare),
            Figure("companion: making its rollup", rolling_up, None, "ms", "only of a store at rest"),
            Figure("companion: refreshing it when nothing is new", again, None, "ms", ""),
            _size(path),
        ]  # fmt: skip
        companion = open_for_search(path)
        assert companion is not None
        with companion, closing(open_for_reading(path)) as store:
            figures += _searches(companion, store)
            opening = cpu_ms(lambda: [_open_and_close(path, store) for _ in range(OPENINGS)]) / OPENINGS
            figures.append(Figure("companion: opening it", opening, None, "ms", "beside an open store"))
        figures += _questions(path)
        return figures


def _read(path: Path) -> list[int]:
    with closing(Source(path)) as source:
        return [len(piece) for piece in _pieces(source)]


def _prepared(path: Path) -> list[pairs.Prepared]:
    with closing(Source(path)) as source:
        return [row for piece in _pieces(source) for row in pairs.prepare(piece)]


def _pieces(source: Source) -> Iterator[list[pairs.Message]]:
    after = source.first_id() - 1
    while piece := source.piece(after, None, FAST.rows, FAST.bytes):
        yield piece
        after = piece[-1][0]


def _insert(rows: list[pairs.Prepared], options: str) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder) / "bare.db")) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE bare USING fts5(pairs, words{options})")
        connection.executemany("INSERT INTO bare(rowid, pairs, words) VALUES (?, ?, ?)", rows)
        connection.commit()


def _size(path: Path) -> Figure:
    runs = re.compile(f"[{UNSPACED}]+")
    with closing(Source(path)) as source:
        text = sum(
            len(run.encode())
            for piece in _pieces(source)
            for message in piece
            for each in pairs.texts_of(message)
            for run in runs.findall(each)
        )
    with closing(sqlite3.connect(companion_path(path))) as connection:
        index = connection.execute("SELECT sum(length(block)) FROM found_data").fetchone()[0]
    return Figure(
        "companion: its index", index / 1e6, SIZE * text / 1e6, "MB", f"{SIZE} x the bytes of such text", text / 1e6
    )


def _searches(companion: Companion, store: Connection) -> list[Figure]:
    """Ids of a run, beside the count of the same by LIKE, which reads every message, as it must for a rare one."""
    figures = []
    for name, run in _runs(companion).items():
        raw = cpu_ms(lambda run=run: store.execute(
            "SELECT count(*) FROM main.messages WHERE content LIKE ?", (f"%{run}%",)
        ).fetchone())  # fmt: skip
        measured = min(cpu_ms(lambda run=run: sum(1 for _ in companion.ids(run))) for _ in range(5))
        figures.append(
            Figure(f"companion: every id of a {name} pair", measured, None, "ms", "one by one, in Python", raw)
        )
        first = min(cpu_ms(lambda run=run: [each for each, _ in zip(companion.ids(run), range(20), strict=False)])
                    for _ in range(5))  # fmt: skip
        figures.append(
            Figure(f"companion: the newest 20 of a {name} pair", first, raw / FASTER, "ms", f"LIKE / {FASTER}", raw)
        )
    return figures


def _runs(companion: Companion) -> dict[str, str]:
    """A pair that many messages hold, one that some do, one that few do."""
    connection = companion.connection
    connection.execute("CREATE VIRTUAL TABLE temp.pair USING fts5vocab('main', 'found', 'col')")
    counted = connection.execute(
        "SELECT term, doc FROM temp.pair WHERE col = 'pairs' AND length(term) = 2 ORDER BY doc DESC"
    ).fetchall()
    middle = counted[0][1] ** 0.5
    return {
        "common": counted[0][0],
        "middling": min(counted, key=lambda row: abs(row[1] - middle))[0],
        "rare": counted[-1][0],
    }


def _questions(path: Path) -> list[Figure]:
    """Questions over all time, answered by the views and by the rollup; only where the store is at rest."""
    figures = []
    with closing(open_for_reading(path)) as store:
        for name in ("cost_per_day", "cost_per_day_and_model", "cost_per_model", "cache_ratio_per_day"):

            def ask(name: str = name) -> Any:
                return questions.ask(store, name, ALL_TIME)

            if ask().engine != "companion":
                return []
            by_companion = min(cpu_ms(ask) for _ in range(3))
            by_store = min(cpu_ms(_without_companion(ask)) for _ in range(3))
            figures.append(
                Figure(f"{name} of all time, by the companion", by_companion, None, "ms", "by the views", by_store)
            )
    return figures


def _without_companion(job: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with _own_cache():
            return job()

    return run


@contextmanager
def _own_cache() -> Iterator[None]:
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before


def _open_and_close(path: Path, store: Connection) -> None:
    companion = open_for_search(path, store)
    assert companion is not None
    companion.close()
