"""Work that is done again and again while the app runs: one thread, long rests, and nothing said twice."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from state_ledger.errors import StateLedgerError
from state_ledger.sqlite import sqlite3

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=Hashable)


class Rounds(ABC, Generic[T]):
    """Does its work for each subject, round after round, until it is told to stop; ends with the process.

    round_s: seconds of rest between two rounds; pauses: at least so many times what the round before took.
    complaint: the beginning of what is logged when the work fails, with `%s` for the subject.
    """

    name = "state-ledger"
    complaint = "%s"
    pauses = 0.0

    def __init__(self, subjects: Sequence[T], round_s: float) -> None:
        self.subjects = list(subjects)
        self.round_s = round_s
        self._stopped = threading.Event()
        self._told: dict[T, str] = {}
        # A daemon: it never keeps the process from ending, and what it leaves half done is taken up again.
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """Ends the thread after the step it is at."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)

    @abstractmethod
    def work(self, subject: T, number: int) -> None:
        """What is done for a subject in a round, counted from 0."""

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            began = time.monotonic()
            for subject in self.subjects:
                self._attempt(subject, number)
            number += 1
            self._stopped.wait(max(self.round_s, self.pauses * (time.monotonic() - began)))

    def _attempt(self, subject: T, number: int) -> None:
        """What is wrong is logged once and tried again in the next round."""
        try:
            self.work(subject, number)
        except (StateLedgerError, sqlite3.Error, OSError) as error:
            if self._told.get(subject) != str(error):
                _log.warning(f"{self.complaint}: %s", subject, error)
            self._told[subject] = str(error)
        else:
            self._told.pop(subject, None)
