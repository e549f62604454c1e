"""Which sessions a clean-up is about: filters, and when a session was last active.

Source: session-db, section 10. Age is inactivity: a session begun long ago and used yesterday is not
old. A filter that is unknown is an error, never passed over: it would widen what is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from state_ledger.ledger.columns import column
from state_ledger.sessions import begins_with
from state_ledger.shape import Shape

DAY_S = 86_400

_Number = Callable[[Shape], str]


def _of(name: str) -> _Number:
    return lambda shape: column(shape, "sessions", name, "s")


def _count(name: str) -> _Number:
    return lambda shape: f"coalesce({column(shape, 'sessions', name, 's')}, 0)"


def _tokens(shape: Shape) -> str:
    return f"({_count('input_tokens')(shape)} + {_count('output_tokens')(shape)})"


def _cost(shape: Shape) -> str:
    return f"coalesce({_of('actual_cost_usd')(shape)}, {_of('estimated_cost_usd')(shape)}, 0)"


def last_active(shape: Shape) -> str:
    """SQL: when session `s` was last active, epoch seconds: its newest message or, in stores that
    note it, its last sign of life, whichever is later; its start where there is neither."""
    newest = "(SELECT max(m.timestamp) FROM messages AS m WHERE m.session_id = s.id)"
    if not shape.has("sessions", "last_activity_at"):
        return f"coalesce({newest}, s.started_at)"
    noted = "s.last_activity_at"
    return f"coalesce(max({newest}, {noted}), {newest}, {noted}, s.started_at)"


_CONTAINS = {"title_like": "title", "model_like": "model", "branch_like": "git_branch"}
_EQUALS = ("end_reason", "user_id", "chat_id", "chat_type")
_BOUNDS: Mapping[str, tuple[_Number, str]] = {
    "started_before": (_of("started_at"), "<"),
    "started_after": (_of("started_at"), ">="),
    "last_active_before": (last_active, "<"),
    "last_active_after": (last_active, ">="),
    **{
        f"{end}_{name}": (number, comparison)
        for name, number in (
            ("messages", _count("message_count")),
            ("tool_calls", _count("tool_call_count")),
            ("tokens", _tokens),
            ("cost", _cost),
        )
        for end, comparison in (("min", ">="), ("max", "<="))
    },
}
_FILTERS = {*_CONTAINS, *_EQUALS, *_BOUNDS, "provider", "cwd_prefix", "archived"}


@dataclass(frozen=True)
class Selection:
    """An SQL condition on sessions `s`, whether they ended or not.

    idle_since: epoch seconds; sessions active since then are not old enough. None: age plays no part.
    """

    condition: str
    parameters: tuple[Any, ...]
    idle_since: float | None


def select(
    shape: Shape, older_than_days: float | None, source: str | None, filters: Mapping[str, Any]
) -> Selection:
    """The sessions that a clean-up is about.

    older_than_days: days without activity; None for any age. `started_before` and
    `last_active_before` take its place. Filters with the value None do not count.
    Raises TypeError for an unknown filter.
    """
    unknown = sorted(set(filters) - _FILTERS)
    if unknown:
        raise TypeError(f"There is no filter {', '.join(unknown)}; there are {', '.join(sorted(_FILTERS))}.")
    given = {name: value for name, value in filters.items() if value is not None}
    conditions, parameters = ["1"], list[Any]()

    def add(condition: str, *values: Any) -> None:
        conditions.append(condition)
        parameters.extend(values)

    idle_since = None
    if "last_active_before" in given:
        idle_since = float(given["last_active_before"])
    elif older_than_days is not None and "started_before" not in given:
        idle_since = time.time() - older_than_days * DAY_S
        add(f"{last_active(shape)} < ?", idle_since)
    if source:
        add("s.source = ?", source)
    for name, value in given.items():
        if name in _CONTAINS:
            add(f"{_of(_CONTAINS[name])(shape)} LIKE ?", f"%{value}%")
        elif name in _EQUALS:
            add(f"{_of(name)(shape)} = ?", value)
        elif name in _BOUNDS:
            number, comparison = _BOUNDS[name]
            add(f"{number(shape)} {comparison} ?", value)
        elif name == "provider":
            add(f"lower({_of('billing_provider')(shape)}) = lower(?)", value)
        elif name == "archived":
            add(f"(coalesce({_of('archived')(shape)}, 0) <> 0) = ?", int(bool(value)))
        else:
            cwd, above = _of("cwd")(shape), str(value).rstrip("/\\")
            add(
                f"({cwd} = ? OR {cwd} LIKE ? ESCAPE '\\' OR {cwd} LIKE ? ESCAPE '\\')",
                value, begins_with(f"{above}/"), begins_with(f"{above}\\"),
            )  # fmt: skip
    return Selection(" AND ".join(conditions), tuple(parameters), idle_since)
