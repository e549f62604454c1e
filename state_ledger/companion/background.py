"""Companions kept up to date while the app runs: one thread, small steps, long rests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from state_ledger.companion.building import refresh
from state_ledger.companion.report import GENTLE
from state_ledger.rounds import Rounds
from state_ledger.settings import Settings

ROUND_S = 20.0
"""Seconds between two looks at the stores."""

REREAD_EVERY = 3
"""At every so many rounds one range of messages is read again, the longest unread one."""


class Keeper(Rounds[Path]):
    """Refreshes the companions of some stores until it is told to stop; ends with the process."""

    name = "state-ledger companion"
    complaint = "The companion of %s is not up to date"

    def __init__(
        self, stores: Sequence[Path], settings: Settings | None = None, round_s: float = ROUND_S
    ) -> None:
        super().__init__(stores, round_s)
        self.settings = settings

    def work(self, subject: Path, number: int) -> None:
        """One round for one store."""
        refresh(
            subject,
            reread=1 if number % REREAD_EVERY == REREAD_EVERY - 1 else 0,
            settings=self.settings,
            pace=GENTLE,
            stop=self._stopped.is_set,
        )
