"""Session rows: made, ended, reopened, found, altered. Source: session-db, section 3.

The first parameter of every function is the `Writer` of the store.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from state_ledger.content import json_text
from state_ledger.ledger.columns import column
from state_ledger.schema import declared_columns
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection
from state_ledger.surrogates import scrub, scrub_optional
from state_ledger.writing.writer import Writer

_INHERITED = ("cwd", "git_repo_root", "git_branch", "profile_name")
"""What a child takes over from its parent where it has nothing of its own."""

_INHERITED_BY_CONTINUATION = (
    "user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json",
)  # fmt: skip
"""What a child of a compressed parent takes over as well: it is the same talk with the same peer."""

_LONGEST_PREFIX = 10_000
"""Characters; SQLite refuses a LIKE pattern above 50,000 bytes, and no id is that long."""


def select_columns(shape: Shape, alias: str, *, without: Collection[str] = ()) -> str:
    """Every declared column of `sessions` as an SQL list; one that the file lacks is NULL."""
    return ", ".join(
        f"{column(shape, 'sessions', name, alias)} AS {name}"
        for name in declared_columns("sessions")
        if name not in without
    )


def create_session(
    writer: Writer,
    session_id: str,
    source: str,
    *,
    model: str | None = None,
    model_config: Mapping[str, Any] | None = None,
    system_prompt: str | None = None,
    user_id: str | None = None,
    session_key: str | None = None,
    chat_id: str | None = None,
    chat_type: str | None = None,
    thread_id: str | None = None,
    parent_session_id: str | None = None,
    cwd: str | None = None,
    profile_name: str | None = None,
    git_repo_root: str | None = None,
) -> str:
    """Makes a session that starts now, or fills what is NULL in the one that has this id.

    model_config: stored as JSON, NULL if empty. Of a session that exists, `source`, `user_id` and
    `started_at` never change. A child takes over what it lacks from its parent: folder, branch,
    repository and profile, and from a compressed parent also the messaging peer.
    Returns the id. Raises sqlite3.IntegrityError if the parent is unknown, TypeError if
    `model_config` cannot be JSON.
    """
    given = {
        "model": model,
        "model_config": json_text(model_config) if model_config else None,
        "system_prompt": system_prompt,
        "session_key": session_key,
        "chat_id": chat_id,
        "chat_type": chat_type,
        "thread_id": thread_id,
        "parent_session_id": parent_session_id,
        "cwd": cwd,
        "profile_name": profile_name,
        "git_repo_root": git_repo_root,
    }

    def work(connection: Connection) -> None:
        upsert(connection, session_id, source, user_id=user_id, **given)
        if parent_session_id is not None:
            _inherit(connection, session_id)

    writer.write(work)
    return session_id


def ensure_session(
    writer: Writer,
    session_id: str,
    source: str = "unknown",
    model: str | None = None,
    *,
    model_config: Mapping[str, Any] | None = None,
    system_prompt: str | None = None,
    user_id: str | None = None,
    session_key: str | None = None,
    chat_id: str | None = None,
    chat_type: str | None = None,
    thread_id: str | None = None,
    parent_session_id: str | None = None,
    cwd: str | None = None,
    profile_name: str | None = None,
    git_repo_root: str | None = None,
) -> str:
    """`create_session` for callers that know little more than the id."""
    return create_session(
        writer,
        session_id,
        source,
        model=model,
        model_config=model_config,
        system_prompt=system_prompt,
        user_id=user_id,
        session_key=session_key,
        chat_id=chat_id,
        chat_type=chat_type,
        thread_id=thread_id,
        parent_session_id=parent_session_id,
        cwd=cwd,
        profile_name=profile_name,
        git_repo_root=git_repo_root,
    )


def upsert(
    connection: Connection, session_id: str, source: str, *, user_id: str | None = None, **fillable: str | None
) -> None:
    """Inserts a session that starts now; of one that exists, fills those of `fillable` that are NULL.

    fillable: columns by name. Belongs inside `Writer.write`.
    """
    columns = ["id", "source", "started_at", "user_id", *fillable]
    values = [session_id, scrub(source), time.time(), scrub_optional(user_id)]
    values += [scrub_optional(value) for value in fillable.values()]
    fill = ", ".join(f"{name} = coalesce(sessions.{name}, excluded.{name})" for name in fillable)
    connection.execute(
        f"INSERT INTO sessions ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        f" ON CONFLICT (id) DO {f'UPDATE SET {fill}' if fill else 'NOTHING'}",
        values,
    )


def _inherit(connection: Connection, session_id: str) -> None:
    """Fills the child's NULLs from the parent it really has: an earlier link is not replaced."""

    def fill(names: tuple[str, ...], condition: str) -> None:
        settings = ", ".join(
            f"{name} = coalesce({name}, (SELECT p.{name} FROM sessions AS p WHERE p.id = sessions.parent_session_id))"
            for name in names
        )
        connection.execute(f"UPDATE sessions SET {settings} WHERE id = ? AND {condition}", (session_id,))

    fill(_INHERITED, "parent_session_id IS NOT NULL")
    fill(
        _INHERITED_BY_CONTINUATION,
        "EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = sessions.parent_session_id AND p.end_reason = 'compression')",
    )


def end_session(writer: Writer, session_id: str, end_reason: str | None) -> None:
    """Ends a session now. The first end wins; an unknown id is passed over."""
    writer.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL",
            (time.time(), scrub_optional(end_reason), session_id),
        )
    )


def reopen_session(writer: Writer, session_id: str) -> None:
    """Takes the end of a session back: time and reason."""
    set_columns(writer, session_id, ended_at=None, end_reason=None)


def promote_to_session_reset(writer: Writer, session_id: str, reason: str = "session_reset") -> bool:
    """Ends a live session with `reason`, or gives the reason to one that only lost its client.

    True if the session now carries the reason because of this call.
    """

    def work(connection: Connection) -> bool:
        changed = connection.execute(
            "UPDATE sessions SET ended_at = coalesce(ended_at, ?), end_reason = ?"
            " WHERE id = ? AND (ended_at IS NULL OR end_reason IN ('agent_close', 'ws_orphan_reap'))",
            (time.time(), scrub(reason), session_id),
        )
        return changed.rowcount > 0

    return writer.write(work)


def get_session(writer: Writer, session_id: str) -> dict[str, Any] | None:
    """All 48 columns of a session by name, None if there is none; `model_config` stays JSON text."""
    row = writer.row(f"SELECT {select_columns(writer.shape, 's')} FROM sessions AS s WHERE s.id = ?", (session_id,))
    return None if row is None else dict(row)


def resolve_session_id(writer: Writer, id_or_prefix: str) -> str | None:
    """The session with this id, else the only one whose id begins so, else None.

    Letters A to Z match in either case, but an exact id comes first.
    """
    exact = writer.value("SELECT id FROM sessions WHERE id = ?", (scrub(id_or_prefix),))
    if exact is not None:
        return str(exact)
    pattern = begins_with(id_or_prefix)
    found = writer.rows(r"SELECT id FROM sessions WHERE id LIKE ? ESCAPE '\' LIMIT 2", (pattern,))
    return str(found[0]["id"]) if len(found) == 1 else None


def begins_with(text: str) -> str | None:
    r"""The pattern for `LIKE … ESCAPE '\'` of what begins with this text.

    None, which is like nothing, where LIKE could not take it: it reads a pattern up to the first NUL.
    """
    if "\0" in text or len(text) > _LONGEST_PREFIX:
        return None
    return escape_like(scrub(text)) + "%"


def escape_like(text: str) -> str:
    r"""The text as a literal part of a pattern for `LIKE … ESCAPE '\'`."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def update_session_cwd(
    writer: Writer,
    session_id: str,
    cwd: str,
    git_branch: str | None = None,
    git_repo_root: str | None = None,
) -> None:
    """Notes where a session works. Nothing happens without `cwd`; a blank branch or root is kept out."""
    if not cwd:
        return
    known = {"git_branch": git_branch, "git_repo_root": git_repo_root}
    told = {name: value for name, value in known.items() if value and value.strip()}
    set_columns(writer, session_id, cwd=cwd, **told)


def backfill_repo_roots(writer: Writer, roots: Mapping[str, str]) -> None:
    """Fills empty repository roots of the sessions of each folder, `{cwd: root}`."""
    filled = [(scrub(root), scrub(cwd)) for cwd, root in roots.items() if cwd and root]
    if filled:
        writer.write(
            lambda connection: connection.executemany(
                "UPDATE sessions SET git_repo_root = ? WHERE cwd = ? AND coalesce(git_repo_root, '') = ''", filled
            )
        )


def update_session_meta(
    writer: Writer, session_id: str, model_config_json: str | None, model: str | None = None
) -> None:
    """Replaces `model_config` (JSON text), and the model where one is given."""
    given = {} if model is None else {"model": model}
    set_columns(writer, session_id, model_config=model_config_json, **given)


def update_system_prompt(writer: Writer, session_id: str, system_prompt: str | None) -> None:
    """Replaces the stored system prompt."""
    set_columns(writer, session_id, system_prompt=system_prompt)


def distinct_session_cwds(writer: Writer, include_archived: bool = False) -> list[dict[str, Any]]:
    """The folders sessions worked in, `{"cwd", "sessions", "last_active"}`, most recently used first.

    last_active: epoch seconds, when the last of them ended or, if it did not, started.
    """
    shape = writer.shape
    if not shape.has("sessions", "cwd"):
        return []
    shown = "1" if include_archived else f"coalesce({column(shape, 'sessions', 'archived', 's')}, 0) = 0"
    rows = writer.rows(
        "SELECT s.cwd AS cwd, count(*) AS sessions, max(coalesce(s.ended_at, s.started_at)) AS last_active"
        f" FROM sessions AS s WHERE s.cwd <> '' AND {shown} GROUP BY s.cwd ORDER BY last_active DESC, s.cwd"
    )
    return [dict(row) for row in rows]


def set_columns(writer: Writer, session_id: str, **columns: str | None) -> None:
    """Sets text columns of a session; nothing happens for an unknown one."""
    settings = ", ".join(f"{name} = ?" for name in columns)
    values = [*map(scrub_optional, columns.values()), session_id]
    writer.write(lambda connection: connection.execute(f"UPDATE sessions SET {settings} WHERE id = ?", values))
