"""Searching a big store: beside the ids alone, a count, LIKE, and the real program's own search.

`python -m benchmarks.search [--store PATH] [--hermes]`. With `--hermes` the real program searches a copy
of the same file; its search writes nothing but its opening does.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import store
from benchmarks.figure import Figure, table
from benchmarks.storage_append import HERMES, REAL
from benchmarks.storage_read import _mend
from state_ledger import search
from state_ledger.companion import beside
from state_ledger.connection import open_for_reading
from state_ledger.search import Request
from state_ledger.sqlite import Connection, sqlite3
from tests.hermes import UnavailableError, environment, opened

PAGE, BEST_SPARE_MS = 20, 12.0
TURNS = 5

CLASSES: tuple[tuple[str, str], ...] = (
    ("common word", "the"),
    ("word", "error"),
    ("two words", "electricity bill"),
    ("phrase", '"of the"'),
    ("prefix", "cheap*"),
    ("punctuation", "don't"),
    ("path", "src/main.py"),
    ("Korean, two characters", "오류"),
    ("Chinese, two characters", "旅行"),
    ("Korean, three characters", "데이터"),
    ("rare in Korean", "훈민"),
    ("no hit", "zyzzyva"),
)


def measure(path: Path) -> list[Figure]:
    """Ours beside bare SQL on the same connection, in CPU milliseconds."""
    figures: list[Figure] = []
    with closing(open_for_reading(path)) as connection, beside(connection) as companion:
        began = time.process_time()
        search.find(connection, Request("오류"))
        figures.append(Figure("first search of a process", _since(began), None, "ms", "reads the words with runs"))
        for name, typed in CLASSES:
            ours, ids = _beside(
                lambda t=typed: search.find(connection, Request(t)), lambda t=typed: _ids(connection, t)
            )
            target = f"{PAGE} x the {PAGE} ids alone"
            figures.append(Figure(f"newest {PAGE}: {name}", ours, PAGE * ids, "ms", target, ids))
        for name, typed in CLASSES[:4]:
            best = Request(typed, sort="best")
            ours, count = _beside(lambda r=best: search.find(connection, r), lambda t=typed: _count(connection, t))
            allowed = 3 * count + BEST_SPARE_MS
            figures.append(Figure(f"best match: {name}", ours, allowed, "ms", "3 x count(*) + 12 ms", count))
        for name, typed in CLASSES[7:11]:
            ours, like = _beside(
                lambda t=typed: search.count(connection, Request(t), most=10**9), lambda t=typed: _like(connection, t)
            )
            figures.append(Figure(f"count of all: {name}", ours, like / 50, "ms", "LIKE / 50", like))
            if companion is not None:
                ours, like = _beside(
                    lambda t=typed: search.find(connection, Request(t), companion=companion),
                    lambda t=typed: _like(connection, t),
                )
                figures.append(Figure(f"with companion: {name}", ours, like / 500, "ms", "LIKE / 500", like))
    return figures


def beside_hermes(path: Path) -> list[Figure]:
    """`search_messages` of both programs on copies of one file."""
    figures = []
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder, ExitStack() as stack:
        copy = Path(folder) / "real.db"
        shutil.copyfile(path, copy)
        _mend(copy)
        real = stack.enter_context(opened(environment(HERMES), REAL, copy))
        connection = stack.enter_context(closing(open_for_reading(copy)))
        for name, typed in CLASSES:
            taken: dict[str, list[float]] = {"ours": [], "real": []}
            search.find(connection, Request(typed))
            for _ in range(TURNS):
                began = time.process_time()
                search.find(connection, Request(typed, sort="best"))
                taken["ours"].append(_since(began))
                taken["real"] += real.ask("timed", "search_messages", 1, (typed,), {})
            found = {hit.id for hit in search.find(connection, Request(typed, limit=2000)).hits}
            known = {hit["id"] for hit in real.search_messages(typed, limit=2000)}
            hits = f"hits {len(found):,}, Hermes {len(known):,}, only Hermes' {len(known - found):,}"
            ours, theirs = median(taken["ours"]), median(taken["real"])
            figures.append(Figure(f"beside Hermes: {name}", ours, theirs / 5, "ms", f"Hermes / 5; {hits}", theirs))
    return figures


def _since(began: float) -> float:
    return (time.process_time() - began) * 1000


def _beside(ours: Callable[[], Any], bare: Callable[[], Any]) -> tuple[float, float]:
    """Median CPU milliseconds of both, taking turns."""
    ours(), bare()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(TURNS):
        for job, times in zip((ours, bare), taken, strict=True):
            began = time.process_time()
            job()
            times.append(_since(began))
    return median(taken[0]), median(taken[1])


def _ids(connection: Connection, typed: str) -> list[Any]:
    return connection.execute(
        "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid DESC LIMIT ?",
        (search.sanitize_fts5_query(typed), PAGE),
    ).fetchall()


def _count(connection: Connection, typed: str) -> Any:
    return connection.execute(
        "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH ?", (search.sanitize_fts5_query(typed),)
    ).fetchone()[0]


def _like(connection: Connection, typed: str) -> Any:
    return connection.execute("SELECT count(*) FROM messages WHERE content LIKE ?", (f"%{typed}%",)).fetchone()[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--hermes", action="store_true")
    asked = parser.parse_args(arguments)
    path = store.find_or_make(asked.store, store.SESSIONS, store.MESSAGES_PER_SESSION)
    figures = measure(path)
    if asked.hermes:
        try:
            environment(HERMES)
        except UnavailableError as error:
            print(error, file=sys.stderr)
            return 1
        figures += beside_hermes(path)
    print(f"SQLite {sqlite3.sqlite_version}, {path.stat().st_size / 1e6:,.0f} MB")
    print(table(figures))
    return int(any(figure.over for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
