"""Is a lake whole, and does it say what the stores say? Every file is read, every total made anew."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from state_ledger.connection import open_for_reading
from state_ledger.errors import StateLedgerError, StoreUnreadableError
from state_ledger.lake import parquet
from state_ledger.lake.errors import LakeDamaged
from state_ledger.lake.manifest import FIGURES, StoreState, Totals
from state_ledger.lake.parquet import GONE
from state_ledger.lake.reading import Lake
from state_ledger.settings import Settings
from state_ledger.sqlite import sqlite3

CENT = 0.005
"""Dollars by which sums of the same amounts may differ, as they do by the order in which they are added."""

_MONEY = ("cost_usd", "actual_usd", "estimated_usd")


class Finding(NamedTuple):
    """Something that is not as it should be. table, month: '' for a store as a whole. what: a sentence."""

    host: str
    profile: str
    table: str
    month: str
    what: str

    def __str__(self) -> str:
        where = " ".join(part for part in (f"{self.host}/{self.profile}", self.table, self.month) if part)
        return f"{where}: {self.what}"


@dataclass
class Verified:
    """stores, files, bytes: what was looked at. totals: of all stores. against: how many stores were asked too."""

    stores: int = 0
    files: int = 0
    bytes: int = 0
    against: int = 0
    totals: Totals = field(default_factory=Totals)
    findings: list[Finding] = field(default_factory=list)


def verify(lake: Lake, progress: Callable[[int, int], None] = lambda _done, _total: None) -> Verified:
    """Reads every file that a current manifest names, and adds up its rows. Raises LakeError if it cannot be listed."""
    found = Verified()
    states = lake.stores()
    found.findings += [Finding(each.host, each.profile, "", "", str(each)) for each in lake.wrong]
    total = sum(state.bytes for state in states)
    for state in states:
        found.stores += 1
        found.totals += state.totals
        sums: dict[str, Totals] = defaultdict(Totals)
        lost: set[str] = set()
        for file in state.files:
            try:
                rows = lake.table(file)
                if rows.num_rows != file.rows:
                    raise LakeDamaged(f"{file.path} holds {rows.num_rows:,} rows in the place of {file.rows:,}.")
                sums[file.month] += parquet.totals(file.table, rows)
            except LakeDamaged as error:
                lost.add(file.month)
                found.findings.append(Finding(state.host, state.profile, file.table, file.month, str(error)))
            found.files += 1
            found.bytes += file.bytes
            progress(found.bytes, total)
        for month, period in sorted(state.periods.items()):
            if month not in lost:
                for what in differences(sums[month], period.totals, "the rows", "the manifest"):
                    found.findings.append(Finding(state.host, state.profile, "usage", month, what))
    return found


def compare(lake: Lake, stores: Sequence[tuple[Path, str, str]], settings: Settings, found: Verified) -> None:
    """Adds what stores say otherwise than the lake. stores: each with the host and the profile it was pushed as."""
    for path, host, profile in stores:
        found.against += 1
        try:
            found.findings += [
                Finding(host, profile, "", "", what) for what in _compared(lake, path, host, profile, settings)
            ]
        except StateLedgerError as error:
            found.findings.append(Finding(host, profile, "", "", str(error)))


def _compared(lake: Lake, path: Path, host: str, profile: str, settings: Settings) -> Iterator[str]:
    state = lake.store(host, profile)
    if state is None:
        yield f"The lake has nothing of {path}. Push it."
        return
    own = totals_of(path, profile, settings, _kept_sessions(lake, state))
    for what in differences(state.totals - state.kept, own, "the lake", str(path)):
        yield f"{what} Push again if the store was written since; with --full if that does not help."


def _kept_sessions(lake: Lake, state: StoreState) -> list[str]:
    rows = [row for file in state.of(GONE.name) for row in lake.table(file).to_pylist()]
    return [row["session_id"] for row in rows if row["kept"]]


def totals_of(path: Path, profile: str, settings: Settings, without: Sequence[str] = ()) -> Totals:
    """What a store itself says of its ledger, some sessions left out. Raises StoreAccessError."""
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in FIGURES[1:])
    others = "NOT IN (SELECT value FROM json_each(?))"
    counted = f"SELECT count(*) FROM main.sessions AS s WHERE coalesce(s.id, '') {others}"
    summed = f"SELECT {sums} FROM ledger_usage WHERE coalesce(session_id, '') {others}"
    left_out = (json.dumps(list(without)),)
    with closing(open_for_reading(path, settings=settings, profile=profile)) as store:
        try:
            ((sessions,),) = store.execute(counted, left_out).fetchall()
            (row,) = store.execute(summed, left_out).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StoreUnreadableError(path, error) from error
    return Totals(sessions, *map(float, row))


def differences(here: Totals, there: Totals, ours: str, theirs: str) -> Iterator[str]:
    """Each figure in which two totals differ, as a sentence; dollars to the cent."""
    for name in FIGURES:
        one, other = getattr(here, name), getattr(there, name)
        if abs(one - other) >= (CENT if name in _MONEY else max(1e-9 * abs(other), 1e-6)):
            yield f"{name} is {_figure(name, one)} by {ours}, and {_figure(name, other)} by {theirs}."


def _figure(name: str, value: float) -> str:
    return f"{value:,.4f}" if name in _MONEY else f"{value:,.0f}"
