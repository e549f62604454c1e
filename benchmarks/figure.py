"""A figure: what was measured beside what it may cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from benchmarks.targets import TARGETS

GROWTH = "growth"
"""What the pages and queries belong to, whose growth is shown."""


@dataclass(frozen=True)
class Figure:
    """One thing measured.

    measured and allowed: in `unit`. measured is None where there was no answer in the time of a page;
    allowed is None where a figure is only reported. raw: the bare cost that `allowed` is built on, where
    there is one. target: how `allowed` is made, in words. of: the target in `benchmarks.targets` it belongs to.
    out: what a page or query of the growth table gave, rows or bytes.
    """

    name: str
    measured: float | None
    allowed: float | None
    unit: str
    target: str
    raw: float | None = None
    of: str = ""
    out: int | None = None

    def __post_init__(self) -> None:
        if self.of and self.of not in TARGETS and self.of != GROWTH:
            raise ValueError(f"{self.name}: there is no target {self.of!r}.")

    @property
    def over(self) -> bool:
        """Whether the target is missed."""
        return self.allowed is not None and self.measured is not None and self.measured > self.allowed

    @property
    def used(self) -> float | None:
        """The part of what is allowed, None where nothing is."""
        if self.measured is None or self.allowed is None:
            return None
        return self.measured / self.allowed if self.allowed else float(self.measured > 0)

    @property
    def verdict(self) -> str:
        """`pass`, `miss`, `reported` or `not reached`."""
        if self.measured is None:
            return "not reached"
        if self.allowed is None:
            return "reported"
        return "miss" if self.over else "pass"

    def record(self) -> dict[str, Any]:
        """The figure for a file: what is not as by default, numbers to six digits."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        rounded = {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in given.items()}
        return {field.name: rounded[field.name] for field in fields(self) if rounded[field.name] != field.default}
