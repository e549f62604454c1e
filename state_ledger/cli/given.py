"""What verbs share in reading their command line: stores by path or address, or not named; parameters of questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from state_ledger import postgresql
from state_ledger.cli import output
from state_ledger.errors import StateLedgerError
from state_ledger.homes import expanded
from state_ledger.stores import find_stores

READERS = "serve, query, search, export, profiles, budget, reconcile, prices --check and lake push"
"""The verbs that take the address of a PostgreSQL database for a store."""

param_option = click.option(
    "--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the canned query."
)


class StorePath(click.Path):
    """The path of a store. To a verb that only reads, the address of a PostgreSQL database is the path of its copy.

    The copy is made, or brought up to date, when the command line is read. Other verbs are told that there is
    nothing for them, also where they are given the path of such a copy.
    """

    def __init__(self, *, reads: bool = False, **options: Any) -> None:
        super().__init__(path_type=Path, **options)
        self._reads = reads

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises click.ClickException where a database cannot be read, or must not be given."""
        if not postgresql.is_address(value):
            path = cast("Path", super().convert(value, param, ctx))
            copy = None if self._reads else postgresql.copy_at(expanded(path).absolute())
            if copy is not None:
                raise click.ClickException(f"{path} is a copy of {copy.name}. {_only_read(ctx)}")
            return path
        try:
            if not self._reads:
                raise click.ClickException(f"{postgresql.Address.of(value).name} is in PostgreSQL. {_only_read(ctx)}")
            if ctx is not None and ctx.resilient_parsing:
                return Path(postgresql.Address.of(value).copy_path)
            return copied(value)
        except StateLedgerError as error:
            raise click.ClickException(str(error)) from error


def copied(address: str) -> Path:
    """The up to date copy of a PostgreSQL database. Raises PostgresqlError."""
    with output.steps() as tell:
        return postgresql.refresh(address, tell).path


def _only_read(ctx: click.Context | None) -> str:
    verb = f"`state-ledger {ctx.info_name}`" if ctx is not None and ctx.info_name else "This verb"
    return f"{verb} works on the file of a store, and such a database is only read: by {READERS}."


def stores(paths: Sequence[Path]) -> list[Path]:
    """The stores that were named, else those of this user as `serve` finds them; an error if there are none."""
    found = list(paths) or find_stores()
    if not found:
        raise click.ClickException("No store of your own was found ($HERMES_HOME or ~/.hermes): name a state.db file.")
    return found


def one_store(path: Path | None) -> Path:
    """The store that was named, else the one of this user; an error if there are several."""
    found = stores([] if path is None else [path])
    if len(found) > 1:
        listed = "".join(f"\n  {each}" for each in found)
        raise click.UsageError(f"There are several stores: name one of{listed}")
    return found[0]


def parameters(params: Sequence[str]) -> dict[str, str]:
    """The values of `--param NAME=VALUE`; of a name that is given twice the last counts."""
    return dict(_pair(text) for text in params)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--param {text}: write NAME=VALUE.")
    return name.strip(), value
