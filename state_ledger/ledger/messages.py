"""`ledger_messages`: each logical message once, decoded, with its flags (accounting rules 15 to 18)."""

from __future__ import annotations

from state_ledger.ledger.columns import column, listed, seconds
from state_ledger.shape import Shape


def views(shape: Shape) -> list[tuple[str, str]]:
    """The view of messages as (name, SELECT).

    In-place compaction stores kept messages a second time under a new id: rows that agree in session,
    role, content and timestamp are one logical message, shown under its first id.
    """

    def stored(name: str, alias: str = "m") -> str:
        return column(shape, "messages", name, alias)

    copies = (
        "FROM main.messages AS o WHERE o.session_id = m.session_id AND o.timestamp IS m.timestamp"
        " AND o.role = m.role AND o.content IS m.content"
    )
    # Without the columns every row is live; NULL in `active` counts as live (rule 15).
    live = f"coalesce({column(shape, 'messages', 'active', 'o')}, 1) <> 0"
    compacted = f"coalesce({column(shape, 'messages', 'compacted', 'o')}, 0) <> 0"
    state = "'live'"
    if shape.has("messages", "active"):
        state = (
            f"(SELECT CASE WHEN max({live}) THEN 'live' WHEN max({compacted}) THEN 'compacted'"
            f" ELSE 'taken back' END {copies})"
        )
    kept = ("role", "tool_name", "tool_call_id", "tool_calls", "finish_reason", "reasoning", "observed", "display_kind")
    columns = {
        "id": "m.id",
        "session_id": "m.session_id",
        "timestamp": seconds("m.timestamp"),
        **{name: stored(name) for name in kept},
        "state": state,
        "copies": f"(SELECT count(*) {copies})",
        "text": "message_text(CAST(m.content AS BLOB))",
        "parts": "message_parts(CAST(m.content AS BLOB))",
        "problem": "message_problem(CAST(m.content AS BLOB))",
        "sent_verbatim": f"{stored('api_content')} IS NULL",
        "api_content": stored("api_content"),
    }
    return [
        (
            "ledger_messages",
            f"SELECT {listed(columns)} FROM main.messages AS m WHERE NOT EXISTS (SELECT 1 {copies} AND o.id < m.id)",
        ),
        (
            "ledger_message_times",
            f"SELECT m.session_id, {seconds('m.timestamp')} AS timestamp FROM main.messages AS m",
        ),
        ("ledger_tool_calls", _tool_calls(shape, copies)),
    ]


def _tool_calls(shape: Shape, copies: str) -> str:
    """One call that an assistant message makes; what is not a JSON list of objects is not a call."""
    calls = column(shape, "messages", "tool_calls", "m")
    sound = f"CASE WHEN json_valid({calls}) AND json_type({calls}) = 'array' THEN {calls} ELSE '[]' END"
    return (
        "SELECT m.id AS message_id, m.session_id,"
        f" {seconds('m.timestamp')} AS timestamp, json_extract(c.value, '$.id') AS tool_call_id,"
        " coalesce(json_extract(c.value, '$.function.name'), json_extract(c.value, '$.name')) AS tool_name,"
        " json_extract(c.value, '$.function.arguments') AS arguments"
        f" FROM main.messages AS m CROSS JOIN json_each({sound}) AS c"
        f" WHERE {calls} IS NOT NULL AND c.type = 'object'"
        f" AND NOT EXISTS (SELECT 1 {copies} AND o.id < m.id)"
    )
