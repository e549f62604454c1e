"""What all verbs share when they speak: exit codes, errors, JSON, tables, progress."""

from __future__ import annotations

import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import click

from state_ledger.errors import StateLedgerError, StoreUnreadableError
from state_ledger.sqlite import UNREADABLE, sqlite3

DONE = 0
"""Done, or all is well."""
NOT_WELL = 1
"""Findings, a limit that is exceeded, or what was asked could not be done: standard error says which."""
USAGE = 2
"""The command line cannot be meant; nothing was looked at."""
NOT_CONFIRMED = 3
"""A verb that writes was not allowed to: the question was answered with no, or nobody was there to answer."""

json_option = click.option("--json", "as_json", is_flag=True, help="Say it as JSON.")

_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the direction of what follows."""
_CELL = 60
"""Longer texts are cut in a table for people; JSON and CSV have them whole."""


@contextmanager
def told() -> Iterator[None]:
    """Errors that are meant for people end a verb with their sentence. Also a decorator: `@told()`.

    What SQLite says of a file that it cannot read becomes one, about the store that the verb was given.
    """
    try:
        yield
    except StateLedgerError as error:
        raise click.ClickException(str(error)) from error
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except UNREADABLE as error:
        raise click.ClickException(str(StoreUnreadableError(_store(), error))) from error


def _store() -> str:
    """The store that the running verb was given, as far as that can be told."""
    context = click.get_current_context(silent=True)
    given = context.params if context is not None else {}
    return str(given.get("path") or next((value for value in given.values() if isinstance(value, Path)), "the store"))


def echo_json(value: Any) -> None:
    """Writes a value as JSON to standard output; dataclasses become objects, paths text, infinities null."""
    click.echo(json.dumps(_finite(value), default=_for_json, indent=1))


def _finite(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; call what comes with what is done and all there is. Silent off a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def move(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(max(done - bar.pos, 0))

        yield move


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """One line on standard error that says what is being done, wiped at the end. Silent off a terminal."""
    if not sys.stderr.isatty():
        yield lambda _what: None
        return

    def tell(what: str) -> None:
        click.echo(f"\r\033[K{plain(what)[:_CELL]}", nl=False, err=True)

    try:
        yield tell
    finally:
        click.echo("\r\033[K", nl=False, err=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, most: int = _CELL) -> str:
    """Rows under their columns, numbers to the right; text from a store cannot steer the terminal.

    most: characters of a cell, of which the rest is cut.
    """
    cells = [[_cell(value, most) for value in row] for row in rows]
    numeric = [all(_is_number(row[at]) for row in rows) and bool(rows) for at in range(len(columns))]
    widths = [max(_width(text) for text in (name, *(row[at] for row in cells))) for at, name in enumerate(columns)]
    lines = [list(columns), ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            _padded(text, width, right) for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def plain(text: str) -> str:
    """Text on one line in which nothing steers a terminal or turns the direction of writing: that becomes `�`."""
    return "".join(_plain_character(char) for char in text)


def _plain_character(char: str) -> str:
    if char in "\t\n\r":
        return " "
    return "\ufffd" if unicodedata.category(char) in ("Cc", "Cs") or char in _TURNING else char


def _cell(value: object, most: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else repr(value)
    text = plain(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))
    return text if len(text) <= most else text[: most - 1] + "…"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _width(text: str) -> int:
    """The columns of a terminal that a text takes; characters of East Asian scripts take two."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _for_json(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
