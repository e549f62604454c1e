"""Models of the demo, what they cost, and how they are billed.

The prices are in the usual range of such models and serve the demo alone: nothing in the project
prices real usage from this list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens of each bucket; the buckets do not overlap (accounting rule 1)."""

    input: float
    output: float
    cache_read: float
    cache_write: float


Caching = Literal["writes", "prefix", "none"]
"""writes: what enters the cache is billed as a write; prefix: a repeated beginning is read in whole
blocks, and nothing is written; none: the provider reports no cache."""


@dataclass(frozen=True)
class Route:
    """One way to a model: its name as stored, who bills it, and how.

    price: None where nobody knows it; then cost status and source are `unknown` and `none`.
    included: a subscription covers it.
    reports_cost: the provider told the real cost, `surcharge` times the estimate.
    """

    model: str
    provider: str
    base_url: str = ""
    mode: str = ""
    price: Price | None = None
    source: str = "provider_models_api"
    caching: Caching = "prefix"
    included: bool = False
    reasons: bool = False
    reports_cost: bool = False
    surcharge: float = 1.0

    @property
    def cost_status(self) -> str:
        """What the store says of the last call: `actual`, `estimated`, `included` or `unknown`."""
        if self.included:
            return "included"
        if self.price is None:
            return "unknown"
        return "actual" if self.reports_cost else "estimated"

    @property
    def cost_source(self) -> str:
        """Where the store says the cost comes from."""
        if self.included or self.price is None:
            return "none"
        return "provider_cost_api" if self.reports_cost else self.source

    def cost(self, fresh: int, output: int, cache_read: int, cache_write: int) -> float:
        """Estimated dollars of one call; 0.0 where it is included or nobody knows the price."""
        if self.price is None or self.included:
            return 0.0
        price = self.price
        dollars = fresh * price.input + output * price.output
        return (dollars + cache_read * price.cache_read + cache_write * price.cache_write) / 1e6

    def after_switch(self) -> Route:
        """The same route as a `/model` command in mid-session records it: with an API mode."""
        if self.included:
            return self
        return replace(
            self, mode="anthropic_messages" if self.provider == "anthropic" else "chat_completions"
        )


_OPENROUTER = "https://openrouter.ai/api/v1"
_SONNET = Price(3.00, 15.00, 0.30, 3.75)
_OPUS = Price(5.00, 25.00, 0.50, 6.25)
_HAIKU = Price(1.00, 5.00, 0.10, 1.25)
_GPT = Price(1.75, 14.00, 0.175, 0.0)
_GPT_MINI = Price(0.25, 2.00, 0.025, 0.0)
_DEEPSEEK = Price(0.28, 0.42, 0.028, 0.0)
_HERMES = Price(0.09, 0.37, 0.045, 0.0)
_FLASH = Price(0.30, 2.50, 0.03, 0.0)

SONNET = Route("anthropic/claude-sonnet-4-5", "openrouter", _OPENROUTER, price=_SONNET, caching="writes")
SONNET_DATED = Route(
    "claude-sonnet-4-5-20250929",
    "anthropic",
    price=_SONNET,
    caching="writes",
    source="official_docs_snapshot",
)
SONNET_SHOUTED = replace(SONNET, model="Anthropic/Claude-Sonnet-4-5", base_url=_OPENROUTER + "/")
OPUS = Route(
    "claude-opus-4-5",
    "anthropic",
    price=_OPUS,
    caching="writes",
    source="official_docs_snapshot",
    reasons=True,
)
HAIKU = Route("anthropic/claude-haiku-4-5", "openrouter", _OPENROUTER, price=_HAIKU, caching="writes")
GPT = Route("openai/gpt-5.2", "openrouter", _OPENROUTER, price=_GPT, reasons=True)
GPT_DATED = Route(
    "gpt-5.2-2025-12-11",
    "openai",
    "https://api.openai.com/v1",
    price=_GPT,
    source="official_docs_snapshot",
    reasons=True,
)
DEEPSEEK = Route("deepseek/deepseek-chat", "openrouter", _OPENROUTER, price=_DEEPSEEK)
DEEPSEEK_DIRECT = Route("deepseek-chat", "deepseek", "https://api.deepseek.com/v1", price=_DEEPSEEK)
CODEX = Route(
    "gpt-5.2-codex",
    "openai-codex",
    "https://chatgpt.com/backend-api/codex",
    "subscription_included",
    included=True,
    reasons=True,
)
LOCAL = Route("qwen3-coder:30b", "custom", "http://localhost:11434/v1", caching="none")
UNLISTED = Route("example-lab/orchard-large-preview", "openrouter", _OPENROUTER)
REPORTING = Route(
    "nousresearch/hermes-4-405b",
    "nous",
    "https://inference-api.nousresearch.com/v1",
    price=_HERMES,
    reports_cost=True,
    surcharge=1.055,
)

MAIN: tuple[tuple[Route, int], ...] = (
    (SONNET, 26),
    (SONNET_DATED, 9),
    (SONNET_SHOUTED, 3),
    (OPUS, 9),
    (HAIKU, 8),
    (GPT, 12),
    (GPT_DATED, 3),
    (DEEPSEEK, 8),
    (DEEPSEEK_DIRECT, 3),
    (CODEX, 11),
    (LOCAL, 4),
    (REPORTING, 3),
    (UNLISTED, 1),
)
"""Routes of the main conversation and how often each is chosen."""

CHEAP: tuple[tuple[Route, int], ...] = ((HAIKU, 4), (DEEPSEEK, 4), (GPT, 1), (LOCAL, 1), (SONNET, 1))
"""Routes of scheduled jobs and delegates."""

HELPER = Route("google/gemini-2.5-flash", "openrouter", _OPENROUTER, price=_FLASH)
HELPER_MINI = Route("gpt-5-mini", "openai", "https://api.openai.com/v1", price=_GPT_MINI)
HELPER_LOCAL = Route("llama3.2:3b", "custom", "http://localhost:11434/v1", caching="none")
HELPERS: tuple[tuple[Route, int], ...] = ((HELPER, 7), (HELPER_MINI, 2), (HELPER_LOCAL, 1))
"""Routes of helper calls (titles, summaries, pictures)."""
