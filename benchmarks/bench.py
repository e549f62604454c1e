"""What a part of the benchmarks is told: the store it measures on, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class NotMeasured(Exception):
    """A part cannot be measured here; the sentence says why."""


@dataclass(frozen=True)
class Bench:
    """One store to be measured.

    turns: least turns of a page. runs: starts of a server. wants: whether a page or query is asked for.
    """

    path: Path
    turns: int = 3
    runs: int = 5
    wants: Callable[[str], bool] = lambda _name: True


def stepwise(figures: AsyncIterator[T]) -> Iterator[T]:
    """The figures of a part that awaits, one by one, so that those before a time box ended are kept."""
    loop = asyncio.new_event_loop()
    try:
        while True:
            try:
                yield loop.run_until_complete(anext(figures))
            except StopAsyncIteration:
                return
    finally:
        close = getattr(figures, "aclose", None)
        if close is not None:
            loop.run_until_complete(close())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
