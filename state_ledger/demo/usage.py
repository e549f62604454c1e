"""What the calls of one demo session used and cost, summed as the store sums them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from state_ledger.demo.prices import HELPERS, Route

COLUMNS = (
    "session_id",
    "model",
    "billing_provider",
    "billing_base_url",
    "billing_mode",
    "task",
    "api_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "estimated_cost_usd",
    "actual_cost_usd",
    "cost_status",
    "cost_source",
    "first_seen",
    "last_seen",
)
"""Columns of `session_model_usage` in the order of the rows made here."""

_CACHE_LIFE = 3600.0
_BLOCK = 128


@dataclass
class Tally:
    """Sums over calls: tokens by bucket, calls, dollars, first and last call."""

    calls: int = 0
    fresh: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    estimated: float = 0.0
    actual: float = 0.0
    first: float = 0.0
    last: float = 0.0

    def add(
        self, at: float, fresh: int, output: int, cache_read: int, cache_write: int, reasoning: int
    ) -> None:
        """Adds one call's tokens, made at `at`."""
        self.first = at if not self.calls else self.first
        self.last = at
        self.calls += 1
        self.fresh += fresh
        self.output += output
        self.cache_read += cache_read
        self.cache_write += cache_write
        self.reasoning += reasoning


class Book:
    """The usage of one session.

    A call's prompt is everything said so far; what of it comes from the cache depends on the
    route, on the time since the last call (a cache lives an hour) and on whether the beginning of
    the prompt was still the same.
    """

    def __init__(self, session_id: str, rng: Random, *, helper_route: Route | None = None) -> None:
        self._session_id = session_id
        self._rng = rng
        self._rows: dict[tuple[Route, str], Tally] = {}
        self._cached = 0
        self._last: tuple[str, float] = ("", float("-inf"))
        self._helper_route = helper_route or rng.choices(*zip(*HELPERS, strict=True))[0]
        self.last_route: Route | None = None

    def call(
        self, route: Route, at: float, prompt: int, output: int, *, reasoning: int = 0, same: bool = True
    ) -> None:
        """Books one call of the main loop: `prompt` tokens in, `output` tokens out.

        reasoning: tokens of the output that were thought, not said. same: whether the prompt still
        begins as it did in the last call; if not, nothing of it is read from the cache.
        """
        alive = same and self._last[0] == route.model and at - self._last[1] < _CACHE_LIFE
        known = min(self._cached, prompt) if alive else 0
        if route.caching == "writes":
            fresh = min(prompt - known, self._rng.randint(3, 40))
            read, write = known, prompt - known - fresh
        elif route.caching == "prefix":
            read, write = known // _BLOCK * _BLOCK, 0
            fresh = prompt - read
        else:
            fresh, read, write = prompt, 0, 0
        self._cached, self._last = prompt, (route.model, at)
        self._book(route, "", at, fresh, output, read, write, reasoning)
        self.last_route = route

    def helper(self, task: str, at: float, prompt: int, output: int) -> None:
        """Books one helper call, on the helper's own route; it never touches the session's sums."""
        self._book(self._helper_route, task, at, prompt, output, 0, 0, 0)

    def _book(
        self,
        route: Route,
        task: str,
        at: float,
        fresh: int,
        output: int,
        read: int,
        write: int,
        reasoning: int,
    ) -> None:
        tally = self._rows.setdefault((route, task), Tally())
        tally.add(at, fresh, output, read, write, reasoning)
        cost = route.cost(fresh, output, read, write)
        tally.estimated += cost
        if route.reports_cost:
            tally.actual += cost * route.surcharge

    def rows(self) -> list[tuple[Any, ...]]:
        """Rows of `session_model_usage`, in the order of `COLUMNS`.

        A helper call's row has neither mode nor status nor source, as the store leaves them.
        """
        return [
            (
                self._session_id,
                route.model,
                route.provider,
                route.base_url,
                "" if task else route.mode,
                task,
                tally.calls,
                tally.fresh,
                tally.output,
                tally.cache_read,
                tally.cache_write,
                tally.reasoning,
                tally.estimated,
                tally.actual,
                None if task else route.cost_status,
                None if task else route.cost_source,
                tally.first,
                tally.last,
            )
            for (route, task), tally in self._rows.items()
        ]

    def main_total(self) -> Tally:
        """The sums of the main loop (`task = ''`), which is what the session row carries."""
        total = Tally()
        for (_, task), tally in self._rows.items():
            if task:
                continue
            total.calls += tally.calls
            total.fresh += tally.fresh
            total.output += tally.output
            total.cache_read += tally.cache_read
            total.cache_write += tally.cache_write
            total.reasoning += tally.reasoning
            total.estimated += tally.estimated
            total.actual += tally.actual
        return total
