"""Conversations in which the roles follow one another as model APIs demand.

Source: session-db, section 4: what may go wrong in a stored session (an answer that was never
written, a result without its call) must not make it impossible to go on with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]

_OPAQUE = ("codex_reasoning_items", "codex_message_items", "reasoning_details")
"""What a provider signed or numbered for one message: such messages cannot be joined with others."""


def repair(messages: Iterable[Message]) -> list[Message]:
    """The conversation with neighbours of one role joined and stray tool results left out.

    Messages of the user are joined by a blank line, those of the assistant by a line break with their
    tool calls in order; structured content is never joined, so nothing of it is lost. A tool result
    stays if it is the first for a call that the assistant's last message made. The joined message
    keeps the fields of its first part but for `api_content`, which says what was sent for that part
    alone. The messages given are not changed.
    """
    repaired: list[Message] = []
    open_calls: set[str] = set()
    for message in messages:
        role = message["role"]
        if role == "tool":
            call = message.get("tool_call_id")
            if call not in open_calls:
                continue
            open_calls.discard(call)
            repaired.append(message)
            continue
        if repaired and _joinable(repaired[-1], message):
            repaired[-1] = message = _joined(repaired[-1], message)
        else:
            repaired.append(message)
        if role == "assistant":
            open_calls = set(_call_ids(message))
        elif role == "user":
            open_calls = set()
    return repaired


def _joinable(first: Message, second: Message) -> bool:
    return (
        first["role"] == second["role"]
        and first["role"] in ("user", "assistant")
        and all(isinstance(message["content"], (str, type(None))) for message in (first, second))
        and not any(message.get(name) for message in (first, second) for name in _OPAQUE)
    )


def _joined(first: Message, second: Message) -> Message:
    between = "\n\n" if first["role"] == "user" else "\n"
    texts = [message["content"] for message in (first, second) if message["content"]]
    joined = {**first, "content": between.join(texts) if texts else first["content"]}
    joined.pop("api_content", None)
    calls = [call for message in (first, second) for call in message.get("tool_calls") or ()]
    if calls:
        joined["tool_calls"] = calls
    return joined


def _call_ids(message: Message) -> Iterable[str]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield from (call[name] for name in ("id", "call_id") if isinstance(call.get(name), str))
