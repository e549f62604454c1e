"""Charts as SVG text: pure functions of their figures, no script, no inline style.

Widths are percentages and heights are pixels, so that a chart fills any width while its text
keeps its size: one drawing serves a desk and a phone. Colours come from the page's stylesheet
through classes (`series-0` … `series-7`, `series-other`).

To assistive technology a chart is a figure with a caption, or one image where nothing in it leads
anywhere. Its bars are links for the pointer only (`tabindex="-1"`): 30 days of 8 models would be 240
stops for the keyboard, so each page gives the same links in the table beside the chart. What holds links
is no image, whose inside is not there for those who do not see it; such a drawing is left out whole.

A value of `None` is a gap and is said so in words; it is never drawn as zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape as _escape

from state_ledger.pages import figures

SERIES = 8
"""How many series have a colour of their own; all further ones are drawn as "other"."""

_PLOT = 220.0
_BAR = 40.0
_ILLEGAL = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Segment:
    """One coloured piece of a bar.

    `series` is the number of its colour (0 to 7), `None` for "other"; `value` is in the unit of
    the chart, `None` where it is not known; `href` leads to what the piece counts.
    """

    name: str
    value: float | None
    series: int | None = 0
    href: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar: a label (an ISO date on a time axis), its pieces from the bottom up, and a link.

    `note` says what the bar leaves out (calls of unknown cost); it is drawn as a small ring.
    `said` is a word that stands in the place of the amount, such as `included`.
    """

    label: str
    segments: Sequence[Segment] = ()
    href: str = ""
    note: str = ""
    said: str = ""

    @property
    def total(self) -> float | None:
        """The sum of the known pieces; `None` if the bar has pieces and none is known."""
        known = [s.value for s in self.segments if s.value is not None and math.isfinite(s.value)]
        return sum(max(0.0, value) for value in known) if known or not self.segments else None


@dataclass(frozen=True)
class Unit:
    """How an axis and a title write their values."""

    axis: Callable[[float], str]
    full: Callable[[float | None], str]


def _axis_money(value: float) -> str:
    if value >= 1000:
        return "$" + figures.short(value)
    return f"${value:g}" if value in (0, int(value)) else figures.money(value)


DOLLARS = Unit(axis=_axis_money, full=figures.money)
TOKENS = Unit(axis=figures.short, full=lambda value: f"{figures.count(value)} tokens")
BYTES = Unit(axis=lambda value: figures.size(round(value)), full=lambda value: figures.size(round(value or 0)))
RATIO = Unit(axis=lambda value: f"{value * 100:.0f} %", full=figures.ratio)


def nice_ticks(maximum: float, steps: int = 4) -> list[float]:
    """Round axis values from 0 to at least `maximum`: `nice_ticks(7.3)` is `[0, 2, 4, 6, 8]`."""
    if not math.isfinite(maximum) or maximum < 1e-12:  # less than any figure is written with
        return [0.0, 1.0]
    rough = maximum / steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10, 20) if factor * power >= rough * 0.999)
    ticks = [0.0]
    while ticks[-1] < maximum * 0.999:
        # A multiple, not a running sum: 0.1 + 0.2 would print as 0.30000000000000004.
        ticks.append(float(f"{len(ticks) * step:.12g}"))
    return ticks


def stacked_bars(bars: Sequence[Bar], *, name: str, title: str, description: str, unit: Unit = DOLLARS) -> str:
    """Bars side by side, one per day or group, each stacked from its segments.

    `name` makes the ids of this chart unique in its page. Bars without pieces are days without
    usage: they keep their place on the axis.
    """
    totals = [bar.total for bar in bars]
    if not any(total is not None and total > 0 for total in totals):
        return _empty(name, title, description, "No cost to draw in this period." if bars else "No data.")
    ticks = nice_ticks(max(total for total in totals if total is not None))
    top = ticks[-1]
    slot = 100.0 / len(bars)
    # Few bars keep a bearable width; many keep at least a hairline between them.
    width = min(slot * 0.74, 8.0) if len(bars) <= 120 else slot
    parts = [_grid(ticks, unit), _day_labels([bar.label for bar in bars])]
    for index, (bar, total) in enumerate(zip(bars, totals, strict=True)):
        left = index * slot
        parts.append(_bar(bar, total, left, slot, width, top, unit))
    kind = "chart chart-days dense" if len(bars) > 45 else "chart chart-days"
    return _frame(name, title, description, _PLOT, kind, parts)


def _bar(bar: Bar, total: float | None, left: float, slot: float, width: float, top: float, unit: Unit) -> str:
    day = figures.day(bar.label, year=True)
    said = bar.said or (unit.full(total) if bar.segments else "no usage")
    note = f"; {bar.note}" if bar.note else ""
    x = _percent(left + (slot - width) / 2)
    parts = [
        f'<rect class="hit" x="{_percent(left)}" y="0" width="{_percent(slot)}" height="{_PLOT:g}">'
        f"<title>{escape(f'{day}: {said}{note}')}</title></rect>"
    ]
    base = _PLOT
    for segment in bar.segments:
        if segment.value is None or not math.isfinite(segment.value) or segment.value <= 0:
            continue
        height = segment.value / top * _PLOT
        base -= height
        colour = _colour(segment.series) + (" thin" if height < 2 else "")
        piece = (
            f'<rect class="{colour}" x="{x}" y="{base:.2f}" width="{_percent(width)}" '
            f'height="{height:.2f}"><title>'
            f"{escape(f'{day}, {segment.name}: {unit.full(segment.value)}')}</title></rect>"
        )
        parts.append(_link(segment.href, piece))
    if total is None or bar.note:
        middle = _percent(left + slot / 2)
        parts.append(
            f'<circle class="ring" cx="{middle}" cy="{base - 7:.2f}" r="3">'
            f"<title>{escape(f'{day}: {bar.note or said}')}</title></circle>"
        )
    return _link(bar.href, "".join(parts), nested=True)


def horizontal_bars(bars: Sequence[Bar], *, name: str, title: str, description: str, unit: Unit = DOLLARS) -> str:
    """One row per group: its label and value above, its stacked bar below, longest bar full width."""
    if not bars:
        return _empty(name, title, description, "No data.")
    longest = max((bar.total or 0.0 for bar in bars), default=0.0)
    parts = []
    for row, bar in enumerate(bars):
        parts.append(_row(bar, row * _BAR, longest, unit))
    return _frame(name, title, description, len(bars) * _BAR, "chart chart-rows", parts)


def _row(bar: Bar, y: float, longest: float, unit: Unit) -> str:
    said = bar.said or (unit.full(bar.total) if bar.segments else figures.NO_DATA)
    whole = f"{bar.label}: {said}" + (f"; {bar.note}" if bar.note else "")
    parts = [
        f'<rect class="hit" x="0" y="{y:g}" width="100%" height="{_BAR:g}"><title>{escape(whole)}</title></rect>',
        f'<text class="row-label" x="0" y="{y + 15:g}">{escape(_cut(bar.label, 34))}</text>',
        f'<text class="row-value" x="100%" y="{y + 15:g}">{escape(said)}'
        + (" +" if bar.note and bar.segments else "")
        + "</text>",
        f'<rect class="track" x="0" y="{y + 22:g}" width="100%" height="8"/>',
    ]
    left = 0.0
    for segment in bar.segments:
        if segment.value is None or not math.isfinite(segment.value) or segment.value <= 0 or longest <= 0:
            continue
        # A sum that is not 0 is visible: a hairline of 0.2 % at least.
        width = max(0.2, segment.value / longest * 100)
        piece = (
            f'<rect class="{_colour(segment.series)}" x="{_percent(left)}" y="{y + 22:g}" '
            f'width="{_percent(width)}" height="8"><title>'
            f"{escape(f'{bar.label}, {segment.name}: {unit.full(segment.value)}')}</title></rect>"
        )
        parts.append(_link(segment.href, piece))
        left += width
    return _link(bar.href, "".join(parts), nested=True)


def ratio_line(points: Sequence[tuple[str, float | None]], *, name: str, title: str, description: str) -> str:
    """A share from 0 to 1 over days: `(ISO date, share)`; the line breaks where there is no data."""
    if not any(value is not None for _, value in points):
        return _empty(name, title, description, "No data: no prompt tokens were recorded.")
    height = 140.0
    slot = 100.0 / len(points)
    parts = [_grid([0.0, 0.5, 1.0], RATIO, height), _day_labels([day for day, _ in points], height)]
    before: tuple[str, str] | None = None
    for index, (label, value) in enumerate(points):
        day = figures.day(label, year=True)
        if value is None or not math.isfinite(value):
            said, here = figures.NO_DATA, None
        else:
            said = figures.ratio(value)
            here = (_percent((index + 0.5) * slot), f"{height - min(1.0, max(0.0, value)) * height:.2f}")
            if before is not None:
                parts.append(f'<line class="trend" x1="{before[0]}" y1="{before[1]}" x2="{here[0]}" y2="{here[1]}"/>')
            if len(points) <= 62 or before is None:
                parts.append(f'<circle class="dot" cx="{here[0]}" cy="{here[1]}" r="2.5"/>')
        before = here
        parts.append(
            f'<rect class="hit" x="{_percent(index * slot)}" y="0" width="{_percent(slot)}" '
            f'height="{height:g}"><title>{escape(f"{day}: {said}")}</title></rect>'
        )
    return _frame(name, title, description, height, "chart chart-ratio", parts)


def sparkline(values: Sequence[float | None], *, name: str, title: str, description: str) -> str:
    """Small bars without axes, one per day, for a card; gaps where a value is `None`."""
    height = 36.0
    known = [value for value in values if value is not None and math.isfinite(value)]
    top = max(known, default=0.0)
    slot = 100.0 / max(1, len(values))
    parts = [f'<line class="axis" x1="0" y1="{height - 0.5:g}" x2="100%" y2="{height - 0.5:g}"/>']
    for index, value in enumerate(values):
        if value is None or not math.isfinite(value) or value <= 0 or top <= 0:
            continue
        tall = max(1.5, value / top * (height - 2))
        parts.append(
            f'<rect class="series-0" x="{_percent(index * slot + slot * 0.12)}" y="{height - 1 - tall:.2f}" '
            f'width="{_percent(slot * 0.76)}" height="{tall:.2f}"/>'
        )
    return _frame(name, title, description, height, "spark", parts)


def legend(names: Sequence[tuple[str, int | None]], *, ring: str = "") -> str:
    """An HTML list of colours: `(name, series)`; `ring` explains the small ring where one is drawn."""
    items = [
        f'<li><svg class="swatch" width="12" height="12" aria-hidden="true" focusable="false">'
        f'<rect class="{_colour(series)}" width="12" height="12"/></svg> {escape(name)}</li>'
        for name, series in names
    ]
    if ring:
        items.append(
            '<li><svg class="swatch" width="12" height="12" aria-hidden="true" focusable="false">'
            f'<circle class="ring" cx="6" cy="6" r="4"/></svg> {escape(ring)}</li>'
        )
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


def escape(text: str) -> str:
    """Text for an attribute or an element; control characters, illegal in XML, become U+FFFD."""
    return _escape(_ILLEGAL.sub("\ufffd", text))


def _frame(name: str, title: str, description: str, height: float, kind: str, parts: Sequence[str]) -> str:
    mark, drawn = escape(name), "".join(parts)
    svg = f'<svg class="{kind}" width="100%" height="{height:g}" focusable="false"'
    if "<a " in drawn:
        return (
            f'<figure id="{mark}"><figcaption class="visually-hidden">{escape(title)}. {escape(description)}'
            f'</figcaption>{svg} aria-hidden="true">{drawn}</svg></figure>'
        )
    return (
        f'{svg} role="img" aria-labelledby="{mark}-title {mark}-description">'
        f'<title id="{mark}-title">{escape(title)}</title>'
        f'<desc id="{mark}-description">{escape(description)}</desc>{drawn}</svg>'
    )


def _empty(name: str, title: str, description: str, said: str) -> str:
    text = f'<text class="no-data" x="50%" y="34">{escape(said)}</text>'
    return _frame(name, title, f"{description} {said}", 56, "chart chart-empty", [text])


def _grid(ticks: Sequence[float], unit: Unit, height: float = _PLOT) -> str:
    lines = []
    for tick in ticks:
        y = height - tick / ticks[-1] * height
        kind = "axis" if tick == 0 else "grid"
        lines.append(
            f'<line class="{kind}" x1="0" y1="{y:.2f}" x2="100%" y2="{y:.2f}"/>'
            f'<text class="tick" x="-8" y="{y + 4:.2f}">{escape(unit.axis(tick))}</text>'
        )
    return "".join(lines)


def _day_labels(labels: Sequence[str], height: float = _PLOT) -> str:
    """At most eight labels, every second of them only where there is room (class `roomy`)."""
    chosen = _thin(labels)
    slot = 100.0 / len(labels)
    year = ""
    parts = []
    for place, index in enumerate(chosen):
        label = labels[index]
        text = figures.day(label, year=place == 0 or label[:4] != year)
        year = label[:4]
        roomy = " roomy" if place % 2 else ""
        edge = " first" if index == 0 else ""
        parts.append(
            f'<text class="day{roomy}{edge}" x="{_percent((index + 0.5) * slot)}" y="{height + 18:g}">'
            f"{escape(_cut(text, 14))}</text>"
        )
    return "".join(parts)


def _thin(labels: Sequence[str], most: int = 8) -> list[int]:
    """The places of the labels to print: evenly spaced, on firsts of months when there are many days."""
    places = list(range(len(labels)))
    if len(labels) > 100:
        firsts = [place for place in places if _is_first_of_month(labels[place])]
        places = firsts or places
    step = max(1, math.ceil(len(places) / most))
    return places[::step]


def _is_first_of_month(label: str) -> bool:
    try:
        return date.fromisoformat(label).day == 1
    except ValueError:
        return False


def _link(href: str, inner: str, *, nested: bool = False) -> str:
    """Wraps in a link; links do not nest in SVG, so a bar with linked pieces links its backdrop only."""
    if not href:
        return inner
    opened = f'<a href="{escape(href)}" tabindex="-1">'
    if nested and "<a " in inner:
        head, _, rest = inner.partition("</rect>")
        return f"{opened}{head}</rect></a>{rest}"
    return f"{opened}{inner}</a>"


def _colour(series: int | None) -> str:
    return "series-other" if series is None or not 0 <= series < SERIES else f"series-{series}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _percent(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"
