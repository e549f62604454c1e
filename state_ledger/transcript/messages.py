"""Messages of a chain of sessions in order, from any place in either direction.

Order within a session is by id, as the store's own program reads it; times may repeat or go backwards.
A step reads the keys of a session from its index, and the content of the messages that are shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from state_ledger.sqlite import Connection
from state_ledger.transcript.rows import among, records

MOST_CHARACTERS = 20_000
"""Where a text of a message is cut when it is read; its length is kept."""

MOST_RESULTS = 50
"""How many results of tools are kept with their call beyond the size of a page."""

LAST_KEY = 2**63 - 1
"""Above the id of every message."""

Place = tuple[str, int]
"""A message by its session and its id."""

_CHUNK = 64

_KEYS = {
    1: "SELECT id FROM ledger_message_rows WHERE session_id = ? AND id > ? ORDER BY id LIMIT ?",
    -1: "SELECT id FROM ledger_message_rows WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
}

_ENDS = {
    1: "SELECT min(id) - 1 AS id FROM ledger_message_rows WHERE session_id = ?",
    -1: "SELECT max(id) + 1 AS id FROM ledger_message_rows WHERE session_id = ?",
}

# The plus sign keeps SQLite from the index, whose entries are in the order of time.
_NEAR = {
    1: "SELECT id FROM ledger_message_rows WHERE id > ? AND id <= ? AND +session_id = ? ORDER BY id LIMIT ?",
    -1: "SELECT id FROM ledger_message_rows WHERE id < ? AND id >= ? AND +session_id = ? ORDER BY id DESC LIMIT ?",
}

_REACH = 8
"""How many rows are looked at for each key that is wanted, before all keys of the session are."""

_COLUMNS = (
    "id, session_id, timestamp, role, tool_name, tool_call_id, tool_calls, finish_reason, reasoning, token_count,"
    " observed, display_kind, state, text, shown_parts, problem, sent_verbatim"
)

_ROWS = f"SELECT {_COLUMNS} FROM ledger_messages WHERE id {{among}}"


@dataclass(frozen=True, eq=False)
class Text:
    """A text as far as it is shown; `length`: characters of the whole."""

    shown: str
    length: int

    @property
    def cut(self) -> bool:
        """Whether there is more of it."""
        return self.length > len(self.shown)

    @classmethod
    def of(cls, whole: object, most: int = MOST_CHARACTERS) -> Text:
        """The beginning of a stored text; NULL is empty, a number is its digits."""
        text = "" if whole is None else whole if isinstance(whole, str) else str(whole)
        return cls(text[:most].replace("\x00", "\ufffd"), len(text))


@dataclass(frozen=True, eq=False)
class Message:
    """One logical message, decoded (accounting rules 15 to 18).

    timestamp: epoch seconds, None where it cannot be a time. state: live, compacted or taken back.
    parts: (type, text) of each part of structured content, None for plain text. bytes: length of the
    whole text in UTF-8. problem: what is wrong with what is stored, None where nothing is.
    """

    id: int
    session_id: str
    timestamp: float | None
    role: str
    text: Text
    parts: Sequence[tuple[str, Text]] | None
    tool_name: str | None
    tool_call_id: str | None
    tool_calls: Text | None
    reasoning: Text | None
    finish_reason: str | None
    token_count: int | None
    bytes: int
    observed: bool
    display_kind: str | None
    state: str
    problem: str | None
    sent_verbatim: bool


@dataclass(frozen=True, eq=False)
class Stretch:
    """Messages that follow each other in a chain, with the ones right before and right after them.

    before, after: session and id, None where the chain begins or ends.
    """

    messages: Sequence[Message]
    before: Place | None
    after: Place | None


def first_page(connection: Connection, chain: Sequence[str], size: int, *, taken_back: bool = False) -> Stretch:
    """The first messages of a chain of sessions."""
    found, after = _take(walk(connection, chain, 0, 0, 1, size + 1, taken_back), size)
    return Stretch(found, None, after)


def last_page(connection: Connection, chain: Sequence[str], size: int, *, taken_back: bool = False) -> Stretch:
    """The last messages of a chain of sessions."""
    walked = walk(connection, chain, len(chain) - 1, LAST_KEY, -1, size + 1, taken_back)
    found, before = _take_back(walked, size)
    return Stretch(found, before, None)


def page_after(
    connection: Connection, chain: Sequence[str], message: Place, size: int, *, taken_back: bool = False
) -> Stretch:
    """The messages that follow one."""
    at = chain.index(message[0])
    found, after = _take(walk(connection, chain, at, message[1], 1, size + 1, taken_back), size)
    return Stretch(found, message, after)


def page_before(
    connection: Connection, chain: Sequence[str], message: Place, size: int, *, taken_back: bool = False
) -> Stretch:
    """The messages that come before one."""
    at = chain.index(message[0])
    found, before = _take_back(walk(connection, chain, at, message[1], -1, size + 1, taken_back), size)
    return Stretch(found, before, message)


def page_around(
    connection: Connection, chain: Sequence[str], message: Place, size: int, *, taken_back: bool = False
) -> Stretch:
    """A message with a fifth of the page before it and the rest after it."""
    session_id, key = message
    at, lead = chain.index(session_id), min(max(size // 5, 1), size - 1)
    # Two more: the message itself is the first of them, and one tells whether there are older ones.
    earlier, before = _take_back(walk(connection, chain, at, key + 1, -1, lead + 2, taken_back), lead + 1)
    later, after = _take(walk(connection, chain, at, key, 1, size, taken_back), max(size - len(earlier), 1))
    return Stretch([*earlier, *later], before, after)


def locate(connection: Connection, message_id: int) -> Place | None:
    """The session of a stored message and the id under which it is shown; None if there is no such row."""
    found = records(connection, "SELECT session_id, first_id FROM ledger_message_rows WHERE id = ?", [message_id])
    return next(((row["session_id"], row["first_id"] or message_id) for row in found), None)


def state_of(connection: Connection, message_id: int) -> str | None:
    """The state of a logical message, None if there is none of that id."""
    found = records(connection, "SELECT state FROM ledger_messages WHERE id = ?", [message_id])
    return next((row["state"] for row in found), None)


def walk(
    connection: Connection, chain: Sequence[str], at: int, key: int, step: int, expected: int, taken_back: bool
) -> Iterator[Message]:
    """Messages one by one from a place in a chain: `step` 1 goes to newer ones, -1 to older ones.

    expected: about how many will be asked for, so that no more are read.
    """
    size = max(expected, 1)
    while 0 <= at < len(chain):
        keys = _keys(connection, chain[at], key, step, size)
        for start in range(0, len(keys), _CHUNK):
            rows = {row["id"]: row for row in among(connection, _ROWS, keys[start : start + _CHUNK])}
            for each in keys[start : start + _CHUNK]:
                # A row that is missing is a second copy of a message, shown under its first id.
                if each in rows and (taken_back or rows[each]["state"] != "taken back"):
                    yield _message(rows[each])
        if len(keys) == size:
            key = keys[-1]
            size = min(size * 2, 1024) if size >= _CHUNK else _CHUNK
        else:
            at += step
            key = 0 if step > 0 else LAST_KEY


def _keys(connection: Connection, session_id: str, key: int, step: int, size: int) -> list[int]:
    """The ids of a session next to a key, nearest first, `size` of them or all there are.

    Messages of one session mostly stand close to each other in the table; where they do not, the keys of
    the whole session are sorted, without looking at the messages.
    """
    if key in (0, LAST_KEY):
        end = next(records(connection, _ENDS[step], [session_id]))["id"]
        if end is None:
            return []
        key = end
    reach = min(max(key + step * _REACH * size, -LAST_KEY), LAST_KEY)
    near = [key, reach, session_id, size]
    keys = [row["id"] for row in records(connection, _NEAR[step], near)]
    if len(keys) < size:
        keys = [row["id"] for row in records(connection, _KEYS[step], [session_id, key, size])]
    return keys


def _take(walked: Iterator[Message], size: int) -> tuple[list[Message], Place | None]:
    """As many as a page holds with the results of its last call, and what comes next."""
    found = list(islice(walked, size))
    for message in walked:
        if not _goes_with(message, found[-1] if found else None) or len(found) >= size + MOST_RESULTS:
            return found, (message.session_id, message.id)
        found.append(message)
    return found, None


def _take_back(walked: Iterator[Message], size: int) -> tuple[list[Message], Place | None]:
    """The same from the end: a page does not begin with results whose call is just before it."""
    found: list[Message] = []
    for message in walked:
        if len(found) >= size:
            full = len(found) >= size + MOST_RESULTS
            if full or not found or not _goes_with(found[-1], message):
                return found[::-1], (message.session_id, message.id)
        found.append(message)
    return found[::-1], None


def _goes_with(message: Message, previous: Message | None) -> bool:
    return (
        message.role == "tool"
        and previous is not None
        and previous.session_id == message.session_id
        and (previous.role == "tool" or previous.tool_calls is not None)
    )


def _message(row: dict[str, Any]) -> Message:
    text = row["text"] or ""
    parts = None
    if row["shown_parts"] is not None:
        parts = [(str(kind), Text.of(shown)) for kind, shown in json.loads(row["shown_parts"])]
    optional = {name: row[name] if isinstance(row[name], str) and row[name] else None
                for name in ("tool_name", "tool_call_id", "finish_reason", "display_kind")}  # fmt: skip
    return Message(
        id=row["id"],
        session_id=row["session_id"],
        timestamp=row["timestamp"],
        role=str(row["role"]),
        text=Text.of(text),
        parts=parts,
        tool_calls=_text(row["tool_calls"]),
        reasoning=_text(row["reasoning"]),
        token_count=row["token_count"] if isinstance(row["token_count"], int) else None,
        bytes=len(text) if text.isascii() else len(text.encode("utf-8", "replace")),
        observed=bool(row["observed"]),
        state=row["state"],
        problem=row["problem"],
        sent_verbatim=row["sent_verbatim"] != 0,
        **optional,
    )


def _text(value: Any) -> Text | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    # Cut later: half of a JSON text cannot be laid out.
    return Text.of(value, most=50 * MOST_CHARACTERS) if value not in (None, "", "[]", "null") else None
