"""The named questions: canned queries read from their files, and the one place that answers them.

A page, a command or a notebook asks `ask(connection, name, parameters)` and gets columns and rows;
which engine answers is decided here and nowhere else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from state_ledger import assets, prices
from state_ledger.errors import StateLedgerError
from state_ledger.ledger.glossary import COLUMNS, Meaning
from state_ledger.questions import engines
from state_ledger.questions.parameters import (
    COMMON,
    KINDS,
    Parameter,
    ParameterSettings,
    compile_sql,
    names_in,
    validate,
    with_settings,
)
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection, sqlite3

_log = logging.getLogger(__name__)

STEPS_BETWEEN_LOOKS = 5000
"""Virtual-machine steps between two looks at the clock, about 0.1 ms."""

FENCE = "-- ---"

OF_STORES = "stores"
OF_FLEET = "fleet"
OF_SEVERAL = frozenset({OF_STORES, OF_FLEET})
"""The groups of the questions that are only asked of several stores at once, or only of the books of a fleet."""

SOURCE = "state-ledger"
"""Under which Datasette 1.0 keeps the canned queries."""


class UnknownQuestion(StateLedgerError, LookupError):
    """No canned query has this name."""


class OutOfTime(StateLedgerError):
    """A question did not answer within its time.

    name: the question; limit_ms: the time it had, in milliseconds.
    """

    def __init__(self, name: str, limit_ms: int) -> None:
        super().__init__(
            f"The question {name} did not answer within {limit_ms / 1000:g} seconds. "
            "Choose a shorter period, or raise the setting query_time_limit_ms."
        )
        self.name = name
        self.limit_ms = limit_ms


class EngineError(StateLedgerError):
    """An engine other than SQLite cannot answer; the sentence says which, what it says, and what to do."""


class MalformedQuestion(StateLedgerError):
    """A canned query's file cannot be used; the sentence names the file and why."""


@dataclass(frozen=True)
class Chart:
    """How a question is drawn: `kind` is `bars` or `days`; the others name columns."""

    kind: str
    label: str
    value: str
    series: str | None = None


@dataclass(frozen=True, eq=False)
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

    def compiled(self, settings: ParameterSettings, *, spare_rows: int = 0) -> str:
        """The SQL that any SQLite connection with the semantic layer can run, defaults included.

        spare_rows: how far `limit` may exceed its bound, to find out whether there are more rows.
        """
        return _compiled(self, settings.zone_name, settings.day_rule, settings.max_limit + spare_rows)

    @property
    def reads_prices(self) -> bool:
        """Whether its answer needs list prices, which are loaded when they are first asked for."""
        return "ledger_prices" in self.sql or "list_price(" in self.sql

    def check(self, values: Mapping[str, str], settings: ParameterSettings) -> dict[str, str]:
        """The values of all parameters, defaults filled in. Raises ParameterError for a bad one."""
        checked = {}
        for parameter in self.for_settings(settings):
            checked[parameter.name] = validate(parameter, values.get(parameter.name, "")) or parameter.default
        return checked

    def head(self, parameters: Mapping[str, str], columns: Sequence[str]) -> dict[str, Any]:
        """What an answer in JSON says before its rows: the question, its checked parameters, units, columns."""
        return {
            "ok": True,
            "question": self.name,
            "title": self.title,
            "parameters": dict(parameters),
            "units": {name: meaning.unit for name, meaning in self.columns.items() if meaning.unit},
            "columns": list(columns),
        }


@dataclass(frozen=True)
class Result:
    """An answer: column names, rows in order, and the parameters that produced it (defaults filled in).

    truncated: whether there are more rows than the parameter `limit` let through. engine: who
    answered, the `store`, its `companion`, several `stores` as one, or the engine that holds the books of a fleet.
    """

    question: Question
    columns: list[str]
    rows: list[tuple[Any, ...]]
    parameters: dict[str, str] = field(default_factory=dict)
    truncated: bool = False
    engine: engines.Name = "store"

    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def ask(
    connection: Connection | engines.Books,
    name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    settings: ParameterSettings | None = None,
    watch: Callable[[], int] | None = None,
    limit_ms: int | None = None,
) -> Result:
    """Answers a question on a connection that has the semantic layer (`ledger.install`), `engines.Several` or `Books`.

    watch: called again and again while SQLite works; the question is interrupted when it returns 1.
    limit_ms: the time that another engine has. Raises UnknownQuestion, ParameterError for a value that
    cannot be meant, sqlite3.OperationalError when the connection interrupts the query, and what
    `Books.answer` raises.
    """
    alone = not isinstance(connection, (engines.Several, engines.Books))
    question = named(name) if alone else asked_of(connection).get(name)
    if question is None:
        known = ", ".join(sorted(asked_of(connection)))
        raise UnknownQuestion(f"There is no question named {name!r}; known are {known}.")
    settings = Settings() if settings is None else settings
    checked = question.check(parameters or {}, settings)
    # Relative defaults are resolved by the SQL itself; to SQLite they are a value left out.
    bound = {p.name: (parameters or {}).get(p.name, "").strip() for p in question.parameters}
    limit = int(checked["limit"]) if "limit" in checked else None
    if limit is not None:
        bound["limit"] = str(limit + 1)  # one more tells whether there are more
    if question.reads_prices:
        prices.load()
    if isinstance(connection, engines.Books):
        columns, rows = connection.answer(question, settings, bound, limit_ms)
        engine = connection.name
    else:
        columns, rows, engine = _answered(question, settings, connection, bound, watch)
    return Result(question, columns, rows[:limit], checked, limit is not None and len(rows) > limit, engine)


def asked_of(connection: Connection | engines.Books) -> Mapping[str, Question]:
    """The questions that can be asked on a connection, by name."""
    return connection.questions if isinstance(connection, (engines.Several, engines.Books)) else load()


def _answered(
    question: Question,
    settings: ParameterSettings,
    store: Connection,
    bound: Mapping[str, str],
    watch: Callable[[], int] | None,
) -> tuple[list[str], list[tuple[Any, ...]], engines.Name]:
    """Columns, rows, and who gave them; a companion that turns out to be damaged is passed over."""
    sql = question.compiled(settings, spare_rows=1)
    with engines.engine_for(question.sql, store, settings.zone_name) as (engine, answering):
        try:
            return (*_run(answering, sql, bound, watch), engine)
        except sqlite3.DatabaseError as error:
            if engine != "companion" or "interrupted" in str(error):
                raise
    return (*_run(store, sql, bound, watch), "store")


def _run(
    connection: Connection, sql: str, bound: Mapping[str, str], watch: Callable[[], int] | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    if watch is not None:
        connection.set_progress_handler(watch, STEPS_BETWEEN_LOOKS)
    try:
        cursor = connection.execute(sql, bound)
        return [column[0] for column in cursor.description], [tuple(row) for row in cursor]
    finally:
        if watch is not None:
            connection.set_progress_handler(None, 0)


@dataclass(frozen=True)
class _Bounds:
    zone_name: str
    day_rule: str
    max_limit: int


@lru_cache(maxsize=512)
def _compiled(question: Question, zone_name: str, day_rule: str, max_limit: int) -> str:
    settings = _Bounds(zone_name, day_rule, max_limit)
    return compile_sql(question.sql, {p.name: p for p in question.for_settings(settings)})


def ask_in_time(
    connection: Connection | engines.Books,
    name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    settings: Settings,
) -> Result:
    """As `ask`, with an end: raises OutOfTime `settings.query_time_limit_ms` after SQLite's first step."""
    deadline: float | None = None

    def late() -> int:
        nonlocal deadline
        now = time.perf_counter()
        # What several stores have to be read for first has its own time.
        deadline = now + settings.query_time_limit_ms / 1000 if deadline is None else deadline
        return int(now > deadline)

    try:
        return ask(
            connection, name, parameters, settings=settings, watch=late, limit_ms=settings.query_time_limit_ms
        )
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise OutOfTime(name, settings.query_time_limit_ms) from error
        raise


@contextmanager
def in_time(connection: Connection, name: str, limit_ms: int) -> Iterator[None]:
    """Ends whatever runs on a connection inside of it after a time: raises OutOfTime, in the name of a question."""
    deadline = time.perf_counter() + limit_ms / 1000
    connection.set_progress_handler(lambda: int(time.perf_counter() > deadline), STEPS_BETWEEN_LOOKS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise OutOfTime(name, limit_ms) from error
        raise
    finally:
        connection.set_progress_handler(None, 0)


@lru_cache(maxsize=1)
def load() -> dict[str, Question]:
    """All canned queries that a store answers, by name, read once per process; those that can be used."""
    return {name: question for name, question in _all()[0].items() if question.group not in OF_SEVERAL}


@lru_cache(maxsize=1)
def of_stores() -> dict[str, Question]:
    """The canned queries that only several stores at once answer, by name."""
    return {name: question for name, question in _all()[0].items() if question.group == OF_STORES}


@lru_cache(maxsize=1)
def of_fleet() -> dict[str, Question]:
    """The canned queries that only the books of a fleet answer, by name."""
    return {name: question for name, question in _all()[0].items() if question.group == OF_FLEET}


def malformed() -> tuple[str, ...]:
    """A sentence for each file of a canned query that cannot be used; the others are answered all the same."""
    return _all()[1]


@lru_cache(maxsize=1)
def _all() -> tuple[dict[str, Question], tuple[str, ...]]:
    found: dict[str, Question] = {}
    wrong: list[str] = []
    for path in sorted(assets.folder("canned_queries").glob("*/*.sql")):
        try:
            question = _kept(path)
        except MalformedQuestion as error:
            wrong.append(str(error))
            continue
        if question.name in found:
            wrong.append(f"{path.parent.name}/{path.name}: {found[question.name].group} has a question of this name.")
            continue
        found[question.name] = question
    for sentence in wrong:
        _log.warning("A canned query cannot be used. %s", sentence)
    return found, tuple(wrong)


@lru_cache(maxsize=256)
def named(name: str) -> Question | None:
    """One canned query of a store, without reading the others; None where there is none of this name.

    Raises MalformedQuestion, also where two have the name.
    """
    every = assets.folder("canned_queries").glob("*/*.sql")
    paths = [path for path in every if path.stem == name and path.parent.name not in OF_SEVERAL]
    if len(paths) > 1:
        raise MalformedQuestion(f"{paths[0].name}: two canned queries are named {name}.")
    return _kept(paths[0]) if paths else None


@cache
def _kept(path: Path) -> Question:
    """A shipped canned query, one object however it is asked for: its SQL is compiled once for each."""
    return read(path)


def read(path: Path) -> Question:
    """One canned query from its file: front matter in comments between two fences, then a SELECT.

    Raises MalformedQuestion.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedQuestion(f"{path.name}: the file cannot be read as UTF-8 text: {error}.") from error
    fences = [number for number, line in enumerate(lines) if line.rstrip() == FENCE]
    if len(fences) != 2 or fences[0] != 0:
        raise MalformedQuestion(f"{path.name}: the file must begin with front matter between two lines `{FENCE}`.")
    header = "\n".join(line.removeprefix("--").removeprefix(" ") for line in lines[1 : fences[1]])
    sql = "\n".join(lines[fences[1] + 1 :]).strip().rstrip(";")
    try:
        front = yaml.load(header, Loader=assets.YAML_LOADER)
        parameters = tuple(_parameter(name, given) for name, given in _pairs(front.get("parameters")))
        columns = {name: _meaning(name, given) for name, given in _pairs(front["columns"])}
        chart = Chart(**front["chart"]) if front.get("chart") else None
        title, description = _text("title", front["title"]), _text("description", front["description"])
        question = Question(path.stem, path.parent.name, title, description, sql, parameters, columns, chart)
    except (yaml.YAMLError, RecursionError) as error:
        raise MalformedQuestion(f"{path.name}: the front matter is not YAML: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
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
    kind, maximum = details["type"], details.get("maximum")
    if kind not in KINDS:
        raise ValueError(f"the type of {name} is {kind!r}; it is one of {', '.join(KINDS)}")
    return Parameter(
        name, kind, _text("label", details["label"]), str(details.get("default", "")),
        tuple(map(str, details.get("choices", ()))), int(details.get("minimum", 0)),
        None if maximum is None else int(maximum),
    )  # fmt: skip


def _text(key: str, given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError(f"{key} is {given!r}; it must be a text")
    return given


def _meaning(name: str, given: object) -> Meaning:
    """A column's meaning: the glossary's, or `unit: description` given in the file."""
    if given is None:
        return COLUMNS[name]
    unit, _, description = str(given).partition(" | ")
    return Meaning(unit.strip(), description.strip())
