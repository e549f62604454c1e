"""Which costs cannot be true for the tokens they claim to have bought (accounting rule 9)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """A row is set aside when it costs more than `per_1000_tokens` and at least `from_usd` dollars.

    Short calls can cost more per token than any list price (fees per request, tools, images), so
    small amounts are never set aside; a price per million read as a price per token always is.
    """

    per_1000_tokens: float = 1.0
    from_usd: float = 5.0

    def exceeded(self, cost: str, tokens: str) -> str:
        """The condition as SQL over two expressions; without tokens there is no rate to judge."""
        return f"{cost} >= {self.from_usd!r} AND {tokens} > 0 AND {cost} > {self.per_1000_tokens!r} * {tokens} / 1000.0"

    @property
    def reason(self) -> str:
        """Why a row was set aside, as a phrase."""
        return f"cost above {self.per_1000_tokens:g} dollars per 1,000 tokens"
