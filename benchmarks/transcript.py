"""Transcript pages: 500 messages beside rendering their Markdown, the second time, and a very long session."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.application import Application, serving
from benchmarks.bench import Bench
from benchmarks.clock import cpu_ms, cpu_ms_async
from benchmarks.figure import Figure
from state_ledger import markdown, schema
from state_ledger.pages.links import Links
from state_ledger.sqlite import sqlite3

MESSAGES = 500
LONG, SHORT = 15_000, 200
RAW, ONE, FASTER = 1.3, 5, 3
START = 1_790_000_000.0

TEXT = """## What step {n} changed

The *parser* reads the **whole file** once and keeps `{n}` rows. See the notes of the last run:

- the first column holds the key, the second its value
- lines that begin with `#` are left out
- {n} rows were kept, and none was lost

```python
def step_{n}(rows):
    return [row for row in rows if row.key != {n}]
```

It took {n} ms on this machine, which is about as long as before.
"""


async def measure(bench: Bench) -> AsyncIterator[Figure]:
    """Makes a store of three sessions and asks for their pages."""
    with tempfile.TemporaryDirectory() as folder:
        async with serving(make_store(Path(folder, "transcripts.db"))) as application:
            await application.look_at_one()
            yield await _first_time(application, bench.turns)
            yield await _again(application, bench.turns)
            for name, parameters in (("first", {}), ("last", {"page": "last"})):
                yield await _long(application, name, parameters, bench.turns)


def make_store(path: Path) -> Path:
    """Sessions `many` (500 answers in Markdown and their questions), `long` and `short`."""
    with closing(sqlite3.connect(path)) as connection:
        schema.create(connection)
        for name, count in (("many", MESSAGES), ("long", LONG), ("short", SHORT)):
            connection.execute(
                "INSERT INTO sessions(id, source, model, started_at, title, input_tokens, output_tokens,"
                " estimated_cost_usd, api_call_count) VALUES (?, 'cli', 'a-model', ?, ?, 1000, 100, 0.01, 9)",
                (name, START, name),
            )
            connection.executemany(
                "INSERT INTO messages(session_id, role, content, timestamp) VALUES (?, ?, ?, ?)",
                ((name, "user" if n % 2 else "assistant", text(n), START + n) for n in range(count)),
            )
        connection.commit()
    return path


def text(number: int) -> str:
    """What message number `number` says: every other one is a short question."""
    return f"And what about step {number}?" if number % 2 else TEXT.format(n=number)


def _render_all() -> None:
    for number in range(MESSAGES):
        markdown.render(text(number), max_brackets=200)


def _forget() -> None:
    markdown.CACHE.clear()


async def _first_time(application: Application, turns: int) -> Figure:
    page = application.page(Links(f"/{application.name}").session("many", {"size": str(MESSAGES)}))
    await page()
    pages, raws = [], []
    for _ in range(turns):
        _forget()
        pages.append(await cpu_ms_async(page))
        raws.append(cpu_ms(_render_all))
        await application.look_at_one()
    raw, one = median(raws), application.one_ms
    target = f"{RAW} rendering the Markdown + {ONE} one-row pages"
    name = f"transcript of {MESSAGES} messages"
    return Figure(name, median(pages), RAW * raw + ONE * one, "ms", target, raw, of="transcript")


async def _again(application: Application, turns: int) -> Figure:
    page = application.page(Links(f"/{application.name}").session("many", {"size": str(MESSAGES)}))
    firsts, seconds = [], []
    for _ in range(turns):
        _forget()
        firsts.append(await cpu_ms_async(page))
        seconds.append(await cpu_ms_async(page))
    first, told = median(firsts), f"1/{FASTER} of the first"
    return Figure("the same a second time", median(seconds), first / FASTER, "ms", told, first, of="again")


async def _long(application: Application, name: str, parameters: dict[str, str], turns: int) -> Figure:
    at = Links(f"/{application.name}")
    short, page = application.page(at.session("short")), application.page(at.session("long", parameters))
    await short()
    await page()
    alternately: tuple[list[float], list[float]] = ([], [])
    for _ in range(max(turns, 9)):
        alternately[0].append(await cpu_ms_async(page))
        alternately[1].append(await cpu_ms_async(short))
    measured, raw = median(alternately[0]), median(alternately[1])
    told = f"no more than of a session of {SHORT}"
    return Figure(f"{name} page of {LONG:,} messages", measured, raw, "ms", told, raw, of="long session")
