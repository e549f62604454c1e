"""What a store shows of the programs that run on it: locks, delegations, routes, orphans, sizes.

Which of these tables a file has depends on what ever ran on it. Texts of tasks and results, chats and the
names of people are left out: they are nobody's business who only looks after the file.
"""

from __future__ import annotations

from state_ledger.ledger.columns import column, json_marker, seconds
from state_ledger.shape import Shape

_NOW = "CAST(strftime('%s', 'now') AS INTEGER)"


def views(shape: Shape) -> list[tuple[str, str]]:
    """The views as (name, SELECT)."""
    return [
        ("ledger_orphans", _orphans(shape)),
        ("ledger_locks", _locks(shape)),
        ("ledger_delegations", _delegations(shape)),
        ("ledger_routing", _routing(shape)),
        ("ledger_storage", _storage()),
    ]


def _orphans(shape: Shape) -> str:
    """One session that is not in the store and is referred to, per kind of row that refers to it."""
    kinds = [("message without a session", "messages", "session_id", seconds("max(r.timestamp)"))]
    usage = column(shape, "session_model_usage", "last_seen", "r")
    for kind, table, name, newest in (
        ("usage row without a session", "session_model_usage", "session_id", usage),
        ("link to a missing parent", "sessions", "parent_session_id", "r.started_at"),
        ("compression lock without a session", "compression_locks", "session_id", "r.acquired_at"),
        ("delegation without a session", "async_delegations", "parent_session_id", "r.dispatched_at"),
        ("topic without a session", "telegram_dm_topic_bindings", "session_id", "NULL"),
    ):
        # Of the topics' table only the name is known; it has had this column from the beginning.
        if shape.has(table, name) or (table == "telegram_dm_topic_bindings" and shape.has(table)):
            kinds.append((kind, table, name, seconds(f"max({newest})") if newest != "NULL" else newest))
    # Grouped before it is looked up: a session is asked for once, not for each of its messages.
    return " UNION ALL ".join(
        f"SELECT '{kind}' AS kind, '{table}' AS source_table, g.session_id AS session_id, g.rows AS rows,"
        f" g.last_active AS last_active FROM (SELECT r.{name} AS session_id, count(*) AS rows, {newest} AS last_active"
        f" FROM main.{table} AS r WHERE r.{name} <> '' GROUP BY r.{name}) AS g"
        " WHERE NOT EXISTS (SELECT 1 FROM main.sessions AS s WHERE s.id = g.session_id)"
        for kind, table, name, newest in kinds
    )


def _locks(shape: Shape) -> str:
    """One lock on a session or a conversation, as its holder wrote it down."""
    arms = [
        f"SELECT '{kind}' AS kind, l.{name} AS session_id, l.holder AS holder,"
        f" {seconds('l.acquired_at')} AS acquired_at, {seconds('l.expires_at')} AS expires_at,"
        f" CASE WHEN l.expires_at > {_NOW} THEN 'held' ELSE 'run out' END AS lock_state FROM main.{table} AS l"
        for kind, table, name in (
            ("compression", "compression_locks", "session_id"),
            ("turn", "session_turn_leases", "conversation_id"),
        )
        if all(shape.has(table, each) for each in (name, "holder", "acquired_at", "expires_at"))
    ]
    none = _none("kind", "session_id", "holder", "acquired_at", "expires_at", "lock_state")
    return " UNION ALL ".join(arms) or none


def _delegations(shape: Shape) -> str:
    """One piece of work that was handed out in the background."""
    if not shape.has("async_delegations", "delegation_id"):
        return _none(
            "delegation_id", "session_id", "delegation_state", "dispatched_at", "completed_at", "delivery_state",
            "delivery_attempts", "delivered_at", "owner_pid",
        )  # fmt: skip

    def stored(name: str) -> str:
        return column(shape, "async_delegations", name, "d")

    return (
        f"SELECT d.delegation_id, nullif({stored('parent_session_id')}, '') AS session_id,"
        f" {stored('state')} AS delegation_state, {seconds(stored('dispatched_at'))} AS dispatched_at,"
        f" {seconds(stored('completed_at'))} AS completed_at, {stored('delivery_state')} AS delivery_state,"
        f" {stored('delivery_attempts')} AS delivery_attempts, {seconds(stored('delivered_at'))} AS delivered_at,"
        f" {stored('owner_pid')} AS owner_pid FROM main.async_delegations AS d"
    )


def _routing(shape: Shape) -> str:
    """One chat that a gateway has a session for: without the chat's own id and the names in the entry."""
    if not shape.has("gateway_routing", "entry_json"):
        return _none("scope", "platform", "session_id", "is_known", "updated_at")
    session = json_marker("g.entry_json", "$.session_id")
    scope = column(shape, "gateway_routing", "scope", "g", absent="''")
    updated = seconds(column(shape, "gateway_routing", "updated_at", "g"))
    return (
        f"SELECT r.scope, r.platform, r.session_id,"
        " EXISTS (SELECT 1 FROM main.sessions AS s WHERE s.id = r.session_id) AS is_known, r.updated_at FROM ("
        f"SELECT {scope} AS scope, {json_marker('g.entry_json', '$.platform')} AS platform, {session} AS session_id,"
        f" {updated} AS updated_at FROM main.gateway_routing AS g) AS r"
    )


def _storage() -> str:
    """One tree of pages: a table, an index, a part of a full-text index."""
    at = ", ".join(
        f"json_extract(value, '$[{place}]') AS {name}"
        for place, name in enumerate(("name", "storage_kind", "owner", "bytes", "rows", "method"))
    )
    return f"SELECT {at} FROM json_each(storage_parts())"


def _none(*columns: str) -> str:
    return f"SELECT {', '.join(f'NULL AS {name}' for name in columns)} WHERE 0"
