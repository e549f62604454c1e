"""Reading conversations: which messages a session, a conversation or a piece of work has, in which order.

Everything is read from the views of the semantic layer, page by page: nothing here walks through a
whole session to show a part of it.
"""

from state_ledger.transcript.family import Family, Node, read_family
from state_ledger.transcript.messages import Message
from state_ledger.transcript.scope import KINDS, Scope, UnknownSession, read_scope

__all__ = ["KINDS", "Family", "Message", "Node", "Scope", "UnknownSession", "read_family", "read_scope"]
