"""What verbs share in reading their command line: stores that are not named, parameters of questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from state_ledger.stores import find_stores

param_option = click.option(
    "--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the canned query."
)


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
