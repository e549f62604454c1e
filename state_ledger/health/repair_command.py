"""`state-ledger repair`: copies what can be read of a damaged store into a new file."""

from __future__ import annotations

from pathlib import Path

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath


@click.command()
@click.argument("path", type=StorePath())
@click.argument("new", type=StorePath())
@click.option(
    "--orphans", type=click.Choice(["keep", "detach", "remove"]), default="keep", show_default=True,
    help="Rows of sessions that are not there: leave them; give them a session again; remove them.",
)  # fmt: skip
@output.json_option
@output.told()
def repair(path: Path, new: Path, orphans: str, as_json: bool) -> None:
    """Copies what can be read of the store at PATH into NEW, a file that does not exist yet, and checks it.

    PATH is only read and stays as it is, so that nothing is asked and no backup is taken. Rows on damaged pages
    are lost, and counted; indexes are made anew. Stop the agent before, or what it writes meanwhile is not
    in NEW; then put NEW in the place of PATH yourself.

    With --orphans detach, messages and usage rows whose session is gone get a session again (source `recovered`),
    and links to missing parents are taken off; with remove such messages and usage rows, and their cost, are gone.

    Exit codes: 0 where every row was copied, 1 where some could not be read or the copy is not sound.

    \b
    Examples:
      state-ledger repair ~/.hermes/state.db ~/state-new.db
      state-ledger repair ~/.hermes/state.db ~/state-new.db --orphans detach
    """
    from state_ledger.health import salvage

    with output.progress("Copying") as move:
        done = salvage.repair(path, new, orphaned=orphans, tell=move)
    if as_json:
        output.echo_json({"path": str(done.path), "sound": done.sound, "tables": done.tables, "left_out": done.left_out,
                          "orphans": done.orphans, "problems": done.problems})  # fmt: skip
    else:
        rows = [
            (name, copied.rows, copied.partial, "unknown" if copied.lost is None else f"{copied.lost:,}")
            for name, copied in done.tables.items()
        ]
        click.echo(output.table(("table", "copied", "in part", "lost"), rows))
        for what, number in done.orphans.items():
            click.echo(f"{what}: {number:,}")
        for each in done.left_out:
            click.echo(f"Left out: {output.plain(each)}")
        for problem in done.problems:
            click.echo(f"Not sound: {output.plain(problem)}")
        click.echo(f"{done.path} {'passed its checks' if done.sound else 'did not pass its checks'}.")
    complete = all(copied.lost == 0 and not copied.partial for copied in done.tables.values())
    if not (done.sound and complete):
        raise click.exceptions.Exit(output.NOT_WELL)
