"""Companions kept up to date while the app runs: one thread, small steps, long rests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from state_ledger.companion.building import refresh
from state_ledger.companion.report import GENTLE
from state_ledger.errors import StateLedgerError
from state_ledger.settings import Settings
from state_ledger.sqlite import sqlite3

ROUND_S = 20.0
"""Seconds between two looks at the stores."""

REREAD_EVERY = 3
"""At every so many rounds one range of messages is read again, the longest unread one."""

_log = logging.getLogger(__name__)


class Keeper:
    """Refreshes the companions of some stores until it is told to stop; ends with the process."""

    def __init__(
        self, stores: Sequence[Path], settings: Settings | None = None, round_s: float = ROUND_S
    ) -> None:
        self.stores = list(stores)
        self.settings = settings
        self.round_s = round_s
        self._stopped = threading.Event()
        self._told: dict[Path, str] = {}
        # A daemon: it never keeps the process from ending, and what it leaves half done is taken up again.
        self._thread = threading.Thread(target=self._run, name="state-ledger companion", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Ends the thread after the step it is at."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            for store in self.stores:
                self._refresh(store, number)
            number += 1
            self._stopped.wait(self.round_s)

    def _refresh(self, store: Path, number: int) -> None:
        """One round for one store; what is wrong is logged once and tried again in the next round."""
        try:
            refresh(
                store,
                reread=1 if number % REREAD_EVERY == REREAD_EVERY - 1 else 0,
                settings=self.settings,
                pace=GENTLE,
                stop=self._stopped.is_set,
            )
        except (StateLedgerError, sqlite3.Error, OSError) as error:
            if self._told.get(store) != str(error):
                _log.warning("The companion of %s is not up to date: %s", store, error)
            self._told[store] = str(error)
        else:
            self._told.pop(store, None)
