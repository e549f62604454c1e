"""Sums of the additive figures of usage rows, with what is not known kept apart from zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from state_ledger.pages import figures

Record = Mapping[str, Any]
"""One row of a question by column name."""

FIGURES = (
    "cost_usd", "actual_usd", "estimated_usd", "included_calls", "unknown_calls", "api_call_count",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "unknown_tokens",
)  # fmt: skip

@dataclass(frozen=True)
class Sums:
    """Sums over some rows: dollars, calls, tokens. None where no row knows the figure.

    `cost_usd` is the best known cost (actual, else estimated, 0 for included calls);
    `unknown_calls` are not in it (accounting.md rule 6).
    """

    cost_usd: float | None = None
    actual_usd: float | None = None
    estimated_usd: float | None = None
    included_calls: float | None = None
    unknown_calls: float | None = None
    api_call_count: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_read_tokens: float | None = None
    cache_write_tokens: float | None = None
    unknown_tokens: float | None = None
    cached: float | None = None
    prompted: float | None = None
    rows: int = 0

    @classmethod
    def of(cls, records: Iterable[Record]) -> Sums:
        """Adds up rows that carry these columns; a missing column stays None."""
        kept = list(records)
        # Rows from before cache figures were recorded have no ratio: they are "no data", not 0 %.
        told = [record for record in kept if record.get("cache_read_ratio") is not None]
        return cls(
            **{name: _total(kept, name) for name in FIGURES},
            cached=_sum(record["cache_read_ratio"] * record["prompt_tokens"] for record in told),
            prompted=_total(told, "prompt_tokens"),
            rows=len(kept),
        )

    @property
    def record(self) -> Record:
        """The sums as a row of a question."""
        told = {"prompt_tokens": self.prompted, "cache_read_ratio": self.cache_read_ratio}
        return {name: getattr(self, name) for name in FIGURES} | told

    @property
    def fresh_tokens(self) -> float | None:
        """Input and output (rule 2)."""
        return _sum([self.input_tokens, self.output_tokens])

    @property
    def processed_tokens(self) -> float | None:
        """Input, output, cache reads and cache writes (rule 2)."""
        return _sum([self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens])

    @property
    def cache_read_ratio(self) -> float | None:
        """The ratio of the sums, None where no prompt token was recorded (rule 3)."""
        return self.cached / self.prompted if self.prompted and self.cached is not None else None

    @property
    def cost_text(self) -> str:
        """The amount, or the word that stands in its place."""
        unknown = self.unknown_calls or self.unknown_tokens
        return cost_text(self.cost_usd, self.included_calls, unknown, self.rows)

    @property
    def cost_is_word(self) -> bool:
        """Whether `cost_text` is a word."""
        return not self.cost_text.startswith(("$", "-"))

    @property
    def unknown_calls_text(self) -> str:
        """Calls without a price; `uncounted` where the store counted tokens but no calls."""
        if not self.unknown_calls and self.unknown_tokens:
            return "uncounted"
        return figures.count(self.unknown_calls or 0)

    @property
    def left_out(self) -> str:
        """What the amount does not contain, or ''."""
        said = left_out(self.unknown_calls, self.unknown_tokens)
        return f"+ {said}" if said else ""


def cost_text(cost: float | None, included: float | None, unknown: float | None, rows: int = 1) -> str:
    """Dollars, or a word: `unknown` for calls without a price, `included` where a subscription
    covers all there is, `no usage` for nothing at all (rule 6)."""
    if not rows:
        return "no usage"
    if cost is None:
        return figures.UNKNOWN
    if cost == 0 and unknown:
        return figures.UNKNOWN
    if cost == 0 and included:
        return "included"
    return figures.money(cost)


def left_out(calls: float | None, tokens: float | None) -> str:
    """`3 calls of unknown cost`; in tokens where the calls were not counted; '' where all is known."""
    if calls:
        return f"{figures.plural(calls, 'call')} of unknown cost"
    return f"{figures.short(tokens)} tokens of unknown cost" if tokens else ""


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def _total(records: list[Record], name: str) -> float | None:
    return _sum(record.get(name) for record in records)
