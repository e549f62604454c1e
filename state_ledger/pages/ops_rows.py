"""The tables and the picture of the ops page: what each row of a plan, of sizes and of who works there says."""

from __future__ import annotations

from collections.abc import Sequence

from state_ledger.pages import charts, figures, tables
from state_ledger.pages.charts import Bar, Segment
from state_ledger.pages.links import Links
from state_ledger.pages.sums import Record
from state_ledger.pages.tables import Cell, Column
from state_ledger.retention.choice import REASONS
from state_ledger.retention.plan import Group, Plan
from state_ledger.retention.selection import DAY_S
from state_ledger.retention.sweeping import REASONS as NOT_SWEPT
from state_ledger.retention.sweeping import Idle, SweepPlan
from state_ledger.retention.weight import Weight
from state_ledger.storage import Sizes

DRAWN = 12
"""How many parts of a file the picture shows; the table has them all."""

KINDS = (("table", 0), ("index", 1), ("full-text index", 2), ("free pages", None))
"""What takes room, and its colour."""

FREE, OTHER = "free pages", "other"


def parts_of(sizes: Sizes) -> list[tuple[str, str, int, int | None]]:
    """(name, kind, bytes, rows or None) of everything in a file, biggest first, then free pages and the rest."""
    kinds = {part.owner if part.kind == "full-text index" else part.name: part.kind for part in sizes.parts}
    rows = {part.name: part.rows for part in sizes.parts if part.kind == "table"}
    listed = [(name, kinds[name], taken, rows.get(name)) for name, taken in sizes.by_owner.items()]
    missed = "schema" if sizes.method == "dbstat" else "schema and what the estimate misses"
    rest = ((FREE, FREE, sizes.free_bytes, None), (OTHER, missed, sizes.other_bytes, None))
    return [*listed, *(part for part in rest if part[2])]


def sizes_chart(sizes: Sizes, said: str) -> str:
    """A bar per table, index and full-text index."""
    colours = dict(KINDS)
    bars = [
        Bar(name, [Segment(kind, float(taken), colours.get(kind))])
        for name, kind, taken, _rows in parts_of(sizes)[:DRAWN]
    ]
    return charts.horizontal_bars(
        bars, name="sizes-chart", title="Sizes of tables and indexes", unit=charts.BYTES,
        description=f"Horizontal bars, biggest first. {said} The same figures are in the table below.",
    )  # fmt: skip


def sizes_legend(sizes: Sizes) -> str:
    """The colours of what the picture shows."""
    shown = {kind for _name, kind, _taken, _rows in parts_of(sizes)[:DRAWN]}
    return charts.legend([(kind, colour) for kind, colour in KINDS if kind in shown])


def sizes_table(sizes: Sizes) -> str:
    """The same as a table, with shares of the file."""
    whole = max(1, sizes.file_bytes)
    rows = [
        [Cell(name), Cell(kind), _bytes(taken), Cell(figures.ratio(taken / whole)),
         Cell("" if count is None else figures.count(count))]
        for name, kind, taken, count in parts_of(sizes)
    ]  # fmt: skip
    columns = [Column("Name"), Column("Kind"), Column("Size", True), Column("Share", True), Column("Rows", True)]
    total = [Cell("File"), Cell(""), _bytes(sizes.file_bytes), Cell(figures.ratio(1.0)), Cell("")]
    return tables.table("What takes the room, biggest first", columns, rows, totals=total, name="sizes-table")


def groups_table(caption: str, head: str, groups: Sequence[Group], total: Weight, name: str) -> str:
    """What would be deleted, by source or by age."""
    columns = [
        Column(head), Column("Sessions", True), Column("Messages", True), Column("Text", True, "bytes, counted"),
        Column("Usage rows", True), Column("In the file", True, "bytes with all indexes, estimated"),
    ]  # fmt: skip
    rows = [_weight(group.name, group.weight) for group in groups]
    return tables.table(caption, columns, rows, totals=_weight("All", total), name=name)


def estimates_table(total: Weight) -> str:
    """What would become free in each table and index."""
    ranked = sorted(total.estimated.items(), key=lambda part: (-part[1], part[0]))
    columns = [Column("Table or index"), Column("Would be free", True)]
    rows = [[Cell(name), _bytes(size)] for name, size in ranked]
    return tables.table(
        "Estimated by the share of rows", columns, rows,
        totals=[Cell("All"), _bytes(total.estimated_bytes)], name="estimates-table",
    )  # fmt: skip


def left_table(plan: Plan, zone: str) -> str:
    """What the filters select and what stays all the same, by reason."""
    rows = []
    for left in plan.left:
        sources = ", ".join(f"{source} {number:,}" for source, number in left.by_source.items())
        rows.append(
            [Cell(REASONS[left.reason], sub=sources), Cell(figures.count(len(left.ids))),
             Cell(figures.moment(left.idle_since, zone), word=left.idle_since is None)]
        )  # fmt: skip
    columns = [Column("Stays because it is"), Column("Sessions", True), Column("Longest idle since", True)]
    return tables.table("What stays; the first reason that holds counts", columns, rows, name="left-table")


def open_table(sweep: SweepPlan, most: int, now: float, at: Links, zone: str) -> str:
    """Open sessions that are idle, the longest first, and what a sweep would do with each."""
    shown = sorted((*sweep.sweep, *sweep.kept), key=lambda idle: (idle.idle_since, idle.session_id))
    columns = [Column("Session"), Column("Source"), Column("Idle since", True), Column("Days", True), Column("A sweep")]
    caption = f"{figures.plural(len(shown), 'open session')}, the longest idle first"
    if len(shown) > most:
        caption += f"; the first {most}"
    rows = [_open_row(idle, now, at, zone) for idle in shown[:most]]
    return tables.table(caption, columns, rows, name="open-table")


def _open_row(idle: Idle, now: float, at: Links, zone: str) -> list[Cell]:
    return [
        Cell(idle.title or idle.session_id, at.session(idle.session_id), title=idle.session_id),
        Cell(idle.source),
        Cell(figures.moment(idle.idle_since, zone)),
        Cell(figures.count((now - idle.idle_since) // DAY_S)),
        Cell("ends it" if idle.kept is None else f"leaves it: {NOT_SWEPT[idle.kept]}"),
    ]


def workers_table(name: str, rows: Sequence[Record], more: bool, at: Links, zone: str) -> str:
    """Locks, delegations or routes, as the canned query of that name gives them."""
    one, heads, cells = _WORKERS[name]
    caption = f"{figures.plural(len(rows), one)}" + (" and more" if more else "")
    made = [
        [
            _session(row, at),
            *(
                Cell(figures.moment(row[each], zone) if each in _MOMENTS else _text(row[each]), word=row[each] is None)
                for each in cells
            ),
        ]
        for row in rows
    ]
    told = [Column(head, each in _MOMENTS) for head, each in zip(heads, cells, strict=True)]
    return tables.table(caption, [Column("Session"), *told], made, name=f"{name}-table")


_MOMENTS = frozenset({"expires_at", "dispatched_at", "updated_at"})
_WORKERS = {
    "locks": ("lock", ("Kind", "State", "Until", "Holder"), ("kind", "lock_state", "expires_at", "holder")),
    "delegations": (
        "delegation", ("State", "Handed out", "Result"), ("delegation_state", "dispatched_at", "delivery_state"),
    ),
    "routing": ("route", ("Platform", "Updated"), ("platform", "updated_at")),
}  # fmt: skip
"""By question: what a row is, heads, and columns."""


def _session(row: Record, at: Links) -> Cell:
    id = row["session_id"]
    if id is None:
        return Cell("none", word=True)
    unknown = row.get("is_known") == 0
    return Cell(str(row["title"] or id), at.session(str(id)), title=str(id), sub="not in the store" if unknown else "")


def _text(value: object) -> str:
    return figures.NO_DATA if value is None else str(value)


def _weight(name: str, weight: Weight) -> list[Cell]:
    return [
        Cell(name), Cell(figures.count(weight.sessions)), Cell(figures.count(weight.messages)),
        _bytes(weight.text_bytes), Cell(figures.count(weight.usage_rows)), _bytes(weight.estimated_bytes),
    ]  # fmt: skip


def _bytes(number: int) -> Cell:
    return Cell(figures.size(number), title=f"{number:,} bytes")
