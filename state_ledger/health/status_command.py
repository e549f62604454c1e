"""`state-ledger status`: one screen per store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from state_ledger.budgets import given as options
from state_ledger.cli import given, output
from state_ledger.cli.given import StorePath

if TYPE_CHECKING:
    from state_ledger.health.status import Status
    from state_ledger.pages.sums import Sums


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=StorePath())
@options.budget_option
@options.settings_option
@output.json_option
@output.told()
def status(paths: tuple[Path, ...], budgets: tuple[str, ...], metadata: Path | None, as_json: bool) -> None:
    """Says of each store what is in it, what it cost lately, how big it is and whether it is well.

    Without PATH it looks at your own stores: $HERMES_HOME or ~/.hermes, and profiles below it. Cost is told by
    basis; calls without a known price are never added up as 0. `state-ledger check` looks more closely.

    Exit codes: 0, or 1 if a store has a warning or an error; a budget that is used up is a warning.

    \b
    Examples:
      state-ledger status
      state-ledger status ~/.hermes/state.db --json
      state-ledger status --budget 50/month
    """
    from state_ledger.health import status as health_status

    settings = options.settings_of(metadata, budgets)
    found = [health_status.read(path, settings) for path in given.stores(paths)]
    if as_json:
        output.echo_json([each.record() for each in found])
    else:
        click.echo("\n\n".join(_screen(each) for each in found))
    if any(finding.is_trouble for each in found for finding in each.findings):
        raise click.exceptions.Exit(output.NOT_WELL)


def _screen(status: Status) -> str:
    from state_ledger.pages import figures

    schema = f"schema {status.schema}" if status.schema is not None else "schema not recorded"
    lines = [
        f"{output.plain(str(status.path))}  (profile {output.plain(status.profile)}, {schema})",
        f"  {figures.plural(status.sessions, 'session') if status.sessions is not None else 'no count of sessions'},"
        f" {figures.plural(status.messages, 'message') if status.messages is not None else 'no count of messages'},"
        f" {figures.size(status.bytes)}, log {figures.size(status.log_bytes)}",
    ]
    for label, sums in (("this month", status.month), ("last 30 days", status.recent)):
        if sums is not None:
            lines.append(f"  {label + ':':<14}{_cost(sums)}")
    told = [finding for finding in status.findings if finding.severity != "ok"]
    kinds = {finding.kind for finding in told}
    for spending in status.budgets:
        if f"budget:{spending.budget.name}" not in kinds:
            lines.append(f"  {output.plain(spending.sentence)}")
    lines += [f"  {finding.severity}: {output.plain(finding.sentence)}" for finding in told]
    return "\n".join(lines if told else [*lines, "  well at first sight; state-ledger check looks closer"])


def _cost(sums: Sums) -> str:
    from state_ledger.pages import figures

    none = "none"
    return (
        f"actual {figures.money(sums.actual_usd, unknown=none)},"
        f" estimated {figures.money(sums.estimated_usd, unknown=none)},"
        f" included {figures.count(sums.included_calls or 0)} calls, unknown {sums.unknown_calls_text} calls,"
        f" cache reads {figures.ratio(sums.cache_read_ratio)}"
    )
