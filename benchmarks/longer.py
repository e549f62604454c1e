"""A store with a longer past: the rows of another one several times, each time a period earlier."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from state_ledger import full_text, schema
from state_ledger.sqlite import Connection, read_only_uri, sqlite3, version_info
from state_ledger.writing.journal import has_wal_reset_bug

DAY_S = 86_400

TIMES = {
    "sessions": ("started_at", "ended_at"),
    "messages": ("timestamp",),
    "session_model_usage": ("first_seen", "last_seen"),
}
"""What is moved into the past; a value that is no number stays."""

IDS = {"sessions": ("id", "parent_session_id"), "messages": ("session_id",), "session_model_usage": ("session_id",)}
"""What gets the number of the copy at its end, as does the title, which is unique."""


def make(path: Path, source: Path, copies: int, days: int, *, thin: bool = False) -> None:
    """Writes the store at `path` under a temporary name, renamed when it is complete. Raises OSError.

    The last copy is the source as it is, with all its tables; those before it have sessions, messages and usage.
    thin: of each session only the first and the last message, nothing of what was said, and no full-text index.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with closing(sqlite3.connect(unfinished, isolation_level=None, uri=True)) as connection:
            # Nobody else sees this file before it is complete, and after a crash it is thrown away.
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -262144", "foreign_keys = OFF"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("ATTACH ? AS source", (read_only_uri(source),))
            connection.execute("BEGIN")
            schema.create_tables(connection)
            last_id = connection.execute("SELECT max(id) FROM source.messages").fetchone()[0]
            for copy in range(copies):
                back = copies - 1 - copy
                for table in TIMES:
                    _copy(connection, table, back=back, days=days, first_id=copy * last_id, thin=thin)
            for table in _others(connection):
                connection.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM source.{table}")
            schema.create_indexes(connection)
            if not thin:
                full_text.create(connection)
            connection.execute("COMMIT")
            connection.execute("DETACH source")
            connection.execute(f"PRAGMA journal_mode = {'DELETE' if has_wal_reset_bug(version_info) else 'WAL'}")
        unfinished.rename(path)
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{unfinished}{suffix}").unlink(missing_ok=True)


SAID = frozenset({"content", "tool_calls", "reasoning", "reasoning_content", "reasoning_details", "api_content",
                  "codex_reasoning_items", "codex_message_items", "system_prompt"})  # fmt: skip
"""Columns with what was said or sent."""

ENDS = (
    " WHERE id IN (SELECT min(id) FROM source.messages GROUP BY session_id"
    " UNION ALL SELECT max(id) FROM source.messages GROUP BY session_id)"
)


def _copy(connection: Connection, table: str, *, back: int, days: int, first_id: int, thin: bool) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA source.table_info({table})")]
    kept = [column for column in columns if not thin or column not in SAID]
    values = [_value(table, column, back, days * DAY_S * back, first_id) for column in kept]
    where = ENDS if thin and table == "messages" else ""
    connection.execute(
        f"INSERT INTO main.{table}({', '.join(kept)})"
        f" SELECT {', '.join(values)} FROM source.{table}{where} ORDER BY rowid"
    )


def _value(table: str, column: str, back: int, seconds: int, first_id: int) -> str:
    """The SQL that gives a column of one copy."""
    if column == "id" and table == "messages":
        return f"id + {first_id}"
    if not back:
        return column
    if column in IDS[table]:
        return f"{column} || '-{back}'"
    if column in TIMES[table]:
        return f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN {column} - {seconds} ELSE {column} END"
    if column == "title":
        return f"title || ' /{back}'"
    if column == "model_config":
        return _marked("_delegate_from", back, _marked("_branched_from", back, column))
    return column


def _marked(marker: str, back: int, config: str) -> str:
    """A session's configuration, in which the session it came from has the number of the copy as well."""
    old = f"json_extract(model_config, '$.{marker}')"
    return (
        f"CASE WHEN json_valid(model_config) AND {old} IS NOT NULL"
        f" THEN json_set({config}, '$.{marker}', {old} || '-{back}') ELSE {config} END"
    )


def _others(connection: Connection) -> list[str]:
    """The source's tables that are not copied row by row, without those of its full-text indexes."""
    names = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM source.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            " AND name NOT LIKE 'messages_fts%' AND name IN (SELECT name FROM main.sqlite_master)"
        )
    ]
    return [name for name in names if name not in TIMES]
