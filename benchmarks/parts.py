"""The parts of a run, in the order in which they are measured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from benchmarks import (
    append,
    books,
    canned_json,
    companion,
    export,
    export_memory,
    growth,
    hermes_reads,
    live,
    memory,
    pages,
    peer_times,
    search,
    start,
    stock,
    transcript,
    views,
)
from benchmarks.bench import Bench, stepwise
from benchmarks.figure import Figure


@dataclass(frozen=True)
class Part:
    """One thing that is measured. alone: on stores of its own, so that the size that was asked for does not matter.

    sizes: of the stores that it is measured on, where not on all.
    """

    name: str
    told: str
    figures: Callable[[Bench], Iterator[Figure]]
    alone: bool = False
    sizes: tuple[str, ...] = ("S", "M", "L")


def _awaited(measure: Callable[[Bench], AsyncIterator[Figure]]) -> Callable[[Bench], Iterator[Figure]]:
    return lambda bench: stepwise(measure(bench))


PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        Part("growth", "every page and every canned query, with what it gives", _awaited(growth.measure),
             sizes=("S", "M", "L", "list")),
        Part("views", "what a new connection pays for the semantic layer", views.measure),
        Part("books", "the ledger's total beside plain SQL", books.measure, sizes=("S", "M", "L", "list")),
        Part("json", "canned queries as JSON beside their SQL", _awaited(canned_json.measure), sizes=("S", "M")),
        Part("pages", "home and cost pages beside their questions", _awaited(pages.measure)),
        Part("stock", "Datasette's own pages of canned queries", _awaited(stock.measure), sizes=("S", "M")),
        Part("search", "searches beside the ids alone, count(*), ORDER BY rank and LIKE", search.measure),
        Part("companion", "the companion: making it, its size, its answers", companion.measure),
        Part("export", "exports beside Python's csv and json", export.measure, sizes=("S", "M")),
        Part("hermes search", "searches beside Hermes Agent", hermes_reads.searches, sizes=("S", "M")),
        Part("hermes read", "reads of SessionDB beside Hermes Agent", hermes_reads.reads, sizes=("S", "M", "list")),
        Part("start", "from the command to the first page", start.measure),
        Part("memory", "memory after a walk through all pages", memory.measure),
        Part("export memory", "memory while everything is exported", export_memory.measure, sizes=("S", "M")),
        Part("transcript", "transcripts beside rendering their Markdown", _awaited(transcript.measure), alone=True),
        Part("latin", "Latin letters inside Chinese text", search.latin, alone=True),
        Part("append", "appends beside bare SQLite and Hermes Agent, eight writers", append.measure, alone=True),
        Part("append tail", "the slowest appends, with two full-text settings", live.tail, alone=True),
        Part("readers", "a page while two processes append", live.readers, alone=True),
        Part("peers", "other tools on the same store, from benchmarks/peers.md", peer_times.measure, alone=True),
    )
}  # fmt: skip


def chosen(patterns: list[str], size: str) -> list[Part]:
    """The parts of a size that are asked for; all of them without patterns."""
    parts = [part for part in PARTS.values() if size in part.sizes]
    asked = ["growth" if each.startswith((growth.QUERY, growth.PAGE)) else each for each in patterns]
    return [part for part in parts if not patterns or any(fnmatch(part.name, each) for each in asked)]


def wanted(patterns: list[str]) -> Callable[[str], bool]:
    """Whether a page or query of the growth table is asked for."""
    pages = [each for each in patterns if each.startswith((growth.QUERY, growth.PAGE))]
    return lambda name: not pages or any(fnmatch(name, each) for each in pages)
