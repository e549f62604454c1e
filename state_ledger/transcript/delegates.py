"""Delegates where they were called, and the way to a message inside one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from state_ledger.sqlite import Connection
from state_ledger.transcript.family import Family
from state_ledger.transcript.messages import LAST_KEY, Stretch
from state_ledger.transcript.rows import among

_CALLS = "SELECT session_id, message_id FROM ledger_delegate_calls WHERE session_id {among}"


def calls(connection: Connection, family: Family, callers: Sequence[str]) -> dict[str, int]:
    """The delegates of some sessions: by id, the message that called each; 0 for before the first."""
    asked = [
        child.session_id for caller in callers for child in family.children(caller) if child.kind == "delegate"
    ]
    return {row["session_id"]: row["message_id"] or 0 for row in among(connection, _CALLS, asked)}


def placed(family: Family, called: Mapping[str, int], page: Stretch) -> dict[int, list[str]]:
    """Delegates by the message under which they stand on a page; each stands on one page of its caller.

    That is the last message shown up to the call, since the call itself may have been taken back.
    """
    found: dict[int, list[str]] = {}
    places = [page.before, *((message.session_id, message.id) for message in page.messages), page.after]
    for previous, message, following in zip(places, page.messages, places[2:], strict=False):
        begins = previous is None or previous[0] != message.session_id
        ends = following is None or following[0] != message.session_id
        low, high = 0 if begins else message.id, LAST_KEY if ends or following is None else following[1]
        for child in family.children(message.session_id):
            if low <= called.get(child.session_id, -1) < high:
                found.setdefault(message.id, []).append(child.session_id)
    return found


def way_to(family: Family, connection: Connection, chain: Sequence[str], session_id: str) -> list[tuple[str, str, int]]:
    """The delegates through which a session is reached from a chain, outermost first.

    Each as (caller's session, first session of the delegate, message of the call). Empty where the
    session is not below the chain.
    """
    way: list[tuple[str, str, int]] = []
    node = family.nodes.get(session_id)
    while node is not None and node.session_id not in chain:
        root = family.nodes[node.conversation]
        if root.parent is None or root.kind != "delegate" or any(step[1] == root.session_id for step in way):
            return []
        message = calls(connection, family, [root.parent]).get(root.session_id, 0)
        way.insert(0, (root.parent, root.session_id, message))
        node = family.nodes.get(root.parent)
    return way if node is not None else []
