"""The filters of a clean-up as a form: the command line's own options, read by the command line's own parser.

So what the page plans is what the command plans that it prints, and a value that the command line refuses
is refused here with the same words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from state_ledger.errors import ParameterError
from state_ledger.pages import figures
from state_ledger.pages.asking import Ask
from state_ledger.questions import in_time
from state_ledger.retention.choice import REASONS
from state_ledger.retention.options import KINDS, Asked, options, typed_command
from state_ledger.retention.plan import Plan, make_plan
from state_ledger.shape import Shape
from state_ledger.storage import Sizes

PLAN = "plan"
"""The parameter that asks for a plan although no filter is set: with the default age."""

NOW = "now"
"""The parameter for the moment from which ages count, epoch seconds: with it an address stays the same plan."""


@dataclass(frozen=True)
class Field:
    """One filter. name: of the parameter, and with dashes of the option. kind: of the HTML input.

    choices: (value, label), the first for "not asked for"; empty for a text. usual: whether it is shown at once.
    """

    name: str
    label: str
    kind: str = "text"
    choices: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    usual: bool = False


def _flag(name: str, label: str, only: str, without: str) -> Field:
    return Field(name, label, choices=(("", "as by default"), ("yes", only), ("no", without)))


FIELDS = (
    Field("older_than", "Idle for days", hint="such as 90", usual=True),
    Field("source", "Source", hint="all", usual=True),
    Field("profile", "Profile", hint="all", usual=True),
    Field("kind", "Kind", choices=(("", "all"), *((kind, kind) for kind in KINDS)), usual=True),
    Field("model", "Model contains", hint="all", usual=True),
    Field("title", "Title contains", hint="all", usual=True),
    Field("min_size", "Text, at least", hint="500k, 20M, 1G"),
    Field("max_size", "Text, at most", hint="500k, 20M, 1G"),
    Field("min_cost", "Cost, at least", hint="dollars"),
    Field("max_cost", "Cost, at most", hint="dollars"),
    Field("min_messages", "Messages, at least"),
    Field("max_messages", "Messages, at most"),
    Field("min_tokens", "Fresh tokens, at least"),
    Field("max_tokens", "Fresh tokens, at most"),
    Field("min_tool_calls", "Tool calls, at least"),
    Field("max_tool_calls", "Tool calls, at most"),
    Field("started_after", "Began on or after", "date", hint="YYYY-MM-DD"),
    Field("started_before", "Began before", "date", hint="YYYY-MM-DD"),
    Field("active_after", "Active on or after", "date", hint="YYYY-MM-DD"),
    Field("active_before", "Not active since", "date", hint="YYYY-MM-DD"),
    Field("end_reason", "End reason"),
    Field("provider", "Provider"),
    Field("branch", "Git branch contains"),
    Field("cwd", "In folder"),
    Field("user", "Messaging user"),
    Field("chat", "Chat"),
    Field("chat_type", "Chat type"),
    _flag("archived", "Archived", "only archived ones", "archived ones stay"),
    _flag("pinned", "Pinned", "only pinned ones, which go", "pinned ones stay"),
    Field("compat", "Beginnings of conversations in use", choices=(("", "stay"), ("yes", "go (--compat)"))),
)

NAMES = tuple(field.name for field in FIELDS)
_BY_NAME = {field.name: field for field in FIELDS}


@click.command()
@options
def _typed(asked: Asked) -> Asked:
    return asked


def arguments(name: str, value: str) -> list[str]:
    """The option for the value of a field. Raises ParameterError for a choice that is not offered."""
    field, option = _BY_NAME[name], name.replace("_", "-")
    if any(unicodedata.category(character) == "Cc" for character in value):
        raise ParameterError(name, value, "it holds characters that cannot be typed into a command line")
    if field.choices and value not in dict(field.choices):
        raise ParameterError(name, value, f"choose one of {', '.join(key for key, _label in field.choices if key)}")
    if value == "yes" and name in ("archived", "pinned", "compat"):
        return [f"--{option}"]
    return [f"--not-{option}"] if value == "no" and name in ("archived", "pinned") else [f"--{option}", value]


def read_filters(values: Mapping[str, str]) -> tuple[Asked | None, list[ParameterError]]:
    """What a form asks for, by the names of its fields; None with the reasons where that cannot be meant."""
    words: list[str] = []
    wrong: list[ParameterError] = []
    for name in NAMES:
        value = values.get(name, "")
        if not value:
            continue
        try:
            given = arguments(name, value)
            _parse(name, value, given)
            words += given
        except ParameterError as error:
            wrong.append(error)
    if wrong:
        return None, wrong
    try:
        return _parse(PLAN, "", words), []
    except ParameterError as error:
        return None, [error]


def _parse(name: str, value: str, words: list[str]) -> Asked:
    try:
        with _typed.make_context("plan", list(words)) as context:
            asked: Asked = _typed.invoke(context)
    except click.UsageError as error:
        raise ParameterError(name, value, error.message.rstrip(".")) from error
    except (OverflowError, ValueError) as error:
        raise ParameterError(name, value, "it is out of range") from error
    return asked


def filled(values: Mapping[str, str], wrong: Collection[str]) -> list[dict[str, Any]]:
    """The fields with the values that were given; what cannot be meant stays in its field to be mended."""
    fields = []
    for field in FIELDS:
        value, choices = values.get(field.name, ""), list(field.choices)
        if choices and value not in dict(choices):
            choices.append((value, f"{figures.cut(value, 40)} (not a choice)"))
        is_wrong = field.name in wrong
        kind = "text" if is_wrong else field.kind
        fields.append(asdict(field) | {"value": value, "choices": choices, "kind": kind, "wrong": is_wrong})
    return fields


@dataclass(frozen=True)
class Planned:
    """A plan, and what to type, as `Asked.commands` has it, with `plan` for the same on the command line."""

    plan: Plan
    commands: Mapping[str, str]

    @property
    def steps(self) -> list[tuple[str, str]]:
        """What to do, each with its command: the plan itself, and what goes with it."""
        steps = [("Do exactly this", "prune")] if self.plan.delete else []
        if any(left.reason == "never_ended" for left in self.plan.left):
            steps.append(("End what nobody ended, so that it can go", "sweep"))
        steps += [("Give the free pages back to the disk afterwards", "vacuum")] if self.plan.delete else []
        return [(what, self.commands[name]) for what, name in steps]

    @property
    def lists(self) -> list[tuple[str, str]]:
        """What tells more in a terminal, each with its command."""
        stay = [(f"The ids that stay: {REASONS[left.reason]}", f"list {left.reason}") for left in self.plan.left]
        return [(what, self.commands[name]) for what, name in (("This plan", PLAN), *stay)]


def read_plan(ask: Ask, shape: Shape, asked: Asked, path: Path, sizes: Sizes | None) -> Planned:
    """Plans within the time of a question.

    path: how the store is named in the commands. sizes: of the file, where they are known already.
    Raises OutOfTime, sqlite3.DatabaseError.
    """
    measured = None if sizes is None else lambda: sizes.by_owner
    with in_time(ask.connection, PLAN, ask.settings.query_time_limit_ms):
        plan = make_plan(ask.connection, asked.criteria, sizes=measured, shape=shape)
    commands = asked.at(plan.criteria.now).commands(path, [left.reason for left in plan.left])
    return Planned(plan, {**commands, PLAN: plan_command(asked, path)})


def plan_command(asked: Asked, path: Path) -> str:
    """The same plan on the command line."""
    return typed_command("plan", str(path), *asked.arguments)
