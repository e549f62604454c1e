"""Turns and places: how many may work at once, who waits, and who is sent away."""

from __future__ import annotations

import asyncio
from collections import deque

from state_ledger.errors import StateLedgerError


class TooBusyError(StateLedgerError):
    """There is no room, or no turn came in time; str() is a sentence for the visitor."""


class Turns:
    """At most `at_once` hold a turn. The others wait in the order in which they came, newcomers or not.

    at_most_waiting: so many newcomers may wait. patience_s: and so long. who: the plural of what takes
    turns, for the sentence.
    """

    def __init__(self, at_once: int, at_most_waiting: int, patience_s: float, who: str) -> None:
        self.at_once = at_once
        self.at_most_waiting = at_most_waiting
        self.patience_s = patience_s
        self.who = who
        self.held = 0
        self.newcomers = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    async def take(self, unless: asyncio.Future[None] | None = None) -> bool:
        """Waits for a turn as a newcomer; False if `unless` was done first. Raises TooBusyError."""
        if self.held < self.at_once:
            self.held += 1
            return True
        if self.newcomers >= self.at_most_waiting:
            raise TooBusyError(self._sentence("as many as may wait are waiting"))
        self.newcomers += 1
        try:
            taken = await self._wait(unless, self.patience_s)
        finally:
            self.newcomers -= 1
        if not taken and (unless is None or not unless.done()):
            raise TooBusyError(self._sentence(f"none had its turn within {self.patience_s:g} seconds"))
        return taken

    async def take_again(self) -> None:
        """Waits for a further turn: whoever has had one is not sent away."""
        if self.held < self.at_once:
            self.held += 1
        else:
            await self._wait(None, None)

    def give_back(self) -> None:
        """Ends a turn; who has waited longest has the next one."""
        while self._queue:
            following = self._queue.popleft()
            if not following.done():
                following.set_result(None)
                return
        self.held -= 1

    async def _wait(self, unless: asyncio.Future[None] | None, patience_s: float | None) -> bool:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(mine)
        try:
            await asyncio.wait(
                {mine} if unless is None else {mine, unless},
                timeout=patience_s, return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
        except asyncio.CancelledError:
            if mine.done():
                self.give_back()
            mine.cancel()
            raise
        if mine.done():
            return True
        mine.cancel()
        return False

    def _sentence(self, why: str) -> str:
        return (
            f"The server is busy: {self.at_once} {self.who} are worked on at a time, and {why}. Try again in a "
            "moment, or ask for less, for instance for a shorter period. Small pages are answered meanwhile."
        )
