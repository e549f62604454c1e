"""The `state-ledger` command: one module per verb."""

from __future__ import annotations

import click

from state_ledger import __version__
from state_ledger.backup.backup_command import backup
from state_ledger.backup.restore_command import restore
from state_ledger.bills.command import reconcile
from state_ledger.budgets.command import budget
from state_ledger.cli.demo_store import demo
from state_ledger.cli.serving import serve
from state_ledger.companion.command import index
from state_ledger.health.check_command import check
from state_ledger.health.optimize_command import optimize
from state_ledger.health.repair_command import repair
from state_ledger.health.sizes_command import sizes
from state_ledger.health.status_command import status
from state_ledger.health.vacuum_command import vacuum
from state_ledger.migrate.command import migrate
from state_ledger.portability.export_command import export
from state_ledger.portability.import_command import import_
from state_ledger.prices.command import prices
from state_ledger.profiles.command import profiles
from state_ledger.questions.command import query
from state_ledger.search.command import search


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="state-ledger")
def main() -> None:
    """The books of a Hermes Agent state.db: what it cost and why."""


for _verb in (
    serve, demo, migrate, index, export, import_, backup, restore, search, query, profiles, prices, reconcile,
):  # fmt: skip
    main.add_command(_verb)
main.add_command(budget)
for _verb in (status, check, sizes, vacuum, optimize, repair):
    main.add_command(_verb)
