"""A budget on a page: what was used of it as a bar with marks at 80 and 100 %, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from state_ledger.budgets.spending import NEAR, OVER, QUESTION, Spending
from state_ledger.pages import figures
from state_ledger.pages.links import Links
from state_ledger.pages.period import spelled

_FURTHEST = 2.0
"""Where the bar ends at the latest, as a share of the budget; what goes on is said in words."""


@dataclass(frozen=True)
class BudgetLine:
    """One budget for a reader. mark: `within`, `near` or `over`; said: the mark in words, '' for none."""

    name: str
    mark: str
    said: str
    figure: str
    dates: str
    outlook: str
    left_out: str
    bar: str
    href: str


def lines(spendings: list[Spending], at: Links) -> list[BudgetLine]:
    """The budgets of a store in the order in which they are set."""
    words = {"near": "80 % reached", "over": "100 % reached"}
    return [
        BudgetLine(
            figures.cut(each.budget.name, 120), each.mark, words.get(each.mark, ""), each.figure,
            spelled(each.since, each.until), each.outlook, each.left_out, bar(each), at.query(QUESTION, each.asked),
        )
        for each in spendings
    ]  # fmt: skip


def bar(spending: Spending) -> str:
    """The bar as SVG: used, what will be used at this pace, and the marks."""
    ahead = 0.0 if spending.forecast is None else spending.forecast / spending.budget.amount
    end = min(max(OVER * 1.1, spending.share, ahead), _FURTHEST)

    def at(share: float) -> str:
        return f"{min(share, end) / end * 100:.2f}%"

    parts = ['<rect class="track" width="100%" height="10" y="3"/>']
    if ahead > spending.share:
        parts.append(f'<rect class="ahead" width="{at(ahead)}" height="10" y="3"/>')
    parts.append(f'<rect class="used" width="{at(spending.share)}" height="10" y="3"/>')
    for mark in (NEAR, OVER):
        parts.append(f'<line class="mark" x1="{at(mark)}" x2="{at(mark)}" y1="0" y2="16"/>')
    label = escape(f"{spending.figure}; {spending.outlook}", quote=True)
    return f'<svg class="budget {spending.mark}" height="16" role="img" aria-label="{label}">{"".join(parts)}</svg>'
