"""What was sent to the model where it differed from what is shown (accounting rule 18).

A prompt cache holds the beginning of a conversation: from the first message on that is not sent as it
was before, nothing is read from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from state_ledger.sqlite import Connection
from state_ledger.transcript.messages import Text
from state_ledger.transcript.rows import among, records

_TOLD = (
    "SELECT session_id, count(*) AS messages, sum(sent_verbatim) AS verbatim,"
    " min(CASE WHEN sent_verbatim = 0 THEN id END) AS first FROM ledger_messages"
    " WHERE session_id {among} AND state <> 'taken back' GROUP BY session_id"
)


@dataclass(frozen=True)
class Sent:
    """How much of a chain of sessions was sent as it is shown.

    messages: logical messages, those taken back not counted. verbatim: None where the store does not record
    what was sent. first: session and id of the first message
    that was sent otherwise, None where none was.
    """

    messages: int
    verbatim: int | None
    first: tuple[str, int] | None

    @property
    def share(self) -> float | None:
        """Between 0 and 1; None without messages and where it was not recorded."""
        return self.verbatim / self.messages if self.messages and self.verbatim is not None else None


def read_sent(connection: Connection, chain: Sequence[str]) -> Sent:
    """Looks at every message of the chain, at its flags and not at its text."""
    rows = {row["session_id"]: row for row in among(connection, _TOLD, chain)}
    told = [rows[each] for each in chain if each in rows]
    first = next(((row["session_id"], row["first"]) for row in told if row["first"] is not None), None)
    recorded = all(row["verbatim"] is not None for row in told)
    verbatim = sum(row["verbatim"] for row in told) if recorded else None
    return Sent(sum(row["messages"] for row in told), verbatim, first)


def read_both(connection: Connection, message_id: int) -> tuple[Text, Text] | None:
    """The text of a message and what was sent in its place; None where it was sent as it is."""
    sql = "SELECT text, api_content FROM ledger_messages WHERE id = ? AND sent_verbatim = 0"
    row = next(records(connection, sql, [message_id]), None)
    return None if row is None else (Text.of(row["text"]), Text.of(row["api_content"]))
