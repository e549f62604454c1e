"""Bringing a warehouse up to date with a lake, by the difference between what it holds and what manifests name.

Files are added first, each store's in one step, and show nowhere: a load that ends early is gone on with by the
next one. Then a generation is made of all that there is, and shows at once. Rows of files that no manifest names any
more go last.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from state_ledger.lake import parquet, tables
from state_ledger.ledger.days import server_zone
from state_ledger.ledger.models import canonical_model
from state_ledger.questions import EngineError
from state_ledger.search.sessions import folded_name
from state_ledger.warehouse import native, rolling, rollups, settling, zones
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.native import FOLDED, GENERATION, GENERATIONAL, SIDE, held, number_of, tables_of_lake
from state_ledger.warehouse.searching import index
from state_ledger.warehouse.views import State

if TYPE_CHECKING:
    import pyarrow

    from state_ledger.lake.manifest import DataFile, StoreState
    from state_ledger.lake.reading import Lake

_FUNCTIONS: dict[str, Callable[[str | None], str]] = {"folded_name": folded_name, "canonical_model": canonical_model}
_INSTANTS = ("bucket", "timestamp", "idle_since", "started_at")
"""Columns whose instants are asked for their day."""


@dataclass(frozen=True)
class Loaded:
    """What a load did. stores: how many changed or went; files and rows: what was added."""

    stores: int = 0
    files: int = 0
    rows: int = 0


def prepare(dialect: Dialect) -> None:
    """Makes the tables of a warehouse that has none."""
    for table in (*SIDE, *tables_of_lake()):
        dialect.make(table.name, table.columns, table.order)
    for texts in native.SEARCHED:
        index.prepare(dialect, held(texts))
    if not _rows(dialect, "SELECT format FROM fleet_warehouse"):
        dialect.insert("fleet_warehouse", _arrow("fleet_warehouse", [(native.FORMAT,)]))


def newest(dialect: Dialect) -> int:
    """The number of the newest generation; 0 where nothing was ever loaded."""
    (row,) = _rows(dialect, "SELECT coalesce(max(generation), 0) AS newest FROM fleet_generation")
    return int(row[0])


def is_of_this_format(dialect: Dialect) -> bool:
    """Whether a database is a warehouse that this version can use."""
    try:
        return _rows(dialect, "SELECT format FROM fleet_warehouse") == [(native.FORMAT,)]
    except EngineError:  # another program's database, or a new one
        return False


def is_current(dialect: Dialect, states: Sequence[StoreState]) -> bool:
    """Whether the newest generation shows these states of the stores."""
    generation = newest(dialect)
    shown = dict(_rows(dialect, f"SELECT store, manifest FROM fleet_stores WHERE generation = {generation}"))
    return generation > 0 and shown == {state.name: state.manifest_id for state in states}


def state_of(dialect: Dialect, generation: int) -> State:
    """What a reader needs to know of a generation."""

    def some(sql: str) -> bool:
        return bool(_rows(dialect, f"{sql} LIMIT 1"))

    of_this = f"WHERE generation = {generation}"
    shown = f"SELECT file FROM fleet_visible {of_this}"
    spans = _rows(dialect, "SELECT DISTINCT span FROM fleet_spans")
    longest = _rows(dialect, f"SELECT longest FROM fleet_generation {of_this}")
    rolled = {row[0]: row[1] for row in _rows(dialect, f"SELECT place, zone FROM fleet_rollups {of_this}")}
    places = {row[0] for row in _rows(dialect, f"SELECT place FROM fleet_stores {of_this}")}
    known = set(rolled.values()) if rolled.keys() == places | {rollups.WHOLE} else set()
    return State(
        generation,
        hidden=dialect.shared or some(f"SELECT file FROM fleet_loaded WHERE file NOT IN ({shown})"),
        uncounted=some(f"SELECT place FROM fleet_uncounted {of_this}"),
        renamed=some(f"SELECT place FROM fleet_renamed {of_this}"),
        related=some(f"SELECT place FROM fleet_related {of_this}"),
        families=some(f"SELECT family FROM fleet_family {of_this}"),
        spans=zones.spans_of(float(row[0]) * zones.SPAN for row in spans),
        longest=max((int(row[0]) for row in longest), default=1),
        rolled=known.pop() if len(known) == 1 else "",
    )


def load(
    dialect: Dialect, lake: Lake, told: Callable[[str], None] = lambda sentence: None, *, zone: str | None = None
) -> Loaded:
    """Brings a warehouse up to date. told: is called with a sentence for each store that is read.

    zone: of the days of its rollups; by default this machine's. Raises LakeError, EngineError.
    """
    states = lake.stores()
    generation = newest(dialect)
    shown = dict(_rows(dialect, f"SELECT store, manifest FROM fleet_stores WHERE generation = {generation}"))
    if is_current(dialect, states):
        return Loaded()
    have = {path: (file, rows) for file, path, rows in _rows(dialect, "SELECT file, path, rows FROM fleet_loaded")}
    known = {table.name for table in tables.tables()}
    files = rows = 0
    for state in states:
        missing = [file for file in state.files if file.table in known and file.path not in have]
        if missing:
            told(f"{state.name}: {len(missing)} files, {sum(file.rows for file in missing):,} rows.")
            with dialect.transaction():
                have |= _add(dialect, lake, state, missing)
            files += len(missing)
            rows += sum(file.rows for file in missing)
    wanted = {file.path for state in states for file in state.files if file.path in have}
    with dialect.transaction():
        _publish(dialect, states, [have[path][0] for path in wanted], generation + 1, zone or server_zone())
        _clear(dialect, generation, [file for path, (file, _) in have.items() if path not in wanted])
    changed = {state.name for state in states if shown.get(state.name) != state.manifest_id}
    return Loaded(len(changed | (shown.keys() - {state.name for state in states})), files, rows)


def fill(
    dialect: Dialect, lake: Lake, told: Callable[[str], None] = lambda sentence: None, *, zone: str | None = None
) -> Loaded:
    """As `load`, for a database that may be empty, and while no other program loads into it."""
    with dialect.alone():
        prepare(dialect)
        return load(dialect, lake, told, zone=zone)


def _add(
    dialect: Dialect, lake: Lake, state: StoreState, files: Sequence[DataFile]
) -> dict[str, tuple[int, int]]:
    """Adds the rows of files of one store."""
    place = number_of(state.host, state.profile)
    numbers: dict[str, tuple[int, int]] = {}
    spans: set[int] = set()
    by_table: dict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        by_table[file.table].append(file)
    for table, of_table in by_table.items():
        for file in sorted(of_table, key=lambda each: each.month):
            # A load that ended early may have left rows of this file: its number is another one each time.
            number = number_of(file.path, str(time.time_ns()))
            rows = lake.table(file)
            spans.update(_spans(rows))
            dialect.insert(held(table), _as_held(table, rows, number, place, state))
            numbers[file.path] = number, file.rows
    by_path = {file.path: file for file in files}
    loaded = [(number, place, by_path[path].table, path, rows) for path, (number, rows) in numbers.items()]
    dialect.insert("fleet_spans", _arrow("fleet_spans", [(span,) for span in sorted(spans)]))
    dialect.insert("fleet_loaded", _arrow("fleet_loaded", loaded))
    return numbers


def _as_held(table: str, rows: pyarrow.Table, file: int, place: int, state: StoreState) -> pyarrow.Table:
    """Rows of the lake with the columns that stand beside them."""
    import pyarrow

    for name, (function, argument) in FOLDED.get(table, {}).items():
        rows = rows.append_column(name, _worked_out(rows.column(argument), _FUNCTIONS[function]))
    for (name, kind), value in zip(native.OF_FILE, (file, place, state.name, state.host), strict=True):
        same = pyarrow.repeat(pyarrow.scalar(value, parquet.type_of(kind)), rows.num_rows)
        rows = rows.append_column(name, same)
    return rows


def _worked_out(column: pyarrow.ChunkedArray, function: Callable[[str | None], str]) -> pyarrow.Array:
    import pyarrow

    known: dict[str | None, str] = {}
    cells = []
    for value in column.to_pylist():
        if value not in known:
            known[value] = function(value)
        cells.append(known[value])
    return pyarrow.array(cells, pyarrow.string())


def _spans(rows: pyarrow.Table) -> set[int]:
    import pyarrow.compute as compute

    found: set[int] = set()
    for name in _INSTANTS:
        if name in rows.column_names:
            spans = compute.floor(compute.divide(rows.column(name).cast("float64"), float(zones.SPAN)))
            found.update(int(each) for each in compute.unique(spans).to_pylist() if each is not None)
    return found


def _publish(
    dialect: Dialect, states: Sequence[StoreState], files: Iterable[int], generation: int, zone: str
) -> None:
    """Makes a generation of these stores and files; it is the newest when its own row is written, last."""
    # What a load that ended early wrote of it.
    for table in GENERATIONAL:
        dialect.delete(table, "generation", [generation])
    stores = [
        (generation, number_of(state.host, state.profile), state.name, state.host, state.profile, state.manifest_id,
         state.pushed_at, int(state.with_messages))
        for state in states
    ]  # fmt: skip
    _insert(dialect, "fleet_stores", stores)
    _insert(dialect, "fleet_visible", [(generation, file) for file in sorted(files)])
    settled = settling.copies(dialect, generation)
    _insert(dialect, "fleet_uncounted", [(generation, *session) for session in settled.instead])
    _insert(dialect, "fleet_renamed", [(generation, *session, name) for session, name in settled.names.items()])
    _insert(dialect, "fleet_copies", [_copy_row(generation, best, other, settled) for best, other in settled.copies])
    related = settling.related(dialect, generation, settled)
    names = {row[1]: row[2:4] for row in stores}
    _insert(dialect, "fleet_related", [(generation, place) for place in sorted(related.places)])
    _insert(
        dialect, "fleet_kinship", [(generation, place, *names[place], *rest) for place, *rest in related.rows]
    )  # fmt: skip
    families = settling.families(_links(dialect, generation, related))
    _insert(dialect, "fleet_family", [(generation, *each) for each in families.members.items()])
    places = [row[1] for row in stores]
    state = state_of(dialect, generation)
    rolled = rolling.roll(dialect, state, places, zone)
    _insert(dialect, "fleet_rollups", rolled)
    _insert(dialect, "fleet_rollups", [rolling.roll_whole(dialect, state, rolled, zone)])
    _insert(dialect, "fleet_generation", [(generation, time.time(), families.longest)])


def _copy_row(
    generation: int, best: settling.Copy, other: settling.Copy, settled: settling.Settled
) -> tuple[Any, ...]:
    figures = ("messages", "last_active", "processed_tokens", "cost_usd")
    pairs = [value for name in figures for value in (getattr(best, name), getattr(other, name))]
    name = settled.names.get(best.session, best.session_id)
    return generation, best.place, other.place, name, best.store, best.host, other.store, *pairs


def _links(dialect: Dialect, generation: int, related: settling.Related) -> list[tuple[str, str]]:
    """Every session that descends from another, with that one."""
    others = f" AND place NOT IN ({', '.join(map(str, sorted(related.places)))})" if related.places else ""
    found = _rows(
        dialect,
        f"SELECT session_id, link_session_id FROM {held('lineage')} WHERE link_session_id IS NOT NULL"
        f" AND file IN (SELECT file FROM fleet_visible WHERE generation = {generation}){others}",
    )
    return [*((row[0], row[1]) for row in found), *((row[1], row[3]) for row in related.rows if row[3] is not None)]


def _clear(dialect: Dialect, outdated: int, files: Sequence[int]) -> None:
    """Removes what no reader of the newest generation needs."""
    # The generation itself first: whoever reads it and finds it there afterwards has read all of it.
    for side in (GENERATION, *GENERATIONAL):
        dialect.delete(side, "generation", [outdated])
    if files:
        for table in tables_of_lake():
            dialect.delete(table.name, "file", files)
        dialect.delete("fleet_loaded", "file", files)
    rolling.clear(dialect)


def _rows(dialect: Dialect, sql: str) -> list[tuple[Any, ...]]:
    return dialect.run(sql)[1]


def _insert(dialect: Dialect, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        dialect.insert(table, _arrow(table, rows))


def _arrow(table: str, rows: Sequence[tuple[Any, ...]]) -> pyarrow.Table:
    import pyarrow

    (declared,) = (each for each in SIDE if each.name == table)
    schema = pyarrow.schema([(name, parquet.type_of(kind)) for name, kind in declared.columns])
    if not rows:
        return schema.empty_table()
    arrays = [
        pyarrow.array(cells, parquet.type_of(kind))
        for cells, (_, kind) in zip(zip(*rows, strict=True), declared.columns, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
