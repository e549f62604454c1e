"""What calls cost: counters of the session row and rows per model and task.

Source: session-db, section 7; store-format, section 6. The session row holds the main conversation;
`session_model_usage` holds it again by route (`task = ''`), and helper calls (any other task) alone.
"""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass
from typing import Any

from state_ledger.sessions import upsert
from state_ledger.sqlite import Connection, Row
from state_ledger.surrogates import scrub_optional
from state_ledger.writing.writer import Writer


@dataclass(frozen=True)
class Tokens:
    """Tokens of one or more calls: four buckets that do not overlap, and reasoning as a part of output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Route:
    """Which model was called and through whom; None for what is not known."""

    model: str | None
    billing_provider: str | None
    billing_base_url: str | None
    billing_mode: str | None


@dataclass(frozen=True)
class Call:
    """One recorded amount: `calls` calls, their tokens, dollars and where the dollars come from."""

    tokens: Tokens
    calls: int
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_status: str | None = None
    cost_source: str | None = None

    @property
    def attributable(self) -> bool:
        """Whether it makes a usage row: an actual cost alone does not."""
        return any(astuple(self.tokens)) or bool(self.calls) or bool(self.estimated_cost_usd)

    @property
    def is_usage(self) -> bool:
        """Whether anything was used, so that its route counts for the session."""
        return self.attributable or bool(self.actual_cost_usd)


_TOKEN_COLUMNS = tuple(Tokens.__dataclass_fields__)
_COUNTERS = (*_TOKEN_COLUMNS, "api_call_count")
_ROUTE_COLUMNS = tuple(Route.__dataclass_fields__)


def update_token_counts(
    writer: Writer,
    session_id: str,
    input_tokens: int = 0,
    output_tokens: int = 0,
    model: str | None = None,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
    reasoning_tokens: int = 0,
    estimated_cost_usd: float | None = None,
    actual_cost_usd: float | None = None,
    cost_status: str | None = None,
    cost_source: str | None = None,
    pricing_version: str | None = None,
    billing_provider: str | None = None,
    billing_base_url: str | None = None,
    billing_mode: str | None = None,
    api_call_count: int = 0,
    absolute: bool = False,
) -> None:
    """Records calls of a session's main conversation; makes the session if it is not there.

    The numbers are added to the session's counters and to its usage row of this route, or, with
    `absolute`, replace the counters and make no usage row. An estimate that is not given counts as
    0 dollars, an actual cost only when given. The route fills what the session does not know; the
    first call that is accounted to a session (none counted before) replaces its whole route.
    """
    tokens = _tokens(input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
    call = Call(tokens, api_call_count or 0, estimated_cost_usd, actual_cost_usd, cost_status, cost_source)
    given = Route(*map(scrub_optional, (model, billing_provider, billing_base_url, billing_mode)))

    def work(connection: Connection) -> None:
        upsert(connection, session_id, "unknown", model=model)
        route = _session_route(_stored(connection, session_id), given, call)
        _count(connection, session_id, call, route, pricing_version, absolute=absolute)
        if not absolute and call.attributable:
            key = Route(*(mine or theirs for mine, theirs in zip(astuple(given), astuple(route), strict=True)))
            _attribute(connection, session_id, "", key, call)

    writer.write(work)


def record_auxiliary_usage(
    writer: Writer,
    session_id: str,
    task: str,
    *,
    model: str | None = None,
    billing_provider: str | None = None,
    billing_base_url: str | None = None,
    input_tokens: int = 0,
    output_tokens: int = 0,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
    reasoning_tokens: int = 0,
    estimated_cost_usd: float | None = None,
) -> None:
    """Records one helper call (`vision`, `compression`, `title_generation`, …) of a session.

    It makes or adds to the usage row of that task and route, never to the session's own counters.
    Without session id or task nothing happens; a session that is not there is made.
    """
    if not session_id or not task:
        return
    tokens = _tokens(input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens)
    route = Route(scrub_optional(model), scrub_optional(billing_provider), scrub_optional(billing_base_url), None)

    def work(connection: Connection) -> None:
        upsert(connection, session_id, "unknown")
        _attribute(connection, session_id, task, route, Call(tokens, 1, estimated_cost_usd))

    writer.write(work)


def _tokens(*counts: int | None) -> Tokens:
    return Tokens(*(count or 0 for count in counts))


def _stored(connection: Connection, session_id: str) -> Row:
    row: Row = connection.execute(
        f"SELECT api_call_count, {', '.join(_ROUTE_COLUMNS)} FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    return row


def _session_route(stored: Row, given: Route, call: Call) -> Route:
    """The route of the session after this call."""
    known = Route(*(stored[name] for name in _ROUTE_COLUMNS))
    if not call.is_usage:
        return known
    first = not stored["api_call_count"] and given.model and given.billing_provider
    if first and (given.model, given.billing_provider) != (known.model, known.billing_provider):
        return given
    pairs = zip(astuple(known), astuple(given), strict=True)
    return Route(*(new if old is None else old for old, new in pairs))


def _count(
    connection: Connection,
    session_id: str,
    call: Call,
    route: Route,
    pricing_version: str | None,
    *,
    absolute: bool,
) -> None:
    """Sets counters, costs and route of the session row."""
    amounts: dict[str, Any] = dict(zip(_COUNTERS, (*astuple(call.tokens), call.calls), strict=True))
    amounts["estimated_cost_usd"] = call.estimated_cost_usd or 0.0
    if call.actual_cost_usd is not None:
        amounts["actual_cost_usd"] = call.actual_cost_usd
    notes = {
        "cost_status": call.cost_status,
        "cost_source": call.cost_source,
        "pricing_version": pricing_version,
    }
    plain = dict(zip(_ROUTE_COLUMNS, astuple(route), strict=True))
    plain |= {name: scrub_optional(value) for name, value in notes.items() if value is not None}
    amount = "{0} = ?" if absolute else "{0} = coalesce({0}, 0) + ?"
    settings = [amount.format(name) for name in amounts] + [f"{name} = ?" for name in plain]
    connection.execute(
        f"UPDATE sessions SET {', '.join(settings)} WHERE id = ?",
        (*amounts.values(), *plain.values(), session_id),
    )


def _attribute(connection: Connection, session_id: str, task: str, route: Route, call: Call) -> None:
    """Adds an amount to the usage row of its route and task."""
    now = time.time()
    row = {
        "session_id": session_id,
        "model": route.model or "unknown",
        "billing_provider": route.billing_provider or "",
        "billing_base_url": route.billing_base_url or "",
        "billing_mode": route.billing_mode or "",
        "task": scrub_optional(task),
        **dict(zip(_COUNTERS, (*astuple(call.tokens), call.calls), strict=True)),
        "estimated_cost_usd": call.estimated_cost_usd or 0.0,
        "actual_cost_usd": call.actual_cost_usd or 0.0,
        "cost_status": scrub_optional(call.cost_status),
        "cost_source": scrub_optional(call.cost_source),
        "first_seen": now,
        "last_seen": now,
    }
    table = "session_model_usage"
    added = (*_COUNTERS, "estimated_cost_usd", "actual_cost_usd")
    changes = [f"{name} = {table}.{name} + excluded.{name}" for name in added]
    changes += [f"{name} = coalesce(excluded.{name}, {table}.{name})" for name in ("cost_status", "cost_source")]
    connection.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        " ON CONFLICT (session_id, model, billing_provider, billing_base_url, billing_mode, task)"
        f" DO UPDATE SET {', '.join(changes)}, last_seen = excluded.last_seen",
        list(row.values()),
    )
