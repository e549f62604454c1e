"""Sessions replayed as the conversation that a model is given.

Source: session-db, section 4, "Replay rules".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from state_ledger.messages.alternation import repair
from state_ledger.messages.rows import LIVE, decoded, json_of, select_list
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer

Message = dict[str, Any]

ANCESTORS = 100
"""How many sessions up the parent links are followed at most."""

_REVIEWS = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)
"""How the prompts begin that old builds put into real sessions for their own background reviews."""

_MEMORY_BLOCK = re.compile(r"<\s*memory-context\s*>.*?<\s*/\s*memory-context\s*>", re.IGNORECASE | re.DOTALL)
_MEMORY_TAG = re.compile(r"<\s*/?\s*memory-context\s*>", re.IGNORECASE)
_MEMORY_NOTE = re.compile(r"\[System note:[^\]]*recalled memory context[^\]]*\]\s*", re.IGNORECASE)


def get_messages_as_conversation(
    writer: Writer,
    session_id: str,
    include_ancestors: bool = False,
    include_inactive: bool = False,
    repair_alternation: bool = False,
) -> list[Message]:
    """The messages of a session as dicts with `role`, `content` and what else a model API knows.

    Text of the user and of the assistant comes without injected memory and without blanks around it.
    Keys that a message has no value for are left out; `message_id` is the chat system's own id.
    include_ancestors: begins with the messages of the sessions up the parent links; a message of the
        user that repeats an earlier one is left out as long as the assistant has not answered.
    include_inactive: also what was summarised away or taken back.
    repair_alternation: joins what must not follow one another (`alternation.repair`). The store is
        not changed.
    """
    chain = _with_ancestors(writer, session_id) if include_ancestors else [scrub(session_id)]
    rows = _rows(writer, chain, include_inactive)
    conversation = _conversation((row for link in chain for row in rows[link]), drop_repeats=include_ancestors)
    return repair(conversation) if repair_alternation else conversation


def get_resume_conversations(writer: Writer, session_id: str) -> tuple[list[Message], list[Message]]:
    """`(model_history, display_history)` of a session that is taken up again, from one reading.

    The first is the session's own conversation, repaired; the second has its ancestors before it.
    """
    chain = _with_ancestors(writer, session_id)
    rows = _rows(writer, chain, include_inactive=False)
    own = _conversation(rows[chain[-1]], drop_repeats=False)
    return repair(own), _conversation((row for link in chain for row in rows[link]), drop_repeats=True)


def get_ancestor_display_prefix(writer: Writer, session_id: str) -> list[Message]:
    """What `get_messages_as_conversation` with `include_ancestors` puts before the session's own messages."""
    chain = _with_ancestors(writer, session_id)[:-1]
    rows = _rows(writer, chain, include_inactive=False) if chain else {}
    return _conversation((row for link in chain for row in rows[link]), drop_repeats=True)


def sanitize_context(text: str) -> str:
    """Text without the memory that an agent injected into it: whole blocks, their notice, stray tags."""
    if "memory" not in text and "memory" not in text.lower():
        return text
    return _MEMORY_TAG.sub("", _MEMORY_NOTE.sub("", _MEMORY_BLOCK.sub("", text)))


def _with_ancestors(writer: Writer, session_id: str) -> list[str]:
    """The session and those above it, the topmost first; a loop of links ends where it closes."""
    session_id = scrub(session_id)
    chain: dict[str, None] = {session_id: None}
    with writer.lock:
        step: Any = session_id
        while len(chain) <= ANCESTORS:
            step = writer.value("SELECT parent_session_id FROM sessions WHERE id = ?", (step,))
            if step is None or step in chain:
                break
            chain[step] = None
    return list(reversed(chain))


def _rows(writer: Writer, chain: list[str], include_inactive: bool) -> dict[str, list[Message]]:
    """The decoded rows of each session, in the order they were stored, from one statement."""
    live = writer.shape.tables["messages"]
    condition = "" if include_inactive or "active" not in live else f" AND {LIVE}"
    places = ", ".join("?" * len(chain))
    found: dict[str, list[Message]] = {session_id: [] for session_id in chain}
    for row in writer.rows(
        f"SELECT {select_list(live)} FROM messages WHERE session_id IN ({places}){condition} ORDER BY id", chain
    ):
        found[row["session_id"]].append(decoded(row))
    return found


def _conversation(rows: Iterable[Message], *, drop_repeats: bool) -> list[Message]:
    conversation = []
    unanswered: set[str] = set()
    after_review = False
    for row in rows:
        message = _replayed(row)
        role, content = message["role"], message["content"]
        if role in ("user", "system") and isinstance(content, str) and content.lstrip().startswith(_REVIEWS):
            after_review = True
            continue
        dropped, after_review = after_review and role == "assistant", False
        if dropped:
            continue
        if drop_repeats and role == "user" and isinstance(content, str) and content:
            if content in unanswered:
                continue
            unanswered.add(content)
        elif role == "assistant" and (content or message.get("tool_calls")):
            unanswered.clear()
        conversation.append(message)
    return conversation


_OPTIONAL = (
    "api_content", "display_kind", "display_metadata", "timestamp", "tool_call_id", "tool_name", "effect_disposition",
)  # fmt: skip
_OF_ASSISTANT_AS_JSON = ("reasoning_details", "codex_reasoning_items", "codex_message_items")


def _replayed(row: Message) -> Message:
    """One row as a model API knows it."""
    role, content = row["role"], row["content"]
    if isinstance(content, str) and role in ("user", "assistant"):
        content = sanitize_context(content).strip()
    message = {"role": role, "content": content}
    for name in _OPTIONAL:
        if row[name]:
            message[name] = row[name]
    if row["tool_calls"] is not None:
        message["tool_calls"] = row["tool_calls"]
    if row["platform_message_id"]:
        message["message_id"] = row["platform_message_id"]
    if row["observed"]:
        message["observed"] = True
    if role == "assistant":
        for name in ("finish_reason", "reasoning"):
            if row[name]:
                message[name] = row[name]
        if row["reasoning_content"] is not None:
            message["reasoning_content"] = row["reasoning_content"]
        for name in _OF_ASSISTANT_AS_JSON:
            if row[name]:
                message[name] = json_of(row[name])
    return message
