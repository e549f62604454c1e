"""`state-ledger migrate`: bringing a store up to date on purpose, its indexes included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from state_ledger.errors import StateLedgerError


@click.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--vacuum/--no-vacuum", default=True, show_default=True, help="Give freed space back to the disk.")
def migrate(path: Path, dry_run: bool, vacuum: bool) -> None:
    """Brings the store at PATH to schema 23, its full-text indexes included.

    Other programs may go on using the store meanwhile, searches find everything at any time, and what
    was interrupted is taken up again by the next run.
    """
    try:
        if dry_run:
            _tell(path)
        else:
            _migrate(path, vacuum)
    except StateLedgerError as error:
        raise click.ClickException(str(error)) from error


def _tell(path: Path) -> None:
    from state_ledger.full_text import cjk
    from state_ledger.full_text import rewrite as index_rewrite
    from state_ledger.migrate import is_newer, plan
    from state_ledger.writing.writer import Writer

    writer = Writer(path, read_only=True)
    try:
        cjk.load(writer.connection)
        if is_newer(writer.connection):
            click.echo(f"{path} has a newer schema; nothing would be done.")
            return
        steps = plan(writer.connection)
        for step in steps:
            click.echo(step.what + ("  (only by this command, not by opening the store)" if step.later else ""))
        if not steps:
            click.echo(f"{path} is up to date; nothing would be done.")
        elif any(step.later for step in steps):
            room = index_rewrite.room(writer)
            click.echo(f"At most {room.needed:,} bytes of free disk are needed; {room.free:,} are free.")
    finally:
        writer.close()


def _migrate(path: Path, vacuum: bool) -> None:
    from state_ledger import migrate
    from state_ledger.full_text import rewrite as index_rewrite
    from state_ledger.writing.writer import Writer

    writer = Writer(path)
    try:
        if writer.too_new:
            click.echo(f"{path} has a newer schema; nothing was done.")
            return
        if any(step.later for step in migrate.plan(writer.connection)):
            _refuse_without_room(index_rewrite.room(writer, vacuum=vacuum), vacuum)
            with click.progressbar(length=100, label="Rewriting the full-text indexes") as bar:
                index_rewrite.optimize_fts_storage(writer, progress_cb=_mover(bar), vacuum=vacuum)
        click.echo(f"{path} is up to date.")
    finally:
        writer.close()


def _refuse_without_room(room: Any, vacuum: bool) -> None:
    if room.enough:
        return
    hint = " With --no-vacuum a third of it is enough." if vacuum else ""
    raise click.ClickException(
        f"Rewriting the indexes may need {room.needed:,} bytes of free disk, and {room.free:,} are free. "
        f"Free some space, then run this again; the store is usable as it is.{hint}"
    )


def _mover(bar: Any) -> Any:
    def move(state: dict[str, Any]) -> None:
        reached = 100 if state["phase"] == "done" else 90 * state["percent"] // 100 if state["total"] else bar.pos
        bar.update(max(reached - bar.pos, 0))

    return move
