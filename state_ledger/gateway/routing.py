"""Routing: which session a chat of a messaging platform goes to.

Source: session-db, section 13; table `gateway_routing`. The entries are JSON text that belongs to the
gateway, kept as it is. A scope keeps several gateways in one store apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from state_ledger.sqlite import Connection
from state_ledger.writing.writer import Writer


def save_gateway_routing_entry(writer: Writer, session_key: str, entry_json: str, *, scope: str = "") -> None:
    """Stores the entry of a session key, in place of an older one; without a key nothing is stored."""
    if session_key:
        writer.write(lambda connection: _save(connection, {session_key: entry_json}, scope))


def replace_gateway_routing_entries(writer: Writer, entries: Mapping[str, str], *, scope: str = "") -> None:
    """Stores these entries, and removes all others of the scope, in one transaction."""

    def replace(connection: Connection) -> None:
        connection.execute("DELETE FROM gateway_routing WHERE scope = ?", (scope,))
        _save(connection, entries, scope)

    writer.write(replace)


def load_gateway_routing_entries(writer: Writer, *, scope: str = "") -> dict[str, str]:
    """The entries of a scope: `{session_key: entry_json}`."""
    found = writer.rows(
        "SELECT session_key, entry_json FROM gateway_routing WHERE scope = ? ORDER BY session_key", (scope,)
    )
    return {row[0]: row[1] for row in found}


def delete_gateway_routing_entries(writer: Writer, session_keys: Iterable[str], *, scope: str = "") -> None:
    """Removes the entries of these session keys; keys without an entry are passed over."""
    keys = [(scope, key) for key in session_keys]
    if keys:
        writer.write(
            lambda connection: connection.executemany(
                "DELETE FROM gateway_routing WHERE scope = ? AND session_key = ?", keys
            )
        )


def _save(connection: Connection, entries: Mapping[str, str], scope: str) -> None:
    now = time.time()
    connection.executemany(
        "INSERT INTO gateway_routing (scope, session_key, entry_json, updated_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (scope, session_key) DO UPDATE SET "
        "entry_json = excluded.entry_json, updated_at = excluded.updated_at",
        [(scope, key, entry, now) for key, entry in entries.items() if key],
    )
