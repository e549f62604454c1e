"""What a verb does before it writes: says what it would do, asks, and takes a backup.

>>> @click.command()
... @consent.options
... def prune(path, consent): ...
...     backup = consent.obtain(path, plan.sentence)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from state_ledger.cli import output

if TYPE_CHECKING:
    from state_ledger.backup import Backup


@dataclass(frozen=True)
class Consent:
    """yes: whether not to ask. backup: whether to take one first; folder: where to, None for the usual place."""

    yes: bool
    backup: bool
    folder: Path | None

    def obtain(self, store: Path, plan: str, *, newer: bool = True) -> Backup | None:
        """Shows a plan on standard error and returns when the store may be written: agreed to, and backed up.

        newer: whether what follows may be done to a store of a newer schema that has all columns we know;
        rewriting a file is not. Call it before the store is opened to write, which may migrate it.
        Returns the backup, None if none is wanted. Ends the verb with `NOT_CONFIRMED` if the answer is no or
        nobody can be asked. Raises SchemaTooNewError, StoreAccessError, BackupError.
        """
        refuse_too_new(store, newer=newer)
        agree(plan, yes=self.yes)
        if not self.backup:
            return None
        from state_ledger.backup import back_up

        with output.progress("Backing up") as move:
            made = back_up(store, self.folder, progress=move)
        click.echo(f"Backup: {made.sentence}", err=True)
        return made


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `--yes`, `--no-backup` and `--backup-dir`, and its function the argument `consent`."""

    @wraps(function)
    def with_consent(*given: Any, yes: bool, no_backup: bool, backup_dir: Path | None, **others: Any) -> Any:
        if no_backup and backup_dir is not None:
            raise click.UsageError("--backup-dir says where the backup goes that --no-backup leaves out.")
        return function(*given, consent=Consent(yes, not no_backup, backup_dir), **others)

    for option in (
        click.option(
            "--backup-dir", type=click.Path(path_type=Path, file_okay=False),
            help="Where the backup goes; by default a folder of yours, see `state-ledger backup --help`.",
        ),
        click.option("--no-backup", is_flag=True, help="Take no backup before."),
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    ):  # fmt: skip
        with_consent = option(with_consent)
    return with_consent


def refuse_too_new(store: Path, *, newer: bool = True) -> None:
    """Returns if this program may write to a store of that schema.

    newer: as in `Consent.obtain`. Raises SchemaTooNewError, StoreAccessError.
    """
    from state_ledger.writing.writer import Writer

    reader = Writer(store, read_only=True)
    try:
        reader.refuse_too_new(newer=newer)
    finally:
        reader.close()


def agree(plan: str, *, yes: bool) -> None:
    """Shows a plan on standard error and returns when it is agreed to. yes: whether not to ask.

    Ends the verb with `NOT_CONFIRMED` if the answer is no or nobody can be asked.
    """
    click.echo(plan, err=True)
    if not yes:
        _ask()


def _ask() -> None:
    if not sys.stdin.isatty():
        click.echo("Nothing was done: nobody can be asked here. Run it in a terminal, or with --yes.", err=True)
        raise click.exceptions.Exit(output.NOT_CONFIRMED)
    try:
        agreed = click.confirm("Do it?", err=True)
    except click.Abort:
        click.echo(err=True)
        agreed = False
    if not agreed:
        click.echo("Nothing was done.", err=True)
        raise click.exceptions.Exit(output.NOT_CONFIRMED)
