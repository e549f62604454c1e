"""Work that a session has handed to a subagent without waiting for it.

Source: session-db, section 13; table `async_delegations`. A delegation is recorded when it starts and
completed with the event that its origin is still to be told: until then its delivery is `pending`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from state_ledger.content import from_json
from state_ledger.sqlite import Connection
from state_ledger.writing.writer import Writer

_JSON = {"task_json": "task", "event_json": "event", "result_json": "result"}


def record_async_delegation(
    writer: Writer,
    delegation_id: str,
    origin_session: str,
    *,
    origin_ui_session_id: str = "",
    parent_session_id: str | None = None,
    task: Mapping[str, Any] | None = None,
    dispatched_at: float | None = None,
    owner_pid: int | None = None,
    owner_started_at: int | None = None,
) -> None:
    """Notes that a delegation runs; one of the same id is begun again.

    origin_session: the session key that is told about the end. task: what is to be done, stored as
    JSON. dispatched_at: epoch seconds, now by default. owner_pid: the process that runs it, this one
    by default.
    """
    now = time.time()
    values = (
        delegation_id,
        origin_session,
        origin_ui_session_id,
        parent_session_id,
        now if dispatched_at is None else dispatched_at,
        now,
        os.getpid() if owner_pid is None else owner_pid,
        owner_started_at,
        _text(task),
    )

    def record(connection: Connection) -> None:
        # Begun again: nothing of an earlier end may be left.
        connection.execute("DELETE FROM async_delegations WHERE delegation_id = ?", (delegation_id,))
        connection.execute(
            "INSERT INTO async_delegations (delegation_id, origin_session, origin_ui_session_id, "
            "parent_session_id, state, dispatched_at, updated_at, owner_pid, owner_started_at, task_json) "
            "VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?)",
            values,
        )

    writer.write(record)


def complete_async_delegation(
    writer: Writer,
    delegation_id: str,
    *,
    state: str = "completed",
    event: Mapping[str, Any] | None = None,
    result: Mapping[str, Any] | None = None,
    completed_at: float | None = None,
) -> bool:
    """Notes the end of a delegation; False if there is none of that id.

    state: how it ended, for instance `completed` or `error`. event: what the origin is to be told;
    result: what came out; both stored as JSON. completed_at: epoch seconds, now by default.
    """
    now = time.time()
    values = (
        state, now if completed_at is None else completed_at, now, _text(event), _text(result), delegation_id,
    )  # fmt: skip
    return writer.write(
        lambda connection: connection.execute(
            "UPDATE async_delegations SET state = ?, completed_at = ?, updated_at = ?, event_json = ?, "
            "result_json = ?, delivery_state = 'pending' WHERE delegation_id = ?",
            values,
        ).rowcount
        > 0
    )


def list_async_delegations(
    writer: Writer,
    *,
    origin_session: str | None = None,
    state: str | None = None,
    delivery_state: str | None = None,
) -> list[dict[str, Any]]:
    """Delegations, the first dispatched first: every column, and `task`, `event`, `result` decoded.

    The filters are exact and joined by AND. What is no JSON stays in its column, decoded as None.
    """
    wanted = {"origin_session": origin_session, "state": state, "delivery_state": delivery_state}
    given = {column: value for column, value in wanted.items() if value is not None}
    where = f" WHERE {' AND '.join(f'{column} = :{column}' for column in given)}" if given else ""
    found = writer.rows(
        f"SELECT * FROM async_delegations{where} ORDER BY dispatched_at, delegation_id", given
    )
    return [_decoded(dict(row)) for row in found]


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    for column, name in _JSON.items():
        try:
            row[name] = from_json(row[column]) if row.get(column) else None
        except (TypeError, ValueError, RecursionError):
            row[name] = None
    return row


def _text(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value)
