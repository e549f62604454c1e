"""Bringing a store to schema 23 when it is opened to write.

Source: store-format, section 3; design, "Writing". What is missing is found by looking at the file:
its version decides only about changes of rows, which leave no trace in the shape. All of it is one
transaction, so that a process that dies in the middle leaves the store as it was, and of two that
start at once the second finds nothing left to do. A big index is never rewritten by opening a store.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sqlite_utils import Database

from state_ledger import schema
from state_ledger.full_text import cjk, parts
from state_ledger.full_text import layout as text_layout
from state_ledger.full_text.layout import Layout
from state_ledger.migrate import key_shapes, migration_set
from state_ledger.sqlite import Connection

if TYPE_CHECKING:
    from state_ledger.writing.writer import Writer

LARGE_MESSAGES = 20_000
LARGE_BYTES = 512 * 1024 * 1024
"""From here on, in messages or in bytes of the file, indexes are only rewritten by `state-ledger migrate`."""

_log = logging.getLogger(__name__)

_FIRST_SEEN_IN = (
    (22, "session_model_usage", "task"),
    (20, "session_model_usage", "session_id"),
    (19, "gateway_routing", "session_key"),
    (18, "sessions", "origin_json"),
    (17, "sessions", "session_key"),
    (16, "messages", "compacted"),
)
"""By what the version of a file that does not say it is told, newest first."""


@dataclass(frozen=True)
class Step:
    """One thing that has to be done. what: a sentence. later: whether opening the store leaves it undone."""

    what: str
    later: bool = False


def on_open(writer: Writer) -> None:
    """Brings the store of a writable handle up to date; a store that is takes no lock.

    A store of a newer schema is left alone. Raises StoreBusyError if another program keeps it locked.
    """
    connection = writer.connection
    cjk.load(connection)
    if is_newer(connection):
        return
    with writer.lock:
        if all(step.later for step in plan(connection)):
            return
        # Rows whose session is gone have to be carried along; the setting cannot change in a transaction.
        connection.execute("PRAGMA foreign_keys = OFF")
        try:
            writer.write(bring_up_to_date)
        finally:
            connection.execute("PRAGMA foreign_keys = ON")


def is_newer(connection: Connection) -> bool:
    """Whether the schema is newer than 23."""
    return (_stored_version(connection) or 0) > schema.SCHEMA_VERSION


def is_large(connection: Connection) -> bool:
    """Whether its indexes are too big to be rewritten while somebody waits."""
    if not _live(connection, "messages"):
        return False
    (messages,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM messages LIMIT ?)", (LARGE_MESSAGES + 1,)
    ).fetchone()
    (pages,) = connection.execute("PRAGMA main.page_count").fetchone()
    (size,) = connection.execute("PRAGMA main.page_size").fetchone()
    return bool(messages > LARGE_MESSAGES or pages * size > LARGE_BYTES)


def plan(connection: Connection) -> list[Step]:
    """What has to be done to the store, in order; reads only."""
    if is_newer(connection):
        return []
    steps = []
    for table in schema.TABLES:
        live = _live(connection, table)
        missing = _missing(connection, table)
        if not live:
            steps.append(Step(f"Make the table {table}."))
        elif missing:
            steps.append(Step(f"Add to {table}: {', '.join(column.name for column in missing)}."))
    steps += [
        Step(f"Make {table} anew with the key it has now, all rows kept.")
        for table in key_shapes.KEYED
        if key_shapes.is_old(connection, table)
    ]
    steps += [
        Step(f"Copy back what only {name} still holds, and drop that table.")
        for name in key_shapes.leftovers(connection)
    ]
    steps += [Step(_sentence(name)) for name in _to_run(connection) if name != migration_set.TEXT_INDEX]
    if _index_names(connection) < {index.name for index in schema.INDEXES}:
        steps.append(Step("Make the missing indexes."))
    elif connection.execute("SELECT 1 FROM messages WHERE active IS NULL LIMIT 1").fetchone():
        steps.append(Step("Count messages without a mark as active."))
    if cjk.in_the_way(connection):
        steps.append(Step("Mark messages_fts_cjk as stale and drop its triggers: its tokenizer is not here."))
    steps += _index_steps(connection)
    if _stored_versions(connection) != [schema.SCHEMA_VERSION] or _unrecorded(connection):
        steps.append(Step(f"Write down that the store has schema {schema.SCHEMA_VERSION}."))
    return steps


def bring_up_to_date(connection: Connection) -> None:
    """Does what `plan` lists, but for the large index rewrites; inside a transaction, foreign keys off."""
    if is_newer(connection):  # another program was faster
        return
    adopted = _adopted(connection)
    add_missing_columns(connection)
    for table in key_shapes.KEYED:
        key_shapes.repair(connection, table)
    for name in key_shapes.leftovers(connection):
        key_shapes.restore(connection, name)
    if cjk.in_the_way(connection):
        cjk.step_aside(connection)
    large = is_large(connection)
    _run_migrations(connection, adopted, large)
    _make_indexes(connection)
    connection.execute("UPDATE messages SET active = 1 WHERE active IS NULL")
    if large:
        _prepare_large(connection)
    elif cjk.wanting(connection):
        cjk.fill(connection)
    if _stored_versions(connection) != [schema.SCHEMA_VERSION]:
        connection.execute("DELETE FROM schema_version")
        connection.execute("INSERT INTO schema_version(version) VALUES (?)", (schema.SCHEMA_VERSION,))


def lost_an_index(connection: Connection, error: Exception) -> bool:
    """Whether a write failed since a full-text index is damaged, as far as that can be told at once."""
    return str(error).startswith(("fts5: corruption", "vtable constructor failed: messages_fts")) or bool(
        parts.missing(connection)
    )


def free_of_lost_index(connection: Connection) -> None:
    """Makes the full-text indexes anew, those of a big store only later, so that messages can be stored."""
    if text_layout.read(connection) is Layout.NEWER:
        return
    if is_large(connection):
        text_layout.begin(connection)
        text_layout.set_mark(connection, text_layout.OFFER_KEY, "1")
    else:
        text_layout.rewrite(connection)


def add_missing_columns(connection: Connection) -> None:
    """Adds the tables and columns that schema 23 declares and the file lacks."""
    for table in schema.TABLES:
        if not _live(connection, table):
            connection.execute(schema.create_table_sql(table))
        for column in _missing(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {_added(column)}")


def record_applied(connection: Connection, name: str) -> None:
    """Records a migration as applied without running it."""
    connection.execute(
        "INSERT OR IGNORE INTO _sqlite_migrations(migration_set, name, applied_at) VALUES (?, ?, ?)",
        (migration_set.MIGRATIONS.name, name, str(datetime.now(timezone.utc))),
    )


def _run_migrations(connection: Connection, adopted: list[str], large: bool) -> None:
    migrations = migration_set.load()
    database = Database(connection)
    migrations.ensure_migrations_table(database)
    for name in migration_set.MODULES:
        if name in adopted:
            record_applied(connection, name)
        else:
            connection.execute(
                "DELETE FROM _sqlite_migrations WHERE migration_set = ? AND name = ?", (migrations.name, name)
            )
    waits = large and migration_set.TEXT_INDEX not in adopted
    migrations.apply(database, stop_before=migration_set.TEXT_INDEX if waits else None)


def _prepare_large(connection: Connection) -> None:
    """What keeps a big store whole until its indexes are rewritten: nothing that takes long."""
    layout = text_layout.read(connection)
    if layout is Layout.BROKEN or (layout is Layout.FOREIGN and text_layout.lacks_triggers(connection)):
        text_layout.begin(connection)
    elif layout is Layout.FOREIGN:
        text_layout.take_over(connection)
    elif text_layout.needs_guard(connection):
        text_layout.guard(connection)
    if layout is Layout.FOREIGN or not (layout is Layout.NEWER or text_layout.is_complete(connection)):
        text_layout.set_mark(connection, text_layout.OFFER_KEY, "1")


def _index_steps(connection: Connection) -> list[Step]:
    large = is_large(connection)
    steps = []
    layout = text_layout.read(connection)
    if migration_set.TEXT_INDEX in _to_run(connection):
        if large and (layout in (Layout.BROKEN, Layout.FOREIGN) or text_layout.needs_guard(connection)):
            steps.append(Step("Replace the triggers of the full-text indexes."))
        elif large and text_layout.mark(connection, text_layout.OFFER_KEY) is None:
            steps.append(Step("Note that the full-text indexes are to be rewritten."))
        steps.append(Step("Rewrite the full-text indexes.", later=large))
    if text_layout.leftovers(connection):
        steps.append(Step("Give back the pages of replaced full-text indexes.", later=True))
    if cjk.wanting(connection):
        steps.append(Step("Fill messages_fts_cjk.", later=large))
    return steps


def _adopted(connection: Connection) -> list[str]:
    """Migrations that the file has behind it, whoever ran them: by record, version and shape."""
    version = _stored_version(connection)
    if version is None:
        version = next((n for n, t, c in _FIRST_SEEN_IN if c in _live(connection, t)), 0)
    done = _recorded(connection)
    adopted = []
    for name in migration_set.MODULES:
        applied = name in done or migration_set.version(name) <= version
        if name == "v18_gateway_peers":
            applied = applied and "origin_json" in _live(connection, "sessions")
        elif name == "v20_usage_rows":
            applied = applied and bool(_live(connection, "session_model_usage"))
        elif name == "v22_usage_key":
            table = "session_model_usage"
            applied = bool(_live(connection, table)) and not key_shapes.is_old(connection, table)
        elif name == migration_set.TEXT_INDEX:
            newer = text_layout.read(connection) is Layout.NEWER
            has_marks = bool(_live(connection, "state_meta"))
            applied = newer or (has_marks and text_layout.is_complete(connection))
        if applied:
            adopted.append(name)
    return adopted


def _to_run(connection: Connection) -> list[str]:
    adopted = _adopted(connection)
    return [name for name in migration_set.MODULES if name not in adopted]


def _recorded(connection: Connection) -> set[str]:
    if not _live(connection, "_sqlite_migrations"):
        return set()
    rows = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = ?", (migration_set.MIGRATIONS.name,)
    )
    return {str(row[0]) for row in rows} & set(migration_set.MODULES)


def _unrecorded(connection: Connection) -> bool:
    return _recorded(connection) != set(_adopted(connection))


def _sentence(name: str) -> str:
    migration = next(m for m in migration_set.load()._migrations if m.name == name)
    text = (migration.fn.__doc__ or name).strip().splitlines()[0]
    return f"Version {migration_set.version(name)}: {text}"


def _make_indexes(connection: Connection) -> None:
    live = _index_names(connection)
    for index in schema.INDEXES:
        if index.name in live:
            continue
        if index.unique:
            _free_titles(connection)
        connection.execute(index.sql)


def _free_titles(connection: Connection) -> None:
    """Of sessions with one title only the newest row keeps it, as titles are unique."""
    shared = (
        "title IS NOT NULL AND EXISTS (SELECT 1 FROM sessions AS n WHERE n.title = sessions.title"
        " AND n.rowid > sessions.rowid)"
    )
    for session, title in connection.execute(f"SELECT id, title FROM sessions WHERE {shared}").fetchall():
        _log.warning("Session %s gives its title %r up to a newer session that has it too.", session, title)
    connection.execute(
        "UPDATE sessions SET title = NULL WHERE title IS NOT NULL"
        " AND rowid NOT IN (SELECT max(rowid) FROM sessions GROUP BY title)"
    )


def _index_names(connection: Connection) -> set[str]:
    names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    return names & {index.name for index in schema.INDEXES}


def _missing(connection: Connection, table: str) -> list[schema.Column]:
    live = _live(connection, table)
    return [column for column in schema.TABLES[table] if live and column.name not in live]


def _added(column: schema.Column) -> str:
    # SQLite adds a NOT NULL column only with a default, and no column to a primary key.
    strict = " NOT NULL" if column.not_null and column.default is not None else ""
    default = f" DEFAULT {column.default}" if column.default is not None else ""
    return f"{column.name} {column.type}{strict}{default}"


def _live(connection: Connection, table: str) -> set[str]:
    return {str(row[1]) for row in connection.execute(f"PRAGMA main.table_info({table})")}


def _stored_versions(connection: Connection) -> list[object]:
    if not _live(connection, "schema_version"):
        return []
    return [row[0] for row in connection.execute("SELECT version FROM schema_version")]


def _stored_version(connection: Connection) -> int | None:
    numbers = [version for version in _stored_versions(connection) if isinstance(version, int)]
    return max(numbers, default=None)
