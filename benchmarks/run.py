"""Measuring the parts of one size within their time, and what of it is kept."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine, store
from benchmarks.bench import Bench, NotMeasured
from benchmarks.clock import Expired, box
from benchmarks.figure import GROWTH, Figure
from benchmarks.parts import PARTS, Part

RESULTS = Path(__file__).with_name("results")

BY_NAME = (GROWTH, "json")
"""Parts of which single pages and queries can be measured again."""

ALONE = "alone"
"""Where the figures of parts are kept that have stores of their own."""


@dataclass
class Measured:
    """One part of one run.

    cpu_s: seconds of CPU it took, without the servers and other processes that it started. box_s: set if its
    time ended before it did. reason: why it was not measured, or what it failed with.
    """

    figures: list[Figure] = field(default_factory=list)
    cpu_s: float = 0.0
    box_s: float | None = None
    reason: str = ""
    made_with: dict[str, str] = field(default_factory=dict)

    def with_others(self, before: Measured) -> Measured:
        """Figures of an earlier run that this one did not make again are kept."""
        made = {figure.name: figure for figure in [*before.figures, *self.figures]}
        cpu_s = round(self.cpu_s + before.cpu_s, 1)
        return Measured(list(made.values()), cpu_s, self.box_s or before.box_s, self.reason, self.made_with)


@dataclass
class Record:
    """What is known of one size; store: how big it is."""

    size: str
    store: str = ""
    parts: dict[str, Measured] = field(default_factory=dict)

    @classmethod
    def read(cls, size: str, folder: Path = RESULTS) -> Record:
        """The kept record of a size, an empty one if there is none."""
        path = folder / f"{size}.jsonl"
        record = cls(size)
        if not path.exists():
            return record
        head, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        record.store = head["store"]
        for each in lines:
            name = each.pop("part", None)
            if name is not None:
                last = record.parts[name] = Measured(**each)
            else:
                last.figures.append(Figure(**each))
        return record

    def write(self, folder: Path = RESULTS) -> None:
        """Keeps it for the next report: a line for the store, one for each part, one for each of its figures."""
        folder.mkdir(exist_ok=True)
        lines: list[dict[str, Any]] = [{"store": self.store}]
        for name, part in self.parts.items():
            about = {key: value for key, value in vars(part).items() if key != "figures"}
            lines += [{"part": name, **about}, *(figure.record() for figure in part.figures)]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        unfinished = folder / f".{self.size}.{os.getpid()}"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(folder / f"{self.size}.jsonl")

    def figures(self) -> Iterator[Figure]:
        """All figures of all parts."""
        for part in self.parts.values():
            yield from part.figures


def measure(part: Part, bench: Bench, box_s: float, told: Callable[[str], None] = lambda _line: None) -> Measured:
    """The figures of a part, as many as its box of CPU seconds has room for."""
    measured = Measured(made_with=machine.made_with())
    began = time.process_time()
    try:
        with box(box_s):
            for figure in part.figures(bench):
                measured.figures.append(figure)
                told(line(figure))
    except Expired:
        measured.box_s = box_s
        told(f"{part.name}: its {box_s:g} s of CPU are over")
    except NotMeasured as error:
        measured.reason = str(error)
        told(f"{part.name}: not measured: {error}")
    except Exception as error:  # the others can still be measured, and the report says it
        measured.reason = f"failed: {type(error).__name__}: {error}"
        told(f"{part.name}: {measured.reason}")
    measured.cpu_s = round(time.process_time() - began, 1)
    return measured


def line(figure: Figure) -> str:
    """A figure as a line for who watches."""
    took = "–" if figure.measured is None else f"{figure.measured:.2f} {figure.unit}"
    used = "" if figure.used is None else f", {figure.used:.2f} of what is allowed"
    return f"{figure.name}: {took}{used}, {figure.verdict}"


def run(
    parts: Iterable[Part],
    size: str,
    bench: Bench,
    box_s: float,
    *,
    quiet: bool = False,
    done: Callable[[Record], object] = lambda _record: None,
) -> tuple[Record, Record]:
    """The record of the size, and that of the parts that need no store of a size.

    done: is given each part when it is measured, as a record of its own, so that a run that is cut short leaves it.
    """
    records = Record(size, store.told(bench.path)), Record(ALONE)
    for part in parts:

        def told(text: str, name: str = part.name) -> None:
            if not quiet:
                print(f"[{size} {name}] {text}", file=sys.stderr, flush=True)

        record, measured = records[part.alone], measure(part, bench, box_s, told)
        record.parts[part.name] = measured
        done(Record(record.size, record.store, {part.name: measured}))
    return records


def kept(fresh: Record, folder: Path = RESULTS) -> Record:
    """Writes a fresh record over what was kept: part by part, and figure by figure for what was asked for in part."""
    record = Record.read(fresh.size, folder)
    record.store = fresh.store or record.store
    for name, part in fresh.parts.items():
        before: Any = record.parts.get(name)
        record.parts[name] = part.with_others(before) if before and name in BY_NAME else part
    record.parts = {name: record.parts[name] for name in PARTS if name in record.parts}
    record.write(folder)
    return record
