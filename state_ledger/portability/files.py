"""Files of exported sessions, read back one session at a time.

Taken are the JSON Lines and JSON of `state-ledger export`, and what Hermes Agent exports: a session in
JSON, a list of them, or one a line.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from state_ledger.portability.formats.json_lines import VERSION

TYPES = ("header", "session", "usage", "message", "trailer")


@dataclass(frozen=True)
class Trouble:
    """Something in a file that cannot be taken. line: from 1, 0 where there is none. why: a sentence."""

    file: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


@dataclass
class Found:
    """A session of a file. line: where it begins. lines: where each of its messages stands, if each has a line."""

    session: dict[str, Any]
    line: int
    lines: array[int] = field(default_factory=lambda: array("q"))
    usage_lines: array[int] = field(default_factory=lambda: array("q"))


def read(path: Path) -> Iterator[Found | Trouble]:
    """The sessions of a file and what is wrong with it, in the order in which they stand there."""
    name = str(path)
    try:
        with path.open("rb") as file:
            yield from _read(file, name)
    except OSError as error:
        yield Trouble(name, 0, f"The file cannot be read ({error.strerror}).")


def _read(file: IO[bytes], name: str) -> Iterator[Found | Trouble]:
    first = b""
    before = 0
    while not first:
        line = file.readline()
        if not line:
            yield Trouble(name, 0, "The file is empty.")
            return
        first = line.strip()
        before += 1
    value = _parsed(first.removeprefix(b"\xef\xbb\xbf"))
    if isinstance(value, dict) and (value.get("type") in TYPES or not file.peek(1).strip() or _is_session(value)):  # type: ignore[attr-defined]
        file.seek(0)
        yield from _Lines(name).read(file)
        return
    file.seek(0)
    yield from _whole(file.read(), name)


def _is_session(value: dict[str, Any]) -> bool:
    return "id" in value or "segments" in value


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _whole(text: bytes, name: str) -> Iterator[Found | Trouble]:
    """A file that is one JSON value."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        yield Trouble(name, error.lineno, f"The file is not JSON: {error.msg}. Nothing of it was imported.")
        return
    except (ValueError, RecursionError) as error:
        yield Trouble(name, 0, f"The file is not JSON: {error}. Nothing of it was imported.")
        return
    if isinstance(value, dict) and isinstance(value.get("sessions"), list):
        value = value["sessions"]
    for session in value if isinstance(value, list) else [value]:
        yield from _sessions_in(session, name, 0)


def _sessions_in(value: Any, name: str, line: int) -> Iterator[Found | Trouble]:
    """The sessions of an export of one session or of a whole conversation."""
    if not isinstance(value, dict):
        yield Trouble(name, line, "There is something that is no session.")
        return
    segments = value.get("segments")
    if segments == []:
        yield Trouble(name, line, "There is a conversation without segments.")
    for session in segments if isinstance(segments, list) else [value]:
        if isinstance(session, dict):
            yield Found(session, line)
        else:
            yield Trouble(name, line, "There is a segment that is no session.")


class _Lines:
    """Reads JSON Lines: of ours, where sessions, rows of calls and messages have lines, or a session a line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.current: Found | None = None
        self.bad: list[int] = []
        self.given: dict[str, int] = {"sessions": 0, "messages": 0, "usage_rows": 0}
        self.ours = self.ended = False

    def read(self, file: IO[bytes]) -> Iterator[Found | Trouble]:
        number = 0
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
            except (ValueError, RecursionError) as error:
                self.bad.append(number)
                yield self._trouble(number, f"The line is not JSON: {error}.")
                continue
            if isinstance(value, dict) and value.get("type") in TYPES:
                yield from self._take(value, number)
            elif self.ours:
                self.bad.append(number)
                yield self._trouble(number, "The line is no header, session, usage, message or trailer.")
            else:
                yield from _sessions_in(value, self.name, number)
        yield from self._flush()
        if self.ours and not self.ended:
            yield self._trouble(number, "The file is cut off: its last line is no trailer.")

    def _take(self, value: dict[str, Any], number: int) -> Iterator[Found | Trouble]:
        kind = value.pop("type")
        if kind in ("usage", "message"):
            yield from self._add(kind, value, number)
            return
        yield from self._flush()
        if kind == "header":
            self.ours, self.ended = True, False
            self.given = dict.fromkeys(self.given, 0)
            if not isinstance(value.get("version"), int) or value["version"] > VERSION:
                yield self._trouble(
                    number, f"The file is of version {value.get('version')}, newer than this program knows; update it."
                )
        elif kind == "session":
            self.ours = True
            self.current = Found({**value, "usage": [], "messages": []}, number)
            self._wanted = value.get("messages"), value.get("usage_rows")
            self.given["sessions"] += 1
        else:
            self.ended = True
            counts = value.get("counts")
            if value.get("complete") is not True:
                yield self._trouble(number, "The export was not complete when it was made.")
            elif counts != self.given:
                yield self._trouble(number, f"The file holds {self.given}, and should hold {counts}.")

    def _add(self, kind: str, value: dict[str, Any], number: int) -> Iterator[Trouble]:
        if self.current is None or value.get("session_id") != self.current.session.get("id"):
            self.bad.append(number)
            yield self._trouble(number, f"The {kind} does not belong to the session above it.")
            return
        self.given["messages" if kind == "message" else "usage_rows"] += 1
        self.current.session["messages" if kind == "message" else "usage"].append(value)
        (self.current.lines if kind == "message" else self.current.usage_lines).append(number)

    def _flush(self) -> Iterator[Found | Trouble]:
        found, self.current = self.current, None
        bad, self.bad = self.bad, []
        if found is None:
            return
        name = f"The session {found.session.get('id')}"
        here = len(found.lines), len(found.usage_lines)
        if bad:
            yield self._trouble(found.line, f"{name} was not imported, because of line {bad[0]}.")
        elif self._wanted != here:
            yield self._trouble(
                found.line,
                f"{name} was not imported: it has {here[0]} messages and {here[1]} rows of calls here,"
                f" and should have {self._wanted[0]} and {self._wanted[1]}.",
            )
        else:
            yield found

    def _trouble(self, line: int, why: str) -> Trouble:
        return Trouble(self.name, line, why)
