"""`state-ledger profiles`: the stores that are found, and what is in each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from state_ledger.cli import given, output
from state_ledger.cli.given import StorePath

if TYPE_CHECKING:
    from state_ledger.profiles import Profile


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=StorePath(reads=True))
@output.json_option
def profiles(paths: tuple[Path, ...], as_json: bool) -> None:
    """Lists your stores and what is in each.

    Without a PATH: $HERMES_HOME/state.db or ~/.hermes/state.db, and those of the profiles beside it. A store
    that cannot be read is named with the reason; the exit code then is 1.

    \b
    Examples:
      state-ledger profiles
      state-ledger profiles --json
      HERMES_HOME=/srv/hermes state-ledger profiles
    """
    from state_ledger import profiles as found

    listed = found.read(given.stores(paths))
    if as_json:
        output.echo_json(listed)
    else:
        _show(listed)
    if any(each.problem for each in listed):
        raise click.exceptions.Exit(output.NOT_WELL)


def _show(listed: list[Profile]) -> None:
    from state_ledger.ledger.days import server_zone
    from state_ledger.pages import figures

    rows = []
    for each in listed:
        held = each.contents
        known = (
            (held.schema, held.sessions, held.messages, figures.money(held.cost_usd)) if held else ("?", "?", "?", "?")
        )
        size = "?" if each.bytes is None else figures.size(each.bytes)
        rows.append((each.profile, *known, size, figures.moment(each.last_active, server_zone()), str(each.path)))
    columns = ("profile", "schema", "sessions", "messages", "cost", "size", "last active", "path")
    click.echo(output.table(columns, rows))
    for each in listed:
        if each.problem:
            click.echo(f"{each.profile}: {each.problem}", err=True)
