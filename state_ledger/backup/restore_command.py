"""`state-ledger restore`: a store made of a backup, where nothing is."""

from __future__ import annotations

from pathlib import Path

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath


@click.command()
@click.argument("backup", type=StorePath())
@click.argument("new_path", type=StorePath())
@click.option("--full", is_flag=True, help="Also compare every index with its table, which takes longer.")
@output.json_option
@output.told()
def restore(backup: Path, new_path: Path, full: bool, as_json: bool) -> None:
    """Makes a store at NEW_PATH of BACKUP.

    The backup is verified first, and the store after it was made. Nothing is overwritten: there must be
    nothing at NEW_PATH, and no log of another store beside it. To put a backup in the place of a store, end the
    agent, move state.db, state.db-wal and state.db-shm away together, then restore to state.db.

    \b
    Examples:
      state-ledger restore backups/state-1a2b3c4d-20261129T120000Z.db looked-at.db
      state-ledger restore backups/state-1a2b3c4d-20261129T120000Z.db ~/.hermes/state.db
    """
    from state_ledger.backup.restoring import restore as make

    with output.progress("Restoring") as move:
        made = make(backup, new_path, full_check=full, progress=move)
    if as_json:
        output.echo_json(made)
    else:
        click.echo(made.sentence)
