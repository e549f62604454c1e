"""Rows of `messages`: what is stored for a message, and what is read back of a row.

Source: session-db, section 4; store-format, section 5.3.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from state_ledger import content as contents
from state_ledger.content import json_text
from state_ledger.schema import declared_columns
from state_ledger.sqlite import Connection, Row
from state_ledger.surrogates import scrub

COLUMNS = declared_columns("messages")
"""The columns of a message, as dicts have them, in the order of a fresh file."""

WRITTEN = (
    "role", "content", "tool_call_id", "tool_calls", "tool_name", "effect_disposition", "timestamp",
    "token_count", "finish_reason", "reasoning", "reasoning_content", "reasoning_details",
    "codex_reasoning_items", "codex_message_items", "platform_message_id", "observed", "api_content",
    "display_kind", "display_metadata",
)  # fmt: skip
"""The columns whose value the writer of a message chooses."""

OF_ASSISTANT = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items", "codex_message_items")
"""What only a message of the assistant has."""

LIVE = "active IS NOT 0"
"""Rows that are part of the conversation; NULL, from files where the column came late, counts as live."""

_log = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A message that is ready to be stored: the values of WRITTEN, and how many tools it calls."""

    values: tuple[Any, ...]
    calls: int

    def with_stored(self, stored: Mapping[str, str]) -> Entry:
        """The same with the texts that a row had in another file."""
        values = list(self.values)
        for name, text in stored.items():
            values[WRITTEN.index(name)] = scrub(text)
        return Entry(tuple(values), self.calls)


def entry(
    role: object,
    content: Any = None,
    tool_name: Any = None,
    tool_calls: Any = None,
    tool_call_id: Any = None,
    token_count: Any = None,
    finish_reason: Any = None,
    reasoning: Any = None,
    reasoning_content: Any = None,
    reasoning_details: Any = None,
    codex_reasoning_items: Any = None,
    codex_message_items: Any = None,
    platform_message_id: Any = None,
    observed: object = False,
    effect_disposition: Any = None,
    timestamp: Any = None,
    api_content: Any = None,
    display_kind: Any = None,
    display_metadata: Any = None,
) -> Entry:
    """Makes a message ready. The arguments are those of `messages.append_message`.

    Raises TypeError if a text field is given something that is no text.
    """
    calls, count = _tool_calls(tool_calls) if tool_calls else (None, 0)
    at = moment(timestamp)
    return Entry(
        (
            _text("role", role),
            contents.encode(content),
            _text("tool_call_id", tool_call_id),
            calls,
            _text("tool_name", tool_name),
            _text("effect_disposition", effect_disposition),
            time.time() if at is None else at,
            token_count,
            _text("finish_reason", finish_reason),
            _text("reasoning", reasoning),
            _text("reasoning_content", reasoning_content),
            _json(reasoning_details),
            _json(codex_reasoning_items),
            _json(codex_message_items),
            _text("platform_message_id", platform_message_id),
            1 if observed else 0,
            # Only text is sent as text; structured content goes out as it is stored.
            scrub(api_content) if isinstance(api_content, str) else None,
            _text("display_kind", display_kind),
            None if display_metadata is None else _metadata(display_metadata),
        ),
        count,
    )


def entries(
    messages: Iterable[object], *, strict: bool = False, keep_of_assistant: bool = False
) -> Iterator[Entry]:
    """Makes the messages of a turn or of a whole session ready; those without a time get rising ones.

    A message is a mapping with the names of `append_message`, or a row as `get_messages` gives it
    (whose ids, session and flags do not matter: it is stored as a new, live row). `message_id` stands
    for `platform_message_id`; a role that is not given is `unknown`. Fields of the assistant are
    kept for the assistant only, unless `keep_of_assistant`.
    strict: whether a name that is not known, or a missing role, is an error instead of being left out.
    Raises TypeError for a message that is no mapping, or that strictness refuses.
    """
    start = time.time()
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise TypeError(f"Message {place} must be a mapping of names to values, not {type(message).__name__}.")
        if strict:
            _check_names(place, message)
        fields = {name: message[name] for name in WRITTEN if name in message}
        if fields.get("role") is None:
            fields["role"] = "unknown"
        if fields.get("platform_message_id") is None:
            fields["platform_message_id"] = message.get("message_id")
        if not strict and not keep_of_assistant and fields["role"] != "assistant":
            for name in OF_ASSISTANT:
                fields.pop(name, None)
        if moment(fields.get("timestamp")) is None:
            fields["timestamp"] = start + place / 1_000_000
        yield entry(**fields)


def insert(connection: Connection, session_id: str, entries: Iterable[Entry]) -> tuple[list[int], int]:
    """Stores messages inside the caller's transaction; returns their row ids and the number of tool calls.

    Raises sqlite3.IntegrityError if the session does not exist.
    """
    ids: list[int] = []
    calls = 0
    for values, count in entries:
        ids.append(insert_one(connection, session_id, values))
        calls += count
    return ids, calls


def insert_one(connection: Connection, session_id: str, values: tuple[Any, ...]) -> int:
    """Stores one message inside the caller's transaction; returns its row id."""
    # Python's sqlite3 looks for an adapter of every None it binds, 3 µs each; most fields are None.
    given = [value for value in values if value is not None]
    sql = _insert_sql(tuple([value is not None for value in values]))
    row_id = connection.execute(sql, (session_id, *given)).lastrowid
    assert row_id is not None
    return row_id


@lru_cache(maxsize=128)
def _insert_sql(given: tuple[bool, ...]) -> str:
    """INSERT of the columns of WRITTEN that are given; the others have no default but NULL."""
    names = [name for name, there in zip(WRITTEN, given, strict=True) if there]
    return (
        f"INSERT INTO messages (session_id, {', '.join(names)}, active) VALUES ({', '.join('?' * (len(names) + 1))}, 1)"
    )


@lru_cache(maxsize=8)
def select_list(live: tuple[str, ...]) -> str:
    """COLUMNS for a SELECT from a table with these columns: NULL for one that it does not have."""
    return ", ".join(name if name in live else f"NULL AS {name}" for name in COLUMNS)


def decoded(row: Row) -> dict[str, Any]:
    """A selected row with `content`, `tool_calls` and `display_metadata` as they were given."""
    message = dict(zip(COLUMNS, row, strict=True))
    content = message["content"]
    if content and content.__class__ is str and content[0] == "\x00":
        message["content"] = contents.restore(content)
    if message["tool_calls"] is not None:
        message["tool_calls"] = calls_of(message["tool_calls"])
    if message["display_metadata"] is not None:
        message["display_metadata"] = json_of(message["display_metadata"])
    return message


def calls_of(stored: object) -> Any:
    """Stored tool calls as a value; `[]` where they are not JSON."""
    return json_of(stored, []) if stored else stored


def json_of(stored: object, otherwise: Any = None) -> Any:
    """A stored JSON text as a value; `otherwise` where it is not JSON."""
    try:
        return contents.from_json(stored)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return otherwise


decoders = {"content": contents.restore, "tool_calls": calls_of, "display_metadata": json_of}
"""How the columns that `decoded` turns into values are read."""


def moment(value: Any) -> float | None:
    """A time in epoch seconds from a number, a text of one, or what has `.timestamp()`; None for no time."""
    if value is None:
        return None
    try:
        number = float(value.timestamp() if hasattr(value, "timestamp") else value)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return number if abs(number) < float("inf") else None


def _text(name: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, (int, float, bytes)):
        return value
    raise TypeError(f"{name} must be text, not {type(value).__name__}.")


def _json(value: Any) -> str | None:
    """JSON text of a value; a text that is a JSON object or list already stays as it is."""
    if not value:
        return None
    if isinstance(value, str) and isinstance(json_of(value), (dict, list)):
        return scrub(value)
    return json_text(value, default=str)


def _tool_calls(value: Any) -> tuple[str | None, int]:
    """Stored tool calls and their number: a text is read first, or it would be encoded twice."""
    if isinstance(value, str):
        value = json_of(value)
    if not value:
        return None, 0
    return json_text(value, default=str), len(value) if isinstance(value, list) else 1


def _metadata(value: Any) -> str | None:
    try:
        if isinstance(value, dict):
            return json_text(value)
        if isinstance(value, str) and isinstance(json.loads(value), dict):
            return scrub(value)
    except (TypeError, ValueError, RecursionError):
        pass
    _log.warning("display_metadata is left out: it is neither an object nor the JSON text of one.")
    return None


_ROW_ONLY = frozenset({"id", "session_id", "active", "compacted"})
_NAMES = frozenset(WRITTEN) | _ROW_ONLY | {"message_id"}


def _check_names(place: int, message: Mapping[Any, Any]) -> None:
    unknown = [str(name) for name in message if name not in _NAMES]
    if unknown:
        raise TypeError(f"Message {place} has fields that cannot be stored: {', '.join(sorted(unknown))}.")
    if message.get("role") is None:
        raise TypeError(f"Message {place} has no role.")
