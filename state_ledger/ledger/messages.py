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
        # The row itself comes first: most are live, and finding that out needs no look at their content.
        state = (
            f"CASE WHEN coalesce({stored('active')}, 1) <> 0 OR EXISTS (SELECT 1 {copies} AND {live}) THEN 'live'"
            f" WHEN EXISTS (SELECT 1 {copies} AND {compacted}) THEN 'compacted' ELSE 'taken back' END"
        )
    kept = ("role", "tool_name", "tool_call_id", "tool_calls", "finish_reason", "token_count", "observed",
            "display_kind")  # fmt: skip
    # What each row is by itself, whatever its copies are.
    own_state = (
        f"CASE WHEN coalesce({stored('active')}, 1) <> 0 THEN 'live'"
        f" WHEN coalesce({stored('compacted')}, 0) <> 0 THEN 'compacted' ELSE 'taken back' END"
    )
    text = "message_text(CAST(m.content AS BLOB))"
    copied = {
        "id": "m.id",
        "session_id": "m.session_id",
        "timestamp": seconds("m.timestamp"),
        **{name: stored(name) for name in ("role", "tool_name", "tool_calls")},
        "state": own_state,
        "text": text,
    }
    columns = {
        "id": "m.id",
        "session_id": "m.session_id",
        "timestamp": seconds("m.timestamp"),
        **{name: stored(name) for name in kept},
        "reasoning": f"coalesce(nullif({stored('reasoning')}, ''), {stored('reasoning_content')})",
        "state": state,
        "copies": f"(SELECT count(*) {copies})",
        "text": text,
        "parts": "message_parts(CAST(m.content AS BLOB))",
        "shown_parts": "message_shown_parts(CAST(m.content AS BLOB))",
        "problem": "message_problem(CAST(m.content AS BLOB))",
        # Where the column is missing, nobody wrote down what was sent.
        "sent_verbatim": "m.api_content IS NULL" if shape.has("messages", "api_content") else "NULL",
        "api_content": stored("api_content"),
    }
    return [
        (
            "ledger_messages",
            f"SELECT {listed(columns)} FROM main.messages AS m WHERE NOT EXISTS (SELECT 1 {copies} AND o.id < m.id)",
        ),
        (
            "ledger_message_rows",
            "SELECT m.id AS id, m.session_id AS session_id,"
            f" (SELECT min(o.id) {copies}) AS first_id FROM main.messages AS m",
        ),
        (
            "ledger_message_copies",
            f"SELECT {listed(copied)} FROM main.messages AS m WHERE EXISTS (SELECT 1 {copies} AND o.id <> m.id)",
        ),
        (
            "ledger_message_times",
            f"SELECT m.session_id, {seconds('m.timestamp')} AS timestamp FROM main.messages AS m",
        ),
        ("ledger_tool_calls", _tool_calls(shape, copies)),
        ("ledger_delegate_calls", _delegate_calls(shape)),
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


def _delegate_calls(shape: Shape) -> str:
    """One delegate that names its parent: the parent's message that called it.

    The store does not say which call started a delegate. It is the last message with tool calls that the
    parent had when the delegate began, else the last message of any kind; NULL where there was none yet.
    """
    before = "FROM main.messages AS m WHERE m.session_id = s.parent_session_id AND m.timestamp <= s.started_at"
    newest = "ORDER BY m.timestamp DESC, m.id LIMIT 1"
    called = f"(SELECT m.id {before} AND {column(shape, 'messages', 'tool_calls', 'm')} IS NOT NULL {newest})"
    if not shape.has("sessions", "parent_session_id"):
        return "SELECT NULL AS session_id, NULL AS caller_session_id, NULL AS message_id WHERE 0"
    return (
        "SELECT s.id AS session_id, s.parent_session_id AS caller_session_id,"
        f" coalesce({called}, (SELECT m.id {before} {newest})) AS message_id FROM main.sessions AS s"
        " WHERE s.parent_session_id <> '' AND"
        " (SELECT k.kind FROM ledger_session_kinds AS k WHERE k.row = s.rowid) = 'delegate'"
    )
