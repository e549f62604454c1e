"""`state-ledger vacuum`: gives free pages back to the disk."""

from __future__ import annotations

from pathlib import Path

import click

from state_ledger.cli import consent, output
from state_ledger.cli.consent import Consent
from state_ledger.cli.given import StorePath
from state_ledger.homes import expanded


@click.command()
@click.argument("path", type=StorePath())
@consent.options
@output.json_option
@output.told()
def vacuum(path: Path, consent: Consent, as_json: bool) -> None:
    """Writes the store at PATH anew without its free pages, which SQLite keeps after rows are deleted.

    Nobody else can write meanwhile: others wait, and two at once are not possible. It needs free disk for what
    is in use, twice where temporary files are on the same disk, and refuses where there is less. No row changes:
    ids of messages are kept, and with them what the full-text indexes refer to.

    \b
    Examples:
      state-ledger vacuum ~/.hermes/state.db
      state-ledger vacuum ~/.hermes/state.db --yes --no-backup
    """
    from state_ledger import storage
    from state_ledger.health import upkeep
    from state_ledger.health.patient import admit

    path = expanded(path).absolute()
    needed, free = upkeep.room_for_vacuum(path)
    with admit(path) as admitted:
        found = storage.pages(admitted.connection)
    consent.obtain(
        path,
        f"{path} has {found.total * found.size:,} bytes, {found.free * found.size:,} of them in free pages. Writing it"
        f" anew needs up to {needed:,} bytes of disk; {free:,} are free. Other programs cannot write meanwhile.",
        newer=False,
    )
    done = upkeep.vacuum(path)
    if as_json:
        output.echo_json(done)
    else:
        click.echo(f"{path}: {done.before:,} bytes before, {done.after:,} after; {done.freed_pages:,} pages were free.")
        if done.log_bytes:
            click.echo(f"The log still has {done.log_bytes:,} bytes: somebody reads. They go with the next checkpoint.")
