"""What needs attention in a store: each notice is a sentence, a detail, and where to look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from state_ledger.budgets.spending import QUESTION, Spending
from state_ledger.health.finding import Finding
from state_ledger.pages import figures
from state_ledger.pages.sums import Record, left_out
from state_ledger.shape import Shape


@dataclass(frozen=True)
class Notice:
    """One thing to look at; `question` with `parameters` lists the rows behind it, '' for none.

    of_file: whether it is a finding on the file, which the ops page tells of.
    """

    text: str
    detail: str = ""
    question: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    of_file: bool = False


def of_budgets(spendings: Iterable[Spending]) -> list[Notice]:
    """Budgets that are used up or nearly so."""
    words = {"over": "used up", "near": "nearly used up"}
    return [
        Notice(f"Budget {words[each.mark]}: {figures.cut(each.budget.name, 120)}", each.figure, QUESTION, each.asked)
        for each in spendings
        if each.mark in words
    ]


def of_unpriced(rows: Sequence[Record], period: Mapping[str, str]) -> list[Notice]:
    """Calls without a price, and amounts that are only a part, from `unpriced_usage` of a period."""
    unknown = [row for row in rows if row["unknown_tokens"] or row["unknown_calls"]]
    partial = [row for row in rows if row["partial"]]
    found = []
    if unknown:
        models = sorted({str(row["model"]) for row in unknown})
        said = left_out(_sum(unknown, "unknown_calls"), _sum(unknown, "unknown_tokens"))
        found.append(
            Notice(
                f"{figures.plural(len(models), 'model')} without a price: {said}",
                _listed(models), "unpriced_usage", period,
            )
        )  # fmt: skip
    if partial:
        models = sorted({str(row["model"]) for row in partial})
        found.append(
            Notice(
                f"Amounts known only in part: {figures.plural(_sum(partial, 'api_call_count'), 'call')}",
                _listed(models), "unpriced_usage", period,
            )
        )  # fmt: skip
    return found


def of_audit(rows: Iterable[Record]) -> list[Notice]:
    """Rows set aside and figures that disagree, from `ledger_problems`; the audit explains them."""
    kept = list(rows)
    aside = [row for row in kept if row["section"] == "set aside"]
    differ = [row for row in kept if row["section"] == "discrepancy"]
    found = []
    if aside:
        found.append(
            Notice(
                f"{figures.plural(_sum(aside, 'rows'), 'row')} set aside: in no sum",
                _counted(aside), "ledger_audit",
            )
        )  # fmt: skip
    if differ:
        found.append(
            Notice(
                f"{figures.plural(_sum(differ, 'rows'), 'figure')} of the store that need explaining",
                _counted(differ), "ledger_audit",
            )
        )  # fmt: skip
    return found


def of_lineage(rows: Sequence[Record]) -> list[Notice]:
    """Loops and missing parents, from `lineage_problems`."""
    if not rows:
        return []
    kinds = Counter(str(row["trouble"]) for row in rows)
    said = ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))
    return [
        Notice(f"{figures.plural(len(rows), 'broken parent link')}", said, "lineage_problems")
    ]  # fmt: skip


def of_open_sessions(rows: Sequence[Record], limit: int) -> list[Notice]:
    """Sessions that never ended and are idle, from `open_idle_sessions`; `limit` is where the list was cut."""
    if not rows:
        return []
    many = f"{limit:,} or more open sessions" if len(rows) >= limit else figures.plural(len(rows), "open session")
    oldest = max(row["idle_days"] for row in rows)
    return [
        Notice(
            f"{many} idle for a day or longer",
            f"The longest for {figures.plural(round(oldest), 'day')}. Only ended sessions can be pruned.",
            "open_idle_sessions",
        )
    ]


def of_findings(findings: Iterable[Finding]) -> list[Notice]:
    """What a look at the file itself found that somebody should do something about."""
    return [
        Notice(finding.sentence, of_file=True)
        for finding in findings
        if finding.is_trouble
    ]


def of_shape(shape: Shape) -> list[Notice]:
    """What of the file cannot be read here, and which columns it does not have."""
    found = [
        Notice(f"The index {name} cannot be read here", reason) for name, reason in sorted(shape.unreadable.items())
    ]
    found += [
        Notice(
            f"The table {name} was left by an interrupted rebuild",
            "Its rows are counted once.",
            "ledger_audit",
        )
        for name in shape.leftover_usage_tables
    ]
    if shape.missing:
        number = sum(len(columns) for columns in shape.missing.values())
        tables = "; ".join(f"{table}: {', '.join(columns)}" for table, columns in shape.missing.items())
        found.append(Notice(f"{figures.plural(number, 'column')} not in this store: shown as no data", tables))
    return found


def _sum(rows: Iterable[Record], name: str) -> float:
    return sum(row[name] or 0 for row in rows)


def _counted(rows: Sequence[Record]) -> str:
    items: Counter[str] = Counter()
    for row in rows:
        items[str(row["item"])] += int(row["rows"] or 0)
    return "; ".join(f"{item} ({count:,})" for item, count in items.most_common())


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
