"""The line under every figure: its basis, zone and day rule, and where to ask for it again."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from state_ledger.pages.links import Links

DAY_RULES = {
    "activity": "activity (an estimate: the store keeps lifetime counters, so usage is spread over the "
    "days of each session's messages)",
    "started": "started (all usage on the day the session began)",
    "last_seen": "last_seen (all usage on the day of the last call)",
}
"""What each day rule means, in words (accounting.md rule 21)."""

MONEY = "actual cost where one was recorded, else the estimate stored with the call"


def basis(zone: str, day_rule: str) -> str:
    """One sentence for figures in dollars over days."""
    return f"Basis: {MONEY}; days in {zone}; day rule: {DAY_RULES.get(day_rule, day_rule)}."


def line(said: str, links: Links, question: str, parameters: Mapping[str, str]) -> str:
    """The line as HTML: what was said, then the canned query, its JSON and its CSV."""
    asked = [
        ("Question", links.query(question, parameters), f"The canned query {question} as a page"),
        ("JSON", links.query(question, parameters, form="json"), f"{question} as JSON objects"),
        ("CSV", links.query(question, parameters, form="csv"), f"{question} as CSV"),
    ]
    anchors = " · ".join(
        f'<a href="{escape(href)}" title="{escape(title)}">{label}</a>' for label, href, title in asked
    )
    said = " ".join(each for each in (said, links.answered_by) if each)
    return f'<p class="provenance">{escape(said)} {anchors}</p>'
