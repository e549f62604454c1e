"""Rows of a store as the records of an export: decoded, flagged, redacted where that is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from state_ledger import content as contents
from state_ledger.content import PREFIX, json_text
from state_ledger.portability.plan import COMPACTED, LIVE, TAKEN_BACK
from state_ledger.redact import Redactor

Record = dict[str, Any]
Row = tuple[Any, ...]

KEPT = frozenset(
    {"id", "session_id", "role", "tool_call_id", "platform_message_id", "finish_reason", "display_kind",
     "parent_session_id", "session_key", "source", "end_reason", "model", "task", "state"}
)  # fmt: skip
"""Columns that are never redacted: names and ids, without which an export could not be read back."""

FLAGS = {LIVE: (1, 0), COMPACTED: (0, 1), TAKEN_BACK: (0, 0)}
"""`active` and `compacted` of a state (accounting rule 15)."""

_DECODED: dict[str, Any] = {"tool_calls": [], "display_metadata": None}
"""JSON columns that records give as values, with what stands for text that is no JSON."""


class Messages:
    """Makes records of rows of `messages` with these columns."""

    def __init__(self, columns: Sequence[str], redactor: Redactor | None = None) -> None:
        self.columns = tuple(columns)
        self._redactor = redactor
        self._at = {name: place for place, name in enumerate(self.columns)}
        self._content = self._at["content"]
        self._redacted = [place for place, name in enumerate(self.columns) if name not in KEPT]
        self._json = [(name, self._at[name], empty) for name, empty in _DECODED.items() if name in self._at]
        self._time = self._at["timestamp"]
        self._active, self._compacted = self._at["active"], self._at["compacted"]

    def record(self, row: Row, states: Mapping[int, str], begin: Mapping[str, Any] = MappingProxyType({})) -> Record:
        """One message with all columns after `begin`, content as text or parts, and its `state`.

        `stored` holds the texts of columns whose value would be written in other bytes than it is stored
        in, by column; `problem` says what is wrong with the content, where something is.
        """
        record = dict(begin)
        record.update(zip(self.columns, row))  # noqa: B905 (half the time)
        stored: dict[str, str] = {}
        content = row[self._content]
        if content.__class__ is str:
            if content[:1] == "\x00":
                self._structured(record, content, stored)
        elif content is not None:
            record["content"] = _as_text(content)
        for name, place, empty in self._json:
            if row[place] is not None:
                record[name] = _value(name, row[place], empty, stored)
        at = row[self._time]
        if at.__class__ is float and not math.isfinite(at):
            record["timestamp"] = None
            record["problem"] = f"timestamp is {at}, which is no moment."
        record["state"] = state = self.state(row, states)
        if states and row[0] in states:  # what its copies say holds for the message
            record["active"], record["compacted"] = FLAGS[state]
        if self._redactor is not None:
            return self._clean(record)
        if stored:
            record["stored"] = stored
        return record

    def flat(self, row: Row, states: Mapping[int, str]) -> Row:
        """One message as a row of cells: content as a person reads it, no NUL anywhere, its state at the end."""
        cells = list(row)
        state = self.state(row, states)
        if states and row[0] in states:
            cells[self._active], cells[self._compacted] = FLAGS[state]
        if cells[self._content] is not None:
            cells[self._content] = contents.decode(cells[self._content]).text
        if self._redactor is not None:
            for place in self._redacted:
                if cells[place].__class__ is str:
                    cells[place] = self._redactor.text(cells[place])
        return (*(_cell(value) for value in cells), state)

    def state(self, row: Row, states: Mapping[int, str]) -> str:
        """`live`, `compacted` or `taken back` (accounting rule 15)."""
        if states and row[0] in states:
            return states[row[0]]
        if row[self._active] != 0:  # NULL, from files where the column came late, counts as live
            return LIVE
        return COMPACTED if row[self._compacted] else TAKEN_BACK

    def value(self, row: Row, name: str) -> Any:
        """The stored value of a column, None for one that is not there."""
        return row[self._at[name]] if name in self._at else None

    def text(self, row: Row, name: str) -> str:
        """A column as text to be shown, redacted; '' for NULL."""
        value = self.value(row, name)
        if value is None or value == "":
            return ""
        text = contents.decode(value).text if name == "content" else _as_text(value)
        return text if self._redactor is None or name in KEPT else self._redactor.text(text)

    def calls(self, row: Row) -> Any:
        """The tool calls of a message as a JSON value, redacted; None where there are none or they are no JSON."""
        try:
            value = contents.from_json(self.value(row, "tool_calls") or "null", strict=True)
        except (TypeError, ValueError, RecursionError):
            return None
        return value if self._redactor is None else self._redactor.value(value)

    def _structured(self, record: Record, content: str, stored: dict[str, str]) -> None:
        value = contents.restore(content, strict=True)
        record["content"] = value
        if contents.encode(value) != content:
            stored["content"] = content
        if content.startswith(PREFIX) and value is content:
            record["problem"] = contents.decode(content).problem

    def _clean(self, record: Record) -> Record:
        redactor = self._redactor
        assert redactor is not None
        return {
            name: value if name in KEPT or value is None else redactor.value(value) for name, value in record.items()
        }


def other(
    columns: Sequence[str], redactor: Redactor | None, only: Collection[str] | None = None
) -> Callable[[Row], Record]:
    """Makes records of rows of sessions or of calls; only: of these columns."""

    def record(row: Row) -> Record:
        made = {
            name: _json_cell(value)
            for name, value in zip(columns, row, strict=True)
            if only is None or name in only
        }  # fmt: skip
        if redactor is None:
            return made
        return {
            name: redactor.text(value) if isinstance(value, str) and name not in KEPT else value
            for name, value in made.items()
        }

    return record


def _value(name: str, stored_text: Any, empty: Any, stored: dict[str, str]) -> Any:
    if not isinstance(stored_text, str):
        return _as_text(stored_text)
    try:
        value = contents.from_json(stored_text, strict=True)
        # What these columns are not meant to hold would be read once more, or not be written.
        meant = isinstance(value, dict if name == "display_metadata" else (dict, list))
        same = meant and bool(value) and json_text(value) == stored_text
    except (ValueError, RecursionError):
        value, same = empty, False
    if not same:
        stored[name] = stored_text
    return value


def _as_text(value: object) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, memoryview)) else str(value)


def _json_cell(value: Any) -> Any:
    """A value that JSON can say."""
    if isinstance(value, bytes):
        return _as_text(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> Any:
    if value.__class__ is str:
        return value.replace("\x00", "�") if "\x00" in value else value
    return _as_text(value).replace("\x00", "�") if isinstance(value, bytes) else value
