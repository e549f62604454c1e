"""One row of the cost page's table: its name, its figures by basis, the sessions behind it."""

from __future__ import annotations

from collections.abc import Mapping

from state_ledger.pages import figures
from state_ledger.pages.cost import Group
from state_ledger.pages.links import Links
from state_ledger.pages.sums import Record, Sums
from state_ledger.pages.tables import Cell, Column

_COUNTED = {"conversation": ("segments", "Segments"), "work": ("sessions", "Sessions"), "day": ("", "")}


def row_columns(group: Group) -> list[Column]:
    """The heads of the table for one grouping."""
    counted = _counted(group)
    return [
        Column(group.label),
        Column("Cost", True, "Best known cost: actual, else estimated"),
        Column("Actual", True, "Part that was reported as actual"),
        Column("Estimated", True, "Part that is an estimate"),
        Column("Included calls", True, "Calls covered by a subscription: no bill"),
        Column("Unknown calls", True, "Calls without a known price: in no dollar figure"),
        *([Column(counted[1], True)] if counted else []),
        Column("Calls", True),
        Column("Fresh", True, "Tokens: input + output"),
        Column("Processed", True, "Tokens: input + output + cache read + cache write"),
        Column("Cache read", True, "Cache read / whole prompt; no data where nothing was recorded"),
    ]


def row_cells(group: Group, row: Record, at: Links, same: Mapping[str, str]) -> list[Cell]:
    """One row; `same` are the parameters of the page, for the link to the row's sessions."""
    counted = _counted(group)
    head = Cell(
        row_label(group, row), row_link(group, row, at, same),
        title=str(row.get("models_as_stored") or row.get(group.column) or ""), sub=_sub(group, row),
    )  # fmt: skip
    return [
        head,
        *_figures(Sums.of([row])),
        *([Cell(figures.count(row[counted[0]]))] if counted else []),
        *_usage(Sums.of([row])),
    ]


def total_cells(group: Group, sums: Sums, *, cut: bool) -> list[Cell]:
    """The totals of the rows shown. Sessions are not added: one can be in several rows."""
    return [
        Cell("Total of these rows" if cut else "Total"),
        *_figures(sums),
        *([Cell("")] if _counted(group) else []),
        *_usage(sums),
    ]


def row_label(group: Group, row: Record) -> str:
    """The name of a row as a reader knows it: a title where there is one, else the id."""
    named = row.get("title") if group.key in ("conversation", "work") else None
    return figures.cut(str(named or row.get(group.column) or f"no {group.label.lower()}"))


def row_link(group: Group, row: Record, at: Links, same: Mapping[str, str]) -> str:
    """The address of the sessions of a row, with the filters of the page, or of its transcript; '' for none."""
    name = row.get(group.column)
    if name in (None, ""):
        return ""
    text = str(name)
    if group.key == "conversation":
        return at.conversation(text)
    if group.key == "work":
        return at.work(text)
    if group.key == "cron_job":
        return at.table("sessions", {"id__startswith": f"cron_{text}_"})
    if group.key == "day":
        return at.sessions({**same, "since": text, "until": text})
    if group.key == "task":
        text = "main" if text == "main conversation" else text
    return at.sessions({**same, group.key: text})


def _counted(group: Group) -> tuple[str, str] | None:
    column, label = _COUNTED.get(group.key, ("sessions", "Sessions"))
    return (column, label) if column else None


def _sub(group: Group, row: Record) -> str:
    if group.key == "model":
        spelled = [name for name in str(row.get("models_as_stored") or "").split(",") if name]
        return "" if spelled in ([], [row["model"]]) else "as " + ", ".join(spelled)
    if group.key in ("conversation", "work"):
        return str(row["source"] or "")
    if group.key == "cron_job":
        each = row.get("cost_per_run_usd")
        return f"{figures.plural(row['runs'], 'run')}, {figures.money(each)} each"
    return ""


def _figures(sums: Sums) -> list[Cell]:
    return [
        Cell(sums.cost_text, title=figures.exact_money(sums.cost_usd), word=sums.cost_is_word),
        _dollars(sums.actual_usd),
        _dollars(sums.estimated_usd),
        Cell(figures.count(sums.included_calls or 0)),
        _unknown(sums),
    ]


def _usage(sums: Sums) -> list[Cell]:
    return [
        Cell(figures.count(sums.api_call_count), word=sums.api_call_count is None),
        _tokens(sums.fresh_tokens),
        _tokens(sums.processed_tokens),
        Cell(figures.ratio(sums.cache_read_ratio), word=sums.cache_read_ratio is None),
    ]


def _dollars(amount: float | None) -> Cell:
    return Cell("none", word=True) if amount is None else Cell(figures.money(amount), title=figures.exact_money(amount))


def _tokens(number: float | None) -> Cell:
    return Cell(figures.short(number), title=figures.count(number), word=number is None)


def _unknown(sums: Sums) -> Cell:
    text = sums.unknown_calls_text
    return Cell(text, title=sums.left_out.removeprefix("+ "), word=text == "uncounted")
