"""The user's own price table: a YAML file, checked row by row.

    prices:
      - model: claude-sonnet-4-5      # or pattern: "claude-*"
        provider: anthropic           # optional: only what this provider billed
        from: 2026-01-01              # optional: first day, UTC
        until: 2026-06-30             # optional: last day, UTC
        input: 3                      # dollars per million tokens
        output: 15
        cache_read: 0.30
        cache_write: 3.75
        note: contract of January, from euros at 1.08
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from state_ledger.errors import StateLedgerError
from state_ledger.homes import expanded
from state_ledger.ledger.models import canonical_model
from state_ledger.prices.price import BUCKETS, Match, Price

KEYS = ("model", "pattern", "provider", "from", "until", *BUCKETS, "note")

DEAREST = Decimal(1_000_000)
"""Dollars per million tokens above which no price can be meant."""

MOST_BYTES = 4_000_000


class PriceTableError(StateLedgerError):
    """A price table cannot be used; the sentence names the file, the line and what is wrong."""

    def __init__(self, file: Path, line: int | None, why: str) -> None:
        super().__init__(f"{file}{f', line {line}' if line else ''}: {why}")
        self.file = file
        self.line = line


@dataclass(frozen=True)
class Row:
    """One row of the table. name: a model, or a pattern with `*` and `?` where `is_pattern`.

    first, last: days, UTC, both inclusive, None for an open end.
    """

    name: str
    is_pattern: bool
    provider: str
    first: date | None
    last: date | None
    price: Price

    def match(self, model: str, provider: str) -> Match | None:
        """How the row fits a model as stored and the provider that billed it; None if it does not."""
        if self.provider and self.provider != provider.strip().lower():
            return None
        stored, canonical = model.strip().lower(), canonical_model(model)
        if self.is_pattern:
            return "pattern" if fnmatchcase(stored, self.name) or fnmatchcase(canonical, self.name) else None
        if stored == self.name:
            return "exact"
        return "alias" if canonical == canonical_model(self.name) else None

    def holds(self, day: date) -> bool:
        """Whether the row is for this day."""
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)


def read(path: str | Path) -> tuple[Row, ...]:
    """The rows of a price table, in order. Raises PriceTableError."""
    file = expanded(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise PriceTableError(file, None, f"a price table has at most {MOST_BYTES:,} bytes.")
        text = file.read_bytes().decode("utf-8-sig")
        dated = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc).date().isoformat()
    except OSError as error:
        raise PriceTableError(file, None, f"the price table cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PriceTableError(file, None, "the price table is not UTF-8 text.") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise PriceTableError(file, mark.line + 1 if mark else None, f"this is not YAML: {why}.") from error
    except RecursionError as error:
        raise PriceTableError(file, None, "it is nested too deeply to be a price table.") from error
    if root is None:
        return ()
    return tuple(_row(file, dated, node) for node in _entries(file, root))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _entries(file: Path, root: yaml.Node) -> list[yaml.Node]:
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if getattr(key, "value", None) != "prices":
                raise PriceTableError(file, _line(key), f"{_shown(key)} has no meaning here; write prices: and a list.")
            root = value
    if isinstance(root, yaml.ScalarNode) and root.tag.endswith(":null"):
        return []
    if not isinstance(root, yaml.SequenceNode):
        raise PriceTableError(file, _line(root), "write prices: and below it a list of rows, each beginning with '-'.")
    return list(root.value)


def _row(file: Path, dated: str, node: yaml.Node) -> Row:
    if not isinstance(node, yaml.MappingNode):
        raise PriceTableError(file, _line(node), f"a row names a model and its prices; this is {_shown(node)}.")
    cells: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = str(getattr(key, "value", ""))
        if name not in KEYS:
            near = difflib.get_close_matches(name, KEYS, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(KEYS)}."
            raise PriceTableError(file, _line(key), f"{_shown(key)} is no column of a price table; {hint}")
        if name in cells:
            raise PriceTableError(file, _line(key), f"{name} stands twice in one row.")
        if not isinstance(value, yaml.ScalarNode):
            raise PriceTableError(file, _line(value), f"{name} must be a single value.")
        cells[name] = value
    line = _line(node)
    if ("model" in cells) == ("pattern" in cells):
        raise PriceTableError(file, line, "a row has either a model or a pattern.")
    is_pattern = "pattern" in cells
    named = cells["pattern" if is_pattern else "model"]
    name = named.value.strip().lower()
    if not name:
        raise PriceTableError(file, _line(named), "the name of the model is empty.")
    if not is_pattern and "*" in name:
        raise PriceTableError(file, _line(named), f"{name} holds a *: write it as pattern, not as model.")
    first, last = (_day(file, key, cells.get(key)) for key in ("from", "until"))
    if first and last and last < first:
        raise PriceTableError(file, line, f"until {last} is before from {first}.")
    prices = {bucket: _dollars(file, bucket, cells[bucket]) for bucket in BUCKETS if bucket in cells}
    if all(price is None for price in prices.values()):
        needed = ", ".join(BUCKETS)
        raise PriceTableError(file, line, f"the row of {name} has no price; write at least one of {needed}.")
    provider = cells["provider"].value.strip().lower() if "provider" in cells else ""
    note = cells["note"].value.strip() if "note" in cells else ""
    price = Price(name, provider, "exact", f"{file.name}, line {line}", dated, note=note, **prices)
    return Row(name, is_pattern, provider, first, last, price)


def _shown(node: yaml.Node) -> str:
    return repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or a mapping"


def _day(file: Path, key: str, node: yaml.Node | None) -> date | None:
    if node is None or node.value == "":
        return None
    try:
        return datetime.strptime(node.value, "%Y-%m-%d").date()
    except ValueError:
        raise PriceTableError(file, _line(node), f"{key} is {node.value!r}; write a day as YYYY-MM-DD.") from None


def _dollars(file: Path, bucket: str, node: yaml.Node) -> Decimal | None:
    text = node.value.strip()
    if node.tag.endswith(":null"):
        return None  # said to be unknown
    try:
        amount = Decimal(text)
        if not amount.is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise PriceTableError(
            file, _line(node), f"{bucket} is {text!r}; write dollars per million tokens as a number such as 0.30."
        ) from None
    if not 0 <= amount <= DEAREST:
        raise PriceTableError(
            file, _line(node), f"{bucket} is {text}; a price per million tokens is from 0 to {DEAREST:,} dollars."
        )
    return amount
