"""Sessions that a store does not have any more: named, and taken out of its state or kept in it, as the owner says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from state_ledger.lake import parquet
from state_ledger.lake.errors import LakeDamaged
from state_ledger.lake.manifest import StoreState
from state_ledger.lake.parquet import GONE
from state_ledger.lake.reading import Lake
from state_ledger.lake.tables import Table

if TYPE_CHECKING:
    import pyarrow

KEEP, TOMBSTONE = "keep", "tombstone"


class Gone(NamedTuple):
    """One session that is gone. month: the period of its rows. gone_at: epoch seconds, when a push first missed it."""

    session_id: str
    month: str
    gone_at: float
    kept: bool


class Former:
    """What the state of a store that is about to be followed by another says of sessions."""

    def __init__(
        self, lake: Lake, state: StoreState | None, deleted: str, period_of: Callable[[str], str]
    ) -> None:
        self.lake, self.state, self.deleted = lake, state, deleted
        listed = [] if state is None else state.of(GONE.name)
        self.gone = {
            row["session_id"]: Gone(row["session_id"], period_of(row["month"]), row["gone_at"], bool(row["kept"]))
            for file in listed
            for row in self.lake.table(file).to_pylist()
        }
        if deleted == TOMBSTONE:
            self.gone = {name: each._replace(kept=False) for name, each in self.gone.items()}

    def came_back(self, stored: Collection[str]) -> list[str]:
        """The periods of sessions that are in the store again."""
        return sorted({each.month for name, each in self.gone.items() if name in stored and each.kept})

    def settle(self, period: str, stored: Collection[str], now: float) -> set[str]:
        """Notes which sessions of a period are gone now, and gives the names of those whose rows are kept."""
        for name in [name for name in self.gone if name in stored]:
            del self.gone[name]
        for name in self._sessions(period):
            if name not in stored and name not in self.gone:
                self.gone[name] = Gone(name, period, now, self.deleted == KEEP)
        return {name for name, each in self.gone.items() if each.month == period and each.kept}

    def rows(self, table: Table, period: str, sessions: Collection[str]) -> Iterable[pyarrow.Table]:
        """The rows of some sessions as they were. Raises LakeDamaged."""
        arrow = parquet.load()
        wanted = arrow.array(sorted(sessions), arrow.string())
        for file in [] if self.state is None or not sessions else self.state.of(table.name, period):
            found = self.lake.table(file)
            yield found.filter(arrow.compute.is_in(found.column(table.session), value_set=wanted))

    def table(self) -> Sequence[pyarrow.Table]:
        """All that is gone, as rows."""
        rows = [(each.session_id, each.month, each.gone_at, each.kept) for each in sorted(self.gone.values())]
        return [parquet.batch(GONE, rows)]

    def _sessions(self, period: str) -> list[str]:
        found: list[str] = []
        for file in [] if self.state is None else self.state.of("session_facts", period):
            try:
                found += self.lake.table(file).column("session_id").to_pylist()
            except LakeDamaged:
                # What was in it cannot be kept; that it cannot be named either is no reason to stop pushing.
                if self.deleted == KEEP:
                    raise
        return found
