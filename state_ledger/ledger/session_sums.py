"""What one session used in all, for lists that show a few: `ledger_session_sums`.

SQLite hands a constant down into `ledger_usage`, whose sums per session it then finds by index, but not what
it joins or `IN (SELECT …)`: it would add up every session of the store to show fifty. So the view asks for
its sums by a function, session by session, and only for the rows that are left after a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from state_ledger.sqlite import reference

if TYPE_CHECKING:
    from state_ledger.sqlite import Connection

SUMS = (
    "api_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "prompt_tokens", "fresh_tokens", "processed_tokens", "cost_usd", "actual_usd",
    "estimated_usd", "included_calls", "unknown_calls", "unknown_tokens",
)  # fmt: skip
"""The figures of `ledger_usage` that add up."""

# As bytes: text that is not UTF-8 would fail on its way to the function.
_OF_ONE = f"SELECT {', '.join(f'sum({name})' for name in SUMS)} FROM ledger_usage WHERE session_id = CAST(? AS TEXT)"


def view() -> tuple[str, str]:
    """The view as (name, SELECT): one row is a session, with NULL for what it has no usage of."""
    asked = ", ".join(f"session_sum(b, {at}) AS {name}" for at, name in enumerate(SUMS))
    sessions = "SELECT s.id AS session_id, CAST(s.id AS BLOB) AS b FROM main.sessions AS s"
    return "ledger_session_sums", f"SELECT session_id, {asked} FROM ({sessions})"


def register(connection: Connection) -> None:
    """Makes `session_sum(session, at)` on a connection: the sum at a place of SUMS."""
    itself = reference(connection)
    kept: tuple[object, tuple[Any, ...]] | None = None

    def session_sum(session: bytes, at: int) -> Any:
        # The columns of a row are asked for one after the other. Another writer's rows show between statements.
        nonlocal kept
        asking = itself()
        now = (session, asking.total_changes, asking.execute("PRAGMA data_version").fetchone()[0])
        if kept is None or kept[0] != now:
            kept = now, tuple(asking.execute(_OF_ONE, (session,)).fetchone())
        return kept[1][at]

    connection.create_function("session_sum", 2, session_sum)
