"""Tool calls and their results: what was called, with which arguments, and what came back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

from state_ledger.content import from_json
from state_ledger.pages import figures
from state_ledger.transcript import Message

MOST = 20_000
"""Where laid out JSON is cut, in characters."""

SHORT = 240
"""A result of one line up to so many characters is shown without being folded."""

_GLIMPSE = 100


@dataclass(frozen=True)
class Call:
    """One call that an assistant message makes; what it does not say is empty. arguments: as stored."""

    id: str
    name: str
    arguments: str


def calls_of(message: Message) -> Sequence[Call]:
    """The calls of a message; none where what is stored is not a JSON list of objects."""
    return _calls(message.tool_calls.shown) if message.tool_calls is not None else ()


@lru_cache(maxsize=64)
def _calls(stored: str) -> tuple[Call, ...]:
    try:
        listed = from_json(stored)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        return ()
    return tuple(map(_call, listed))


def _call(given: dict[str, Any]) -> Call:
    function = given.get("function")
    inner = function if isinstance(function, dict) else given
    arguments = inner.get("arguments", inner.get("input", ""))
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return Call(str(given.get("id") or given.get("call_id") or ""), str(inner.get("name") or "unnamed"), written)


def call_html(call: Call) -> str:
    """A call: its name and a glimpse of its arguments, which unfold as indented JSON."""
    name = f'<span class="kind">Call</span> <code class="tool">{escape(figures.cut(call.name))}</code>'
    if call.arguments.strip() in ("", "{}"):
        return f'<p class="call">{name} <span class="glimpse">without arguments</span></p>'
    return (
        f'<details class="call"><summary>{name} <span class="glimpse">{escape(glimpse(call.arguments))}</span>'
        f"</summary>{laid_out(call.arguments)}</details>"
    )


def result_html(message: Message, *, opened: bool) -> str:
    """What a tool gave back; folded unless it is short."""
    text = message.text.shown
    if not text:
        return '<p class="output"><span class="kind">Result</span> <span class="glimpse">empty</span></p>'
    if len(text) <= SHORT and "\n" not in text.strip():
        return f'<p class="output"><span class="kind">Result</span> <code>{escape(text.strip())}</code></p>'
    return (
        f'<details class="output"{" open" if opened else ""}><summary><span class="kind">Result</span>'
        f' <span class="glimpse">{escape(glimpse(text))}</span>'
        f' <span class="sub">{message.text.length:,} characters</span></summary>{laid_out(text)}</details>'
    )


def laid_out(text: str) -> str:
    """JSON indented, other text as it is; cut where it is very long."""
    written, kind = text, "ledger-plain"
    if text.lstrip()[:1] in ("{", "["):
        try:
            written, kind = json.dumps(json.loads(text), indent=2, ensure_ascii=False), "json"
        except (ValueError, RecursionError):
            written = text
    # A lone surrogate cannot be sent as UTF-8; a NUL would end the text in some browsers.
    written = written.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
    note = ""
    if len(written) > MOST:
        note = f'<p class="ledger-note">… Cut at {MOST:,} of {len(written):,} characters.</p>'
    return f'<pre class="{kind}">{escape(written[:MOST])}</pre>{note}'


def glimpse(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: 4 * _GLIMPSE].split())
    return line if len(line) <= _GLIMPSE and len(text) <= 4 * _GLIMPSE else f"{line[:_GLIMPSE]}…"
