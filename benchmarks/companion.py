"""The companion: what it costs to make, how big it is, and how fast it answers."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
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
from state_ledger.questions import Result
from state_ledger.search.text import UNSPACED
from state_ledger.sqlite import Connection, read_only_uri, sqlite3

Row = tuple[Any, ...]

BUILD = 1.5
SIZE = 1.3
SHARE = 0.1
ROLLUP = 20
PROMISED = ("cost_per_model", "cache_ratio_per_model")
FASTER = 500
OPENINGS = 50
ALL_TIME = {"since": "2000-01-01"}


def measure(bench: Bench) -> Iterator[Figure]:
    """All figures, on a companion of its own in a temporary cache."""
    path = bench.path
    with own_cache():
        reading = cpu_ms(lambda: _read(path))
        yield Figure("companion: reading the store", reading, None, "ms", "every row once, nothing done with it")
        building = cpu_ms(lambda: refresh(path, rebuild=True, roll_up=False))
        yield Figure("companion: making it, all of it", building, None, "ms", "", reading)
        rolling_up = cpu_ms(lambda: refresh(path, reread=0))
        yield Figure("companion: making its rollup", rolling_up, None, "ms", "only of a store at rest")
        again = cpu_ms(lambda: refresh(path, reread=0))
        yield Figure("companion: refreshing it when nothing is new", again, None, "ms", "")
        yield from _questions(path)
        companion = open_for_search(path)
        assert companion is not None
        with companion, closing(open_for_reading(path)) as store:
            yield from _searches(companion, store)
            opening = cpu_ms(lambda: _open_and_close(path, store, OPENINGS)) / OPENINGS
            yield Figure("companion: opening it", opening, None, "ms", "beside an open store")
        yield from _size(path)
        rows = _prepared(path)
        bare = cpu_ms(lambda: _insert(rows, ""))
        told = f"{BUILD} x the pairs into a bare FTS5 table"
        making = "companion: making it, without the reading"
        yield Figure(making, building - reading, BUILD * bare, "ms", told, bare, of="companion build")
        leanest = cpu_ms(lambda: _insert(rows, ", content = '', columnsize = 0, tokenize = 'ascii'"))
        yield Figure("the same pairs into a table like its own", leanest, None, "ms", "contentless, ASCII", bare)


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


def _size(path: Path) -> Iterator[Figure]:
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
        index = connection.execute("SELECT sum(length(block)) FROM found_data").fetchone()[0] / 1e6
    told = f"{SIZE} x the bytes of such text"
    yield Figure("companion: its index", index, SIZE * text / 1e6, "MB", told, text / 1e6, of="companion size")
    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'messages_fts_trigram_data'").fetchone():
            of_block = "SELECT sum(length(block)) FROM messages_fts_trigram_data"
            trigram = connection.execute(of_block).fetchone()[0] / 1e6
            told = f"{SHARE:.0%} of the trigram index"
            yield Figure("companion: its index, too", index, SHARE * trigram, "MB", told, trigram, of="companion share")


def _searches(companion: Companion, store: Connection) -> Iterator[Figure]:
    """Ids of a run, beside the count of the same by LIKE, which reads every message, as it must for a rare one."""
    for name, run in _runs(companion).items():
        raw = cpu_ms(lambda run=run: store.execute(
            "SELECT count(*) FROM main.messages WHERE content LIKE ?", (f"%{run}%",)
        ).fetchone())  # fmt: skip
        measured = min(cpu_ms(lambda run=run: sum(1 for _ in companion.ids(run))) for _ in range(5))
        every = f"companion: every id of a {name} pair"
        yield Figure(every, measured, None, "ms", "one by one, in Python", raw)
        first = min(cpu_ms(lambda run=run: [each for each, _ in zip(companion.ids(run), range(20), strict=False)])
                    for _ in range(5))  # fmt: skip
        newest = f"companion: the newest 20 of a {name} pair"
        yield Figure(newest, first, raw / FASTER, "ms", f"LIKE / {FASTER}", raw, of="with companion")


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


def _questions(path: Path) -> Iterator[Figure]:
    """Questions over all time, answered by the rollup and by the views; only where the store is at rest."""
    with closing(open_for_reading(path)) as store:
        for name in ("cost_per_model", "cache_ratio_per_model", "cost_per_day", "cost_per_day_and_model"):

            def ask(name: str = name) -> Result:
                return questions.ask(store, name, ALL_TIME)

            if ask().engine != "companion":
                return
            by_companion = min(cpu_ms(ask) for _ in range(3))
            rolled_up = ask().rows
            with own_cache():
                by_views = cpu_ms(ask)
                differ = _differences(rolled_up, ask().rows)
            promised = "rollup" if name in PROMISED else ""
            allowed, told = (by_views / ROLLUP, f"1/{ROLLUP} of the views") if promised else (None, "")
            at = f"{name} of all time, by the rollup"
            yield Figure(at, by_companion, allowed, "ms", told, by_views, of=promised)
            yield Figure(f"{at}: rows that differ", differ, 0, "", "equal rows", of=promised)


def _differences(ours: list[Row], theirs: list[Row]) -> int:
    """How many rows are not the same: sums to nine digits, names in a list in any order."""
    alike = [[tuple(map(_comparable, row)) for row in rows] for rows in (ours, theirs)]
    return sum(one != other for one, other in zip_longest(*alike))


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.9g}"
    return sorted(value.split(",")) if isinstance(value, str) else value


@contextmanager
def own_cache() -> Iterator[Path]:
    """Another cache folder, in which there is no companion yet."""
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before


def _open_and_close(path: Path, store: Connection, times: int) -> None:
    for _ in range(times):
        companion = open_for_search(path, store)
        assert companion is not None
        companion.close()
