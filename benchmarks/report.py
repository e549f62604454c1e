"""The report in Markdown: every target, how pages and queries grow, and all figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks import growth_table
from benchmarks.figure import GROWTH, Figure
from benchmarks.run import ALONE, Measured, Record
from benchmarks.sizes import SIZES
from benchmarks.targets import TARGETS, Target

COMMON, NO_MORE = ("newest 20, p50: common word", "newest 20, p50: word"), 2.0

HEAD = """# Benchmarks

Written by `python -m benchmarks --size S M L list --keep`; [docs/performance.md](../docs/performance.md) says how
it measures. CPU time, user and system, unless a line says wall or MB; the two sides of a ratio take turns in one run.
"""


def written(records: Sequence[Record]) -> str:
    """The whole report of what is known of each size."""
    known = [record for record in records if record.parts]
    pieces = [HEAD, *_made_with(known), *_targets(known), *_grown(known), *_figures(known)]
    return "\n".join(pieces).rstrip() + "\n"


def missed(records: Sequence[Record]) -> list[str]:
    """The texts of the targets that are missed, and the parts that failed."""
    failed = [name for record in records for name, part in record.parts.items() if part.reason.startswith("failed")]
    return [target.text for target in TARGETS.values() if verdict(target, records) == "miss"] + failed


def across(records: Sequence[Record]) -> Iterator[Figure]:
    """Figures of a target that holds one size against another: a search must not grow with the store."""
    found = {record.size: {figure.name: figure for figure in record.figures()} for record in records}
    for name in COMMON:
        small, big = found.get("S", {}).get(name), found.get("M", {}).get(name)
        if small and big and small.measured:
            told = f"{NO_MORE:g} x on S"
            yield Figure(name, big.measured, NO_MORE * small.measured, "ms", told, small.measured, of="newest grows")


def verdict(target: Target, records: Sequence[Record]) -> str:
    """`pass`, `miss`, `not reached` or `not measured`, by the sizes for which a target is promised."""
    found = [figure.verdict for _size, figure in _of(target, records, promised=True)]
    if "miss" in found:
        return "miss"
    ended = any(_part(target, record).box_s for record in records if _promised(target, record))
    if "not reached" in found or (ended and not found):
        return "not reached"
    return "pass" if found else "not measured"


def _of(target: Target, records: Sequence[Record], *, promised: bool = False) -> Iterator[tuple[str, Figure]]:
    for record in records:
        if not promised or _promised(target, record):
            yield from ((record.size, figure) for figure in record.figures() if figure.of == target.key)
    yield from (("M", figure) for figure in across(records) if figure.of == target.key)


def _promised(target: Target, record: Record) -> bool:
    return not target.at or record.size in (*target.at, ALONE)


def _part(target: Target, record: Record) -> Measured:
    return record.parts.get(target.part) or Measured()


def _made_with(records: Sequence[Record]) -> Iterator[str]:
    yield "## Made with\n"
    yield "| | store | day | machine | load | Python | SQLite | Datasette | state-ledger | CPU, s |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | ---: |"
    for record in records:
        last = max(record.parts.values(), key=lambda part: part.made_with.get("day", ""))
        cells = [last.made_with.get(each, "") for each in
                 ("day", "machine", "load", "Python", "SQLite", "Datasette", "state-ledger")]  # fmt: skip
        size = SIZES.get(record.size)
        store = f"{size.told}: {record.store}" if size else "stores of their own"
        yield _row([record.size, store, *cells, f"{sum(part.cpu_s for part in record.parts.values()):,.0f}"])
    yield ""


def _targets(records: Sequence[Record]) -> Iterator[str]:
    verdicts = {target.key: verdict(target, records) for target in TARGETS.values()}
    counted = [f"{list(verdicts.values()).count(each)} {each}" for each in dict.fromkeys(sorted(verdicts.values()))]
    yield f"## Targets\n\n{len(TARGETS)} targets: {', '.join(counted)}.\n"
    yield "| | target | measured | |"
    yield "| --- | --- | --- | --- |"
    for target in TARGETS.values():
        cells = [cell for record in records if (cell := _cell(target, record))]
        cells += [f"{figure.name}: {_amount(figure)}" for figure in across(records) if figure.of == target.key]
        named = f"**{verdicts[target.key]}**" if verdicts[target.key] == "miss" else verdicts[target.key]
        yield _row([target.area, target.text, "<br>".join(cells), named])
    yield ""


def _cell(target: Target, record: Record) -> str:
    """What was measured of a target on one size."""
    figures = [figure for figure in record.figures() if figure.of == target.key]
    part = record.parts.get(target.part)
    if not figures and (part is None or not (part.box_s or part.reason)):
        return ""
    at = "" if record.size == ALONE else f"{record.size}: " if _promised(target, record) else f"({record.size}) "
    if part is not None and part.box_s and not figures:
        return f"{at}not reached in {part.box_s:g} s of CPU"
    if not figures:
        return f"{at}{part.reason if part else ''}"
    worst = max(figures, key=lambda figure: figure.used or 0)
    within = sum(figure.verdict == "pass" for figure in figures)
    said = _amount(worst)
    if len(figures) > 1:
        said = f"{within} of {len(figures)}; most: {worst.name}, {said}"
    if part is not None and part.box_s:
        said += f"; the others not reached in {part.box_s:g} s of CPU"
    return at + said


def _amount(figure: Figure) -> str:
    if figure.measured is None:
        return "not reached"
    if not figure.allowed:
        return f"{figure.measured:g}{f' {figure.unit}' if figure.unit else ''} ({figure.target})"
    return f"{figure.measured:.3g} of {figure.allowed:.3g} {figure.unit} (× {figure.used:.2f})"


def _grown(records: Sequence[Record]) -> Iterator[str]:
    by_size = {
        record.size: {figure.name: figure for figure in record.parts[GROWTH].figures}
        for record in records
        if GROWTH in record.parts
    }
    if by_size:
        boxes = {record.size: record.parts[GROWTH].box_s for record in records if GROWTH in record.parts}
        yield from growth_table.written(by_size, boxes)


def _figures(records: Sequence[Record]) -> Iterator[str]:
    yield "## All figures\n"
    yield "`used` is the part of what is allowed.\n"
    for record in records:
        for name, part in record.parts.items():
            if name != GROWTH:
                yield from _part_figures(record.size, name, part)


def _part_figures(size: str, name: str, part: Measured) -> Iterator[str]:
    yield f"### {name}{'' if size == ALONE else f', {size}'}\n"
    if part.box_s:
        yield f"Ended after {part.box_s:g} s of CPU; what is not here was not reached.\n"
    if part.reason:
        yield f"{part.reason}\n"
    if part.figures:
        yield "| figure | measured | raw | ratio to raw | allowed | used | allowed is | |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |"
        yield from (_row(_cells(figure)) for figure in part.figures)
    yield ""


def _cells(figure: Figure) -> Iterable[str]:
    unit = f" {figure.unit}" if figure.unit else ""
    measured = figure.measured
    return (
        figure.name,
        "not reached" if measured is None else f"{measured:,.2f}{unit}",
        "" if figure.raw is None else f"{figure.raw:,.2f}{unit}",
        f"{measured / figure.raw:.2f}" if figure.raw and measured is not None else "",
        "" if figure.allowed is None else f"{figure.allowed:,.2f}{unit}",
        "" if figure.used is None else f"{figure.used:.2f}",
        figure.target,
        figure.verdict,
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |"
