"""A store that is written to: what one append costs at worst, and what a reader notices of two writers."""

from __future__ import annotations

import http.client
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from benchmarks import store
from benchmarks.append import OURS
from benchmarks.bare_session_db import SessionDB
from benchmarks.bench import Bench
from benchmarks.clock import percentile
from benchmarks.figure import Figure
from benchmarks.server import Server, running
from benchmarks.sizes import SIZES
from state_ledger import full_text
from state_ledger.connection import decode_text
from state_ledger.sqlite import read_only_uri, sqlite3
from state_ledger.stores import name_stores
from tests.hermes import opened

APPENDS = 2_000
TAIL = 0.25
DEFAULTS = {"automerge": 4, "crisismerge": 16}
"""SQLite's own settings of a full-text index."""

WRITERS, PAUSE_S = 2, 0.05
BLOCKS, BLOCK_S = 6, 2.0
READERS = 1.3


def tail(_bench: Bench) -> Iterator[Figure]:
    """Real texts appended to two copies of the store S, one of which has SQLite's own settings."""
    source = store.find_or_make(SIZES["S"])
    texts = "SELECT role, content FROM messages WHERE typeof(content) = 'text' ORDER BY id LIMIT ?"
    with closing(sqlite3.connect(read_only_uri(source), uri=True)) as connection:
        connection.text_factory = decode_text
        rows = connection.execute(texts, [APPENDS]).fetchall()
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder:
        for name, settings in (("ours", {}), ("SQLite's own", DEFAULTS)):
            path = Path(shutil.copyfile(source, Path(folder, f"{len(taken)}.db")))
            _set(path, settings)
            with closing(SessionDB(path)) as db:
                session = db.create("tail")
                taken[name] = [_append(db, session, role, text) for role, text in rows]
    ours, theirs = (percentile(times, 0.99) for times in taken.values())
    told = f"{TAIL} x with SQLite's own settings"
    yield Figure(f"append, 99th of 100, of {APPENDS:,}", ours, TAIL * theirs, "ms", told, theirs, of="append tail")
    mean, theirs = (sum(times) / len(times) for times in taken.values())
    yield Figure("append, mean", mean, None, "ms", "", theirs)


def _set(path: Path, settings: dict[str, int]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for index in full_text.INDEXES:
            for name, value in settings.items():
                connection.execute(f"INSERT INTO {index.name}({index.name}, rank) VALUES (?, ?)", (name, value))


def _append(db: SessionDB, session: str, role: str, text: str) -> float:
    began = time.thread_time()
    db.append_message(session, role, text)
    return (time.thread_time() - began) * 1000


def readers(_bench: Bench) -> Iterator[Figure]:
    """A page's time by the clock, in turns with and without two processes that append, on a copy of the store S."""
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder, ExitStack() as stack:
        path = Path(shutil.copyfile(store.find_or_make(SIZES["S"]), Path(folder, "live.db")))
        server = stack.enter_context(running([str(path)]))
        page = f"/{name_stores([path])[0].name}/recent_sessions.json?_shape=objects"
        server.wait_for(page)
        writers = [stack.enter_context(opened(Path(sys.executable), OURS, path)) for _ in range(WRITERS)]
        for number, writer in enumerate(writers):
            writer.create_session(f"w{number}", "cli")
        quiet: list[float] = []
        busy: list[float] = []
        appended = 0
        for block in range(2 * BLOCKS):
            # Quiet, busy, busy, quiet: whatever else the machine does falls on both.
            if block % 4 in (1, 2):
                for number, writer in enumerate(writers):
                    log = str(Path(folder, f"{block}-{number}.log"))
                    writer.begin("append_for", f"w{number}", BLOCK_S, log, PAUSE_S)
                busy += _times(server, page)
                appended += sum(writer.finish() for writer in writers)
            else:
                quiet += _times(server, page)
    told, name = f"{READERS} x quiet", f"a JSON page during {appended:,} appends, wall"
    ours, alone = median(busy), median(quiet)
    yield Figure(name, ours, READERS * alone, "ms", told, alone, of="readers")
    worst = percentile(busy, 0.99)
    yield Figure("the same, 99th of 100", worst, None, "ms", "", percentile(quiet, 0.99))


def _times(server: Server, page: str) -> list[float]:
    """Milliseconds of as many requests as fit into BLOCK_S, on one connection."""
    taken: list[float] = []
    end = time.perf_counter() + BLOCK_S
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        while time.perf_counter() < end:
            began = time.perf_counter()
            connection.request("GET", page)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{page} answered {answer.status} while the store was written to")
            taken.append((time.perf_counter() - began) * 1000)
    return taken
