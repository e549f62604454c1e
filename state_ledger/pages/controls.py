"""The fields of a page's form: what was given stays in them, also where it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from state_ledger.ledger.apportion import DAY_RULES

_PLACEHOLDERS = {"tz": "Europe/Berlin", "since": "YYYY-MM-DD", "until": "YYYY-MM-DD"}
_WORDS = {"activity": "by activity (estimate)", "started": "day it started", "last_seen": "day last seen"}


def field(
    name: str, label: str, value: str, bad: Set[str], *, kind: str = "text", empty: str = "all"
) -> dict[str, Any]:
    """One field. bad: names of parameters that cannot be meant; empty: what no value means."""
    placeholder = _PLACEHOLDERS.get(name, empty)
    return {"name": name, "label": label, "value": value, "kind": kind, "wrong": name in bad,
            "placeholder": placeholder}  # fmt: skip


def day_rule(values: Mapping[str, str], bad: Set[str]) -> dict[str, Any]:
    """The choice of a day rule."""
    offered = [{"value": "", "label": "default"}]
    offered += [{"value": rule, "label": _WORDS.get(rule, rule)} for rule in DAY_RULES]
    if "day_rule" in bad:
        offered.append({"value": values["day_rule"], "label": f"{values['day_rule']} (not a rule)"})
    return field("day_rule", "Day rule", values["day_rule"], bad) | {"choices": offered}


def filters(values: Mapping[str, str], dates: Mapping[str, str], bad: Set[str]) -> list[dict[str, Any]]:
    """The fields that every page over a period has, of those that `values` names."""
    labels = {"source": "Source", "model": "Model", "profile": "Profile", "tz": "Time zone"}
    fields = [
        field(key, label, dates[key], bad, kind="text" if key in bad else "date")
        for key, label in (("since", "From"), ("until", "To"))
    ]
    fields += [field(key, label, values[key], bad) for key, label in labels.items() if key in values]
    return [*fields, day_rule(values, bad)]
