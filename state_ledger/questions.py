"""The named questions: canned queries read from their files, and the one place that answers them.

A page, a command or a notebook asks `ask(connection, name, parameters)` and gets columns and rows;
which engine answers is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from state_ledger import assets
from state_ledger.errors import StateLedgerError
from state_ledger.ledger.glossary import COLUMNS, Meaning
from state_ledger.parameters import (
    COMMON,
    Parameter,
    ParameterSettings,
    compile_sql,
    names_in,
    validate,
    with_settings,
)
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection

FENCE = "-- ---"


class UnknownQuestion(StateLedgerError, LookupError):
    """No canned query has this name."""


class MalformedQuestion(StateLedgerError):
    """A canned query's file cannot be used; the sentence names the file and why."""


@dataclass(frozen=True)
class Chart:
    """How a question is drawn: `kind` is `bars` or `days`; the others name columns."""

    kind: str
    label: str
    value: str
    series: str | None = None


@dataclass(frozen=True)
class Question:
    """One canned query.

    sql: the SELECT as written, with plain `:names`. columns: meaning of each column by name.
    needs: views it cannot be asked without; each is there on every store.
    """

    name: str
    group: str
    title: str
    description: str
    sql: str
    parameters: tuple[Parameter, ...]
    columns: Mapping[str, Meaning]
    chart: Chart | None = None

    def for_settings(self, settings: ParameterSettings) -> tuple[Parameter, ...]:
        """The parameters with the defaults and bounds of one instance."""
        return tuple(with_settings(parameter, settings) for parameter in self.parameters)

    def compiled(self, settings: ParameterSettings) -> str:
        """The SQL that any SQLite connection with the semantic layer can run, defaults included."""
        return compile_sql(self.sql, {p.name: p for p in self.for_settings(settings)})

    def check(self, values: Mapping[str, str], settings: ParameterSettings) -> dict[str, str]:
        """The values of all parameters, defaults filled in. Raises ParameterError for a bad one."""
        checked = {}
        for parameter in self.for_settings(settings):
            checked[parameter.name] = validate(parameter, values.get(parameter.name, "")) or parameter.default
        return checked


@dataclass(frozen=True)
class Result:
    """An answer: column names, rows in order, and the parameters that produced it (defaults filled in)."""

    question: Question
    columns: list[str]
    rows: list[tuple[Any, ...]]
    parameters: dict[str, str] = field(default_factory=dict)

    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def ask(
    connection: Connection,
    name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    settings: ParameterSettings | None = None,
) -> Result:
    """Answers a question on a connection that has the semantic layer (`ledger.install`).

    Raises UnknownQuestion, ParameterError for a value that cannot be meant, and
    sqlite3.OperationalError when the connection interrupts the query.
    """
    questions = load()
    if name not in questions:
        raise UnknownQuestion(f"There is no question named {name!r}; known are {', '.join(sorted(questions))}.")
    question = questions[name]
    settings = Settings() if settings is None else settings
    checked = question.check(parameters or {}, settings)
    # Relative defaults are resolved by the SQL itself; to SQLite they are a value left out.
    bound = {p.name: (parameters or {}).get(p.name, "").strip() for p in question.parameters}
    cursor = connection.execute(question.compiled(settings), bound)
    columns = [column[0] for column in cursor.description]
    return Result(question, columns, [tuple(row) for row in cursor], checked)


@lru_cache(maxsize=1)
def load() -> dict[str, Question]:
    """All canned queries by name, read once per process. Raises MalformedQuestion."""
    found: dict[str, Question] = {}
    for path in sorted(assets.folder("canned_queries").glob("*/*.sql")):
        question = read(path)
        if question.name in found:
            raise MalformedQuestion(f"{path.name}: two canned queries are named {question.name}.")
        found[question.name] = question
    return found


def read(path: Path) -> Question:
    """One canned query from its file: front matter in comments between two fences, then a SELECT."""
    lines = path.read_text(encoding="utf-8").splitlines()
    fences = [number for number, line in enumerate(lines) if line.rstrip() == FENCE]
    if len(fences) != 2 or fences[0] != 0:
        raise MalformedQuestion(f"{path.name}: the file must begin with front matter between two lines `{FENCE}`.")
    header = "\n".join(line.removeprefix("--").removeprefix(" ") for line in lines[1 : fences[1]])
    sql = "\n".join(lines[fences[1] + 1 :]).strip().rstrip(";")
    try:
        front = yaml.safe_load(header)
        parameters = tuple(_parameter(name, given) for name, given in _pairs(front.get("parameters")))
        columns = {name: _meaning(name, given) for name, given in _pairs(front["columns"])}
        chart = Chart(**front["chart"]) if front.get("chart") else None
        question = Question(
            path.stem, path.parent.name, front["title"], front["description"], sql, parameters, columns, chart
        )
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise MalformedQuestion(f"{path.name}: the front matter cannot be used: {error!r}") from error
    declared, named = {p.name for p in parameters}, set(names_in(sql))
    if declared != named:
        raise MalformedQuestion(
            f"{path.name}: the SQL and the front matter name different parameters: {sorted(declared ^ named)}."
        )
    return question


def _pairs(given: object) -> list[tuple[str, object]]:
    """A list of names and of one-entry mappings, or a mapping, as pairs of name and details."""
    if given is None:
        return []
    if isinstance(given, dict):
        return list(given.items())
    pairs: list[tuple[str, object]] = []
    for entry in given if isinstance(given, list) else [given]:
        pairs += entry.items() if isinstance(entry, dict) else [(str(entry), None)]
    return pairs


def _parameter(name: str, given: object) -> Parameter:
    details = dict(given) if isinstance(given, dict) else {}
    if name in COMMON:
        base = COMMON[name]
        default = details.get("default")
        return Parameter(
            name, base.kind, str(details.get("label", base.label)),
            base.default if default is None else str(default), base.choices, base.minimum, base.maximum,
        )  # fmt: skip
    return Parameter(
        name, details["type"], details["label"], str(details.get("default", "")),
        tuple(map(str, details.get("choices", ()))), int(details.get("minimum", 0)), details.get("maximum"),
    )  # fmt: skip


def _meaning(name: str, given: object) -> Meaning:
    """A column's meaning: the glossary's, or `unit: description` given in the file."""
    if given is None:
        return COLUMNS[name]
    unit, _, description = str(given).partition(" | ")
    return Meaning(unit.strip(), description.strip())
