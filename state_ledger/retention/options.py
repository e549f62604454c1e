"""The filters of a clean-up as options of a command line, and back: the exact command that means the same."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from state_ledger.retention.plan import Criteria
from state_ledger.retention.selection import DAY_S

DEFAULT_DAYS = 90.0
"""The age where nothing at all is asked for, as in `SessionDB.prune_sessions`."""

SWEEP_DAYS = 30.0
"""Suggested for a sweep where no age was asked for."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}

KINDS = ("root", "continuation", "branch", "delegate", "other")


class _AsTyped(float):
    """A number that is written as it was typed, which says more than the number."""

    def __new__(cls, value: float, typed: str) -> _AsTyped:
        made = super().__new__(cls, value)
        made.typed = typed
        return made

    typed: str

    def __str__(self) -> str:
        return self.typed


def _size(text: str) -> float:
    """Bytes from `500`, `500k`, `20M`, `1G`."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)b?\s*", text, re.I)
    if found is None:
        raise click.BadParameter(f"{text!r} is no size: write bytes, or for instance 500k, 20M, 1G.")
    return _AsTyped(float(found[1]) * _UNITS[found[2].lower()], text)


def _dollars(text: str) -> float:
    """An amount; no comparison holds for what is not a number."""
    try:
        if math.isfinite(amount := float(text)):
            return amount
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is no amount: write for instance 0.50.")


def _whole(text: str) -> int:
    """A number of at most 18 digits, which is what SQLite holds."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text):
        raise click.BadParameter(f"{text!r} is no whole number of at most 18 digits.")
    return int(text)


class _Days(click.FloatRange):
    """Days from 0 on. Of `nan` days every session would be older: no session is younger."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        days = super().convert(value, param, ctx)
        if not math.isfinite(days):
            self.fail(f"{value!r} is no number of days.", param, ctx)
        return days


def _day(text: str) -> float:
    """The moment at which a day of the machine's zone begins, epoch seconds."""
    from state_ledger.ledger import days

    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            raise ValueError(text)
        return _AsTyped(days.day_start(text, days.server_zone()), text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no day: write YYYY-MM-DD.") from None


_FILTERS: dict[str, tuple[str, Any, str]] = {
    "--profile": ("profile", str, "Of this profile."),
    "--kind": ("kind", click.Choice(KINDS), "Of this kind in their lineage."),
    "--model": ("model_like", str, "With this text in the name of the model."),
    "--title": ("title_like", str, "With this text in the title."),
    "--end-reason": ("end_reason", str, "That ended for this reason."),
    "--provider": ("provider", str, "Billed by this provider."),
    "--branch": ("branch_like", str, "With this text in the name of the git branch."),
    "--cwd": ("cwd_prefix", str, "In this folder or below."),
    "--user": ("user_id", str, "Of this messaging user."),
    "--chat": ("chat_id", str, "Of this chat."),
    "--chat-type": ("chat_type", str, "Of chats of this type."),
    "--min-size": ("min_bytes", _size, "With at least so much text: bytes, or 500k, 20M, 1G."),
    "--max-size": ("max_bytes", _size, "With at most so much text."),
    "--min-cost": ("min_cost", _dollars, "That cost at least so many dollars, helpers' calls included."),
    "--max-cost": ("max_cost", _dollars, "That cost at most so many dollars."),
    "--min-messages": ("min_messages", _whole, "With at least so many messages."),
    "--max-messages": ("max_messages", _whole, "With at most so many messages."),
    "--min-tokens": ("min_tokens", _whole, "With at least so many fresh tokens (input + output)."),
    "--max-tokens": ("max_tokens", _whole, "With at most so many fresh tokens."),
    "--min-tool-calls": ("min_tool_calls", _whole, "With at least so many tool calls."),
    "--max-tool-calls": ("max_tool_calls", _whole, "With at most so many tool calls."),
    "--started-after": ("started_after", _day, "That began on this day or later."),
    "--started-before": ("started_before", _day, "That began before this day."),
    "--active-after": ("last_active_after", _day, "Active on this day or later."),
    "--active-before": ("last_active_before", _day, "Not active since this day; instead of --older-than."),
}
"""Option, name of the filter, type, help."""

_METAVARS: Mapping[Any, str] = {_size: "BYTES", _day: "YYYY-MM-DD", str: "TEXT", _dollars: "DOLLARS", _whole: "NUMBER"}


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the filters, and its function the argument `asked` (Asked)."""
    names = {_destination(option): option for option in _FILTERS}

    @wraps(function)
    def with_filters(*given: Any, **values: Any) -> Any:
        asked = Asked.of(values, names)
        return function(*given, asked=asked, **values)

    made = [
        click.option(
            "--older-than", type=_Days(0), metavar="DAYS", help="Without activity for so many days."
        ),
        click.option("--source", help="Of this source, for instance cron or telegram; of any age unless one is given."),
        *(
            click.option(option, type=kind, metavar=_METAVARS.get(kind), help=text)
            for option, (_, kind, text) in _FILTERS.items()
        ),
        click.option("--archived/--not-archived", default=None, help="Only archived ones / archived ones stay."),
        click.option("--pinned/--not-pinned", default=None, help="Only pinned ones, which go then / pinned ones stay."),
        click.option("--compat", is_flag=True, help="Take the beginnings of conversations in use too."),
    ]
    for option in reversed(made):
        with_filters = option(with_filters)
    return with_filters


class Asked:
    """What a command line asks for.

    criteria: what is selected. arguments: the options that mean the same. selective: whether anything
    was asked for at all.
    """

    def __init__(self, criteria: Criteria, arguments: Sequence[str], selective: bool) -> None:
        self.criteria = criteria
        self.arguments = tuple(arguments)
        self.selective = selective

    @classmethod
    def of(cls, values: dict[str, Any], names: Mapping[str, str]) -> Asked:
        """Takes the filters out of the values of a command's options."""
        older, source, compat = values.pop("older_than"), values.pop("source"), values.pop("compat")
        flags = {name: values.pop(name) for name in ("archived", "pinned")}
        filters: dict[str, Any] = {}
        arguments: list[str] = []
        for destination, option in names.items():
            value = values.pop(destination)
            if value is not None:
                filters[_FILTERS[option][0]] = value
                arguments += [option, str(value)]
        if older is not None and "last_active_before" in filters:
            raise click.UsageError("Give --older-than or --active-before, not both.")
        for name, flag in flags.items():
            if flag is not None:
                filters[name] = flag
                arguments.append(f"--{name}" if flag else f"--not-{name}")
        selective = bool(filters) or older is not None or source is not None
        if not selective:
            older = DEFAULT_DAYS
        head = [] if older is None else ["--older-than", f"{older:g}"]
        head += [] if source is None else ["--source", source]
        tail = ["--compat"] if compat else []
        return cls(Criteria(older, source, filters, compat), [*head, *arguments, *tail], selective)

    def at(self, now: float | None) -> Asked:
        """The same with the moment from which ages count."""
        return Asked(replace(self.criteria, now=now), self.arguments, self.selective)

    def commands(self, path: Path, reasons: Sequence[str] = ()) -> dict[str, str]:
        """What to type: `prune`, `sweep`, `vacuum` and `list <reason>`."""
        sweep = ["sweep", str(path), "--idle-days", f"{self._sweep_days:g}"]
        sweep += [] if self.criteria.source is None else ["--source", self.criteria.source]
        return {
            "prune": typed_command("prune", str(path), *self.arguments),
            "sweep": typed_command(*sweep),
            "vacuum": typed_command("vacuum", str(path)),
            **{f"list {each}": typed_command("plan", str(path), *self.arguments, "--stay", each) for each in reasons},
        }

    @property
    def _sweep_days(self) -> float:
        before = self.criteria.filters.get("last_active_before")
        if before is not None and self.criteria.now is not None:
            return float(max(0, math.ceil((self.criteria.now - before) / DAY_S)))
        older = self.criteria.older_than_days
        return SWEEP_DAYS if older is None else older


def typed_command(*words: str) -> str:
    """A command of this program as it is typed into a shell."""
    return shlex.join(["state-ledger", *words])


def _destination(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")
