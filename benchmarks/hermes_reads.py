"""Reading and searching beside the real program, Hermes Agent, on a copy of the same file.

Each side is a process with its own SQLite; calls alternate.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.append import HERMES, OURS, REAL
from benchmarks.bench import Bench, NotMeasured
from benchmarks.clock import cpu_ms
from benchmarks.figure import Figure
from benchmarks.search import CLASSES
from state_ledger import search
from state_ledger.connection import open_for_reading
from state_ledger.search import Request
from state_ledger.sqlite import Connection, read_only_uri, sqlite3
from tests.hermes import StoreProcess, UnavailableError, environment, opened

ROUNDS = 3
FASTER = 5
MOST_HITS = 2000

Call = tuple[str, str, tuple[Any, ...], dict[str, Any], int]
"""What is measured: its name, the method, its arguments, the times it is called in a row."""


def reads(bench: Bench) -> Iterator[Figure]:
    """CPU milliseconds of what a program asks of its store, ours beside the real program's."""
    with _copies(bench.path, OURS, REAL) as sides:
        for name, method, arguments, named, times in calls(bench.path):
            taken: dict[str, list[float]] = {library: [] for library in sides}
            for side in sides.values():
                side.ask("timed", method, 1, arguments, named)
            for at in range(ROUNDS):
                for library in (OURS, REAL) if at % 2 else (REAL, OURS):
                    taken[library] += sides[library].ask("timed", method, times, arguments, named)
            ours, real = median(taken[OURS]), median(taken[REAL])
            yield Figure(name, ours, real, "ms", f"≤ Hermes {HERMES}", real, of="hermes read")


def searches(bench: Bench) -> Iterator[Figure]:
    """The newest 20 and the best 20 of ours beside `search_messages`, which ranks; and which of its hits we miss."""
    with _copies(bench.path, REAL) as sides, closing(open_for_reading(bench.path)) as connection:
        real = sides[REAL]
        search.find(connection, Request(CLASSES[-5][1]))  # reads the words with runs, once in a process
        for name, typed in CLASSES:
            yield from _search(connection, real, name, typed)


def _search(connection: Connection, real: StoreProcess, name: str, typed: str) -> Iterator[Figure]:
    taken: dict[str, list[float]] = {"newest": [], "best": [], "Hermes": []}
    search.find(connection, Request(typed))
    for _ in range(ROUNDS):
        for sort in ("newest", "best"):
            taken[sort].append(cpu_ms(lambda sort=sort: search.find(connection, Request(typed, sort=sort))))
        taken["Hermes"] += real.ask("timed", "search_messages", 1, (typed,), {})
    ms = {who: median(times) for who, times in taken.items()}
    # A search of ours leaves out what was taken back unless it is asked for.
    found = {hit.id for hit in search.find(connection, Request(typed, limit=MOST_HITS, inactive=True)).hits}
    known = {hit["id"] for hit in real.search_messages(typed, limit=MOST_HITS, sort="newest")}
    told = f"Hermes / {FASTER}" + ("" if known or not found else ", which finds nothing")
    for sort in ("newest", "best"):
        allowed = ms["Hermes"] / FASTER
        yield Figure(f"beside Hermes, {sort}: {name}", ms[sort], allowed, "ms", told, ms["Hermes"], of="hermes search")
    oldest = min(found, default=0) if len(found) == MOST_HITS else 0
    missed = {number for number in known - found if number > oldest}
    told = f"ours {len(found):,}, Hermes {len(known):,} of the newest {MOST_HITS:,}"
    yield Figure(f"hits of Hermes that we miss: {name}", len(missed), 0, "", told, of="hermes hits")


def calls(path: Path) -> list[Call]:
    """The reads a program does: one session, the list of them, and searches for rare and common words."""
    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        count = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        longest, middle = (
            connection.execute(
                "SELECT id FROM sessions ORDER BY message_count DESC, id LIMIT 1 OFFSET ?", [offset]
            ).fetchone()[0]
            for offset in (0, count // 2)
        )
    return [
        ("get_messages, longest session", "get_messages", (longest,), {}, 3),
        ("get_messages, session of middle length", "get_messages", (middle,), {}, 30),
        ("list_sessions_rich", "list_sessions_rich", (), {}, 5),
        ("list_sessions_rich, 200 rows", "list_sessions_rich", (), {"limit": 200}, 1),
        ("list_sessions_rich, by last activity", "list_sessions_rich", (), {"order_by_last_active": True}, 1),
        ("search_messages, common word", "search_messages", ("the",), {}, 1),
        ("search_messages, common word, newest first", "search_messages", ("the",), {"sort": "newest"}, 1),
        ("search_messages, two words", "search_messages", ("electricity bill",), {}, 3),
        ("search_messages, prefix", "search_messages", ("cheap*",), {}, 3),
        ("search_messages, one source", "search_messages", ("error",), {"source_filter": ["cli"]}, 1),
        ("search_messages, trigram", "search_messages", ("請求書",), {}, 3),
        ("search_messages, no hit", "search_messages", ("zyzzyva",), {}, 5),
    ]


@contextmanager
def _copies(path: Path, *libraries: str) -> Iterator[dict[str, StoreProcess]]:
    """Each library on a copy of its own. Raises NotMeasured where the real program cannot be installed."""
    try:
        pythons = {OURS: Path(sys.executable), REAL: environment(HERMES)}
    except UnavailableError as error:
        raise NotMeasured(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder, ExitStack() as stack:
        sides = {}
        for library in libraries:
            copy = Path(folder) / f"{library}.db"
            shutil.copyfile(path, copy)
            _mend(copy)
            sides[library] = stack.enter_context(opened(pythons[library], library, copy))
        yield sides


def _mend(path: Path) -> None:
    """Takes out of a copy the two troubles of the demo store that the real program fails on."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    connection.execute("UPDATE sessions SET model_config = NULL WHERE NOT json_valid(model_config)")
    broken = [
        number
        for number, content in connection.execute("SELECT id, content FROM messages WHERE content IS NOT NULL")
        if isinstance(content, bytes) and content.decode("utf-8", "replace").encode() != content
    ]
    connection.executemany("UPDATE messages SET content = '' WHERE id = ?", [(number,) for number in broken])
    connection.commit()
    connection.close()
