"""What leaves a host: which columns are empty, which hold a digest, in which secrets are replaced."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from state_ledger import private, unfinished
from state_ledger.homes import data_folder
from state_ledger.lake import parquet
from state_ledger.lake.errors import LakeError
from state_ledger.lake.manifest import Options
from state_ledger.lake.tables import Table
from state_ledger.redact import Redactor

if TYPE_CHECKING:
    import pyarrow

DIGESTED = ("arguments",)
"""Columns with what was said of which questions need to know whether two are the same."""

_KEY_BYTES = 32


def hidden(table: Table, options: Options) -> list[str]:
    """The columns of a table that are not even read."""
    unsaid = [] if options.with_messages else [name for name in table.texts if name not in DIGESTED]
    return unsaid + [column.name for column in table.columns if column.name in options.left_out]


class Outgoing:
    """Makes of rows what may leave the host."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._redactor = Redactor() if options.redacted else None
        self._key: bytes | None = None

    def rows(self, table: Table, found: pyarrow.Table) -> pyarrow.Table:
        """The rows without what stays. Doing it twice changes nothing more."""
        empty = hidden(table, self.options)
        for at, column in enumerate(table.columns):
            made: Callable[[str], str] | None = None
            if column.name in empty:
                found = _with(found, at, parquet.load().nulls(found.num_rows, found.schema.field(at).type))
                continue
            if column.name in DIGESTED and not self.options.with_messages:
                made = self._digest
            elif column.kind == "text" and self._redactor is not None and not _is_id(column.name):
                made = self._redactor.text
            if made is not None:
                found = _with(found, at, _each(found.column(at), made))
        return found

    def _digest(self, text: str) -> str:
        if text.startswith(_DIGEST) and len(text) == len(_DIGEST) + 32:
            return text
        if self._key is None:
            self._key = key()
        return _DIGEST + hmac.digest(self._key, text.encode(), hashlib.sha256).hex()[:32]


_DIGEST = "digest:"


def key() -> bytes:
    """The secret of this user on this host that digests are made with, made when it is first needed.

    It never leaves the host: without it nobody can find out by trying which text a digest is of.
    Raises LakeError if it can neither be read nor made, NoHomeError.
    """
    folder = data_folder()
    file = folder / "lake.key"
    try:
        private.folder(folder)
        if not file.exists():
            part = unfinished.place(file.name, folder)
            with private.writing(part) as made:
                made.write(secrets.token_bytes(_KEY_BYTES))
                made.flush()
                os.fsync(made.fileno())
            try:
                os.link(part, file)  # the first of several that make one is right
            except FileExistsError:
                pass
            finally:
                unfinished.remove(part)
        found = file.read_bytes()
    except OSError as error:
        raise LakeError(f"The key of digests {file} cannot be read or made ({error.strerror}).") from error
    if len(found) != _KEY_BYTES:
        raise LakeError(f"The key of digests {file} is damaged. Remove it: another is made, and digests become others.")
    return found


def _is_id(column: str) -> bool:
    """Whether a column joins rows, whose values therefore stay as they are."""
    return column == "id" or column.endswith("_id")


def _each(column: pyarrow.ChunkedArray, made: Callable[[str], str]) -> pyarrow.ChunkedArray:
    """A column with each text replaced; what occurs often is made once."""
    arrow = parquet.load()
    pieces = []
    for chunk in column.dictionary_encode().chunks:
        after = arrow.array([made(text) for text in chunk.dictionary.to_pylist()], arrow.string())
        pieces.append(after.take(chunk.indices))
    return arrow.chunked_array(pieces, arrow.string())


def _with(found: pyarrow.Table, at: int, column: Any) -> pyarrow.Table:
    return found.set_column(at, found.schema.field(at), column)
