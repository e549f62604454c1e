"""`python -m benchmarks.fleet`: pages of a fleet on DuckDB, at 1, 10 and 72 times M, beside one SQLite store of as
many usage rows without a companion; written to `benchmarks/fleet.md`.

The lakes are made of the store M, pushed once and then again under other names (`benchmarks.fleets`); the store of
SQLite has the rows of M as often, in ten years (the size `usage`). It takes an hour of CPU; `--without-sqlite` leaves
the store out, `--copies` says how many times M.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import fleets, machine, store
from benchmarks.clock import cpu_ms
from benchmarks.sizes import SIZES
from state_ledger.connection import open_for_reading
from state_ledger.ledger.days import today
from state_ledger.pages.asking import Ask
from state_ledger.pages.home import read_home
from state_ledger.pages.period import presets
from state_ledger.settings import Settings
from state_ledger.warehouse import Followed

REPORT = Path(__file__).with_name("fleet.md")
COPIES = (1, 10, 72)
SHARE = 0.25
TURNS = 3

QUESTIONS: Mapping[str, Sequence[str]] = {
    "cost": ("cost_per_model", "cost_per_day_and_model", "cost_per_source"),
    "cache": ("cache_ratio_per_model", "cache_ratio_per_source", "cache_worst_sessions"),
    "lineage": ("longest_conversations", "lineage_problems"),
    "ops": ("open_idle_sessions", "ledger_problems", "orphans"),
}
"""What each page asks beside the home, which asks by itself."""

PATIENT = Settings(query_time_limit_ms=3_600_000)


def pages(ask: Ask) -> dict[str, Callable[[], Any]]:
    """Every page as what it asks, of the last 30 days where it has a period."""
    known = {period.key: period for period in presets(today(PATIENT.zone_name))}
    period = known["30d"].parameters

    def asked(names: Sequence[str]) -> None:
        for name in names:
            ask(name, period)

    return {"home": lambda: read_home(ask, None), **{page: _bound(asked, names) for page, names in QUESTIONS.items()}}


def _bound(asked: Callable[[Sequence[str]], None], names: Sequence[str]) -> Callable[[], None]:
    return lambda: asked(names)


@contextmanager
def own_cache() -> Iterator[None]:
    """A cache folder of its own, where no companion and no books are."""
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["XDG_CACHE_HOME"]
            else:
                os.environ["XDG_CACHE_HOME"] = before


def measure(folder: Path, copies: Sequence[int], sqlite: bool) -> str:
    """The report. folder: where the lakes are kept."""
    source, alike = store.find_or_make(SIZES["M"]), store.find_or_make(SIZES["usage"])
    columns: dict[str, dict[str, float]] = {}
    said = []
    for number in copies:
        lake = fleets.make(folder / f"lake-{number}", source, number)
        rows = sum(file.rows for state in lake.stores() for file in state.files if file.table == "usage")
        size = sum(file.bytes for state in lake.stores() for file in state.files)
        with own_cache(), closing(Followed(str(folder / f"lake-{number}"), PATIENT)) as followed:
            loaded = cpu_ms(partial(_opened, followed))
            with followed.books() as books:
                columns[f"{number} × M"] = _times(Ask(books, PATIENT), TURNS)
            held = sum(file.stat().st_size for file in Path(os.environ["XDG_CACHE_HOME"]).rglob("*.duckdb"))
        sizes = f"{size / 1e6:,.0f} MB | {loaded / 1000:,.0f} s | {held / 1e6:,.0f} MB"
        said.append(f"| {number} × M | {number} | {rows:,} | {sizes} |")
        print(said[-1], file=sys.stderr)
    if sqlite:
        with own_cache(), closing(open_for_reading(alike)) as connection:
            columns["SQLite"] = _times(Ask(connection, PATIENT), 1)
    return _written(columns, said, store.told(alike))


def _opened(followed: Followed) -> None:
    with followed.books():
        pass


def _times(ask: Ask, turns: int) -> dict[str, float]:
    """Median CPU milliseconds of each page; of more than one turn the first does not count."""
    found = {}
    for page, job in pages(ask).items():
        taken = [cpu_ms(job) for _ in range(turns + (turns > 1))]
        found[page] = median(taken[1:] or taken)
        print(f"{page}: {found[page]:,.0f} ms", file=sys.stderr)
    return found


def _written(columns: Mapping[str, Mapping[str, float]], said: Sequence[str], alike: str) -> str:
    names = list(columns)
    last = [name for name in names if name != "SQLite"][-1]
    lines = [
        "# A fleet's pages", "",
        ", ".join(f"{name}: {value}" for name, value in machine.made_with().items())
        + ". CPU of the process, all threads.", "",
        "| lake | stores | usage rows | Parquet | load, CPU | DuckDB file |", "|---|---|---|---|---|---|", *said, "",
        f"What a page asks, in ms of CPU, median of {TURNS} after a first one"
        + (f"; SQLite once, on {alike}, without a companion." if "SQLite" in columns else "."),
        "", "| page | " + " | ".join(names) + (" | share, ≤ 0.25 |" if "SQLite" in columns else " |"),
        "|---" * (len(names) + 1 + ("SQLite" in columns)) + "|",
    ]  # fmt: skip
    for page in columns[last]:
        cells = [f"{columns[name][page]:,.0f}" for name in names]
        if "SQLite" in columns:
            share = columns[last][page] / columns["SQLite"][page]
            cells.append(f"{share:.4f} {'pass' if share <= SHARE else 'miss'}")
        lines.append(f"| {page} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--lakes", type=Path, required=True, metavar="FOLDER", help="where lakes are made, and kept")
    parser.add_argument("--copies", type=int, nargs="+", default=list(COPIES), metavar="N")
    parser.add_argument("--without-sqlite", action="store_true")
    parser.add_argument("--keep", action="store_true", help=f"write benchmarks/{REPORT.name}")
    given = parser.parse_args()
    report = measure(given.lakes, given.copies, not given.without_sqlite)
    if given.keep:
        REPORT.write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
