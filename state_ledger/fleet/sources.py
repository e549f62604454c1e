"""What holds the books of a fleet once it is opened, whichever engine it is."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from state_ledger.errors import StateLedgerError
from state_ledger.fleet.places import Where
from state_ledger.settings import Settings

if TYPE_CHECKING:
    from state_ledger.questions import Question
    from state_ledger.warehouse import Warehouse
    from state_ledger.warehouse.dialect import Dialect

EXTRAS = {"lake": "lake", "clickhouse": "lake,clickhouse", "postgresql": "lake,postgresql"}
"""The extras of this package that each kind of place needs."""


class Source(Protocol):
    """Books of a fleet. Used by many threads at once."""

    @property
    def notices(self) -> list[str]:
        """Sentences on what the last look could not read."""

    def look(self) -> str:
        """Brings the books up to date, which may take long. Gives a text that changes with them.

        Raises StateLedgerError.
        """

    def books(self, wait_s: float) -> AbstractContextManager[Warehouse]:
        """The books as they are; raises StateLedgerError where they cannot be had within `wait_s` seconds."""

    def is_current(self, warehouse: Warehouse) -> bool:
        """Whether what was read from these books is of one state, since they were not changed meanwhile."""


def opened(where: Where, settings: Settings) -> Source:
    """Opens a place. Raises StateLedgerError, also where an extra of this package is missing."""
    with _needing(where):
        return _OfLake(where.address, settings) if where.kind == "lake" else _OnServer(where, settings)


def catalogue_of(where: Where) -> Mapping[str, Question]:
    """The questions that the books of a place answer. Raises StateLedgerError where an extra is missing."""
    with _needing(where):
        from state_ledger.warehouse.catalogue import catalogue

        return catalogue()


@contextmanager
def _needing(where: Where) -> Iterator[None]:
    """Says which extra of this package is missing for a place."""
    try:
        yield
    except ImportError as error:
        extras = EXTRAS[where.kind]
        raise StateLedgerError(
            f"To read {where.called}, install what it takes: pip install 'state-ledger[{extras}]'"
            f" ({error.name or error} is missing)."
        ) from error


class _OfLake:
    """A lake, which DuckDB reads."""

    def __init__(self, url: str, settings: Settings) -> None:
        from state_ledger.warehouse import Followed

        self._followed = Followed(url, settings, look_every_s=math.inf)

    @property
    def notices(self) -> list[str]:
        return list(self._followed.notices)

    def look(self) -> str:
        return self._followed.look()

    def books(self, wait_s: float) -> AbstractContextManager[Warehouse]:
        return self._followed.books(wait_s)

    def is_current(self, warehouse: Warehouse) -> bool:
        return True  # they stay as they are while they are read


class _OnServer:
    """A warehouse on a server, which is filled from a lake, or by others."""

    def __init__(self, where: Where, settings: Settings) -> None:
        self.notices: list[str] = []
        self._dialect = dialect_of(where)
        self._lake = where.lake
        self._settings = settings
        self._held: Warehouse | None = None
        self._looking = threading.Lock()

    def look(self) -> str:
        from state_ledger.warehouse import Warehouse, loading

        with self._looking:
            if self._lake:
                self._fill()
            elif not loading.is_of_this_format(self._dialect):
                raise StateLedgerError(
                    "There are no books of a fleet on this server, or none of this version. Name the lake too, to fill"
                    " it: --lake URL."
                )
            if self._held is None or not self.is_current(self._held):
                self._held = Warehouse(self._dialect, self._settings)
            return str(self._held.state.generation)

    def _fill(self) -> None:
        from state_ledger.lake.errors import LakeError
        from state_ledger.lake.reading import Lake
        from state_ledger.questions import EngineError
        from state_ledger.warehouse import loading

        try:
            lake = Lake.open(self._lake)
            loading.fill(self._dialect, lake, zone=self._settings.zone_name)
            self.notices = list(lake.notices)
        except LakeError as error:
            if not loading.is_of_this_format(self._dialect):
                raise
            self.notices = [f"The lake cannot be read, so that answers are as of the last time: {error}"]
        except EngineError as error:  # another program loads just now, or the server refuses to be written to
            if not loading.is_of_this_format(self._dialect):
                raise
            self.notices = [f"Answers are from before the last push: {error}"]

    @contextmanager
    def books(self, wait_s: float) -> Iterator[Warehouse]:
        assert self._held is not None, "it was looked at"
        yield self._held

    def is_current(self, warehouse: Warehouse) -> bool:
        from state_ledger.warehouse import loading

        return loading.newest(self._dialect) == warehouse.state.generation


def dialect_of(where: Where) -> Dialect:
    """The engine of a server. Raises StateLedgerError, also where an extra of this package is missing."""
    with _needing(where):
        if where.kind == "clickhouse":
            from state_ledger.warehouse.clickhouse import ClickHouse

            return ClickHouse(where.address)
        from state_ledger.warehouse.postgres import PostgreSQL

        return PostgreSQL(where.address)
