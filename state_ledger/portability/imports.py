"""Exported sessions put into a store: checked as a whole, then stored as a whole.

Source: session-db, section 9.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from state_ledger.content import from_json, json_text
from state_ledger.messages import rows as message_rows
from state_ledger.messages.rows import Entry, decoders, moment
from state_ledger.schema import declared_columns
from state_ledger.sqlite import Connection
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer

MAX_SESSIONS = 500
MAX_SESSION_MESSAGES = 10_000
MAX_MESSAGES = 50_000
MAX_SESSION_BYTES = 5 * 1024 * 1024
"""Of one session, written as JSON in UTF-8."""
MAX_BYTES = 25 * 1024 * 1024

_TEXTS = (
    "source", "user_id", "model", "system_prompt", "end_reason", "cwd", "git_branch", "git_repo_root",
    "billing_provider", "billing_base_url", "billing_mode", "cost_status", "cost_source", "pricing_version", "title",
)  # fmt: skip
_COUNTS = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "api_call_count",
)  # fmt: skip
_COSTS = ("estimated_cost_usd", "actual_cost_usd")
_MESSAGE_TEXTS = (
    "tool_name", "tool_call_id", "finish_reason", "reasoning", "reasoning_content", "platform_message_id",
    "message_id", "effect_disposition", "api_content", "display_kind",
)  # fmt: skip
_COLUMNS = ("id", *_TEXTS, "model_config", "started_at", "ended_at", *_COUNTS, *_COSTS, "archived")
_INSERT = f"INSERT INTO sessions ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"

_USAGE_KEY_TEXTS = ("model", "billing_provider", "billing_base_url", "billing_mode", "task")
_USAGE_COLUMNS = declared_columns("session_model_usage")
_INSERT_USAGE = (
    f"INSERT INTO session_model_usage ({', '.join(_USAGE_COLUMNS)}) VALUES ({', '.join('?' * len(_USAGE_COLUMNS))})"
)


@dataclass(frozen=True)
class Ready:
    """A session that passed every check: the values of _COLUMNS, its parent, messages with their flags
    (`active`, `compacted`), and usage rows."""

    id: str
    values: tuple[Any, ...]
    parent: str | None
    messages: list[Entry]
    flags: list[tuple[int, int]]
    usage: list[tuple[Any, ...]]

    @property
    def title(self) -> str | None:
        found: str | None = self.values[_COLUMNS.index("title")]
        return found

    def with_title(self, title: str | None) -> Ready:
        """The same under another title."""
        values = list(self.values)
        values[_COLUMNS.index("title")] = title
        return replace(self, values=tuple(values))


class Refused(ValueError):
    """Why a session cannot be imported."""


def import_sessions(writer: Writer, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """Stores exported sessions (`export_session`, `export_all`), all of them or, if one is bad, none.

    A session whose id the store has is skipped. Messages get new ids and keep `active` and `compacted`
    (exports of the agent hold live ones only); message counts are those of the messages given; tokens,
    costs, title, archived flag and usage rows are kept; what ties a session to a chat, a hand-over, a
    profile or a pin is not. A parent is linked once all rows are there, if there is such a session and no
    loop would close; else the session is detached.

    Returns `{"ok": True, "imported", "skipped", "detached", "imported_ids", "skipped_ids", "errors": []}`,
    or, with nothing stored, `{"ok": False, "imported": 0, "skipped": 0, "detached": 0, "errors":
    [{"index", "error", "session_id" where it is known}]}`.

    Raises ValueError if `sessions` is no list or has more than 500 members, sqlite3.IntegrityError if a
    title is in use (nothing is stored then).
    """
    if not isinstance(sessions, list):
        raise ValueError("Sessions to import must be a list.")
    if len(sessions) > MAX_SESSIONS:
        raise ValueError(f"At most {MAX_SESSIONS} sessions can be imported at once; these are {len(sessions)}.")
    ready, errors = _check(sessions)
    if errors:
        return {"ok": False, "imported": 0, "skipped": 0, "detached": 0, "errors": errors}

    def work(connection: Connection) -> dict[str, Any]:
        known = {session.id for session in ready if exists(connection, session.id)}
        new = [session for session in ready if session.id not in known]
        for session in new:
            store(connection, session)
        return {
            "ok": True,
            "imported": len(new),
            "skipped": len(known),
            "detached": _link_parents(connection, new),
            "imported_ids": [session.id for session in new],
            "skipped_ids": [session.id for session in ready if session.id in known],
            "errors": [],
        }

    return writer.write(work)


def _check(sessions: list[Any]) -> tuple[list[Ready], list[dict[str, Any]]]:
    ready: list[Ready] = []
    errors: list[dict[str, Any]] = []
    seen: set[str] = set()
    messages = size = 0
    for index, session in enumerate(sessions):
        session_id = session_id_of(session)
        try:
            if not isinstance(session, Mapping):
                raise Refused("The session must be an object.")
            if not session_id:
                raise Refused("The session has no id.")
            if session_id in seen:
                raise Refused("Another session of this import has the same id.")
            seen.add(session_id)
            size += _size(session)
            made = make_ready(session_id, session)
            messages += len(made.messages)
            if messages > MAX_MESSAGES:
                raise Refused(f"With this session the import has more than {MAX_MESSAGES} messages.")
            if size > MAX_BYTES:
                raise Refused(f"With this session the import is larger than {MAX_BYTES} bytes.")
            ready.append(made)
        except Refused as refusal:
            errors.append({"index": index, "error": str(refusal), **({"session_id": session_id} if session_id else {})})
    return ready, errors


def session_id_of(session: object) -> str:
    """The id that an exported session has, '' if it has none."""
    value = session.get("id") if isinstance(session, Mapping) else None
    return scrub(str(value)).strip() if isinstance(value, (str, int)) else ""


def _size(session: Mapping[str, Any]) -> int:
    """Bytes of a session as JSON. Checked before anything else is made of it."""
    messages = session.get("messages")
    if isinstance(messages, list) and len(messages) > MAX_SESSION_MESSAGES:
        raise Refused(f"The session has more than {MAX_SESSION_MESSAGES} messages.")
    try:
        text = json.dumps(session, ensure_ascii=False, default=_bytes_as_text)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"The session cannot be written as JSON: {error}.") from error
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_SESSION_BYTES:
        raise Refused(f"The session is larger than {MAX_SESSION_BYTES} bytes.")
    return size


def _bytes_as_text(value: object) -> str:
    """Content may be stored as bytes, and an export that never was a file has it so."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    raise TypeError(f"there is a value of the type {type(value).__name__} in it")


def make_ready(session_id: str, session: Mapping[str, Any], *, config_as_it_is: bool = False) -> Ready:
    """Checks a session. config_as_it_is: whether a text of `model_config` may be no JSON. Raises Refused."""
    texts = {name: _text(session, name) for name in _TEXTS}
    parent = _text(session, "parent_session_id")
    started = moment(session.get("started_at"))
    values = (
        session_id,
        texts.pop("source") or "import",
        *(text or None if name == "title" else text for name, text in texts.items()),
        _model_config(session.get("model_config"), config_as_it_is),
        time.time() if started is None else started,
        moment(session.get("ended_at")),
        # A counter that an old store did not keep is no data, which is not 0 (accounting rule 3).
        *(None if session.get(name, 0) is None else _count(session.get(name)) for name in _COUNTS),
        *(moment(session.get(name)) for name in _COSTS),
        1 if session.get("archived") else 0,
    )
    messages = _messages(session)
    return Ready(
        session_id, values, parent or None, messages, _flags(session, len(messages)), _usage(session_id, session)
    )


def _messages(session: Mapping[str, Any]) -> list[Entry]:
    messages = session.get("messages")
    if messages is None:
        return []
    if not isinstance(messages, list):
        raise Refused("messages must be a list.")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise Refused(f"messages[{place}] must be an object.")
        role = message.get("role")
        if not isinstance(role, str) or not role.strip():
            raise Refused(f"messages[{place}].role must be a text that is not empty.")
        for name in _MESSAGE_TEXTS:
            _text(message, name, f"messages[{place}].")
        if not isinstance(message.get("token_count"), (int, type(None))):
            raise Refused(f"messages[{place}].token_count must be a whole number.")
    try:
        entries = list(message_rows.entries(messages, keep_of_assistant=True))
    except (TypeError, ValueError) as error:
        raise Refused(f"A message cannot be stored: {error}") from error
    return [_as_stored(entry, message) for entry, message in zip(entries, messages, strict=True)]


def _as_stored(entry: Entry, message: Mapping[str, Any]) -> Entry:
    """The entry with the texts that the message had where it comes from."""
    stored = message.get("stored")
    texts = stored if isinstance(stored, Mapping) else {}
    # A value that was edited in the export is worth more than the text it had.
    entry = entry.with_stored(
        {
            name: text
            for name, text in texts.items()
            if name in decoders and isinstance(text, str) and _is_reading(message.get(name) or None, name, text)
        }
    )
    for name in _TEXTS_OF_JSON:
        if isinstance(message.get(name), str):
            values = list(entry.values)
            values[message_rows.WRITTEN.index(name)] = scrub(message[name])
            entry = Entry(tuple(values), entry.calls)
    return entry


def _is_reading(value: Any, name: str, text: str) -> bool:
    """Whether a value is what an export makes of a stored text; Python's own exports say NaN, others leave it out."""
    if value is None and name != "content":
        try:
            from_json(text, strict=True)
        except (ValueError, RecursionError):
            return True
    read = decoders[name](text) or None
    # NaN is equal to nothing, and its text to itself.
    return bool(value == read) or json_text(value, repr) == json_text(read, repr)


_TEXTS_OF_JSON = ("reasoning_details", "codex_reasoning_items", "codex_message_items")
"""Columns of JSON that exports give as they are stored."""


def _flags(session: Mapping[str, Any], number: int) -> list[tuple[int, int]]:
    """`active` and `compacted` of each message; one that says nothing is live."""
    return [
        (0 if message.get("active") in (0, False) else 1, 1 if message.get("compacted") in (1, True) else 0)
        for message in (session.get("messages") or [])[:number]
    ]


def _usage(session_id: str, session: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    rows = session.get("usage")
    if rows is None:
        return []
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise Refused("usage must be a list of objects.")
    made = []
    keys = set()
    for place, row in enumerate(rows):
        where = f"usage[{place}]."
        key = tuple(_text(row, name, where) or "" for name in _USAGE_KEY_TEXTS)
        if key in keys:
            raise Refused(f"usage[{place}] has the same model, route and task as another row.")
        keys.add(key)
        made.append((session_id, *key, *(_usage_value(row, name, where) for name in _USAGE_COLUMNS[6:])))
    return made


def _usage_value(row: Mapping[str, Any], name: str, where: str) -> Any:
    if name in ("cost_status", "cost_source"):
        return _text(row, name, where)
    if name in ("first_seen", "last_seen"):
        return moment(row.get(name))
    return (moment(row.get(name)) or 0.0) if name in _COSTS else _count(row.get(name))


def _text(fields: Mapping[str, Any], name: str, where: str = "") -> str | None:
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return None if value is None else scrub(value)
    raise Refused(f"{where}{name} must be text.")


def _model_config(value: object, as_it_is: bool) -> str | None:
    if value is None or value == "":
        return None
    if as_it_is and isinstance(value, str):
        return scrub(value)
    config = value
    if isinstance(value, str):
        try:
            config = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise Refused("model_config must be a JSON object.") from error
    if not isinstance(config, dict):
        raise Refused("model_config must be a JSON object.")
    return scrub(value) if isinstance(value, str) else json_text(config)


def _count(value: object) -> int:
    try:
        count = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return 0
    return count if abs(count) < 2**63 else 0


def exists(connection: Connection, session_id: str) -> bool:
    """Whether the store has the session."""
    return connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is not None


def store(connection: Connection, session: Ready) -> None:
    """Stores a session inside the caller's transaction, without its parent."""
    connection.execute(_INSERT, session.values)
    ids, calls = message_rows.insert(connection, session.id, session.messages)
    connection.executemany(
        "UPDATE messages SET active = ?, compacted = ? WHERE id = ?",
        [(*flags, number) for flags, number in zip(session.flags, ids, strict=True) if flags != (1, 0)],
    )
    connection.execute(
        "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?", (len(ids), calls, session.id)
    )
    for values in session.usage:
        connection.execute(_INSERT_USAGE, values)


def _link_parents(connection: Connection, sessions: list[Ready]) -> int:
    """Links the imported sessions to their parents; returns how many could not be."""
    parents = {session.id: session.parent for session in sessions if session.parent is not None}
    detached = 0
    for session_id, parent in list(parents.items()):
        if exists(connection, parent) and not leads_to(connection, parents, parent, session_id):
            connection.execute("UPDATE sessions SET parent_session_id = ? WHERE id = ?", (parent, session_id))
        else:
            del parents[session_id]
            detached += 1
    return detached


def leads_to(connection: Connection, parents: Mapping[str, str], start: str, session_id: str) -> bool:
    """Whether the parent links from `start` on, wished or stored, come to `session_id`."""
    seen: set[str] = set()
    step: str | None = start
    while step is not None and step not in seen:
        if step == session_id:
            return True
        seen.add(step)
        row = None if step in parents else connection.execute(
            "SELECT parent_session_id FROM sessions WHERE id = ?", (step,)
        ).fetchone()  # fmt: skip
        step = parents[step] if step in parents else row[0] if row is not None else None
    return False
