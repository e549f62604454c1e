"""A push: what a store holds now becomes its state in the lake, by files that appear before the manifest names them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from state_ledger import stores
from state_ledger.lake import manifest, parquet, privacy
from state_ledger.lake.manifest import DataFile, Options, StoreState, Totals
from state_ledger.lake.names import LAKE, checked, this_host
from state_ledger.lake.place import Place, place_of
from state_ledger.lake.reading import KIND, Lake, is_lake
from state_ledger.lake.source import SessionId, Sessions, Source
from state_ledger.lake.tables import WHOLE_STORE, Table, tables
from state_ledger.settings import Settings

if TYPE_CHECKING:
    import pyarrow

IN_PORTIONS = ("time", "messages", "tool_calls", "message_times", "message_sizes")
"""Tables whose rows come from messages: too many to be read at once."""


@dataclass(frozen=True)
class Pushed:
    """What a push did. state: of the store in the lake, now. changed: whether that is another than before."""

    state: StoreState
    changed: bool


def push(
    path: str | Path,
    url: str | Path,
    *,
    host: str = "",
    profile: str = "",
    options: Options = Options(),  # noqa: B008
    settings: Settings | None = None,
) -> Pushed:
    """Writes the rows of a store to a lake, which is made if there is none.

    host, profile: '' for the name of this machine, and the one that the store's folder says.
    Raises StoreAccessError, LakeError.
    """
    path = Path(path)
    host = checked("host", host) if host else this_host()
    profile = checked("profile", profile or stores.profile_of(path))
    place = place_of(url)
    prepare(place)
    lake = Lake(place)
    before = lake.store(host, profile)
    began = time.time()
    with closing(Source(path, settings or Settings(), profile)) as source:
        work = _Push(source, place, host, profile, options)
        files = work.files()
        state = StoreState(
            host, profile, 1 if before is None else before.sequence + 1, time.time(), began, "", "", options,
            work.totals, Totals(), tuple(files),
        )  # fmt: skip
    name, content = manifest.write(state)
    place.write(name.path, content)
    return Pushed(manifest.read(name, content), True)


def prepare(place: Place) -> None:
    """Makes a lake where there is none. Raises LakeError for a place that holds something else."""
    if not is_lake(place):
        place.write(LAKE, json.dumps({"kind": KIND, "format": manifest.FORMAT}).encode())


class _Push:
    def __init__(self, source: Source, place: Place, host: str, profile: str, options: Options) -> None:
        self.source, self.place, self.host, self.profile = source, place, host, profile
        self.outgoing = privacy.Outgoing(options)
        self.options = options
        self.totals = Totals()

    def files(self) -> list[DataFile]:
        sessions = self.source.sessions()
        found: list[DataFile] = []
        for table in reversed(tables()):
            if not table.session:
                rows = parquet.batch(table, self.source.whole(table))
                found += self._store(table, WHOLE_STORE, [rows])
            elif table.name in IN_PORTIONS:
                for month, listed in sorted(sessions.by_month().items()):
                    found += self._store(table, month, self._portions(table, sessions, listed))
            else:
                found += self._by_month(table, sessions)
        return found

    def _portions(self, table: Table, sessions: Sessions, listed: Sequence[SessionId]) -> Iterator[pyarrow.Table]:
        for portion in sessions.portions(listed):
            yield self.source.of_sessions(table, portion, privacy.hidden(table, self.options))

    def _by_month(self, table: Table, sessions: Sessions) -> list[DataFile]:
        at = [column.name for column in table.columns].index(table.session)
        months: dict[str, list[tuple[object, ...]]] = {}
        for row in self.source.whole(table, privacy.hidden(table, self.options)):
            months.setdefault(sessions.months.get(row[at], "unknown"), []).append(row)
        if table.name == "usage":
            self.totals = totals(table, months, len(sessions.months))
        found = []
        for month, rows in sorted(months.items()):
            found += self._store(table, month, [parquet.batch(table, rows)])
        return found

    def _store(self, table: Table, month: str, pieces: Iterable[pyarrow.Table]) -> list[DataFile]:
        outgoing = (self.outgoing.rows(table, piece) for piece in pieces)
        file = parquet.store(self.place, table, self.host, self.profile, month, outgoing)
        return [] if file is None else [file]


def totals(table: Table, months: dict[str, list[tuple[object, ...]]], sessions: int) -> Totals:
    names = [column.name for column in table.columns]
    found = {}
    for name in Totals.__dataclass_fields__:
        if name != "sessions":
            at = names.index(name)
            values = (row[at] for rows in months.values() for row in rows)
            found[name] = float(sum(value for value in values if isinstance(value, (int, float))))
    return Totals(sessions, **found)
