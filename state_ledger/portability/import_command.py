"""`state-ledger import`: exported sessions put into a store."""

from __future__ import annotations

from pathlib import Path

import click

from state_ledger.cli import output
from state_ledger.cli.consent import Consent
from state_ledger.cli.consent import options as consent_options
from state_ledger.cli.given import StorePath

SHOWN = 50
"""Troubles that are named one by one."""


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("path", type=StorePath(dir_okay=False))
@consent_options
@output.told()
def import_(files: tuple[Path, ...], path: Path, consent: Consent) -> None:
    """Puts the sessions of FILES into the store at PATH.

    The store is made if there is none; one that is there is backed up first. Taken are JSON Lines and JSON of
    `state-ledger export`, and exports of Hermes Agent. Sessions that the store has already are left as they
    are. What cannot be taken is named with its line, and nothing of such a session is stored.

    \b
    Examples:
      state-ledger import all.jsonl new.db
      state-ledger import all.jsonl more.json state.db --yes
    """
    from state_ledger.portability.importing import import_files
    from state_ledger.writing.writer import Writer

    if path.exists() and path.stat().st_size:
        size = sum(file.stat().st_size for file in files)
        named = f"{len(files):,} files" if len(files) > 1 else str(files[0])
        consent.obtain(path, f"Sessions of {named} ({size:,} bytes) that {path} does not have are put into it.")
    writer = Writer(path)
    try:
        summary = import_files(writer, files)
    finally:
        writer.close()
    click.echo(f"{summary.imported:,} sessions with {summary.messages:,} messages were imported.")
    if summary.skipped:
        click.echo(f"{summary.skipped:,} sessions were there already.")
    if summary.detached:
        click.echo(f"{summary.detached:,} sessions are detached: their parent is not there, or links went in a circle.")
    for session_id, before, now in summary.renamed:
        click.echo(f"The title {before!r} was taken; the session {session_id} is now called {now!r}.")
    for trouble in summary.troubles[:SHOWN]:
        click.echo(str(trouble), err=True)
    if len(summary.troubles) > SHOWN:
        click.echo(f"and {len(summary.troubles) - SHOWN:,} more.", err=True)
    if summary.troubles:
        raise click.exceptions.Exit(1)
