"""Writers and readers together: what writers notice of readers, and small pages of a crowd that asks for heavy ones.

`python -m benchmarks.together [STORE]`, by default on a copy of a store of 1,000 sessions. By the clock, so that a
busy machine shows; what is compared takes turns in one run. Needs Linux.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from benchmarks import store
from benchmarks.figure import Figure, table
from benchmarks.server import running
from state_ledger.sqlite import read_only_uri, sqlite3
from state_ledger.stores import name_stores
from tests import load
from tests.hermes import StoreProcess, opened
from tests.our_pages import pages

OURS = "state_ledger"
SESSIONS, MESSAGES_PER_SESSION = 1_000, 70
WRITERS, CLIENTS, PAUSE_S = 8, 16, 0.05
BLOCKS, BLOCK_S = 2, 15.0
P99 = 1.5
CROWD = 200
SMALL, LOOKS = 5.0, 15
MOST_MB = 100.0

Block = tuple[list[float], list[load.Answer]]


def measure(path: Path) -> Iterator[Figure]:
    """Figures on a copy of a store."""
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder:
        copy = Path(shutil.copyfile(path, Path(folder, "live.db")))
        yield from _writers(copy, Path(folder))
        yield from _small_pages(copy)


def _writers(path: Path, folder: Path) -> Iterator[Figure]:
    """Appends of eight writers without and with sixteen clients that load every kind of page."""
    with ExitStack() as stack:
        server = stack.enter_context(running([str(path)]))
        server.wait_for("/-/versions.json")
        address = f"http://127.0.0.1:{server.port}"
        writers = [stack.enter_context(opened(Path(sys.executable), OURS, path)) for _ in range(WRITERS)]
        for number, writer in enumerate(writers):
            writer.create_session(f"w{number}", "cli")
        every = pages(path, "w0", "error", every=False)
        taken: dict[bool, list[float]] = {False: [], True: []}
        answers: list[load.Answer] = []
        for block in range(2 * BLOCKS):
            # Quiet, busy, busy, quiet: whatever else the machine does falls on both.
            busy = block % 4 in (1, 2)
            log = folder / f"{block}.log"
            appended, loaded = asyncio.run(_block(writers, log, address, every if busy else []))
            taken[busy] += appended
            answers += loaded
        bad = [each for each in answers if each.status not in (200, 302) or not each.whole]
        kept = Path(f"{path}-wal").stat().st_size
        with closing(sqlite3.connect(path, timeout=0)) as owner:
            held = owner.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    quiet, busy_p99 = _percentile(taken[False], 0.99), _percentile(taken[True], 0.99)
    told = f"append of {WRITERS} writers, 99th of 100, beside {CLIENTS} clients ({len(answers):,} pages)"
    yield Figure(told, busy_p99, P99 * quiet, "ms", f"{P99} x without clients", quiet)
    yield Figure("the same, median", median(taken[True]), None, "ms", "", median(taken[False]))
    yield Figure("pages that failed meanwhile", len(bad), 0, "", "none")
    yield Figure("log when all had ended", kept / 1e6, None, "MB", "")
    yield Figure("readers that keep the log then", held, 0, "", "none")


async def _block(writers: list[StoreProcess], log: Path, address: str, every: list[str]) -> Block:
    for number, writer in enumerate(writers):
        writer.begin("append_timed", f"w{number}", BLOCK_S, f"{log}-{number}", PAUSE_S)
    writing = asyncio.gather(*(asyncio.to_thread(writer.finish) for writer in writers))
    answers = await load.walking(address, every, writing.done, CLIENTS) if every else []
    return [ms for each in await writing for ms in each], answers


def _small_pages(path: Path) -> Iterator[Figure]:
    """Small pages one at a time, alone and while a crowd asks for heavy ones all at once."""
    name = name_stores([path])[0].name
    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        asked = "SELECT id FROM sessions WHERE message_count > 20 ORDER BY started_at DESC LIMIT 1"
        session = connection.execute(asked).fetchone()[0]
    small = {
        "index": "/", "home": f"/{name}/-/home", "transcript": f"/{name}/-/session/{session}",
        "session list": f"/{name}/recent_sessions",
    }  # fmt: skip
    heavy = [
        f"/{name}/{page}"
        for page in ("-/export/all.csv", "cost_per_day.csv?since=2020-01-01", "-/search?q=%22er%22+the", "-/ops",
                     "top_work", "messages?content__contains=zzz", "-/export/all.html", "-/cost?period=all")
    ]  # fmt: skip
    with running([str(path)]) as server:
        server.wait_for("/-/versions.json")
        address = f"http://127.0.0.1:{server.port}"
        asyncio.run(load.crowd(address, small.values()))
        idle = server.memory_mb("VmRSS")
        quiet, _ = asyncio.run(_looked(address, small, []))
        crowded, answers = asyncio.run(_looked(address, small, [heavy[number % len(heavy)] for number in range(CROWD)]))
        highest = server.memory_mb("VmHWM") - idle
    for page in small:
        alone = median(quiet[page])
        told = f"{page} while {CROWD} ask for heavy pages"
        yield Figure(told, median(crowded[page]), SMALL * alone, "ms", f"{SMALL:g} x quiet", alone)
    away = sum(each.status == 503 for each in answers)
    bad = [each for each in answers if each.status not in (200, 503) or not each.whole]
    yield Figure("of the crowd: told to come again", away, None, "", "")
    yield Figure("of the crowd: failed or cut off", len(bad), 0, "", "none")
    yield Figure("memory above idle at its highest", highest, MOST_MB, "MB", f"idle + {MOST_MB:g} MB")


async def _looked(
    address: str, small: dict[str, str], heavy: list[str]
) -> tuple[dict[str, list[float]], list[load.Answer]]:
    """Milliseconds of each small page: LOOKS times, or as long as the crowd is there."""
    crowd = asyncio.ensure_future(load.crowd(address, heavy))
    taken: dict[str, list[float]] = {page: [] for page in small}
    looks = 0
    while looks < LOOKS or not crowd.done():
        for page, path in small.items():
            answer = await load.get(address, path)
            if answer.status != 200:
                raise RuntimeError(f"{path} answered {answer.status}")
            taken[page].append(answer.seconds * 1000)
        looks += 1
        if heavy and crowd.done():
            break
    return taken, await crowd


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]


def main() -> int:
    given = Path(sys.argv[1]) if sys.argv[1:] else None
    load.PATIENCE_S = 600.0
    figures = list(measure(store.find_or_make(given, SESSIONS, MESSAGES_PER_SESSION)))
    print(f"SQLite {sqlite3.sqlite_version}")
    print(table(figures))
    return int(any(figure.over for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
