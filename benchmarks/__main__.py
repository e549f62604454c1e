"""`python -m benchmarks`: measures, prints the table, ends with 1 if a figure is over its target."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks import canned_json, companion, export, memory, pages, start, store, transcript, views
from benchmarks.application import serving
from benchmarks.figure import Figure, table
from state_ledger.sqlite import sqlite3

PARTS = ("views", "start", "json", "pages", "transcript", "memory", "companion", "export")


def main() -> int:
    given = _arguments()
    path = store.find_or_make(given.store, given.sessions, given.messages_per_session)
    made_with = {
        "datasette": version("datasette"),
        "SQLite": sqlite3.sqlite_version,
        "Python": platform.python_version(),
        "store": f"{path.stat().st_size / 1e6:,.0f} MB",
    }
    print(", ".join(f"{name} {value}" for name, value in made_with.items()), flush=True)
    figures: list[Figure] = []
    if "views" in given.only:
        figures += views.measure(path)
    if "start" in given.only:
        figures += start.measure(path, given.runs)
    figures += asyncio.run(_in_process(path, given.only, given.turns))
    if "transcript" in given.only:
        figures += asyncio.run(transcript.measure(given.turns))
    if "memory" in given.only:
        figures += memory.measure(path)
    if "companion" in given.only:
        figures += companion.measure(path)
    if "export" in given.only:
        figures += export.measure(path, given.turns)
    print(table(figures))
    if given.json:
        record = {"with": made_with, "figures": [figure.record() for figure in figures]}
        given.json.write_text(json.dumps(record, indent=1), encoding="utf-8")
    over = [figure.name for figure in figures if figure.over]
    print(f"over their target: {', '.join(over)}" if over else "all within their targets")
    return 1 if over else 0


async def _in_process(path: Path, parts: list[str], turns: int) -> list[Figure]:
    figures: list[Figure] = []
    if not {"json", "pages"} & set(parts):
        return figures
    async with serving(path) as application:
        if "json" in parts:
            figures += await canned_json.measure(application, path, turns)
        if "pages" in parts:
            figures += await pages.measure(application, path, turns)
    return figures


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--store", type=Path, metavar="PATH", help="store to measure on, made if it is missing")
    parser.add_argument("--sessions", type=int, default=store.SESSIONS, metavar="N")
    parser.add_argument("--messages-per-session", type=int, default=store.MESSAGES_PER_SESSION, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="measure only these")
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="least turns of a page (default 3)")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="starts of a server (default 7)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
