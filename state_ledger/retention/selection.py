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
from state_ledger.ledger.retention import text_bytes
from state_ledger.ledger.sessions import idle_since
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
    """SQL: when session `s` was last active, epoch seconds (`idle_since` of the semantic layer)."""
    return idle_since(shape, "s")


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


def _bytes(shape: Shape) -> str:
    return f"coalesce((SELECT sum({text_bytes(shape, 'm')}) FROM messages AS m WHERE m.session_id = s.id), 0)"


def _ledger_cost(_shape: Shape) -> str:
    return "coalesce((SELECT sum(u.cost_usd) FROM ledger_usage AS u WHERE u.session_id = s.id), 0)"


_LAYER_EQUALS = {
    "kind": "(SELECT k.kind FROM ledger_session_kinds AS k WHERE k.row = s.rowid)",
    "profile": "(SELECT f.profile FROM ledger_session_facts AS f WHERE f.session_id = s.id)",
}
_LAYER_BOUNDS: Mapping[str, tuple[_Number, str]] = {
    "min_bytes": (_bytes, ">="),
    "max_bytes": (_bytes, "<="),
    "min_cost": (_ledger_cost, ">="),
    "max_cost": (_ledger_cost, "<="),
}
"""What cost is in the books: all calls of a session, those of helpers too (accounting rule 5)."""

LAYER_FILTERS = frozenset({*_FILTERS, *_LAYER_EQUALS, *_LAYER_BOUNDS, "pinned"})
"""The filters of a plan, for connections that have the semantic layer."""


@dataclass(frozen=True)
class Selection:
    """An SQL condition on sessions `s`, whatever their age, and whether they ended or not.

    idle_since: epoch seconds; sessions active since then are not old enough. None: age plays no part.
    shape: of the file for which the condition is meant.
    """

    condition: str
    parameters: tuple[Any, ...]
    idle_since: float | None
    shape: Shape

    @property
    def aged(self) -> tuple[str, tuple[Any, ...]]:
        """The condition with the age in it, and its parameters."""
        if self.idle_since is None:
            return self.condition, self.parameters
        return f"{self.condition} AND {last_active(self.shape)} < ?", (*self.parameters, self.idle_since)


def select(
    shape: Shape,
    older_than_days: float | None,
    source: str | None,
    filters: Mapping[str, Any],
    *,
    now: float | None = None,
    with_layer: bool = False,
) -> Selection:
    """The sessions that a clean-up is about.

    older_than_days: days without activity before `now` (epoch seconds, by default this moment); None
    for any age. `started_before` and `last_active_before` take its place. Filters with the value None
    do not count. with_layer: whether the connection has the semantic layer, which knows more filters
    (LAYER_FILTERS) and the cost as the books have it.
    Raises TypeError for an unknown filter.
    """
    known = LAYER_FILTERS if with_layer else _FILTERS
    unknown = sorted(set(filters) - known)
    if unknown:
        raise TypeError(f"There is no filter {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    given = {name: value for name, value in filters.items() if value is not None}
    bounds = {**_BOUNDS, **_LAYER_BOUNDS} if with_layer else _BOUNDS
    conditions, parameters = ["1"], list[Any]()

    def add(condition: str, *values: Any) -> None:
        conditions.append(condition)
        parameters.extend(values)

    since = None
    if "last_active_before" in given:
        since = float(given.pop("last_active_before"))
    elif older_than_days is not None and "started_before" not in given:
        since = (time.time() if now is None else now) - older_than_days * DAY_S
    if source:
        add("s.source = ?", source)
    for name, value in given.items():
        if name in _CONTAINS:
            add(f"{_of(_CONTAINS[name])(shape)} LIKE ?", f"%{value}%")
        elif name in _EQUALS:
            add(f"{_of(name)(shape)} = ?", value)
        elif name in _LAYER_EQUALS:
            add(f"{_LAYER_EQUALS[name]} = ?", value)
        elif name in bounds:
            number, comparison = bounds[name]
            add(f"{number(shape)} {comparison} ?", value)
        elif name == "provider":
            add(f"lower({_of('billing_provider')(shape)}) = lower(?)", value)
        elif name in ("archived", "pinned"):
            add(f"(coalesce({_of(name)(shape)}, 0) <> 0) = ?", int(bool(value)))
        else:
            cwd, above = _of("cwd")(shape), str(value).rstrip("/\\")
            add(
                f"({cwd} = ? OR {cwd} LIKE ? ESCAPE '\\' OR {cwd} LIKE ? ESCAPE '\\')",
                value, begins_with(f"{above}/"), begins_with(f"{above}\\"),
            )  # fmt: skip
    return Selection(" AND ".join(conditions), tuple(parameters), since, shape)
