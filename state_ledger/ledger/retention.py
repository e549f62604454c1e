"""What a clean-up has to know of sessions: what continues what, who holds locks, how much text there is.

Source: accounting rules 11, 22 and 23.
"""

from __future__ import annotations

from state_ledger.ledger import operation
from state_ledger.ledger.sessions import may_continue
from state_ledger.shape import Shape
from state_ledger.sqlite import version_info

TEXTS = (
    "content", "tool_calls", "reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items",
    "codex_message_items", "api_content",
)  # fmt: skip
"""The columns of a message that hold its text; the others are short."""

_OCTET_LENGTH = (3, 43)
"""Since then SQLite tells the length of a text without reading it."""


def views(shape: Shape) -> list[tuple[str, str]]:
    """The views as (name, SELECT)."""
    return [
        ("ledger_continuations", continuations(shape)),
        (
            "ledger_message_sizes",
            f"SELECT m.session_id, {text_bytes(shape, 'm')} AS text_bytes FROM main.messages AS m",
        ),
    ]


def continuations(shape: Shape) -> str:
    """SELECT of every session that may continue its parent, forks too, with that parent."""
    if not shape.has("sessions", "parent_session_id"):
        return "SELECT NULL AS session_id, NULL AS continues_session_id WHERE 0"
    return (
        "SELECT s.id AS session_id, p.id AS continues_session_id FROM main.sessions AS s"
        " CROSS JOIN main.sessions AS p ON p.id = s.parent_session_id"
        f" WHERE s.parent_session_id IS NOT NULL AND p.rowid <> s.rowid AND {may_continue(shape, 's')}"
    )


def held_lock(shape: Shape, session: str) -> str:
    """SQL: whether somebody holds a lock on a session at the moment that is the one parameter, epoch seconds."""
    locks = dict(operation.views(shape))["ledger_locks"]
    return f"EXISTS (SELECT 1 FROM ({locks}) AS l WHERE l.session_id = {session} AND l.expires_at > ?)"


def text_bytes(shape: Shape, alias: str) -> str:
    """SQL: the bytes of a message's text."""
    length = "octet_length({})" if version_info >= _OCTET_LENGTH else "length(CAST({} AS BLOB))"
    named = [f"{alias}.{name}" for name in TEXTS if shape.has("messages", name)]
    return " + ".join(f"coalesce({length.format(name)}, 0)" for name in named)
