"""Sums of the additive figures of usage rows, with what is not known kept apart from zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from state_ledger import figures

Record = Mapping[str, Any]
"""One row of a question by column name."""

FIGURES = (
    "cost_usd", "actual_usd", "estimated_usd", "included_calls", "unknown_calls", "api_call_count",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
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
    rows: int = 0

    @classmethod
    def of(cls, records: Iterable[Record]) -> Sums:
        """Adds up rows that carry these columns; a missing column stays None."""
        kept = list(records)
        return cls(**{name: _total(kept, name) for name in FIGURES}, rows=len(kept))

    @property
    def prompt_tokens(self) -> float | None:
        """The whole prompt: fresh input, cache reads and cache writes (rule 1)."""
        parts = [self.input_tokens, self.cache_read_tokens, self.cache_write_tokens]
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    @property
    def cache_read_ratio(self) -> float | None:
        """The ratio of the sums, None where no prompt token was recorded (rule 3)."""
        if not self.prompt_tokens or self.cache_read_tokens is None:
            return None
        return self.cache_read_tokens / self.prompt_tokens

    @property
    def cost_text(self) -> str:
        """The amount, or the word that stands in its place."""
        return cost_text(self.cost_usd, self.included_calls, self.unknown_calls, self.rows)

    @property
    def cost_is_word(self) -> bool:
        """Whether `cost_text` is a word."""
        return not self.cost_text.startswith(("$", "-"))

    @property
    def left_out(self) -> str:
        """What the amount does not contain, or ''."""
        if not self.unknown_calls:
            return ""
        return f"+ {figures.plural(self.unknown_calls, 'call')} of unknown cost"


def cost_text(
    cost: float | None, included: float | None, unknown: float | None, rows: int = 1
) -> str:
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


def _total(records: list[Record], name: str) -> float | None:
    values = [record[name] for record in records if record.get(name) is not None]
    return math.fsum(values) if values else None
