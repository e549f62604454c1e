"""What becomes of rows that refer to sessions that are not there, in a copy of a store."""

from __future__ import annotations

from state_ledger.sqlite import Connection

KEEP, DETACH, REMOVE = "keep", "detach", "remove"
WAYS = (KEEP, DETACH, REMOVE)

RECOVERED = "recovered"
"""Source and end reason of a session row that was made for rows that had lost theirs (store-format, 5.2)."""

_REFERRING = (
    ("messages", "session_id"),
    ("session_model_usage", "session_id"),
    ("telegram_dm_topic_bindings", "session_id"),
    ("compression_locks", "session_id"),
)


def settle(connection: Connection, way: str) -> dict[str, int]:
    """Settles the orphans of the main database within the caller's transaction; what was done, in rows.

    keep: they stay as they are. detach: sessions that messages or usage rows have lost are made anew, ended
    and named as recovered; links to missing parents are taken off; locks and topics of missing sessions go.
    remove: messages and usage rows of missing sessions go, and what `detach` lets go. Raises ValueError
    for another way.
    """
    if way not in WAYS:
        raise ValueError(f"{way} is none of {', '.join(WAYS)}")
    if way == KEEP:
        return {}
    done: dict[str, int] = {}
    live = {
        table: {str(row[1]) for row in connection.execute(f"PRAGMA main.table_info({table})")}
        for table, _column in (*_REFERRING, ("sessions", "id"))
    }
    if way == DETACH:
        done["sessions made anew"] = sum(
            _remake(connection, live, table, times)
            for table, times in (
                ("messages", ("timestamp", "timestamp")),
                ("session_model_usage", ("first_seen", "last_seen")),
            )
            if live[table]
        )
    for table, column in _REFERRING:
        if live[table]:
            number = connection.execute(
                f"DELETE FROM main.{table} WHERE {column} NOT IN (SELECT id FROM main.sessions)"
            ).rowcount
            if number:
                done[f"rows removed from {table}"] = number
    if "parent_session_id" in live["sessions"]:
        done["links taken off"] = connection.execute(
            "UPDATE main.sessions SET parent_session_id = NULL"
            " WHERE parent_session_id IS NOT NULL AND parent_session_id NOT IN (SELECT id FROM main.sessions)"
        ).rowcount
    return {what: number for what, number in done.items() if number}


def _remake(connection: Connection, live: dict[str, set[str]], table: str, times: tuple[str, str]) -> int:
    """Makes a session for every id that rows of a table refer to and no session has."""
    first, last = times
    values = {"id": "r.session_id", "source": f"'{RECOVERED}'", "started_at": f"coalesce(min(r.{first}), 0)"}
    values |= {"ended_at": f"max(r.{last})", "end_reason": f"'{RECOVERED}'"}
    if table == "messages":
        values["message_count"] = "count(*)"
    kept = {name: value for name, value in values.items() if name in live["sessions"]}
    return connection.execute(
        f"INSERT INTO main.sessions({', '.join(kept)}) SELECT {', '.join(kept.values())} FROM main.{table} AS r"
        " WHERE r.session_id IS NOT NULL AND r.session_id NOT IN (SELECT id FROM main.sessions) GROUP BY r.session_id"
    ).rowcount
