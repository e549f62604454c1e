"""What stands at the head of an export that people read: sessions and their facts in words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

from state_ledger.content import from_json
from state_ledger.portability.export import Export
from state_ledger.portability.plan import COMPACTED, TAKEN_BACK, Part
from state_ledger.portability.records import Record, Row

SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}

_LATEST = 4_102_444_800  # the year 2100 in seconds: what is later was written in milliseconds


@dataclass(frozen=True)
class Saying:
    """One message in words. number: its id. reasoning, calls, api: '' or () where there is none.
    note: what is special about it, as a sentence."""

    number: int
    role: str
    who: str
    when: str
    text: str
    reasoning: str
    calls: tuple[tuple[str, str], ...]
    note: str
    state: str


def heading(export: Export) -> str:
    """The title of the document."""
    scope = export.scope
    if scope.kind == "all":
        return f"All sessions of {export.store or 'a store'}"
    return f"{scope.kind.capitalize()} {scope.value}"


def title_of(session: Record) -> str:
    """What a session is called."""
    return str(session.get("title") or session["id"])


def facts(session: Record, usage: Iterable[Record], zone: str, messages: int) -> list[tuple[str, str]]:
    """Label and text of what is known about a session; what is not known is left out."""
    calls = list(usage)
    tokens = {
        name: sum(_number(row.get(name)) for row in (calls or [session]))
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    }
    models = dict.fromkeys(str(row["model"]) for row in calls if row.get("model"))
    given = [
        ("Session", session["id"]),
        ("Source", session.get("source")),
        ("Model", ", ".join(models) or session.get("model")),
        ("Started", moment(session.get("started_at"), zone)),
        ("Ended", moment(session.get("ended_at"), zone)),
        ("End reason", session.get("end_reason")),
        ("Continues or belongs to", session.get("parent_session_id")),
        ("Messages", f"{messages:,}"),
        *((_TOKENS[name], f"{number:,.0f}" if number else None) for name, number in tokens.items()),
        ("Working folder", session.get("cwd")),
        ("Note", session.get("problem")),
    ]
    return [(label, str(value)) for label, value in given if value not in (None, "")]


SHOWN = frozenset(
    {"id", "source", "model", "title", "started_at", "ended_at", "end_reason", "parent_session_id", "cwd",
     "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}
)  # fmt: skip
"""The columns of a session that are shown."""

_TOKENS = {
    "input_tokens": "Input tokens, uncached",
    "output_tokens": "Output tokens",
    "cache_read_tokens": "Cache-read tokens",
    "cache_write_tokens": "Cache-write tokens",
}


def saying(export: Export, part: Part, row: Row) -> Saying:
    """A message as a person reads it."""
    messages = export.messages
    role = str(messages.value(row, "role"))
    tool = messages.text(row, "tool_name")
    who = SPEAKERS.get(role, role)
    state = messages.state(row, part.states)
    return Saying(
        number=row[0],
        role=role,
        who=f"{who} · {tool}" if role == "tool" and tool else who,
        when=moment(messages.value(row, "timestamp"), export.options.zone),
        text=messages.text(row, "content"),
        reasoning=messages.text(row, "reasoning_content") or messages.text(row, "reasoning"),
        calls=_calls(messages.calls(row)) if messages.value(row, "tool_calls") else (),
        note=_NOTES.get(state, ""),
        state=state,
    )


_NOTES = {
    COMPACTED: "Summarised away later; still part of the record.",
    TAKEN_BACK: "Taken back by the user.",
}


def moment(value: Any, zone: str) -> str:
    """Epoch seconds as local time with its offset; '' for what is no moment."""
    if not isinstance(value, (int, float)):
        return ""
    seconds = value / 1000 if value > _LATEST else value
    try:
        local = datetime.fromtimestamp(seconds, tz=timezone.utc).astimezone(ZoneInfo(zone))
    except (ValueError, OverflowError, OSError):
        return ""
    offset = f"{local:%z}"
    return f"{local:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]}"


def left_out(export: Export) -> list[str]:
    """Sentences on what the document does not hold."""
    found = []
    plan = export.plan
    if plan.taken_back:
        found.append(f"{plan.taken_back:,} messages that were taken back are left out.")
    if export.redactor is not None:
        found.append("Secrets are replaced by what they were, for instance [redacted: password].")
    return found


def ending(export: Export) -> str:
    """The last sentence: how much there was, and whether it is all."""
    given = f"{export.given_messages:,} messages of {export.given_sessions:,} sessions"
    if not export.whole:
        return f"INCOMPLETE: {given}; {export.plan.messages:,} messages were there when the export began."
    replaced = f" Replaced: {export.report}." if export.redactor is not None else ""
    return f"Complete: {given}.{replaced}"


def _calls(calls: Any) -> tuple[tuple[str, str], ...]:
    """Name and arguments of tool calls, as far as they can be told."""
    if not calls:
        return ()
    found = []
    for call in calls if isinstance(calls, list) else [calls]:
        inner = call.get("function") if isinstance(call, dict) else None
        named = inner if isinstance(inner, dict) else call
        if not isinstance(named, dict):
            found.append(("", json.dumps(named, ensure_ascii=False, indent=2)))
            continue
        arguments = named.get("arguments", named.get("input", {}))
        if isinstance(arguments, str):
            try:
                arguments = from_json(arguments)
            except (ValueError, RecursionError):
                found.append((str(named.get("name", "")), str(arguments)))
                continue
        found.append((str(named.get("name", "")), json.dumps(arguments, ensure_ascii=False, indent=2)))
    return tuple(found)


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
