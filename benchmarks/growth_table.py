"""How the cost of each page and query grows beside what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.figure import Figure
from benchmarks.growth import QUERY

STEPS = (("S", "M", "ten times as many sessions in the same days"), ("M", "L", "five times as many days"))
"""From which size to which, and what there is more of."""

TIMES = 2.0
LEAST_MS = 20.0
"""Faster than its output: more than TIMES as fast, and more than LEAST_MS dearer."""

BySize = Mapping[str, Mapping[str, Figure]]


def written(by_size: BySize, boxes: Mapping[str, float | None]) -> Iterator[str]:
    """The table of all pages and queries, and the list of what grows faster than its output."""
    names = list(dict.fromkeys(name for figures in by_size.values() for name in figures))
    sizes = list(by_size)
    yield "## Growth\n"
    yield "Every canned query as JSON, with its defaults, and every page, without a companion: milliseconds of CPU /"
    yield "what came of it, rows of a query, kB of a page. The last columns: cost / output, times the smaller store's."
    yield f"{_steps()} An empty cell was not measured.\n"
    yield from (
        f"On {size} the rest was not reached in {box:g} s of CPU.\n" for size, box in boxes.items() if box is not None
    )
    yield f"| | {' | '.join(sizes)} | {' | '.join(f'{one} → {other}' for one, other, _ in STEPS)} |"
    yield f"| --- |{' ---: |' * (len(sizes) + len(STEPS))}"
    for name in names:
        cells = [_cell(by_size[size].get(name), boxes[size]) for size in sizes]
        steps = [_step(by_size, name, one, other) for one, other, _ in STEPS]
        yield f"| {' | '.join([name, *cells, *steps])} |"
    yield ""
    yield "### What grows faster than its output\n"
    yield f"More than {TIMES:g} times as fast, and more than {LEAST_MS:g} ms dearer.\n"
    for one, other, what in STEPS:
        if one in by_size and other in by_size:
            yield f"{one} → {other}, {what}:\n"
            yield from _listed(by_size, names, one, other)
            yield ""


def grows(one: Figure | None, other: Figure | None) -> tuple[float, float] | None:
    """How many times as dear and as big the answer of the greater store is; None where it is not known."""
    if one is None or other is None or not one.measured or not other.measured or one.out is None or other.out is None:
        return None
    return other.measured / one.measured, other.out / max(1, one.out)


def faster_than_output(one: Figure | None, other: Figure | None) -> bool:
    """Whether a page or query becomes dearer without giving more."""
    if one is not None and other is not None and one.measured is not None and other.measured is None:
        return True
    grown = grows(one, other)
    if grown is None or one is None or other is None:
        return False
    dearer = (other.measured or 0) - (one.measured or 0)
    return dearer > LEAST_MS and grown[0] > TIMES * max(1.0, grown[1])


def _listed(by_size: BySize, names: list[str], one: str, other: str) -> Iterator[str]:
    found = [
        (pair[1].measured, name, pair)
        for name in names
        if faster_than_output(*(pair := (by_size[one].get(name), by_size[other].get(name)))) and pair[1] is not None
    ]
    for ms, name, pair in sorted(found, key=lambda each: (each[0] is not None, -(each[0] or 0))):
        grown = grows(*pair)
        if grown is None or ms is None:
            yield f"- {name}: not reached on {other}"
        else:
            yield f"- {name}: {ms:,.0f} ms, cost × {grown[0]:.1f}, output × {grown[1]:.1f}"
    if not found:
        yield "- nothing"


def _steps() -> str:
    return " ".join(f"From {one} to {other} there are {what}." for one, other, what in STEPS)


def _cell(figure: Figure | None, box_s: float | None) -> str:
    if figure is None:
        return "not reached" if box_s else ""
    if figure.measured is None or figure.out is None:
        return figure.target
    out = f"{figure.out:,}" if figure.name.startswith(QUERY) else f"{figure.out / 1000:,.1f} kB"
    return f"{figure.measured:,.1f} / {out}"


def _step(by_size: BySize, name: str, one: str, other: str) -> str:
    pair = (by_size.get(one, {}).get(name), by_size.get(other, {}).get(name))
    grown = grows(*pair)
    if grown is None:
        return ""
    told = f"{grown[0]:.1f} / {grown[1]:.1f}"
    return f"**{told}**" if faster_than_output(*pair) else told
