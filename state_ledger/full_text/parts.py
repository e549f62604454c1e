"""The tables in which FTS5 keeps an index: which a file lacks, and how an index that lost one is freed.

Source: https://sqlite.org/fts5.html, "FTS5 data structures". An index without one of its tables can be
neither written nor read nor, in the worst case, dropped, and its triggers keep messages out.
"""

from __future__ import annotations

from state_ledger import full_text
from state_ledger.sqlite import Connection

_PARTS = {
    "data": "(id INTEGER PRIMARY KEY, block BLOB)",
    "idx": "(segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID",
    "docsize": "(id INTEGER PRIMARY KEY, sz BLOB)",
    "content": "(id INTEGER PRIMARY KEY, c0)",
    "config": "(k PRIMARY KEY, v) WITHOUT ROWID",
}
_FORMAT = 4
"""The version of its format that FTS5 writes down in `_config`, and without which it opens nothing."""


def missing(connection: Connection) -> dict[str, str]:
    """Tables that an index of every store needs and the file lacks: their names, and which part they are."""
    found = definitions(connection)
    return {
        f"{index.name}_{part}": part
        for index in full_text.INDEXES
        if found.get(index.name, "").startswith("createvirtualtable")
        for part in _PARTS
        if f"{index.name}_{part}" not in found
        and not (part == "content" and "content=" in found[index.name])
        and not (part == "docsize" and "columnsize=" in found[index.name])
    }


def restore(connection: Connection) -> None:
    """Puts empty tables in the place of missing ones, so that the index can be dropped and made anew."""
    for name, part in missing(connection).items():
        connection.execute(f"CREATE TABLE {name}{_PARTS[part]}")
        if part == "config":
            connection.execute(f"INSERT INTO {name}(k, v) VALUES ('version', ?)", (_FORMAT,))


def definitions(connection: Connection) -> dict[str, str]:
    """Everything of the full-text indexes that the schema names, by name, each `plain`."""
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name LIKE '%messages\\_fts%' ESCAPE '\\'"
    )
    return {str(row[0]): plain(str(row[1])) for row in rows}


def plain(sql: str) -> str:
    """A definition without the differences that make none."""
    return "".join(sql.split()).lower().replace('"', "").replace("ifnotexists", "")
