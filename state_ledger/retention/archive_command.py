"""`state-ledger archive`: hiding conversations from lists, and showing them again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from state_ledger.cli import consent as consents
from state_ledger.cli import output
from state_ledger.cli.consent import Consent
from state_ledger.cli.given import StorePath
from state_ledger.pages.figures import plural
from state_ledger.retention.options import Asked
from state_ledger.retention.options import options as filters


@click.command()
@click.argument("path", type=StorePath())
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@filters
@click.option("--undo", is_flag=True, help="Show what is archived again.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@consents.options
@output.json_option
@output.told()
def archive(
    path: Path, sessions: tuple[str, ...], asked: Asked, undo: bool, dry_run: bool, consent: Consent, as_json: bool
) -> None:
    """Archives sessions of the store at PATH: hides them from lists of sessions, and deletes nothing.

    Name sessions, or filters; then it is what `state-ledger plan` with the same filters would delete. A
    conversation is archived as a whole. --undo shows archived ones again: those named, or those that
    the filters select.

    \b
    Examples:
      state-ledger archive state.db 20260301_101500_ab12cd
      state-ledger archive state.db --older-than 30 --dry-run
      state-ledger archive state.db --undo --source telegram

    Exit code: 0 if it was done or nothing was to do; 1 if it could not be; 2 if the options cannot be meant;
    3 if the answer was no.
    """
    from state_ledger.connection import open_for_reading
    from state_ledger.retention import archiving
    from state_ledger.writing.writer import Writer

    if bool(sessions) == asked.selective:
        raise click.UsageError("Name sessions, or filters such as --older-than.")
    if "archived" in asked.criteria.filters:
        raise click.UsageError("What is archived already is left out, and with --undo it is what is meant.")
    with closing(open_for_reading(path)) as connection:
        if sessions:
            chosen = archiving.named(connection, sessions)
        else:
            criteria = replace(asked.criteria, filters={**asked.criteria.filters, "archived": undo})
            chosen = archiving.selected(connection, criteria, undo=undo)
    what = "shown again" if undo else "archived"
    text = (
        f"{plural(len(chosen), 'session')} would be {what}, with all parts of their conversations."
        if chosen
        else f"Nothing would be {what}: the filters select no session that may be."
    )
    done: int | None = None
    if chosen and not dry_run:
        consent.obtain(path, text)
        writer = Writer(path)
        try:
            done = archiving.mark(writer, chosen, archived=not undo)
        finally:
            writer.close()
    if as_json:
        output.echo_json({"sessions": chosen, "rows_changed": done})
    else:
        click.echo(text if done is None else f"{plural(done, 'session')} {what}.")
