"""`state-ledger migrate`: bringing a store up to date on purpose, its indexes included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from state_ledger.cli import output
from state_ledger.cli.consent import Consent
from state_ledger.cli.consent import options as consent_options
from state_ledger.cli.given import StorePath


@click.command()
@click.argument("path", type=StorePath(exists=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--vacuum/--no-vacuum", default=True, show_default=True, help="Give freed space back to the disk.")
@consent_options
@output.told()
def migrate(path: Path, dry_run: bool, vacuum: bool, consent: Consent) -> None:
    """Brings the store at PATH to schema 23, its indexes too.

    Other programs may go on using the store meanwhile, searches find everything at any time, and what
    was interrupted is taken up again by the next run. It says what it would do, asks, and takes a backup.

    \b
    Examples:
      state-ledger migrate state.db --dry-run
      state-ledger migrate state.db
      state-ledger migrate state.db --yes --backup-dir /mnt/disk/backups
    """
    plan = _plan(path, vacuum=vacuum, dry_run=dry_run)
    if plan is None:
        done = "would be" if dry_run else "was"
        click.echo(f"{path} is up to date, or has a newer schema: nothing {done} done.")
    elif dry_run:
        click.echo(plan)
    else:
        consent.obtain(path, plan, newer=False)
        _migrate(path, vacuum)


def _plan(path: Path, *, vacuum: bool, dry_run: bool) -> str | None:
    """What would be done, a step a line, and the room it takes; None for nothing. Refused is what has no room."""
    from state_ledger import migrate
    from state_ledger.full_text import cjk
    from state_ledger.full_text import rewrite as index_rewrite
    from state_ledger.writing.writer import Writer

    writer = Writer(path, read_only=True)
    try:
        cjk.load(writer.connection)
        steps = migrate.plan(writer.connection)
        lines = [
            step.what + ("  (only by this command, not by opening the store)" if step.later else "") for step in steps
        ]
        if any(step.later for step in steps):
            room = index_rewrite.room(writer, vacuum=vacuum)
            if not dry_run:
                _refuse_without_room(room, vacuum)
            lines.append(f"At most {room.needed:,} bytes of free disk are needed; {room.free:,} are free.")
        return "\n".join(lines) or None
    finally:
        writer.close()


def _migrate(path: Path, vacuum: bool) -> None:
    from state_ledger import migrate
    from state_ledger.full_text import rewrite as index_rewrite
    from state_ledger.writing.writer import Writer

    writer = Writer(path)
    try:
        if any(step.later for step in migrate.plan(writer.connection)):
            with output.progress("Rewriting the full-text indexes") as move:
                index_rewrite.optimize_fts_storage(writer, progress_cb=_mover(move), vacuum=vacuum)
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


def _mover(move: Callable[[int, int], None]) -> Callable[[dict[str, Any]], None]:
    def told(state: dict[str, Any]) -> None:
        if state["phase"] == "done":
            move(100, 100)
        elif state["total"]:
            move(90 * state["percent"] // 100, 100)

    return told
