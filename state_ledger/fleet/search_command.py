"""`state-ledger search --lake URL`: the search of a fleet in a terminal or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from state_ledger.cli import output
from state_ledger.errors import StateLedgerError
from state_ledger.fleet.places import Where
from state_ledger.fleet.reading import Selection
from state_ledger.fleet.sources import opened
from state_ledger.search import command, marks
from state_ledger.search.request import Request
from state_ledger.settings import Settings

if TYPE_CHECKING:
    from state_ledger.warehouse import Warehouse
    from state_ledger.warehouse.searching.finding import FleetHit, Found


def run(where: Where, request: Request, selection: Selection, after: str, *, as_json: bool) -> None:
    """Looks for messages in the books of a fleet and shows them. Raises click.ClickException."""
    from state_ledger.warehouse.searching.finding import find

    try:
        with _books(where, selection) as books:
            found = find(books, request, after=after)
            zone = books.settings.zone_name
    except StateLedgerError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        output.echo_json({"query": request.q, **asdict(found), "hits": [_record(each) for each in found.hits]})
    else:
        _show(found, zone)


@contextmanager
def _books(where: Where, selection: Selection) -> Iterator[Warehouse]:
    source = opened(where, Settings())
    source.look()
    with source.books(0.0) as books:
        selection.check(books.stores)
        yield books.narrowed(hosts=selection.hosts, profiles=selection.profiles, stores=selection.stores)


def _record(found: FleetHit) -> dict[str, Any]:
    hit = found.hit
    shown = {"snippet": marks.plain(hit.snippet), "matches": marks.places(hit.snippet)}
    return {"host": found.host, "store": found.store, **asdict(hit), **shown}


def _show(found: Found, zone: str) -> None:
    for each in found.hits:
        click.echo(f"{output.plain(each.store)}  {command.head(each.hit, zone)}")
        click.echo(f"    {command.snippet(each.hit.snippet)}\n")
    number = f"{len(found.hits):,} {'hit' if len(found.hits) == 1 else 'hits'}" if found.hits else "Nothing found"
    click.echo(f"{number}{f', found by {found.route}' if found.route else ''}.", err=True)
    if found.after is not None:
        click.echo(f"There is more: --after {found.after}", err=True)
    for sentence in (*found.notices, *([found.hint] if found.hint else [])):
        click.echo(sentence, err=True)
