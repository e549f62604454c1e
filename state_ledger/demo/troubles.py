"""One of each trouble that real stores have, done to sessions of a demo store.

Every trouble has a session of its own, an ordinary one until the statements here spoil it. The
statements take the session's id as `:id`, some an `:other` id as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from state_ledger.sqlite import Connection


@dataclass(frozen=True)
class Trouble:
    """title: of its session. what: what is wrong, in a sentence. statements: what spoils it.

    other: the trouble whose session is `:other`. unequal: whether the session row and the sum of
    its `task = ''` usage rows differ afterwards.
    """

    title: str
    what: str
    statements: tuple[str, ...]
    other: str | None = None
    unequal: bool = False


_MAIN_ROWS = "session_id = :id AND task = ''"

TROUBLES = MappingProxyType(
    {
        "legacy": Trouble(
            "From before per-model rows",
            "The session row has counters, and there are no usage rows.",
            ("DELETE FROM session_model_usage WHERE session_id = :id",),
            unequal=True,
        ),
        "no_calls_counted": Trouble(
            "From before calls were counted",
            "No usage rows, and the session row says 0 calls beside its tokens.",
            (
                "DELETE FROM session_model_usage WHERE session_id = :id",
                "UPDATE sessions SET api_call_count = 0 WHERE id = :id",
            ),
            unequal=True,
        ),
        "partly_attributed": Trouble(
            "Resumed after an update",
            "The usage rows hold only a part of what the session row holds: a positive residual.",
            (
                "UPDATE session_model_usage SET api_call_count = max(1, api_call_count / 2),"
                " input_tokens = input_tokens / 2, output_tokens = output_tokens / 2,"
                " cache_read_tokens = cache_read_tokens / 2, cache_write_tokens = cache_write_tokens / 2,"
                f" estimated_cost_usd = estimated_cost_usd / 2 WHERE {_MAIN_ROWS}",
            ),
            unequal=True,
        ),
        "over_attributed": Trouble(
            "Counted by two programs",
            "The usage rows hold more than the session row: a negative residual.",
            (
                "UPDATE sessions SET input_tokens = input_tokens / 3, output_tokens = output_tokens / 3,"
                " cache_read_tokens = cache_read_tokens / 3, estimated_cost_usd = estimated_cost_usd / 3"
                " WHERE id = :id",
            ),
            unequal=True,
        ),
        "orphan_usage": Trouble(
            "Deleted by hand",
            "The session is gone and its usage rows are still there.",
            ("DELETE FROM messages WHERE session_id = :id", "DELETE FROM sessions WHERE id = :id"),
            unequal=True,
        ),
        "missing_parent": Trouble(
            "Goes on from a deleted session",
            "The parent it names is not in the store.",
            ("UPDATE sessions SET parent_session_id = '20250131_120000_0defec' WHERE id = :id",),
        ),
        "loop_first": Trouble(
            "Its own grandparent (one)",
            "Two sessions name each other as parent.",
            ("UPDATE sessions SET parent_session_id = :other, end_reason = 'compression' WHERE id = :id",),
            other="loop_second",
        ),
        "loop_second": Trouble(
            "Its own grandparent (two)",
            "Two sessions name each other as parent.",
            ("UPDATE sessions SET parent_session_id = :other, end_reason = 'compression' WHERE id = :id",),
            other="loop_first",
        ),
        "text_in_number": Trouble(
            "Written by a script: words for numbers",
            "A token counter holds text.",
            (f"UPDATE session_model_usage SET output_tokens = 'about two thousand' WHERE {_MAIN_ROWS}",),
            unequal=True,
        ),
        "negative_count": Trouble(
            "Written by a script: below zero",
            "A token counter is negative, in the usage row and in the session row.",
            (
                f"UPDATE session_model_usage SET input_tokens = -4096 WHERE {_MAIN_ROWS}",
                "UPDATE sessions SET input_tokens = -4096 WHERE id = :id",
            ),
        ),
        "implausible_cost": Trouble(
            "Written by a script: cents for dollars",
            "The cost is far above one dollar per 1,000 tokens.",
            (
                "UPDATE session_model_usage SET estimated_cost_usd = 2.5 * (input_tokens + output_tokens"
                f" + cache_read_tokens + cache_write_tokens) / 1000 WHERE {_MAIN_ROWS}",
                "UPDATE sessions SET estimated_cost_usd = (SELECT sum(estimated_cost_usd)"
                f" FROM session_model_usage WHERE {_MAIN_ROWS}) WHERE id = :id",
            ),
        ),
        "milliseconds": Trouble(
            "Imported with times in milliseconds",
            "Times are milliseconds where the store has seconds.",
            (
                "UPDATE sessions SET started_at = started_at * 1000, ended_at = ended_at * 1000"
                " WHERE id = :id",
                "UPDATE messages SET timestamp = timestamp * 1000 WHERE session_id = :id",
                "UPDATE session_model_usage SET first_seen = first_seen * 1000, last_seen = last_seen * 1000"
                " WHERE session_id = :id",
            ),
        ),
        "broken_model_config": Trouble(
            "Settings cut off in the middle",
            "`model_config` is not valid JSON.",
            ("""UPDATE sessions SET model_config = '{"temperature": 0.7, "_delegate_f' WHERE id = :id""",),
        ),
        "not_utf8": Trouble(
            "Output of an old terminal",
            "A message's content is not valid UTF-8.",
            (
                "UPDATE messages SET content = CAST(x'436166e920636c6f736564206f6e2053756e646179' AS TEXT)"
                " WHERE id = (SELECT min(id) FROM messages WHERE session_id = :id AND role = 'assistant')",
            ),
        ),
        "broken_tool_calls": Trouble(
            "A tool call cut off in the middle",
            "A message's `tool_calls` is not valid JSON.",
            (
                """UPDATE messages SET tool_calls = '[{"id": "call_0a1b", "function": {"name": "termi'"""
                " WHERE id = (SELECT max(id) FROM messages WHERE session_id = :id AND role = 'assistant')",
            ),
        ),
        "broken_content": Trouble(
            "A picture cut off in the middle",
            "Structured content that is not valid JSON.",
            (
                "UPDATE messages SET content = CAST(x'006a736f6e3a5b7b2274797065223a20227465' AS TEXT)"
                " WHERE id = (SELECT min(id) FROM messages WHERE session_id = :id AND role = 'user')",
            ),
        ),
        "zero_unknown": Trouble(
            "Priced at nothing for want of a price",
            "A cost of 0.0 whose status is unknown: not free, but not known.",
            (
                "UPDATE session_model_usage SET estimated_cost_usd = 0.0, cost_status = 'unknown',"
                f" cost_source = 'none' WHERE {_MAIN_ROWS}",
                "UPDATE sessions SET estimated_cost_usd = 0.0, cost_status = 'unknown', cost_source = 'none'"
                " WHERE id = :id",
            ),
        ),
        "partly_priced": Trouble(
            "The price went missing on the way",
            "An amount that is not 0, with status unknown: partial.",
            (
                "UPDATE session_model_usage SET estimated_cost_usd = estimated_cost_usd * 0.6,"
                f" cost_status = 'unknown', cost_source = 'none' WHERE {_MAIN_ROWS}",
                "UPDATE sessions SET estimated_cost_usd = estimated_cost_usd * 0.6, cost_status = 'unknown',"
                " cost_source = 'none' WHERE id = :id",
            ),
        ),
        "never_priced": Trouble(
            "A model that no list knows",
            "All its usage is of a model without any price.",
            (
                "UPDATE session_model_usage SET model = 'house/mystery-7b', billing_provider = 'custom',"
                " billing_base_url = 'http://localhost:8080/v1', estimated_cost_usd = 0.0,"
                f" cost_status = 'unknown', cost_source = 'none' WHERE {_MAIN_ROWS}",
                "UPDATE sessions SET model = 'house/mystery-7b', billing_provider = 'custom',"
                " billing_base_url = 'http://localhost:8080/v1', estimated_cost_usd = 0.0,"
                " cost_status = 'unknown', cost_source = 'none' WHERE id = :id",
            ),
        ),
        "no_status": Trouble(
            "From a build that kept no cost status",
            "A cost whose status and source are NULL.",
            (
                f"UPDATE session_model_usage SET cost_status = NULL, cost_source = NULL WHERE {_MAIN_ROWS}",
                "UPDATE sessions SET cost_status = NULL, cost_source = NULL WHERE id = :id",
            ),
        ),
    }
)
"""Every trouble by name, in the order in which they happen."""


def spoil(connection: Connection, session_ids: dict[str, str]) -> None:
    """Does every trouble to the session that `session_ids` names for it.

    Expects foreign keys to be off, and no full-text trigger on `messages` yet.
    """
    for name, trouble in TROUBLES.items():
        values = {"id": session_ids[name]}
        if trouble.other:
            values["other"] = session_ids[trouble.other]
        for statement in trouble.statements:
            connection.execute(statement, values)
