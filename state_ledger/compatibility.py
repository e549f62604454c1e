"""The private names of the agent's own `SessionDB` that programs in the field reach for. Kept in one place.

They are a seam for such programs and nothing else: the project itself uses none of them. What each
does is what session-db, sections 0 and 1, says of it.

| name | here |
|---|---|
| `db._conn` | the handle's connection: autocommit, rows are `sqlite3.Row` |
| `db._lock` | the lock that is held for every statement (re-entrant) |
| `db._execute_write(fn)` | `fn(connection)` in one transaction, tried again while the store is locked |
| `db._fts_enabled` | whether the store has an index of words that this SQLite can read |
| `db._reconcile_columns(cursor)` | adds what the file lacks of schema 23, as opening it does |
| `SessionDB._sanitize_fts5_query(text)` | what a person typed, as a query that FTS5 accepts |
| `SessionDB._contains_cjk(text)` | whether a text has Chinese, Japanese or Korean characters |
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from state_ledger import full_text, migrate
from state_ledger.schema import SCHEMA_VERSION
from state_ledger.search import query, sanitize, text
from state_ledger.sqlite import Connection
from state_ledger.writing import checkpoints, contention, opening
from state_ledger.writing.writer import Writer

__all__ = ["DEFAULT_DB_PATH", "MAX_FTS5_QUERY_CHARS", "SCHEMA_VERSION", "PrivateNames"]

T = TypeVar("T")

MAX_FTS5_QUERY_CHARS = query.MAX_CHARACTERS
_WRITE_MAX_RETRIES = contention.MAX_RETRIES
_WRITE_RETRY_MIN_S = contention.RETRY_MIN_S
_WRITE_RETRY_MAX_S = contention.RETRY_MAX_S
_CHECKPOINT_EVERY_N_WRITES = checkpoints.EVERY_N_WRITES

DEFAULT_DB_PATH: Path = opening.default_path()
"""Where the store was when this module was imported; `SessionDB()` looks anew each time."""


class PrivateNames:
    """What `SessionDB` inherits for the sake of programs that use its private names."""

    _WRITE_MAX_RETRIES = _WRITE_MAX_RETRIES
    _WRITE_RETRY_MIN_S = _WRITE_RETRY_MIN_S
    _WRITE_RETRY_MAX_S = _WRITE_RETRY_MAX_S
    _CHECKPOINT_EVERY_N_WRITES = _CHECKPOINT_EVERY_N_WRITES

    _writer: Writer

    @property
    def _conn(self) -> Connection:
        return self._writer.connection

    # The class behind RLock() has no name to be annotated with before Python 3.13.
    @property
    def _lock(self) -> threading.RLock:  # type: ignore[valid-type, unused-ignore]
        return self._writer.lock

    @property
    def _fts_enabled(self) -> bool:
        return self._writer.shape.has(full_text.WORDS.name)

    def _execute_write(self, fn: Callable[[Connection], T]) -> T:
        return self._writer.write(fn)

    def _reconcile_columns(self, cursor: object = None) -> None:
        migrate.on_open(self._writer)
        self._writer.renew_shape()

    @staticmethod
    def _sanitize_fts5_query(query_text: str) -> str:
        return sanitize.sanitize_fts5_query(query_text)

    @staticmethod
    def _contains_cjk(checked: str) -> bool:
        return text.contains_cjk(checked)
