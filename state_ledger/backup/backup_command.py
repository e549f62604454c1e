"""`state-ledger backup`: a verified copy of a store under a dated name."""

from __future__ import annotations

from pathlib import Path

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath


@click.command()
@click.argument("path", type=StorePath())
@click.option("--to", "folder", type=click.Path(path_type=Path, file_okay=False), help="Folder; made if it is missing.")
@click.option("--keep", type=click.IntRange(1), help="Remove older backups of this store but for so many in all.")
@click.option("--full", is_flag=True, help="Also compare every index with its table, which takes longer.")
@output.json_option
@output.told()
def backup(path: Path, folder: Path | None, keep: int | None, full: bool, as_json: bool) -> None:
    """Copies the store at PATH, which may be at work, and verifies the copy.

    The copy is of one moment: it holds everything that was stored before it began, what is in the write-ahead
    log included. Programs that write to the store are not held up, and the store is not changed. The
    copy may be read by you only. Its name is <store>-<digest of its path>-<time, UTC>.db.

    Without --to it goes to state-ledger/backups in the folder for your data: $XDG_DATA_HOME or ~/.local/share,
    on macOS ~/Library/Application Support, on Windows %LOCALAPPDATA%. Better is another disk.

    \b
    Examples:
      state-ledger backup ~/.hermes/state.db
      state-ledger backup ~/.hermes/state.db --to /mnt/disk/backups --keep 14
      state-ledger backup ~/.hermes/state.db --json
    """
    from state_ledger.backup import back_up

    with output.progress("Backing up") as move:
        made = back_up(path, folder, keep=keep, full_check=full, progress=move)
    if as_json:
        output.echo_json(made)
    else:
        click.echo(made.sentence)
