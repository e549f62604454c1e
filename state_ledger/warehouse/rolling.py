"""Making the rollups of a warehouse: of each store anew when its usage has changed, by the engine itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NoReturn

from state_ledger.warehouse import rollups
from state_ledger.warehouse.carrying import Carrier
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.native import number_of
from state_ledger.warehouse.views import State

_STORES_AT_ONCE = 50
"""Whose rollups are made by one statement each."""

Row = tuple[int, int, int, str]
"""generation, place, version, zone."""


def roll(dialect: Dialect, state: State, places: Sequence[int], zone: str) -> list[Row]:
    """Makes the rollups that a generation lacks; its rows for `fleet_rollups`. Raises EngineError.

    state: the generation, with its copies settled. Rows of a version that no generation names are never read.
    """
    versions = _versions(dialect, state, places, zone)
    have = {row[0] for row in dialect.run("SELECT version FROM fleet_rollups")[1]}
    lacking = [(place, version) for place, version in versions.items() if version not in have]
    for at in range(0, len(lacking), _STORES_AT_ONCE):
        some = dict(lacking[at : at + _STORES_AT_ONCE])
        carrier = Carrier(dialect, state, zone, _no_prices, _no_prices, tuple(some))
        _make(carrier, list(some.values()), rollups.selects(zone, some))
    return [(state.generation, place, version, zone) for place, version in versions.items()]


def roll_whole(dialect: Dialect, state: State, stores: Sequence[Row], zone: str) -> Row:
    """Makes the rows of all stores together, when those of each (`stores`) are there; its row for `fleet_rollups`."""
    version = number_of(zone, *sorted(str(row[2]) for row in stores))
    if not dialect.run(f"SELECT version FROM fleet_rollups WHERE version = {version} LIMIT 1")[1]:
        carrier = Carrier(dialect, state, zone, _no_prices, _no_prices)
        _make(carrier, [version], [rollups.of_all(zone, version)])
    return state.generation, rollups.WHOLE, version, zone


def _make(carrier: Carrier, versions: Sequence[int], selects: Sequence[str]) -> None:
    """Fills in the rows of versions that are not there yet."""
    dialect = carrier.dialect
    # What a load that ended early has left of them.
    dialect.delete("fleet_rolled", "version", versions)
    names = ", ".join(f'"{name}"' for name, _ in rollups.COLUMNS)
    for select in selects:
        rows = carrier.statement(select, {})
        dialect.run(f'INSERT INTO "fleet_rolled" ({names}) {rows.text}', rows.values)


def clear(dialect: Dialect) -> None:
    """Removes the rows of versions that no generation names any more."""
    gone = "SELECT DISTINCT version FROM fleet_rolled WHERE version NOT IN (SELECT version FROM fleet_rollups)"
    versions = [row[0] for row in dialect.run(gone)[1]]
    if versions:
        dialect.delete("fleet_rolled", "version", versions)


def _versions(dialect: Dialect, state: State, places: Sequence[int], zone: str) -> dict[int, int]:
    """A number for what the rollup of each store is made of: its files of usage, and which of its copies count."""
    of_this = f"WHERE generation = {state.generation}"
    made_of: dict[int, list[str]] = defaultdict(list)
    for place, file in dialect.run(
        "SELECT place, file FROM fleet_loaded WHERE lake_table = 'time'"
        f" AND file IN (SELECT file FROM fleet_visible {of_this}) ORDER BY place, file"
    )[1]:
        made_of[place].append(str(file))
    for place, session in dialect.run(f"SELECT place, session_id FROM fleet_uncounted {of_this} ORDER BY 1, 2")[1]:
        made_of[place].append(f"not {session}")
    return {place: number_of(zone, str(place), *made_of[place]) for place in places}


def _no_prices() -> NoReturn:
    raise AssertionError("no rollup has prices")
