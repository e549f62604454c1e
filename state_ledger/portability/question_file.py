"""A canned query's whole answer as a file: every row, whatever limits pages have (case 19)."""

from __future__ import annotations

import json
import marshal
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from state_ledger import questions
from state_ledger.errors import StateLedgerError
from state_ledger.portability.formats import csv_rows
from state_ledger.portability.scope import NothingToExport
from state_ledger.questions import OutOfTime, Question, UnknownQuestion
from state_ledger.questions.engines import Books
from state_ledger.redact import Redactor, Report
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection, sqlite3

TIME_FACTOR = 12
"""A whole answer may take so many times what a page's question may."""

IN_MEMORY = 4 << 20
"""Bytes of a file that are kept in memory before it goes to disk."""

MOST_AT_ONCE = 1_000_000
"""Rows that an engine other than SQLite may give, which are all in memory at one time."""

FORMS = ("csv", "json", "ndjson", "parquet")
_NO_LIMIT = 10**14
_ROWS_AT_ONCE = 500

Row = tuple[Any, ...]


class TooManyRows(StateLedgerError):
    """An answer that is too long to be made into a file."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The question {name} has more than {MOST_AT_ONCE:,} rows. Ask for less: a period, a host, or a limit."
        )


@dataclass(frozen=True)
class _Bounds:
    """The settings of an instance without the bound on rows."""

    zone_name: str
    day_rule: str
    max_limit: int = _NO_LIMIT


@dataclass
class QuestionFile:
    """The file, open at its beginning.

    size: its bytes. rows: how many it has. complete: whether those are all rows that the question has;
    False only where the parameter `limit` was given. report: what was redacted.
    """

    file: IO[bytes]
    size: int
    rows: int
    complete: bool
    report: Report = field(default_factory=Report)

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the file in pieces."""
        while chunk := self.file.read(1 << 18):
            yield chunk


def make(
    connection: Connection | Books,
    name: str,
    parameters: Mapping[str, str],
    form: str,
    *,
    settings: Settings,
    redact: bool = False,
    spreadsheet_safe: bool = False,
    may_be_empty: bool = False,
) -> QuestionFile:
    """Asks a question and writes its answer to a file of its own, so that no client is waited for meanwhile.

    form: one of FORMS. may_be_empty: whether an answer without rows is a file too, with its columns alone.
    Raises UnknownQuestion, ParameterError, OutOfTime, NothingToExport if it has no row, ParquetMissing.
    """
    question = questions.asked_of(connection).get(name)
    if question is None:
        raise UnknownQuestion(f"There is no question named {name!r}; see the list on the page of the store.")
    redactor = Redactor() if redact else None
    asked = _Asked(question, parameters, settings)
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 (the caller closes it)
    try:
        writer = {"csv": _csv, "json": _json, "ndjson": _ndjson, "parquet": _parquet}[form]
        try:
            if form == "csv":
                _csv(file, asked, asked.pages(connection, redactor), spreadsheet_safe)
            else:
                writer(file, asked, asked.pages(connection, redactor))
        finally:
            if not isinstance(connection, Books):
                connection.set_progress_handler(None, 0)
        if not asked.count and not may_be_empty:
            raise NothingToExport(f"There is nothing to export: the question {name} has no rows for these parameters.")
    except BaseException:
        file.close()
        raise
    size = file.tell()
    file.seek(0)
    return QuestionFile(file, size, asked.count, asked.complete, redactor.report if redactor else Report())


class _Asked:
    """One question with its parameters, and how much of the answer was read."""

    def __init__(self, question: Question, parameters: Mapping[str, str], settings: Settings) -> None:
        self._bounds = bounds = _Bounds(settings.zone_name, settings.day_rule)
        self.question = question
        self.checked = question.check(parameters, bounds)
        self._bound = {p.name: parameters.get(p.name, "").strip() for p in question.parameters}
        self._limit = int(self._bound["limit"]) if self._bound.get("limit") else None
        if "limit" in self._bound:
            self._bound["limit"] = str(_NO_LIMIT if self._limit is None else self._limit + 1)
            self.checked["limit"] = "" if self._limit is None else str(self._limit)
        self._sql = question.compiled(bounds, spare_rows=1)
        self._limit_ms = settings.query_time_limit_ms * TIME_FACTOR
        self.columns: list[str] = []
        self.count = 0
        self.complete = True

    def pages(self, connection: Connection | Books, redactor: Redactor | None) -> Iterator[list[Row]]:
        """The rows, some at a time. Raises OutOfTime, and TooManyRows where an engine gives them all at once."""
        if isinstance(connection, Books):
            yield from self._pages_of(connection, redactor)
            return
        deadline = time.monotonic() + self._limit_ms / 1000
        connection.set_progress_handler(lambda: int(time.monotonic() > deadline), questions.STEPS_BETWEEN_LOOKS)
        try:
            cursor = connection.execute(self._sql, self._bound)
            self.columns = [column[0] for column in cursor.description]
            while self.complete and (rows := [tuple(row) for row in cursor.fetchmany(_ROWS_AT_ONCE)]):
                if self._limit is not None and self.count + len(rows) > self._limit:
                    rows, self.complete = rows[: self._limit - self.count], False
                self.count += len(rows)
                yield rows if redactor is None else [_redacted(row, redactor) for row in rows]
            cursor.close()
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise OutOfTime(self.question.name, self._limit_ms) from error
            raise


    def _pages_of(self, books: Books, redactor: Redactor | None) -> Iterator[list[Row]]:
        bound = dict(self._bound)
        if "limit" in bound:
            bound["limit"] = str(min(int(bound["limit"]), MOST_AT_ONCE + 1))
        self.columns, rows = books.answer(self.question, self._bounds, bound, self._limit_ms)
        if len(rows) > MOST_AT_ONCE:
            raise TooManyRows(self.question.name)
        if self._limit is not None and len(rows) > self._limit:
            rows, self.complete = rows[: self._limit], False
        self.count = len(rows)
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            page = rows[at : at + _ROWS_AT_ONCE]
            yield page if redactor is None else [_redacted(row, redactor) for row in page]


def _redacted(row: Row, redactor: Redactor) -> Row:
    return tuple(redactor.text(cell) if isinstance(cell, str) else cell for cell in row)


def _csv(file: IO[bytes], asked: _Asked, pages: Iterator[list[Row]], safe: bool = False) -> None:
    for number, page in enumerate(pages):
        if number == 0:
            file.write(csv_rows.head(asked.columns, safe))
        file.write(csv_rows.lines([[_plain(cell) for cell in row] for row in page], safe).encode())
    if not asked.count:
        file.write(csv_rows.head(asked.columns, safe))


def _json(file: IO[bytes], asked: _Asked, pages: Iterator[list[Row]]) -> None:
    between = b""
    for page in pages:
        file.write(between or _beginning(asked))
        file.write(",\n".join(_dump(_record(asked, row)) for row in page).encode())
        between = b",\n"
    if not between:
        file.write(_beginning(asked))
    file.write(_dump({"truncated": not asked.complete, "row_count": asked.count}).replace("{", "\n], ", 1).encode())


def _beginning(asked: _Asked) -> bytes:
    """The head of the JSON, up to its first row."""
    head = asked.question.head(asked.checked, asked.columns)
    return _dump(head)[:-1].encode() + b', "rows": [\n'


def _ndjson(file: IO[bytes], asked: _Asked, pages: Iterator[list[Row]]) -> None:
    for page in pages:
        file.write("".join(f"{_dump(_record(asked, row))}\n" for row in page).encode())


def _parquet(file: IO[bytes], asked: _Asked, pages: Iterator[list[Row]]) -> None:
    from state_ledger.portability.formats import parquet_rows

    arrow = parquet_rows.load()
    kinds: dict[int, set[type]] = {}
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as kept:
        for page in pages:
            rows = [tuple(map(_plain, row)) for row in page]
            for row in rows:
                for place, cell in enumerate(row):
                    if cell is not None:
                        kinds.setdefault(place, set()).add(type(cell))
            marshal.dump(rows, kept)
        marshal.dump(None, kept)
        kept.seek(0)
        types = [_arrow_type(arrow, kinds.get(place, set())) for place in range(len(asked.columns))]
        schema = arrow.schema(list(zip(asked.columns, types, strict=True)))
        for piece in parquet_rows.stream(schema, iter(lambda: marshal.load(kept), None)):
            file.write(piece)


def _arrow_type(arrow: Any, kinds: set[type]) -> Any:
    if kinds == {int}:
        return arrow.int64()
    return arrow.float64() if kinds and kinds <= {int, float} else arrow.string()


def _record(asked: _Asked, row: Sequence[Any]) -> dict[str, Any]:
    return {name: _finite(_plain(cell)) for name, cell in zip(asked.columns, row, strict=True)}


def _plain(cell: Any) -> Any:
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    return cell.replace("\x00", "�") if isinstance(cell, str) and "\x00" in cell else cell


def _finite(cell: Any) -> Any:
    # JSON has no word for infinity, which a damaged row can hold.
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


_dump: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, default=str).encode
