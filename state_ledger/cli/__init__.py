"""The `state-ledger` command: one module per verb, which lives with its noun.

A verb is imported when it is called: verbs share `cli.output` and `cli.consent`, and none waits for the others.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

VERBS = {
    "serve": "state_ledger.cli.serving",
    "demo": "state_ledger.cli.demo_store",
    "profiles": "state_ledger.profiles.command",
    "search": "state_ledger.search.command",
    "query": "state_ledger.questions.command",
    "prices": "state_ledger.prices.command",
    "reconcile": "state_ledger.bills.command",
    "export": "state_ledger.portability.export_command",
    "import": "state_ledger.portability.import_command",
    "index": "state_ledger.companion.command",
    "lake": "state_ledger.lake.command",
    "migrate": "state_ledger.migrate.command",
    "backup": "state_ledger.backup.backup_command",
    "restore": "state_ledger.backup.restore_command",
    "budget": "state_ledger.budgets.command",
    "check": "state_ledger.health.check_command",
    "optimize": "state_ledger.health.optimize_command",
    "repair": "state_ledger.health.repair_command",
    "sizes": "state_ledger.health.sizes_command",
    "status": "state_ledger.health.status_command",
    "vacuum": "state_ledger.health.vacuum_command",
    "archive": "state_ledger.retention.archive_command",
    "delete": "state_ledger.retention.delete_command",
    "plan": "state_ledger.retention.plan_command",
    "prune": "state_ledger.retention.prune_command",
    "sweep": "state_ledger.retention.sweep_command",
}
"""Each verb with the module that has its command, as a function of the verb's name (`import_` for `import`)."""


class Verbs(click.Group):
    """A group whose commands are imported at their first use. verbs: each with the module that has its command."""

    def __init__(self, *given: Any, verbs: Mapping[str, str], **others: Any) -> None:
        super().__init__(*given, **others)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        module = import_module(self.verbs[cmd_name])
        command = getattr(module, f"{cmd_name}_" if cmd_name == "import" else cmd_name)
        assert isinstance(command, click.Command)
        return command


def _say_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from state_ledger import __version__  # reading it takes as long as the rest of a start

        click.echo(f"state-ledger, version {__version__}")
        ctx.exit()


@click.group(cls=Verbs, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_say_version,
    help="Show the version and exit.",
)
def main() -> None:
    """The books of a Hermes Agent state.db: what it cost and why."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale that lacks a character costs that character, not the answer
            stream.reconfigure(errors="replace")
