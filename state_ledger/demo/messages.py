"""The messages of one demo session, one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from state_ledger.content import PREFIX
from state_ledger.demo.prose import Voice
from state_ledger.demo.session import Counts, Session
from state_ledger.demo.tools import Call, Toolbox
from state_ledger.demo.usage import Book

COLUMNS = (
    "session_id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "finish_reason",
    "reasoning",
    "reasoning_details",
    "codex_reasoning_items",
    "platform_message_id",
    "observed",
    "active",
    "compacted",
    "api_content",
    "display_kind",
    "display_metadata",
)
"""Columns of `messages` that a demo store fills, in the order of the rows made here (`id` apart)."""

Row = tuple[Any, ...]
Written = tuple[float, Row]
"""When a row is written, and the row; a copy keeps its first timestamp and is written later."""

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGNQuBSPFTEMLQkAzXpYAcXgvfYAAAAASUVORK5CYII="
_ROUNDS = (0, 1, 2, 3, 4, 6, 9), (24, 26, 20, 13, 9, 5, 3)
_OVERHEAD = 14_500
"""Tokens of system prompt and tool definitions, which are a part of every prompt."""
_KEPT = 4


class Transcript:
    """Writes a session's messages and books its calls.

    counts: what the session row says of its messages, complete once `rows` has ended.
    """

    def __init__(self, session: Session, voice: Voice, toolbox: Toolbox, rng: Random, book: Book) -> None:
        self.counts = Counts()
        self._session, self._voice, self._toolbox, self._rng, self._book = session, voice, toolbox, rng, book
        self._clock = session.started
        self._route = session.route
        self._switches = list(session.switches)
        self._written = 0
        self._context = _OVERHEAD + rng.randint(0, 2500)
        self._state = (1, 0)
        self._delegations = session.delegates
        self._kept: list[Row] = []
        self._compacts_at = round(session.size * 0.6) if "compacts_in_place" in session.features else 0
        self._takes_back_at = round(session.size * 0.4) if "taken_back" in session.features else 0

    def rows(self) -> Iterator[Written]:
        """Every row, in the order in which it is written."""
        session, first = self._session, True
        if session.kind == "continuation":
            yield self._row("user", self._summary(), display_kind="hidden")
        while self._written < session.size:
            # Rows of the past are written once and never touched again, so what will become of
            # them has to be known when they are written.
            self._state = (0, 1) if self._written < self._compacts_at else (1, 0)
            if self._takes_back_at and self._written >= self._takes_back_at:
                self._takes_back_at, self._state = 0, (0, 0)
                self.counts.rewinds += 1
            yield from self._turn(first)
            first = False
            if self._compacts_at and self._written >= self._compacts_at:
                yield from self._compact()
            if self._switches and self._written >= self._switches[0][0] * session.size:
                yield self._switch()
        if session.end_reason == "compression":
            self._book.helper("compression", self._clock, self._context, self._rng.randint(600, 1500))

    def _turn(self, first: bool) -> Iterator[Written]:
        session, rng = self._session, self._rng
        if session.peer and session.peer.chat_type == "group" and rng.random() < 0.3:
            self._wait(20.0)
            yield self._row("user", self._voice.question(rng), observed=1)
        self._wait(90.0, person=not first)
        yield self._user_message(first)
        if first:
            self._book.helper("title_generation", self._clock, rng.randint(250, 700), rng.randint(6, 16))
        if session.talks and rng.random() < 0.15:
            self._book.helper("memory_query_rewrite", self._clock, rng.randint(200, 500), rng.randint(10, 40))
        rounds = rng.choices(*_ROUNDS)[0]
        if self._delegations:
            rounds = max(rounds, 1)
        for _ in range(rounds):
            yield from self._tool_round()
        self._wait(9.0)
        text = self._voice.answer(rng, rng.choice((1, 2, 3, 4, 6, 9, 12)))
        yield self._assistant(text, None, "stop")

    def _user_message(self, first: bool) -> Written:
        rng, features = self._rng, self._session.features
        text = self._voice.question(rng)
        sent = None
        if "sent_differently" in features and rng.random() < 0.5:
            sent = f"<memory>{self._voice.thought(rng)}</memory>\n\n{text}"
        if "structured" in features and (first or rng.random() < 0.2):
            self._book.helper("vision", self._clock, rng.randint(900, 1600), rng.randint(80, 300))
            picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}}
            text = PREFIX + json.dumps([{"type": "text", "text": text}, picture])
            self._context += 1100
        number = str(rng.randrange(10_000, 9_999_999)) if self._session.talks else None
        return self._row("user", text, platform_message_id=number, api_content=sent)

    def _tool_round(self) -> Iterator[Written]:
        rng = self._rng
        calls = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if self._delegations:
                self._delegations -= 1
                calls.append(self._toolbox.named(rng, "delegate_task"))
            else:
                calls.append(self._toolbox.call(rng, self._session.topic.theme))
        ids = [f"call_{rng.getrandbits(48):012x}" for _ in calls]
        self._wait(6.0)
        said = self._voice.answer(rng, 1) if rng.random() < 0.25 else ""
        yield self._assistant(said, _tool_calls(ids, calls), "tool_calls")
        self.counts.tool_calls += len(calls)
        for identity, call in zip(ids, calls, strict=True):
            self._wait(2.5)
            if call.name == "web_extract":
                self._book.helper(
                    "web_extract", self._clock, 900 + len(call.output) // 4, rng.randint(150, 500)
                )
            yield self._row("tool", call.output, tool_call_id=identity, tool_name=call.name)

    def _assistant(self, text: str, tool_calls: str | None, finish: str) -> Written:
        rng, route = self._rng, self._route
        thought = self._voice.thought(rng) if route.reasons and rng.random() < 0.7 else None
        reasoning = _tokens(thought) * 3 if thought else 0
        output = _tokens(text) + _tokens(tool_calls) + reasoning + 12
        same = not ("breaks_cache" in self._session.features and rng.random() < 0.6)
        self._book.call(route, self._clock, self._context, output, reasoning=reasoning, same=same)
        details = items = None
        if thought and route.included:
            items = json.dumps(
                [{"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}]
            )
        elif thought:
            details = json.dumps([{"type": "reasoning.text", "text": thought}])
        return self._row(
            "assistant",
            text,
            tool_calls=tool_calls,
            finish_reason=finish,
            reasoning=thought,
            reasoning_details=details,
            codex_reasoning_items=items,
        )

    def _compact(self) -> Iterator[Written]:
        """Compaction in place: a summary, then the newest messages once more, now live."""
        self._compacts_at, self._state = 0, (1, 0)
        kept, self._kept = self._kept, []
        self._context = _OVERHEAD
        self._book.helper("compression", self._clock, self._context, self._rng.randint(600, 1500))
        self.counts.messages = 0
        yield self._row("user", self._summary())
        for row in kept:
            values = dict(zip(COLUMNS, row, strict=True)) | {"active": 1, "compacted": 0}
            self._count(values["content"], values["tool_calls"])
            yield self._clock, tuple(values.values())

    def _switch(self) -> Written:
        _, self._route = self._switches.pop(0)
        self._wait(15.0)
        return self._row(
            "user",
            f"[The model is now {self._route.model}.]",
            display_kind="model_switch",
            display_metadata=json.dumps({"model": self._route.model, "provider": self._route.provider}),
        )

    def _summary(self) -> str:
        sentences = "\n".join(f"- {self._voice.thought(self._rng)}" for _ in range(5))
        return f"{self._voice.summary}\n\n{sentences}"

    def _row(self, role: str, content: str, **others: Any) -> Written:
        active, compacted = self._state
        values = dict.fromkeys(COLUMNS)
        values.update(
            session_id=self._session.id, role=role, content=content, timestamp=round(self._clock, 6)
        )
        values.update(observed=0, active=active, compacted=compacted)
        values.update(others)
        row = tuple(values.values())
        if self._compacts_at:
            self._kept = [*self._kept[-(_KEPT - 1) :], row]
        self._count(content, values["tool_calls"])
        return self._clock, row

    def _count(self, content: str, tool_calls: str | None) -> None:
        self._written += 1
        self.counts.messages += 1
        if self._state != (0, 0):
            self._context += (0 if content.startswith(PREFIX) else _tokens(content)) + _tokens(tool_calls) + 6

    def _wait(self, typical: float, *, person: bool = False) -> None:
        """Lets time pass: seconds as usual, or hours where the session has time to catch up.

        Never beyond the session's end, however many messages are still to come.
        """
        session, rng = self._session, self._rng
        left = max(1, session.size - self._written)
        step = min(typical * rng.expovariate(1.0), (session.until - self._clock) / left)
        due = session.started + (session.until - session.started) * self._written / session.size
        if person and self._clock < due:
            step = max(step, (due - self._clock) * rng.random())
        self._clock += step


def _tool_calls(ids: list[str], calls: list[Call]) -> str:
    return json.dumps(
        [
            {"id": identity, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for identity, call in zip(ids, calls, strict=True)
        ]
    )


def _tokens(text: str | None) -> int:
    """About as many tokens as a model sees: four letters each, fewer of other scripts."""
    if not text:
        return 0
    return len(text) // 4 if text.isascii() else len(text.encode()) // 4
