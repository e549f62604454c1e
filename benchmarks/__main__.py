"""`python -m benchmarks --size S`: measures, prints a report in Markdown, ends with 1 if a target is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import parts, report, store
from benchmarks.bench import Bench
from benchmarks.run import ALONE, RESULTS, Record, kept, run
from benchmarks.sizes import SIZES

REPORT = Path(__file__).with_name("RESULTS.md")


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    if given.list:
        print("\n".join(f"{part.name}: {part.told}" for part in parts.PARTS.values()))
        return 0
    records: list[Record] = []
    for name in given.size:
        records += _measured(name, given)
    if given.keep:
        records = [Record.read(name) for name in (*SIZES, ALONE)]
        REPORT.write_text(report.written(records), encoding="utf-8")
    print(report.written(records))
    return int(any(report.missed(records)))


def _measured(name: str, given: argparse.Namespace) -> list[Record]:
    asked = parts.chosen(given.only, name)
    if not asked:
        return []
    path = given.store or store.find_or_make(SIZES[name])
    bench = Bench(path, given.turns, given.runs, parts.wanted(given.only))
    done = kept if given.keep else lambda _record: None
    return [each for each in run(asked, name, bench, given.box, quiet=given.quiet, done=done) if each.parts]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="CPU beside the bare thing, with every target: pass or miss.",
        epilog="; ".join(f"{size.name}: {size.told}" for size in SIZES.values()),
    )  # fmt: skip
    parser.add_argument("--size", nargs="*", choices=SIZES, default=["S"], help="stores to measure on (default S)")
    parser.add_argument("--store", type=Path, metavar="PATH", help="measure on this store, whatever the size")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PATTERN",
        help="only parts of these names, with * and ?, or 'query NAME' and 'page NAME' of the growth table",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="name the parts and measure nothing")
    parser.add_argument("--box", type=float, default=600.0, metavar="SECONDS", help="CPU for each part (default 600)")
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="least turns of a page (default 3)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="starts of a server (default 5)")
    parser.add_argument(
        "--keep", action="store_true",
        help=f"keep the figures in benchmarks/{RESULTS.name}/, and write {REPORT.name} of all that is kept there",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="do not tell each figure as it comes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
