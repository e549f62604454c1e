"""A figure: what was measured beside what it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One thing measured.

    measured and allowed: in `unit`, allowed None where a figure is only reported. raw: the bare
    cost that `allowed` is built on, where there is one. target: how `allowed` is made, in words.
    """

    name: str
    measured: float
    allowed: float | None
    unit: str
    target: str
    raw: float | None = None

    @property
    def over(self) -> bool:
        """Whether the target is missed."""
        return self.allowed is not None and self.measured > self.allowed

    @property
    def verdict(self) -> str:
        if self.allowed is None:
            return "reported"
        return "over" if self.over else "ok"

    def record(self) -> dict[str, Any]:
        """The figure for a JSON file."""
        return {**asdict(self), "verdict": self.verdict}


HEAD = ("figure", "measured", "raw", "ratio to raw", "allowed", "used", "target", "verdict")


def table(figures: Sequence[Figure]) -> str:
    """The figures as text in columns; `used` is the part of what is allowed."""
    rows = [HEAD, *(_cells(figure) for figure in figures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if 0 < at < 6 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _cells(figure: Figure) -> tuple[str, ...]:
    raw, allowed, unit = figure.raw, figure.allowed, figure.unit
    return (
        figure.name,
        f"{figure.measured:.2f} {unit}",
        "" if raw is None else f"{raw:.2f} {unit}",
        f"{figure.measured / raw:.2f}" if raw else "",
        "" if allowed is None else f"{allowed:.2f} {unit}",
        f"{figure.measured / allowed:.0%}" if allowed else "",
        figure.target,
        figure.verdict,
    )
