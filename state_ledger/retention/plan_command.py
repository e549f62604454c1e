"""`state-ledger plan`: what a prune would delete, what would stay, and why."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath
from state_ledger.retention.options import Asked
from state_ledger.retention.options import options as filters

_REASONS = ("too_recent", "no_time", "never_ended", "locked", "pinned", "in_use", "archived")


@click.command()
@click.argument("path", type=StorePath())
@filters
@click.option("--ids", is_flag=True, help="Only the ids of what would be deleted, one a line.")
@click.option("--stay", type=click.Choice(_REASONS), help="Only the ids of what stays for this reason, one a line.")
@output.json_option
@output.told()
def plan(path: Path, asked: Asked, ids: bool, stay: str | None, as_json: bool) -> None:
    """Says what `state-ledger prune` with the same options would do to the store at PATH. Writes nothing.

    Only sessions that ended are ever deleted. All filters must hold. Age is inactivity: the newest
    message counts, not the start. Without any filter it is 90 days; with one, age plays no part unless
    you name it. What the other filters select and what would stay all the same is listed with its reason.

    Bytes of text are counted; bytes by table and index are estimated. Deleting does not shrink the file:
    pages become free, and `state-ledger vacuum` gives them back. Stores of a newer schema are read like any.

    \b
    Examples:
      state-ledger plan ~/.hermes/state.db --older-than 90
      state-ledger plan state.db --source cron
      state-ledger plan state.db --older-than 30 --max-messages 2 --not-archived --json
      state-ledger plan state.db --older-than 90 --stay never_ended

    Exit code: 0, whatever the plan is; 1 if the store cannot be read; 2 if the options cannot be meant.
    """
    from state_ledger.connection import open_for_reading
    from state_ledger.retention import told
    from state_ledger.retention.plan import make_plan

    # Lists of ids need no estimates.
    sizes = dict if ids or stay else None
    with closing(open_for_reading(path)) as connection:
        made = make_plan(connection, asked.criteria, sizes=sizes)
    commands = asked.at(made.criteria.now).commands(path, [left.reason for left in made.left])
    if ids or stay is not None:
        listed = made.delete if ids else ()
        for left in made.left:
            listed += left.ids if left.reason == stay else ()
        if as_json:
            output.echo_json(listed)
        else:
            click.echo("".join(f"{output.plain(id)}\n" for id in listed), nl=False)
    elif as_json:
        output.echo_json(told.plan_json(made, commands))
    else:
        click.echo("\n".join(told.plan_lines(made, commands)))
