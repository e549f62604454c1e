"""`state-ledger reconcile`: a provider's bill beside the books."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath
from state_ledger.ledger.apportion import DAY_RULES

if TYPE_CHECKING:
    from state_ledger.bills import Comparison, Row
    from state_ledger.questions import Result

EXPLAINED = 10
"""How many of the largest differences are explained by sessions."""


@click.command(name="reconcile")
@click.argument("path", type=StorePath(reads=True))
@click.argument("bill", type=click.Path(path_type=Path))
@click.option("--tz", "zone", default="", metavar="ZONE", help="Time zone of the days; by default the machine's.")
@click.option("--day-rule", type=click.Choice(DAY_RULES), default="activity", show_default=True,
              help="Which day a long session belongs to.")  # fmt: skip
@click.option("--provider", default="", metavar="NAME", help="Only what this provider billed, as the store names it.")
@click.option("--sessions", default=3, show_default=True, type=click.IntRange(0), help="Sessions for each difference.")
@output.json_option
@click.pass_context
@output.told()
def reconcile(
    context: click.Context,
    path: Path,
    bill: Path,
    zone: str,
    day_rule: str,
    provider: str,
    sessions: int,
    as_json: bool,
) -> None:
    """Compares a provider's BILL (CSV or JSON) with the store at PATH, by day and model.

    Shows what is billed and what the books say, where they differ, and which sessions explain it. Lines that
    the books have nothing for are listed. Neither file is changed, nothing of the bill is kept. Providers bill
    by days of UTC: say --tz UTC for them. Ends with 0 where both agree to the cent on every day and model,
    else with 1.

    BILL has the columns date, model and amount (US dollars), under the names of docs/prices.md.

    \b
    Examples:
      state-ledger reconcile ~/.hermes/state.db november.csv --provider openrouter --tz UTC
      state-ledger reconcile state.db costs.json --json > difference.json
    """
    from state_ledger import questions
    from state_ledger.bills import compare, read_file
    from state_ledger.connection import open_for_reading
    from state_ledger.ledger import days
    from state_ledger.settings import Settings

    settings = Settings(zone=zone, max_limit=1_000_000)
    try:
        days.zone(settings.zone_name)
    except days.UnknownZone as error:
        raise click.UsageError(str(error)) from error
    read = read_file(bill, settings.zone_name)
    with closing(open_for_reading(path, settings=settings)) as connection:

        def ask(name: str, parameters: Mapping[str, str]) -> Result:
            return questions.ask(connection, name, parameters, settings=settings)

        found = compare(read, ask, tz=settings.zone_name, day_rule=day_rule, provider=provider,
                        limit=settings.max_limit)  # fmt: skip
        explained = _explained(found, ask, sessions)
    if as_json:
        output.echo_json(_as_json(found, explained))
    else:
        for line in _in_words(found, explained):
            click.echo(output.plain(line))
    context.exit(output.NOT_WELL if found.largest else output.DONE)


Explained = list[tuple["Row", Sequence[Mapping[str, Any]]]]


def _explained(found: Comparison, ask: Callable[[str, Mapping[str, str]], Result], most: int) -> Explained:
    return [(row, found.explained_by(row, ask, most) if most else []) for row in found.largest[:EXPLAINED]]


def _record(row: Row) -> dict[str, Any]:
    return {
        "day": row.day, "model": row.model, "billed_usd": row.billed, "booked_usd": row.booked,
        "difference_usd": row.difference, "sessions": row.sessions, "why": row.why,
    }  # fmt: skip


def _as_json(found: Comparison, explained: Explained) -> dict[str, Any]:
    behind = {(row.day, row.model): sessions for row, sessions in explained}
    return {
        "bill": {"name": found.bill.name, "lines": found.bill.lines, "total_usd": float(found.bill.total),
                 "credits_usd": float(found.bill.credits)},
        "parameters": dict(found.asked),
        "total": {"billed_usd": found.total.billed, "booked_usd": found.total.booked,
                  "difference_usd": found.total.difference},
        "models": [{"model": row.model, "billed_as": found.billed_as(row.model), "billed_usd": row.billed,
                    "booked_usd": row.booked, "difference_usd": row.difference} for row in found.models],
        "rows": [{**_record(row), "explained_by": behind.get((row.day, row.model), [])} for row in found.rows],
    }  # fmt: skip


def _in_words(found: Comparison, explained: Explained) -> list[str]:
    asked, bill = found.asked, found.bill
    of = f", provider {asked['provider']}" if asked["provider"] else ""
    lines = [
        f"{bill.lines:,} lines from {asked['since']} to {asked['until']}, days in {asked['tz']}, day rule"
        f" {asked['day_rule']}{of}.",
        f"Billed {_money(found.total.billed)}, in the books {_money(found.total.booked)}, difference"
        f" {_money(found.total.difference)}.",
    ]
    if bill.credits:
        lines.append(f"Credits on the bill: {_money(float(bill.credits))}.")
    lines.append("By model: billed, in the books, difference")
    for row in found.models:
        named = found.billed_as(row.model)
        lines.append(f"  {row.model}: {_amounts(row)}{f' (billed as {named})' if named else ''}")
    if not found.largest:
        return [*lines, "No day and model differs by a cent."]
    lines.append(f"{len(found.largest):,} of {len(found.rows):,} days and models differ; the largest:")
    for row, sessions in explained:
        lines.append(f"  {row.day} {row.model}: {_amounts(row)}{f' ({row.why})' if row.why else ''}")
        lines += [f"    session {each['session_id']}: {_money(each['cost_usd'])}" for each in sessions]
    alone = [row for row in found.rows if row.booked is None and not row.sessions]
    if alone:
        lines.append(f"On the bill without any usage in the books: {len(alone):,}")
        lines += [f"  {row.day} {row.model}: {_money(row.billed)}" for row in alone]
    return lines


def _amounts(row: Row) -> str:
    return f"{_money(row.billed)}, {_money(row.booked)}, {_money(row.difference)}"


def _money(amount: float | None) -> str:
    from state_ledger.pages import figures

    return figures.money(amount, unknown="none")
