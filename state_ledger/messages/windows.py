"""Windows onto a session: the messages around one of them, and how the session begins and ends.

Source: session-db, section 4.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from state_ledger.messages.rows import decoded, select_list
from state_ledger.sqlite import Row
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer


def get_messages_around(
    writer: Writer, session_id: str, around_message_id: int, window: int = 5
) -> dict[str, Any]:
    """A message with up to `window` messages on either side, by id, inactive ones included.

    Returns `{"window": [message, …], "messages_before": n, "messages_after": n}`: messages as from
    `get_messages`, and how many of the window stand before and after the anchor. If the anchor is not
    of this session, the window is empty. A negative window counts as 0.
    """
    before, anchor, after = _around(writer, session_id, around_message_id, window)
    rows = [*before, *anchor, *after]
    return {
        "window": [decoded(row) for row in rows],
        "messages_before": len(before),
        "messages_after": len(after),
    }


def get_anchored_view(
    writer: Writer,
    session_id: str,
    around_message_id: int,
    window: int = 5,
    bookend: int = 3,
    keep_roles: Collection[str] | None = ("user", "assistant"),
) -> dict[str, Any]:
    """`get_messages_around` with the roles that matter, and the first and last messages of the session.

    keep_roles: roles to show; None shows all. The anchor is shown whatever its role;
    `messages_before` and `messages_after` count the window before roles are left out.
    bookend: how many messages `bookend_start` and `bookend_end` have at most: the first and last ones
    outside the window that have content.
    """
    view = get_messages_around(writer, session_id, around_message_id, window)
    view["bookend_start"], view["bookend_end"] = [], []
    shown = view["window"]
    if not shown:
        return view
    if keep_roles is not None:
        roles = set(keep_roles)
        view["window"] = [m for m in shown if m["id"] == around_message_id or m["role"] in roles]
    if bookend > 0:
        first, last = shown[0]["id"], shown[-1]["id"]
        view["bookend_start"] = _bookend(writer, session_id, "id < ?", first, bookend, keep_roles)
        view["bookend_end"] = _bookend(writer, session_id, "id > ?", last, bookend, keep_roles)[::-1]
    return view


def _around(writer: Writer, session_id: str, anchor_id: int, window: int) -> tuple[list[Row], list[Row], list[Row]]:
    selected = f"SELECT {select_list(writer.shape.tables['messages'])} FROM messages WHERE session_id = ?"
    session_id, window = scrub(session_id), max(window, 0)
    with writer.lock:  # three reads of one moment, as far as this handle goes
        anchor = writer.rows(f"{selected} AND id = ?", (session_id, anchor_id))
        if not anchor:
            return [], [], []
        parameters = (session_id, anchor_id, window)
        before = writer.rows(f"{selected} AND id < ? ORDER BY id DESC LIMIT ?", parameters)
        after = writer.rows(f"{selected} AND id > ? ORDER BY id LIMIT ?", parameters)
    return before[::-1], anchor, after


def _bookend(
    writer: Writer, session_id: str, side: str, edge: int, size: int, keep_roles: Collection[str] | None
) -> list[dict[str, Any]]:
    """The messages on one side of the window that are furthest from it, the furthest first."""
    parameters: list[object] = [scrub(session_id), edge]
    roles = ""
    if keep_roles is not None:
        roles = f"AND role IN ({', '.join('?' * len(keep_roles))})"
        parameters += keep_roles
    order = "id" if side.startswith("id <") else "id DESC"
    rows = writer.rows(
        f"SELECT {select_list(writer.shape.tables['messages'])} FROM messages WHERE session_id = ? AND {side}"
        # Structured content begins with a NUL, where length() stops.
        f" {roles} AND content IS NOT NULL AND content <> '' ORDER BY {order} LIMIT ?",
        [*parameters, size],
    )
    return [decoded(row) for row in rows]
