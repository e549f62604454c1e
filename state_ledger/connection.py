"""Connections that read: opened without harm, and unable to change anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from state_ledger import access, ledger, stores
from state_ledger.errors import StoreAccessError, StoreUnreadableError
from state_ledger.full_text import cjk
from state_ledger.search import functions
from state_ledger.sqlite import BUSY_TIMEOUT_S, Connection, Row, read_only_uri, sqlite3

if TYPE_CHECKING:
    from state_ledger.settings import Settings
    from state_ledger.shape import Shape

READING_ACTIONS: frozenset[int] = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
)

READING_PRAGMAS: frozenset[str] = frozenset(
    {
        "collation_list", "compile_options", "data_version", "database_list", "foreign_key_check",
        "foreign_key_list", "freelist_count", "function_list", "index_info", "index_list",
        "index_xinfo", "integrity_check", "module_list", "page_count", "pragma_list", "quick_check",
        "recursive_triggers", "table_info", "table_list", "table_xinfo",
    }
)  # fmt: skip
"""Pragmas that change nothing, with or without an argument.

`recursive_triggers` is among them since sqlite-utils, which Datasette 1.0 uses to read columns, sets
it on every connection; where nothing can be written no trigger runs.
"""

ASKING_PRAGMAS: frozenset[str] = frozenset(
    {
        "application_id", "auto_vacuum", "automatic_index", "busy_timeout", "cache_size", "encoding",
        "foreign_keys", "journal_mode", "journal_size_limit", "mmap_size", "page_size", "query_only",
        "schema_version", "secure_delete", "synchronous", "temp_store", "threads",
        "user_version", "wal_autocheckpoint",
    }
)  # fmt: skip
"""Pragmas that tell a value without an argument and set it with one."""

FORBIDDEN_FUNCTIONS: frozenset[str] = frozenset({"load_extension", "fts3_tokenizer"})


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Within, what SQLite cannot read of a store is a StoreAccessError that says whether it is worth trying again."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreAccessError(path, f"{path} cannot be read just now ({error}).", "Try again in a moment.") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise StoreUnreadableError(path, error) from error


def guard(connection: Connection) -> None:
    """Makes a connection one that can only read, whoever's SQL runs on it.

    Sets `query_only` and an authorizer. From then on ATTACH, DETACH, writes, DDL (also of TEMP
    objects), transactions, `load_extension` and pragmas that set anything fail with SQLite's
    "not authorized". Register functions and make TEMP views before.
    """
    connection.execute("PRAGMA query_only = 1")
    connection.set_authorizer(_authorize)


def open_for_reading(
    path: str | PathLike[str],
    *,
    settings: Settings | None = None,
    profile: str | None = None,
    immutable: bool = False,
) -> Connection:
    """A guarded connection to a store, with the views and functions of the ledger.

    Rows are `sqlite3.Row`; text that is not UTF-8 comes with replacement characters. profile: the
    name that the views give, by default the one its folder says. immutable: only for a file that
    nobody can be writing, such as one on read-only media.
    Raises StoreAccessError if the file cannot be read without harm.
    """
    path = Path(path)
    access.check(path)
    connection = sqlite3.connect(
        read_only_uri(path, immutable=immutable), uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    try:
        furnish(connection, path, settings=settings, profile=profile)
    except BaseException:
        connection.close()
        raise
    return connection


def furnish(
    connection: Connection, path: Path, *, settings: Settings | None = None, profile: str | None = None
) -> Shape:
    """Gives a new connection to the store at `path` what `open_for_reading` promises, and takes writing from it.

    Returns what the file has. Raises sqlite3.DatabaseError if SQLite cannot read its schema.
    """
    connection.row_factory = Row
    connection.text_factory = decode_text
    cjk.load(connection)
    shape = ledger.install(connection, profile=profile or stores.profile_of(path), settings=settings)
    if shape.is_store:
        functions.install(connection)
    guard(connection)
    return shape


def decode_text(stored: bytes) -> str:
    """Text as it is, bytes that are not UTF-8 replaced: such rows must not break a page."""
    return str(stored, "utf-8", "replace")


def _authorize(
    action: int, first: str | None, second: str | None, _database: str | None, _inner: str | None
) -> int:
    # Called for every column that a statement names while it is prepared: the common case comes first.
    if action in READING_ACTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second in FORBIDDEN_FUNCTIONS else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first is not None:
        name = first.lower()
        if name in READING_PRAGMAS or (second is None and name in ASKING_PRAGMAS):
            return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
        # SQLite 3.40 asks this when it connects to a full-text table, in which nothing is updated. A real
        # UPDATE of sqlite_master fails without us: it needs `writable_schema`, which is refused above.
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
