"""What is being read: one session, a conversation, or a piece of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from state_ledger.errors import StateLedgerError
from state_ledger.sqlite import Connection
from state_ledger.transcript.family import Family, Node, read_family

KINDS = ("session", "conversation", "work")
"""What can be read, from the smallest."""


class UnknownSession(StateLedgerError, LookupError):
    """The store has no session of this id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"This store has no session named {session_id!r}.")
        self.session_id = session_id


@dataclass(frozen=True, eq=False)
class Scope:
    """What is being read.

    id: the session, or the first session of the conversation or of the work. chain: the sessions whose
    messages follow each other, in order; delegates are not among them. members: every session whose
    figures count, delegates of a work included.
    """

    kind: str
    id: str
    family: Family
    chain: Sequence[Node]
    members: Sequence[Node]

    @property
    def chain_ids(self) -> list[str]:
        """The ids of the chain."""
        return [node.session_id for node in self.chain]

    @property
    def tip(self) -> Node:
        """The last session of the chain."""
        return self.chain[-1]

    @property
    def title(self) -> str:
        """The last title that the chain was given, else the id of its first session."""
        return next((node.title for node in reversed(self.chain) if node.facts["title"]), self.chain[0].title)


def read_scope(connection: Connection, kind: str, session_id: str) -> Scope:
    """The session, or the conversation or work that it belongs to. Raises UnknownSession."""
    family = read_family(connection, session_id)
    if family is None:
        raise UnknownSession(session_id)
    own = family.own
    if kind == "session":
        return Scope(kind, session_id, family, [own], [own])
    if kind == "conversation":
        chain = family.segments(own.conversation)
        return Scope(kind, own.conversation, family, chain, chain)
    chain = family.segments(own.work)
    return Scope(kind, own.work, family, chain, family.work)
