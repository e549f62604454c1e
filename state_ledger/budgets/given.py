"""Budgets of a command line: `--budget`, and a file of settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from state_ledger.settings import Settings

Verb = TypeVar("Verb", bound=Callable[..., Any])

VARIABLE = "STATE_LEDGER_BUDGETS"
"""Where `serve` leaves the budgets of its command line for the plugin, one a line."""


class BudgetText(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A budget as text, checked and left as it is."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from state_ledger.budgets.budget import WrongBudget, parse_budget

        try:
            parse_budget(value)
            return " ".join(value.split())
        except WrongBudget as wrong:
            self.fail(str(wrong), param, ctx)


def budget_option(verb: Verb) -> Verb:
    """The option `--budget`, as often as wanted, for the argument `budgets`."""
    option = click.option(
        "--budget", "budgets", multiple=True, metavar="AMOUNT/PERIOD[,KEY=VALUE]...", type=BudgetText(),
        help="A budget such as 50/month or 5/day,source=cron.",
    )  # fmt: skip
    return option(verb)


def settings_option(verb: Verb) -> Verb:
    """The option `--metadata` for the argument `metadata`: a file of settings."""
    option = click.option(
        "-m", "--metadata", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="The file with your settings, as `datasette --metadata` takes it.",
    )  # fmt: skip
    return option(verb)


def with_budgets(settings: Settings, texts: Sequence[str]) -> Settings:
    """Settings with more budgets. Raises WrongBudget for two that differ and have one name."""
    from state_ledger.budgets.budget import distinct, parse_budget

    if not texts:
        return settings
    return replace(settings, budgets=distinct([*settings.budgets, *map(parse_budget, texts)]))


def settings_of(metadata: Path | None, texts: Sequence[str]) -> Settings:
    """The settings of a file, with the budgets of a command line. Ends the verb as a wrong usage for what is wrong."""
    from state_ledger.errors import StateLedgerError
    from state_ledger.settings import Settings, read_file

    try:
        return with_budgets(Settings() if metadata is None else read_file(metadata), texts)
    except StateLedgerError as error:
        raise click.UsageError(str(error)) from None
