"""How the full-text indexes of a file are laid out, and how to bring them to the layout of schema 23.

Source: store-format, section 1.6. The layout says nothing about the schema version and the other way
round. Everything here works on a connection inside the caller's transaction.
"""

from __future__ import annotations

from enum import Enum

from state_ledger import full_text
from state_ledger.full_text import TRIGRAMS, WORDS, TextIndex, parts
from state_ledger.sqlite import Connection, version_info

STORAGE_VERSION = "1"
"""What `state_meta['fts_storage_version']` says of this layout."""

OFFER_KEY = "fts_optimize_available"
"""`state_meta` key: '1' while the indexes wait to be made anew."""

OLD_PREFIX = "replaced_"
"""Replaced indexes are put aside under this name until their pages are given back, bit by bit."""

FOREIGN_TRASH = "fts_v22_trash_"
"""Under this name other programs put aside the tables of replaced indexes."""

_FIRST_TRIGRAM = (3, 34)


class Layout(Enum):
    """What was found.

    CURRENT: ours. FOREIGN: the tables are right, the view or a trigger is not ours: other programs
    index all of a text with NULs in it, see `full_text`. OLD: an earlier layout, or none.
    BROKEN: an earlier layout whose index and triggers contradict each other, so that deleting a
    message fails, or an index that lost one of its tables, so that no message can be stored. NEWER: of a
    later schema, not to be touched.
    """

    CURRENT = "current"
    FOREIGN = "foreign"
    OLD = "old"
    BROKEN = "broken"
    NEWER = "newer"


def expected() -> tuple[TextIndex, ...]:
    """The indexes that this SQLite can keep."""
    return full_text.INDEXES if version_info >= _FIRST_TRIGRAM else (WORDS,)


def read(connection: Connection) -> Layout:
    """The layout of the two indexes that every store has."""
    found = parts.definitions(connection)
    words, trigrams = found.get(WORDS.name, ""), found.get(TRIGRAMS.name, "")
    if "messages_fts_src" in words or (f"content='{TRIGRAMS.source}'" in trigrams and "tool_calls" not in trigrams):
        return Layout.NEWER
    if parts.missing(connection):
        return Layout.BROKEN
    if any(found.get(index.name) != parts.plain(full_text.table_sql(index)) for index in expected()):
        # The words without a copy of their text, the trigrams with one: what a newer program makes of a
        # file from before version 10, filling the first with a text that its own triggers do not know.
        mixed = "content=messages" in words and trigrams and "content=" not in trigrams
        return Layout.BROKEN if mixed else Layout.OLD
    ours = all(found.get(name) == parts.plain(sql) for index in expected() for name, sql in _companions(index))
    return Layout.CURRENT if ours else Layout.FOREIGN


def lacks_triggers(connection: Connection) -> bool:
    """Whether a trigger is missing: then rows may have been written that no index knows of."""
    found = parts.definitions(connection)
    return any(name not in found for index in expected() for name in index.triggers)


def is_complete(connection: Connection) -> bool:
    """Whether the indexes are of our layout and hold all messages."""
    return (
        read(connection) is Layout.CURRENT and gate(connection, WORDS) is None and mark(connection, OFFER_KEY) is None
    )


def rewrite(connection: Connection) -> None:
    """Makes the indexes anew from all messages, at once; what was there before is gone."""
    parts.restore(connection)
    _drop_companions(connection)
    for index in full_text.INDEXES:
        connection.execute(f"DROP TABLE IF EXISTS {index.name}")
    full_text.create(connection)
    finish(connection)
    while teardown(connection):
        pass


def begin(connection: Connection) -> None:
    """Puts the old indexes aside and empty ones in their place, to be filled with `step`.

    Until then the triggers leave the messages alone that are still to come, and a search has to
    look through those itself: `state_meta` says which.
    """
    parts.restore(connection)
    _drop_companions(connection)
    # Renaming a table must not make SQLite look at triggers of an index whose tokenizer is missing.
    connection.execute("PRAGMA legacy_alter_table = ON")
    for index in full_text.INDEXES:
        if index.name in parts.definitions(connection):
            connection.execute(f"ALTER TABLE {index.name} RENAME TO {_free_name(connection, index)}")
    connection.execute("PRAGMA legacy_alter_table = OFF")
    for index in expected():
        make(connection, index)
    set_gate(connection, WORDS)


def make(connection: Connection, index: TextIndex) -> None:
    """Makes one index, empty, with its view and triggers."""
    if index.source != "messages":
        connection.execute(f"DROP VIEW IF EXISTS {index.source}")
        connection.execute(full_text.source_view_sql(index))
    full_text.create_table(connection, index)
    for sql in full_text.trigger_sql(index):
        connection.execute(sql)


def take_over(connection: Connection) -> None:
    """Replaces the view and the triggers of a FOREIGN layout by ours, without touching what is indexed.

    From here on nothing can fail any more: a text with NULs may leave trigrams behind that lead to
    no message, until the index is made anew.
    """
    _drop_companions(connection)
    for index in expected():
        if index.source != "messages":
            connection.execute(full_text.source_view_sql(index))
        for sql in full_text.trigger_sql(index):
            connection.execute(sql)


def needs_guard(connection: Connection) -> bool:
    """Whether the trigrams are kept with a copy of their text, by triggers that a NUL can make fail."""
    found = parts.definitions(connection)
    sql = found.get(TRIGRAMS.name, "")
    inline = bool(sql) and "content=" not in sql
    return inline and any(found.get(name) != parts.plain(sql) for name, sql in _guarded())


def guard(connection: Connection) -> None:
    """Makes those triggers leave messages with a NUL alone until the index is made anew.

    SQLite finds what to take out by reading the copy again; where an older release put it in, that
    is more than there is, and changing or deleting such a message would fail.
    """
    for name, sql in _guarded():
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute(sql)


def _guarded() -> list[tuple[str, str]]:
    name = TRIGRAMS.name
    _, delete, update = TRIGRAMS.triggers
    whole = "WHEN coalesce(instr(old.content, char(0)), 0) = 0"
    remove = f"DELETE FROM {name} WHERE rowid = old.id"
    joined = " || ' ' || ".join(f"coalesce(new.{column}, '')" for column in ("content", "tool_name", "tool_calls"))
    return [
        (delete, f"CREATE TRIGGER {delete} AFTER DELETE ON messages {whole}\nBEGIN\n    {remove};\nEND"),
        (
            update,
            f"CREATE TRIGGER {update} AFTER UPDATE OF content, tool_name, tool_calls ON messages {whole}\n"
            f"BEGIN\n    {remove};\n    INSERT INTO {name}(rowid, content) VALUES (new.id, {joined});\nEND",
        ),
    ]


def set_gate(connection: Connection, index: TextIndex) -> None:
    """Marks all present messages as not indexed yet."""
    (newest,) = connection.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()
    if newest > 0:
        set_mark(connection, f"{index.gate}_high_water", str(newest))
        set_mark(connection, f"{index.gate}_progress", "0")
    else:
        clear_marks(connection, f"{index.gate}_high_water", f"{index.gate}_progress")


def gate(connection: Connection, index: TextIndex) -> tuple[int, int] | None:
    """(up to which id messages are indexed, up to which they have to be); None when all are."""
    goal = _number(connection, f"{index.gate}_high_water")
    done = _number(connection, f"{index.gate}_progress")
    return None if goal is None or goal <= max(done or 0, 0) else (max(done or 0, 0), goal)


def step(connection: Connection, indexes: tuple[TextIndex, ...], rows: int) -> bool:
    """Indexes the next `rows` messages; `indexes` share one gate. Returns whether any are left."""
    name = indexes[0].gate
    between = gate(connection, indexes[0])
    if between is not None:
        done, goal = between
        (last,) = connection.execute(
            "SELECT max(id) FROM (SELECT id FROM messages WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)",
            (done, goal, rows),
        ).fetchone()
        if last is not None:
            for index in indexes:
                full_text.add_rows(connection, index, done, last)
            set_mark(connection, f"{name}_progress", str(last))
            if last < goal:
                return True
    clear_marks(connection, f"{name}_high_water", f"{name}_progress")
    return False


def finish(connection: Connection) -> None:
    """Notes that the indexes are complete and of this layout."""
    clear_marks(connection, f"{WORDS.gate}_high_water", f"{WORDS.gate}_progress", OFFER_KEY)
    set_mark(connection, "fts_storage_version", STORAGE_VERSION)


def leftovers(connection: Connection) -> list[str]:
    """Tables of replaced indexes whose pages are still in use."""
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
        " AND (substr(name, 1, ?) = ? OR substr(name, 1, ?) = ?)"
        " ORDER BY sql LIKE 'CREATE VIRTUAL%', name",
        (len(OLD_PREFIX + WORDS.name), OLD_PREFIX + WORDS.name, len(FOREIGN_TRASH), FOREIGN_TRASH),
    )
    return [str(row[0]) for row in rows]


def teardown(connection: Connection, rows: int = 2000) -> bool:
    """Deletes the next rows of a replaced index, at last the index; returns whether any are left."""
    names = leftovers(connection)
    for name in names:
        if name.endswith(("_data", "_content", "_docsize")):
            # The first ten rows of `_data` say what the index looks like; without them it cannot be dropped.
            deleted = connection.execute(
                f"DELETE FROM {name} WHERE rowid IN (SELECT rowid FROM {name} WHERE rowid > 10 LIMIT ?)", (rows,)
            )
            if deleted.rowcount:
                return True
    for name in names:
        virtual = connection.execute("SELECT sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE name = ?", (name,))
        if name.startswith(FOREIGN_TRASH) or virtual.fetchone()[0]:
            connection.execute(f"DROP TABLE {name}")
            return bool(leftovers(connection))
    return False


def set_mark(connection: Connection, key: str, value: str) -> None:
    """Writes a value of `state_meta`."""
    connection.execute(
        "INSERT INTO state_meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def mark(connection: Connection, key: str) -> str | None:
    """A value of `state_meta`, None where there is none."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'state_meta'").fetchone() is None:
        return None  # a store from before version 8
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def clear_marks(connection: Connection, *keys: str) -> None:
    """Removes values from `state_meta`."""
    connection.executemany("DELETE FROM state_meta WHERE key = ?", [(key,) for key in keys])


def _number(connection: Connection, key: str) -> int | None:
    value = mark(connection, key)
    try:
        return None if value is None else int(value)
    except ValueError:
        return None


def _companions(index: TextIndex) -> list[tuple[str, str]]:
    triggers = list(zip(index.triggers, full_text.trigger_sql(index), strict=True))
    return triggers if index.source == "messages" else [(index.source, full_text.source_view_sql(index)), *triggers]


def _drop_companions(connection: Connection) -> None:
    for index in full_text.INDEXES:
        for trigger in index.triggers:
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        if index.source != "messages":
            connection.execute(f"DROP VIEW IF EXISTS {index.source}")


def _free_name(connection: Connection, index: TextIndex) -> str:
    taken = parts.definitions(connection)
    name, number = OLD_PREFIX + index.name, 2
    while name in taken:
        name, number = f"{OLD_PREFIX}{index.name}_{number}", number + 1
    return name
