"""The full-text indexes of schema 23: external content, kept in step by triggers.

Source: store-format, section 1.6 (layout D). Two FTS5 tables index the raw text of three columns of
`messages`: words of every message, and trigrams of all but tool results, whose volume would make
that index bigger than the store.

Trigrams see a text only up to its first NUL. SQLite's trigram tokenizer stops there up to 3.40 and
reads on in later releases, so that structured content (it begins with a NUL) put in by one release
and taken out by the other would damage the index; cut by us, all releases do the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from state_ledger.sqlite import Connection, sqlite3

_INDEXED = ("content", "tool_name", "tool_calls")


@dataclass(frozen=True)
class TextIndex:
    """One FTS5 table over `messages`.

    source: the table or view its text comes from; a view is made by us.
    tokenize: the tokenizer's name, None for FTS5's default (unicode61).
    without_role: the role whose messages stay out, None for all messages.
    gate: what the names of its two marks in `state_meta` begin with, see `trigger_sql`.
    """

    name: str
    source: str
    tokenize: str | None = None
    without_role: str | None = None
    gate: str = "fts_rebuild"

    @property
    def triggers(self) -> tuple[str, ...]:
        """Names of the triggers that keep it in step."""
        return tuple(f"{self.name}_{event}" for event in ("insert", "delete", "update"))


WORDS = TextIndex("messages_fts", "messages")
TRIGRAMS = TextIndex("messages_fts_trigram", "messages_fts_trigram_src", "trigram", "tool")
INDEXES = (WORDS, TRIGRAMS)
CJK = TextIndex("messages_fts_cjk", "messages_fts_cjk_src", "cjk_unicode61", "tool", "fts_cjk_rebuild")
"""Made only where its tokenizer, a loadable extension, is there: see `state_ledger.full_text.cjk`."""


AUTOMERGE = 16
CRISISMERGE = 64
"""How many pieces of an index pile up before an append has to merge them.

SQLite's 4 and 16 make one append in a hundred wait for a merge: performance, "Writing".
"""


def create(connection: Connection) -> list[TextIndex]:
    """Makes source views, FTS5 tables and triggers, and fills the indexes from `messages`.

    Returns the indexes made: both, or only the words where this SQLite has no trigram tokenizer
    (before 3.34). Raises sqlite3.OperationalError if it has no FTS5 at all.
    """
    made = []
    for index in INDEXES:
        if index.source != "messages":
            if not has_tokenizer(connection, index.tokenize):
                continue
            connection.execute(source_view_sql(index))
        create_table(connection, index)
        for statement in trigger_sql(index):
            connection.execute(statement)
        made.append(index)
    for index in made:
        rebuild(connection, index)
    return made


def create_table(connection: Connection, index: TextIndex) -> None:
    """Makes the FTS5 table of an index, empty and set to merge late."""
    connection.execute(table_sql(index))
    for setting, value in (("automerge", AUTOMERGE), ("crisismerge", CRISISMERGE)):
        connection.execute(f"INSERT INTO {index.name}({index.name}, rank) VALUES (?, ?)", (setting, value))


def rebuild(connection: Connection, index: TextIndex) -> None:
    """Fills an index anew from its source; nothing is left of what it held."""
    if connection.execute("SELECT 1 FROM messages LIMIT 1").fetchone():
        connection.execute(f"INSERT INTO {index.name}({index.name}) VALUES ('rebuild')")


def check(connection: Connection, index: TextIndex) -> None:
    """Compares an index with its source, word by word; needs a connection that may write.

    Raises sqlite3.DatabaseError ("malformed") if they differ.
    """
    connection.execute(f"INSERT INTO {index.name}({index.name}, rank) VALUES ('integrity-check', 1)")


def add_rows(connection: Connection, index: TextIndex, after: int, up_to: int) -> None:
    """Indexes the messages with after < id <= up_to, none of which may be in the index yet."""
    columns = ", ".join(_INDEXED)
    connection.execute(
        f"INSERT INTO {index.name}(rowid, {columns}) SELECT id, {columns} FROM {index.source} WHERE id > ? AND id <= ?",
        (after, up_to),
    )


def source_view_sql(index: TextIndex) -> str:
    """CREATE VIEW of the rows that an index leaves in."""
    return (
        f"CREATE VIEW {index.source} AS\nSELECT id, role, {_aliased(index)} FROM messages\n"
        f"WHERE role <> '{index.without_role}'"
    )


def table_sql(index: TextIndex) -> str:
    """CREATE VIRTUAL TABLE of an index."""
    options = [*_INDEXED, f"content='{index.source}'", "content_rowid='id'"]
    if index.tokenize:
        options.append(f"tokenize='{index.tokenize}'")
    return f"CREATE VIRTUAL TABLE {index.name} USING fts5({', '.join(options)})"


def trigger_sql(index: TextIndex) -> tuple[str, str, str]:
    """The CREATE TRIGGER statements of an index: insert, delete, update.

    While an index is being rebuilt in steps, rows above the step reached and below the mark set at
    its start are not in it yet: `state_meta` names both, and the triggers leave those rows alone.
    """
    insert, delete, update = index.triggers
    watched = [*_INDEXED, "role"] if index.without_role else list(_INDEXED)
    changed = " OR ".join(f"old.{column} IS NOT new.{column}" for column in watched)
    return (
        f"CREATE TRIGGER {insert} AFTER INSERT ON messages\nWHEN {_indexed('new', index)}{_wanted('new', index)}\n"
        f"BEGIN\n    {_add(index)};\nEND",
        f"CREATE TRIGGER {delete} AFTER DELETE ON messages\nWHEN {_indexed('old', index)}{_wanted('old', index)}\n"
        f"BEGIN\n    {_remove(index)};\nEND",
        f"CREATE TRIGGER {update} AFTER UPDATE OF {', '.join(watched)} ON messages\n"
        f"WHEN ({changed})\n  AND {_indexed('old', index)}\n"
        f"BEGIN\n    {_remove(index)};\n    {_add(index)};\nEND",
    )


def _indexed(row: str, index: TextIndex) -> str:
    def mark(key: str) -> str:
        return f"coalesce((SELECT CAST(value AS INTEGER) FROM state_meta WHERE key = '{key}'), -1)"

    return f"({row}.id > {mark(f'{index.gate}_high_water')}\n   OR {row}.id <= {mark(f'{index.gate}_progress')})"


def _seen(column: str, index: TextIndex) -> str:
    """What an index sees of a column."""
    if index.tokenize != "trigram":
        return column
    nul = f"instr({column}, char(0))"
    return f"CASE WHEN {nul} THEN substr({column}, 1, {nul} - 1) ELSE {column} END"


def _aliased(index: TextIndex) -> str:
    return ", ".join(
        column if seen == column else f"{seen} AS {column}"
        for column, seen in ((column, _seen(column, index)) for column in _INDEXED)
    )


def _wanted(row: str, index: TextIndex) -> str:
    return f"\n  AND {row}.role <> '{index.without_role}'" if index.without_role else ""


def _add(index: TextIndex) -> str:
    condition = f" WHERE new.role <> '{index.without_role}'" if index.without_role else ""
    values = ", ".join(_seen(f"new.{column}", index) for column in _INDEXED)
    return f"INSERT INTO {index.name}(rowid, {', '.join(_INDEXED)}) SELECT new.id, {values}{condition}"


def _remove(index: TextIndex) -> str:
    # External content: FTS5 cannot look the old words up, they have to be handed to it.
    condition = f" WHERE old.role <> '{index.without_role}'" if index.without_role else ""
    values = ", ".join(_seen(f"old.{column}", index) for column in _INDEXED)
    return (
        f"INSERT INTO {index.name}({index.name}, rowid, {', '.join(_INDEXED)}) "
        f"SELECT 'delete', old.id, {values}{condition}"
    )


def has_tokenizer(connection: Connection, name: str | None) -> bool:
    """Whether an FTS5 table with this tokenizer can be made; tried, as SQLite keeps no list of them."""
    try:
        connection.execute(f"CREATE VIRTUAL TABLE temp.tokenizer_trial USING fts5(text, tokenize='{name}')")
    except sqlite3.OperationalError:
        return False
    connection.execute("DROP TABLE temp.tokenizer_trial")
    return True
