"""A bill: lines of a CSV or JSON file, summed by day and model as they are read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from state_ledger.bills import columns, values
from state_ledger.errors import StateLedgerError
from state_ledger.ledger.models import canonical_model

NO_MODEL = "(no model)"
"""Where a line names none: fees, credits, taxes."""

MOST_PAIRS = 200_000
"""Days times models of one bill, which are held in memory."""

MOST_JSON = 32_000_000
"""Characters of a JSON document, which is read as a whole; CSV and one object a line are not."""

DELIMITERS = ",;\t|"


class BillError(StateLedgerError):
    """A bill cannot be read; the sentence names the file, the place in it and what is wrong.

    place: the number of a line, or another place in words; None for the whole.
    """

    def __init__(self, name: str, place: int | str | None, why: str) -> None:
        where = f", line {place}" if isinstance(place, int) else f", {place}" if place else ""
        super().__init__(f"{name}{where}: {why.rstrip('.')}.")
        self.place = place


@dataclass
class Bill:
    """The sums of a bill.

    amounts: dollars by (day, model), models by their normalised name. lines: how many there were.
    credits: what negative lines come to. spelled: the names of each model on the bill.
    """

    name: str
    amounts: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    lines: int = 0
    credits: Decimal = Decimal(0)
    spelled: dict[str, set[str]] = field(default_factory=dict)

    def renamed(self, names: Mapping[str, str]) -> Bill:
        """The same bill with models under other names; those that `names` leaves out keep theirs."""
        amounts: dict[tuple[str, str], Decimal] = {}
        spelled: dict[str, set[str]] = {}
        for (day, model), amount in self.amounts.items():
            key = (day, names.get(model, model))
            amounts[key] = amounts.get(key, Decimal(0)) + amount
        for model, spellings in self.spelled.items():
            spelled.setdefault(names.get(model, model), set()).update(spellings)
        return Bill(self.name, amounts, self.lines, self.credits, spelled)

    @property
    def total(self) -> Decimal:
        return sum(self.amounts.values(), Decimal(0))

    @property
    def first_day(self) -> str:
        return min(day for day, _model in self.amounts)

    @property
    def last_day(self) -> str:
        return max(day for day, _model in self.amounts)

    def add(self, day: str, model: str, amount: Decimal) -> None:
        """Takes one line in. What stands after a comma in the model's name is the kind of use: `m, cached input`."""
        named = model.partition(",")[0].strip()
        name = canonical_model(named) if named else NO_MODEL
        self.spelled.setdefault(name, set()).add(named)
        key = (day, name)
        self.amounts[key] = self.amounts.get(key, Decimal(0)) + amount
        self.lines += 1
        self.credits += min(amount, Decimal(0))


def read_file(path: str | Path, zone: str) -> Bill:
    """Reads a bill from a file, CSV, JSON or one JSON object a line. Raises BillError."""
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            return read_text(stream, zone, name=str(file))
    except OSError as error:
        raise BillError(str(file), None, f"it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BillError(str(file), None, "it is not UTF-8 text; save it as UTF-8") from error


def read_text(stream: TextIO, zone: str, *, name: str = "The bill") -> Bill:
    """Reads a bill from a stream that was opened with `newline=''`. Days of moments are those of the zone.

    Raises BillError for the first line that cannot be meant, and for a bill without lines.
    """
    bill = Bill(name)
    # What is pasted may begin with the mark that files of some programs begin with.
    lines = ((number, line.removeprefix("\ufeff")) for number, line in enumerate(stream, 1))
    first, ahead = next(((number, line) for number, line in lines if line.strip()), (0, ""))
    if not ahead:
        raise BillError(name, None, "it is empty")
    is_json = ahead.lstrip()[0] in "[{"
    records = _json_records(name, first, ahead, stream) if is_json else _csv_records(name, first, ahead, stream)
    for place, record, roles in records:
        try:
            values.currency(record.get(roles.get("currency", "")))
            day = values.day(record.get(roles["date"]), zone)
            bill.add(day, str(record.get(roles["model"]) or ""), values.amount(record.get(roles["amount"])))
        except values.Meaningless as error:
            raise BillError(name, place, str(error)) from error
        if len(bill.amounts) > MOST_PAIRS:
            raise BillError(name, place, f"there are more than {MOST_PAIRS:,} pairs of day and model; split the bill")
    if not bill.lines:
        raise BillError(name, None, "there is no line on it")
    return bill


Records = Iterator[tuple[int | str, Mapping[str, Any], Mapping[str, str]]]
"""Where it stands, values by column, and the column of each role."""


def _csv_records(name: str, first: int, ahead: str, rest: Iterable[str]) -> Records:
    delimiter = max(DELIMITERS, key=ahead.count)
    reader = csv.reader(chain([ahead], rest), delimiter=delimiter, strict=True)
    line = first
    header: list[str] | None = None
    roles: dict[str, str] = {}
    while True:
        line = first + reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise BillError(name, line, f"this is not CSV: {error}") from error
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = [cell.strip() for cell in cells]
            roles, wrong = columns.find(header)
            if wrong:
                raise BillError(name, line, wrong)
            continue
        if len(cells) != len(header):
            raise BillError(name, line, f"there are {len(cells)} values under {len(header)} columns")
        yield line, dict(zip(header, cells, strict=True)), roles


def _json_records(name: str, first: int, ahead: str, rest: TextIO) -> Records:
    begun = None
    if ahead.lstrip().startswith("{") and len(ahead) <= MOST_JSON:
        with suppress(ValueError, RecursionError):  # the beginning of a document, or wrong: told below
            begun = json.loads(ahead)
    if isinstance(begun, dict) and not any(isinstance(value, list) for value in begun.values()):
        lines = ((number, text) for number, text in enumerate(chain([ahead], rest), first) if text.strip())
        for number, text in lines:
            yield _json_record(name, number, _loaded(name, text.strip(), number))
        return
    text = ahead + rest.read(MOST_JSON)
    if len(text) > MOST_JSON or rest.read(1):
        raise BillError(name, None, f"a JSON document of more than {MOST_JSON:,} characters is too long to be read as a"
                        " whole; write one object a line, or CSV")  # fmt: skip
    document = _loaded(name, text, first)
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if len(lists) != 1:
            raise BillError(name, None, "it has to be a list of objects, or an object with one list in it")
        document = lists[0]
    for number, entry in enumerate(document, 1):
        yield _json_record(name, f"entry {number}", entry)


def _loaded(name: str, text: str, first: int) -> Any:
    try:
        # As text, so that an amount keeps its digits.
        return json.loads(text, parse_float=str, parse_int=str)
    except json.JSONDecodeError as error:
        raise BillError(name, first + error.lineno - 1, f"this is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise BillError(name, first, "it is nested too deeply") from error


def _json_record(name: str, place: int | str, entry: Any) -> tuple[int | str, Mapping[str, Any], Mapping[str, str]]:
    if not isinstance(entry, dict):
        raise BillError(name, place, "this entry is no object with date, model and amount")
    roles, wrong = columns.find(list(entry))
    if wrong:
        raise BillError(name, place, wrong)
    return place, entry, roles
