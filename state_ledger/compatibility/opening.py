"""Opening a store by hand, and saying why it could not be opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from state_ledger.full_text import cjk
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing import journal

_failures: list[str] = []


@contextmanager
def noted() -> Iterator[None]:
    """Notes the error with which opening a store ends, for `get_last_init_error`."""
    try:
        yield
    except Exception as error:
        _failures[:] = [f"{type(error).__name__}: {error}"]
        raise


def get_last_init_error() -> str | None:
    """The last error with which a `SessionDB` of this process could not be opened, None if there was none."""
    return _failures[0] if _failures else None


def format_session_db_unavailable(prefix: str = "Session database not available") -> str:
    """A sentence for the user: the prefix, and that error."""
    error = get_last_init_error()
    return f"{prefix}." if error is None else f"{prefix}: {error.rstrip('.')}."


def apply_wal_with_fallback(conn: Connection, *, db_label: str = "state.db") -> str:
    """Gives a file a write-ahead log unless something speaks against it; returns its mode, `wal` or `delete`.

    db_label: what the warning calls the file that gets none.
    """
    return journal.choose(conn, Path(db_label))


def is_sqlite_wal_reset_vulnerable(version_info: tuple[int, ...] | None = None) -> bool:
    """Whether an SQLite, by default the one in use, can corrupt a file through its write-ahead log."""
    return journal.has_wal_reset_bug(version_info)


def sqlite_source_id() -> str:
    """Date and check-in of the SQLite in use."""
    with closing(sqlite3.connect(":memory:")) as connection:
        return str(connection.execute("SELECT sqlite_source_id()").fetchone()[0])


def fts5_cjk_so_path() -> Path | None:
    """The file of the CJK tokenizer, None where there is none or it is turned off."""
    return cjk.extension_path()


def load_fts5_cjk_extension(conn: Connection) -> bool:
    """Loads the CJK tokenizer into a connection; whether it is there now."""
    return cjk.load(conn)


def workspace_key(row: Mapping[str, Any]) -> str | None:
    """What sessions of one workspace share: the repository's root, else the folder; None for neither."""
    for name in ("git_repo_root", "cwd"):
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None
