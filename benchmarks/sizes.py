"""The stores that are measured on: how many sessions and messages each has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """One store, by what the demo generator is told.

    days: the period that its sessions fall into. copies: how many times its rows are there, each time the
    period earlier: a store that is not drawn anew but has a longer past. full_text: whether it has indexes.
    thin: whether of each session only its ends are there, without a word.
    """

    name: str
    sessions: int
    messages_per_session: float
    days: int
    copies: int = 1
    full_text: bool = True
    thin: bool = False

    @property
    def drawn(self) -> Size:
        """The size whose rows are copied."""
        return next(size for size in SIZES.values() if size.copies == 1 and size.sessions == self.sessions)

    @property
    def told(self) -> str:
        """What it is, in words."""
        sessions, days = self.sessions * self.copies, self.days * self.copies
        told = f"{sessions:,} sessions with {self.messages_per_session:g} messages each in {days} days"
        return f"{told}, without what was said" if self.thin else told


SIZES = {
    size.name: size
    for size in (
        Size("S", 1_000, 70, 90),
        Size("M", 10_000, 70, 90),
        # Rows of M, five times: ten minutes of drawing less, and a past five times as long.
        Size("L", 10_000, 70, 90, copies=5),
        Size("list", 54_000, 6, 730, full_text=False),
        # Rows of M, 72 times in ten years: 2.1 million usage rows, for what is asked of a fleet's books.
        Size("usage", 10_000, 2, 50, copies=72, thin=True),
    )
}
"""From S to M the days grow fuller; from M to L there are more days."""
