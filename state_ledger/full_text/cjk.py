"""The index of Chinese, Japanese and Korean words, which needs a tokenizer that SQLite does not have.

Source: store-format, section 2. The tokenizer is a loadable extension that the user builds. Where it
cannot be loaded, its index must never keep a message from being stored: its triggers are dropped and
the index is marked as stale, until it is filled anew where the tokenizer is there. Nothing of ours
needs this index.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from state_ledger.full_text import CJK, has_tokenizer, rebuild, source_view_sql, trigger_sql
from state_ledger.full_text import layout as text_layout
from state_ledger.homes import expanded, hermes_home
from state_ledger.sqlite import Connection, sqlite3

STALE_KEY = "fts_cjk_stale"
"""`state_meta` key: '1' while messages may be missing from the index."""

ENTRY_POINTS = ("sqlite3_ftscjk_init", "sqlite3_fts5_cjk_init")
_OFF = frozenset({"0", "false", "off", "no"})


def extension_path(environ: Mapping[str, str] | None = None) -> Path | None:
    """The extension's file, None where there is none or HERMES_CJK_FTS turns it off.

    `$HERMES_FTS5_CJK_SO`, else `lib/libfts5_cjk.so` in `$HERMES_HOME` (default `~/.hermes`).
    """
    environ = os.environ if environ is None else environ
    if environ.get("HERMES_CJK_FTS", "").strip().lower() in _OFF:
        return None
    named = environ.get("HERMES_FTS5_CJK_SO", "").strip()
    home = hermes_home(environ)
    path = expanded(named) if named else home and home / "lib" / "libfts5_cjk.so"
    return path if path and path.is_file() else None


def load(connection: Connection, environ: Mapping[str, str] | None = None) -> bool:
    """Loads the tokenizer into this connection, which every connection needs for itself.

    Returns whether the tokenizer is there now; never raises. A Python built without extension
    loading cannot have it.
    """
    path = extension_path(environ)
    if path is None or not hasattr(connection, "enable_load_extension"):
        return False
    try:
        connection.enable_load_extension(True)
    except sqlite3.Error:
        return False
    try:
        return any(_load(connection, path, entry) for entry in ENTRY_POINTS) and has_tokenizer(connection, CJK.tokenize)
    finally:
        connection.enable_load_extension(False)


def _load(connection: Connection, path: Path, entry: str) -> bool:
    try:
        # Python 3.12 takes an entry point as an argument, every SQLite with this function in SQL.
        connection.execute("SELECT load_extension(?, ?)", (str(path), entry)).fetchone()
    except sqlite3.Error:
        return False
    return True


def exists(connection: Connection) -> bool:
    """Whether the file has the index."""
    return _has(connection, "table", CJK.name)


def usable(connection: Connection) -> bool:
    """Whether this connection can read and write the index, complete or not."""
    try:
        connection.execute(f"""SELECT 1 FROM {CJK.name} WHERE {CJK.name} MATCH '""' LIMIT 1""").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def serves(connection: Connection) -> bool:
    """Whether a search may use the index: it can be read here and holds every message."""
    return (
        exists(connection)
        and text_layout.mark(connection, STALE_KEY) != "1"
        and text_layout.gate(connection, CJK) is None
        and usable(connection)
    )


def in_the_way(connection: Connection) -> bool:
    """Whether the index would keep messages from being stored here, or is behind without saying so."""
    if not exists(connection) or usable(connection):
        return False
    has_trigger = any(_has(connection, "trigger", name) for name in CJK.triggers)
    return has_trigger or text_layout.mark(connection, STALE_KEY) != "1"


def step_aside(connection: Connection) -> None:
    """Marks the index as stale and drops its three triggers; the index itself stays."""
    text_layout.set_mark(connection, STALE_KEY, "1")
    _drop_triggers(connection)


def wanting(connection: Connection) -> bool:
    """Whether the index can be kept here but is missing, stale, unfinished or without a trigger."""
    if not exists(connection):
        return extension_path() is not None and has_tokenizer(connection, CJK.tokenize)
    if not usable(connection):
        return False
    return not serves(connection) or not all(_has(connection, "trigger", name) for name in CJK.triggers)


def begin(connection: Connection) -> None:
    """Empties the index, made first if it is missing, to be filled with `step`; triggers are in place."""
    _drop_triggers(connection)
    if not exists(connection):
        text_layout.make(connection, CJK)
    else:
        if not _has(connection, "view", CJK.source):
            connection.execute(source_view_sql(CJK))
        connection.execute(f"INSERT INTO {CJK.name}({CJK.name}) VALUES ('delete-all')")
        for sql in trigger_sql(CJK):
            connection.execute(sql)
    text_layout.set_mark(connection, STALE_KEY, "1")
    text_layout.set_gate(connection, CJK)


def step(connection: Connection, rows: int) -> bool:
    """Indexes the next `rows` messages; returns whether any are left."""
    if text_layout.step(connection, (CJK,), rows):
        return True
    text_layout.clear_marks(connection, STALE_KEY)
    return False


def fill(connection: Connection) -> None:
    """Makes the index anew from all messages, at once."""
    begin(connection)
    rebuild(connection, CJK)
    text_layout.clear_marks(connection, f"{CJK.gate}_high_water", f"{CJK.gate}_progress", STALE_KEY)


def _drop_triggers(connection: Connection) -> None:
    for name in CJK.triggers:
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")


def _has(connection: Connection, kind: str, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = ? AND name = ?", (kind, name))
    return found.fetchone() is not None
