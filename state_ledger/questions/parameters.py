"""The typed parameters of canned queries: what they mean, their defaults, how they enter the SQL.

A query writes `:since` or `:limit` and nothing around it. `compile_sql` turns each name into an
expression that yields the default for a missing or empty value, so that a bare URL answers, and
casts numbers. `validate` gives the sentence for a value that cannot be meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Protocol

from state_ledger.errors import ParameterError
from state_ledger.ledger import days
from state_ledger.ledger.apportion import DAY_RULES

DAYS_AGO = re.compile(r"^(\d+) days ago$")
KINDS = ("date", "zone", "choice", "integer", "text", "words")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ParameterSettings(Protocol):
    """What parameters take from the settings: the defaults of zone and day rule, the bound on rows."""

    @property
    def zone_name(self) -> str: ...

    @property
    def day_rule(self) -> str: ...

    @property
    def max_limit(self) -> int: ...


@dataclass(frozen=True)
class Parameter:
    """One parameter of a canned query.

    kind: `date` (YYYY-MM-DD), `zone` (IANA name), `choice`, `integer`, `text`, or `words`: what a person
        types into a search box, where no text is an error.
    default: text; '' means no bound. For a date also `N days ago`.
    """

    name: str
    kind: str
    label: str
    default: str = ""
    choices: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int | None = None


COMMON: Mapping[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        Parameter("since", "date", "First day, inclusive"),
        Parameter("until", "date", "Last day, inclusive"),
        Parameter("tz", "zone", "Time zone of the days"),
        Parameter("day_rule", "choice", "Which day a long session belongs to", choices=DAY_RULES),
        Parameter("source", "text", "Only this source, for instance cli or telegram"),
        Parameter("model", "text", "Only this model, in any spelling"),
        Parameter("profile", "text", "Only this profile"),
        Parameter("session", "text", "Session id; empty for the session that began last"),
        Parameter("limit", "integer", "At most this many rows", default="100", minimum=1),
    )
}
"""The parameters that mean the same in every query."""


def with_settings(parameter: Parameter, settings: ParameterSettings) -> Parameter:
    """The parameter with the defaults and bounds of one instance."""
    if parameter.kind == "zone":
        return replace(parameter, default=parameter.default or settings.zone_name)
    if parameter.name == "day_rule":
        return replace(parameter, default=parameter.default or settings.day_rule)
    if parameter.name == "limit":
        return replace(parameter, maximum=min(parameter.maximum or settings.max_limit, settings.max_limit))
    return parameter


def validate(parameter: Parameter, value: str) -> str:
    """The value as given, stripped; raises ParameterError with a sentence if it cannot be meant."""
    text = value.strip()
    if text == "":
        return ""
    if "\x00" in text and parameter.kind != "words":
        raise ParameterError(parameter.name, value, "it holds a NUL character")
    if parameter.kind == "date":
        try:
            if date.fromisoformat(text).isoformat() != text:
                raise ValueError(text)
        except ValueError:
            raise ParameterError(parameter.name, value, "write a day as YYYY-MM-DD, for instance 2026-03-08") from None
    elif parameter.kind == "zone":
        try:
            days.zone(text)
        except days.UnknownZone as error:
            raise ParameterError(parameter.name, value, str(error).rstrip(".")) from None
    elif parameter.kind == "choice" and text not in parameter.choices:
        raise ParameterError(parameter.name, value, f"choose one of {', '.join(parameter.choices)}")
    elif parameter.kind == "integer":
        _check_integer(parameter, value, text)
    return text


def _check_integer(parameter: Parameter, value: str, text: str) -> None:
    if not re.fullmatch(r"[+-]?[0-9]{1,15}", text):  # as SQLite reads one; int() reads more digits than these
        raise ParameterError(parameter.name, value, "write a whole number")
    number = int(text)
    if number < parameter.minimum:
        raise ParameterError(parameter.name, value, f"the smallest value is {parameter.minimum}")
    if parameter.maximum is not None and number > parameter.maximum:
        raise ParameterError(parameter.name, value, f"the largest value is {parameter.maximum}")


def compile_sql(sql: str, parameters: Mapping[str, Parameter]) -> str:
    """The SQL with each `:name` replaced by an expression that holds its default and type."""
    return "".join(
        _expression(parameters[text[1:]]) if kind == "name" and text[1:] in parameters else text
        for kind, text in tokens(sql)
    )


def names_in(sql: str) -> list[str]:
    """The parameters that an SQL text names, in order of first use; strings and comments do not count."""
    return list(dict.fromkeys(text[1:] for kind, text in tokens(sql) if kind == "name"))


_TOKEN = re.compile(
    r"(?P<skip>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::)|(?P<name>:[A-Za-z_][A-Za-z0-9_]*)", re.DOTALL
)


def tokens(sql: str) -> list[tuple[str, str]]:
    """The SQL cut into `("name", ":x")` for parameters and `("text", …)` for all else."""
    pieces: list[tuple[str, str]] = []
    end = 0
    for match in _TOKEN.finditer(sql):
        pieces.append(("text", sql[end : match.start()]))
        pieces.append(("name" if match.group("name") else "text", match.group(0)))
        end = match.end()
    pieces.append(("text", sql[end:]))
    return [piece for piece in pieces if piece[1]]


def _expression(parameter: Parameter) -> str:
    given = f":{parameter.name}"
    default = parameter.default.replace("'", "''")
    relative = DAYS_AGO.match(parameter.default)
    if relative:
        return f"coalesce(nullif({given}, ''), days_ago({relative.group(1)}, ''))"
    if parameter.kind == "integer":
        number = f"CAST(coalesce(nullif({given}, ''), '{default or 0}') AS INTEGER)"
        number = f"max({number}, {parameter.minimum})"
        return number if parameter.maximum is None else f"min({number}, {parameter.maximum})"
    # A parameter that a request leaves out is the empty string in Datasette and NULL elsewhere.
    return f"coalesce(nullif({given}, ''), '{default}')"
