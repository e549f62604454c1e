"""The books of a fleet for one process: opened when they are first asked for, looked at again in the background.

A lake can be large and far away. Whoever asks gets what the last look found and does not wait for the next one; where
there is nothing yet, or it is just being changed, it waits no longer than it says.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from state_ledger.errors import StateLedgerError
from state_ledger.fleet.places import Where
from state_ledger.fleet.reading import FleetReading, Selection
from state_ledger.fleet.sources import Source, opened
from state_ledger.settings import Settings

if TYPE_CHECKING:
    from state_ledger.warehouse import Store

T = TypeVar("T")

AGAIN_AFTER_FAILURE_S = 5.0
"""Seconds after which a place that could not be read is looked at again."""

ATTEMPTS = 3
"""How often a page is read where others change the books while it is."""


class FleetUnread(StateLedgerError):
    """The books of the fleet cannot be shown (yet); the sentence says why and what to do."""


class Fleet:
    """One place with books of a fleet. Used by many threads at once.

    looked_at: when it was last looked at without a failure, epoch seconds. version: a text that changes with the
    books. stores: those in them at that time.
    """

    def __init__(
        self, where: Where, settings: Settings, opener: Callable[[Where, Settings], Source] = opened
    ) -> None:
        self.where = where
        self.settings = settings
        self.looked_at: float | None = None
        self.version = ""
        self.stores: tuple[Store, ...] = ()
        self._opener = opener
        self._source: Source | None = None
        self._failure = ""
        self._looking = False
        self._look_again_at = 0.0
        self._told = threading.Condition()

    def read(self, reader: Callable[[FleetReading], T], selection: Selection, wait_s: float) -> T:
        """What a reader makes of the books, narrowed to a selection; it is called again where they changed meanwhile.

        wait_s: how long the books are waited for. Raises FleetUnread, ParameterError for a selection of what is not
        there, and what the reader raises.
        """
        deadline = time.monotonic() + wait_s
        source = self._opened(deadline)
        for _ in range(ATTEMPTS):
            with source.books(max(0.0, deadline - time.monotonic())) as warehouse:
                reading = FleetReading(warehouse, selection, self.settings, self._notices(source))
                answer = reader(reading)
                if source.is_current(warehouse):
                    return answer
            source.look()
        raise FleetUnread("The books of the fleet changed again and again while they were read. Reload.")

    def look_if_due(self) -> None:
        """Has the place looked at in the background, if the last time was long ago."""
        with self._told:
            if self._looking or time.monotonic() < self._look_again_at:
                return
            self._looking = True
        # Not of a pool: a process that ends does not wait for it.
        threading.Thread(target=self._look, name="state-ledger-fleet-look", daemon=True).start()

    def _opened(self, deadline: float) -> Source:
        self.look_if_due()
        with self._told:
            while self.looked_at is None or self._source is None:
                if self._failure and not self._looking:
                    raise FleetUnread(self._failure)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise FleetUnread(
                        f"{self._called} is being read for the first time, which goes on. Reload in a while."
                    )
                self._told.wait(left)
            return self._source

    def _notices(self, source: Source) -> list[str]:
        return [*source.notices, *([f"What is shown is from before: {self._failure}"] if self._failure else [])]

    def _look(self) -> None:
        failure = version = ""
        try:
            if self._source is None:
                self._source = self._opener(self.where, self.settings)
            version = self._source.look()
            with self._source.books(0.0) as warehouse:
                self.stores = warehouse.stores
        except StateLedgerError as error:
            failure = str(error)
        except Exception as error:  # an engine's own, which nobody else would hear of on this thread
            failure = f"{self._called} cannot be read: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        with self._told:
            self._failure = failure
            if not failure:
                self.looked_at, self.version = time.time(), version
            wait_s = AGAIN_AFTER_FAILURE_S if failure else float(self.settings.fleet_refresh_s)
            self._look_again_at = time.monotonic() + wait_s
            self._looking = False
            self._told.notify_all()

    @property
    def _called(self) -> str:
        return self.where.called[0].upper() + self.where.called[1:]
