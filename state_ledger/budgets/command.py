"""`state-ledger budget`: what was used of the budgets of stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from state_ledger.budgets import given as options
from state_ledger.cli import given, output
from state_ledger.cli.given import StorePath

if TYPE_CHECKING:
    from state_ledger.budgets.spending import Spending
    from state_ledger.settings import Settings


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=StorePath(reads=True))
@options.budget_option
@options.settings_option
@click.option("--check", is_flag=True, help="Exit with 1 if a budget is used up.")
@output.json_option
@output.told()
def budget(
    paths: tuple[Path, ...], budgets: tuple[str, ...], metadata: Path | None, check: bool, as_json: bool
) -> None:
    """Says what was used of each budget in the running period, and what it will be at this pace.

    Budgets come from --budget and from the settings in FILE, each for every store by itself unless it names one.
    Usage falls on the days of its messages, an estimate; usage without a known price is named beside the figure.

    Exit codes: 0; with --check 1 if a budget is used up (100 %); 1 if a store cannot be read; 2 if no budget was
    given or one cannot be meant.

    \b
    Examples:
      state-ledger budget --budget 50/month
      state-ledger budget ~/.hermes/state.db --budget 5/day,source=cron --check
      state-ledger budget --metadata mine.yaml --json
    """
    settings = options.settings_of(metadata, budgets)
    if not settings.budgets:
        raise click.UsageError("There is no budget: give --budget 50/month, or --metadata with a file that has some.")
    found = [(path, _spendings(path, settings)) for path in given.stores(paths)]
    told = [spending for _, spendings in found for spending in spendings]
    if as_json:
        output.echo_json([{"path": str(path), **each.record()} for path, spendings in found for each in spendings])
    else:
        click.echo("\n\n".join(_screen(path, spendings) for path, spendings in found))
    if not told:
        raise click.UsageError("None of the budgets is for these stores.")
    if check and any(spending.mark == "over" for spending in told):
        raise click.exceptions.Exit(output.NOT_WELL)


def _spendings(path: Path, settings: Settings) -> list[Spending]:
    from state_ledger.budgets.spending import read_spendings
    from state_ledger.errors import StoreAccessError, StoreUnreadableError
    from state_ledger.health.patient import admit
    from state_ledger.pages.asking import Ask
    from state_ledger.sqlite import UNREADABLE

    try:
        with admit(path, settings) as patient:
            if patient.shape is None or not patient.shape.is_store:
                raise StoreAccessError(path, f"{path} is no store.", f"Look with: state-ledger check {path}")
            ask = Ask(patient.connection, settings)

            def answer(name: str, asked: Any) -> Any:
                return ask(name, asked).rows

            return read_spendings(answer, settings.budgets, path, settings.zone_name)
    except UNREADABLE as error:
        raise StoreUnreadableError(path, error) from error


def _screen(path: Path, spendings: list[Spending]) -> str:
    columns = ("budget", "from", "to", "used", "of", "share", "at this pace", "mark")
    rows = [
        (
            each.budget.name, each.since, each.until, f"{'at least ' if each.at_least else ''}{each.amount(each.used)}",
            each.amount(each.budget.amount), f"{each.share * 100:.1f} %",
            "too early" if each.forecast is None else each.amount(each.forecast), each.mark,
        )
        for each in spendings
    ]  # fmt: skip
    if not rows:
        return f"{output.plain(str(path))}\n  no budget is for this store"
    notes = [f"{each.budget.name}: {each.left_out}" for each in spendings if each.left_out]
    zone = spendings[0].zone
    lines = [output.plain(str(path)), output.table(columns, rows), *map(output.plain, notes)]
    return "\n".join([*lines, f"Days in {zone}, by activity: an estimate."])
