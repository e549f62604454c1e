"""Which columns of a bill say the day, the model, the amount and the currency."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAMES = {
    "date": ("date", "day", "usage date", "usage date utc", "date utc", "timestamp", "time", "created at", "start time",
             "starting at", "bucket start"),
    "model": ("model", "model name", "model id", "model version", "model permaslug", "line item"),
    "amount": ("amount", "amount usd", "cost", "cost usd", "total cost", "cost total", "total", "spend", "price",
               "amount value"),
    "currency": ("currency", "currency code", "amount currency"),
}  # fmt: skip
"""The names that are recognised, in whatever case, with blanks, `_`, `-` or brackets between the words."""

NEEDED = ("date", "model", "amount")


def plain(name: str) -> str:
    """A column's name as it is looked up: `Cost (USD)` is `cost usd`."""
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()


def find(header: Sequence[str]) -> tuple[dict[str, str], str]:
    """The column of each role, as it is spelled in the header, and what is wrong: '' for nothing."""
    found: dict[str, str] = {}
    for role, names in NAMES.items():
        mine = [column for column in header if plain(column) in names]
        if len(mine) > 1:
            return found, (
                f"the columns {' and '.join(map(repr, mine))} could both be the {role}; leave one of them out or"
                " give the other another name"
            )
        if mine:
            found[role] = mine[0]
    missing = [role for role in NEEDED if role not in found]
    if missing:
        known = "; ".join(f"{role} ({', '.join(NAMES[role])})" for role in missing)
        return found, f"there is no column for {known}"
    return found, ""
