"""`state-ledger search`: the search of the pages, in a terminal or as JSON."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from state_ledger.cli import given, output
from state_ledger.cli.given import StorePath
from state_ledger.errors import StateLedgerError
from state_ledger.search import marks
from state_ledger.search.request import ROUTES, SORTS, Answer, Hit, Request
from state_ledger.settings import Settings


@click.command()
@click.argument("text")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=StorePath(reads=True))
@click.option("--source", "sources", multiple=True, metavar="NAME", help="Only sessions of this source; repeatable.")
@click.option("--role", "roles", multiple=True, metavar="NAME", help="Only this role: user, assistant, tool.")
@click.option("--sort", type=click.Choice(SORTS), default="newest", show_default=True, help="Order of the hits.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many of each store.")
@click.option("--before", type=click.IntRange(1), metavar="ID", help="Go on after this message, the last one shown.")
@click.option("--taken-back", is_flag=True, help="Also messages that were taken back.")
@click.option("--lake", metavar="URL", help="In the messages of a fleet: the lake that its hosts push to.")
@click.option("--clickhouse", metavar="DSN", help="In those that a ClickHouse server holds.")
@click.option("--postgresql", metavar="DSN", help="In those that a PostgreSQL server holds.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="Of a fleet: only this host; repeatable.")
@click.option("--profile", "profiles", multiple=True, metavar="NAME", help="Of a fleet: only this profile; repeatable.")
@click.option("--after", default="", metavar="PLACE", help="Of a fleet: go on where the last answer says.")
@output.json_option
def search(text: str, paths: tuple[Path, ...], as_json: bool, **filters: Any) -> None:
    """Finds messages that hold TEXT in the stores at PATH, by default in all of yours.

    Words must all occur; "exact phrase", OR, NOT, prefix* and parentheses work, all else is literal. Matches
    are marked in a terminal, and stand between >>> and <<< elsewhere.

    \b
    Examples:
      state-ledger search 'deploy OR rollback'
      state-ledger search '"connection refused"' state.db --role tool --sort oldest
      state-ledger search harbour --source telegram --limit 5 --json
      state-ledger search 'timeout NOT retry' --lake s3://books/fleet --host web-01
    """
    request = Request(
        q=text,
        sources=filters["sources"] or None,
        roles=filters["roles"],
        sort=filters["sort"],
        before=filters["before"],
        limit=filters["limit"],
        inactive=filters["taken_back"],
    )
    if _is_of_fleet(paths, filters):
        from state_ledger.fleet import places, reading, search_command

        lake, clickhouse, postgresql = (filters[kind] or "" for kind in ("lake", "clickhouse", "postgresql"))
        try:
            where = places.configured(Settings(lake=lake, clickhouse=clickhouse, postgresql=postgresql), {})
        except StateLedgerError as error:
            raise click.UsageError(str(error)) from error
        assert where is not None, "one is given"
        chosen = reading.Selection(filters["hosts"], filters["profiles"])
        search_command.run(where, request, chosen, filters["after"], as_json=as_json)
        return
    stores = given.stores(paths)
    if filters["before"] is not None and (len(stores) > 1 or filters["sort"] == "best"):
        raise click.UsageError("--before goes on in one store, by time: name the store, and sort by newest or oldest.")
    answers, failed = [], False
    for store in stores:
        try:
            answer = _find(store, request)
        except StateLedgerError as error:
            failed = True
            click.echo(f"Left out: {error}", err=True)
            continue
        if as_json:
            answers.append(_record(store, answer))
        else:
            _show(store, answer, named=len(stores) > 1)
    if as_json:
        output.echo_json({"query": text, "stores": answers})
    if failed:
        raise click.exceptions.Exit(output.NOT_WELL)


def _is_of_fleet(paths: tuple[Path, ...], filters: dict[str, Any]) -> bool:
    """Whether a fleet is searched. Raises click.UsageError for options that do not go together."""
    fleet = any(filters[name] for name in ("lake", "clickhouse", "postgresql"))
    if not fleet and any(filters[name] for name in ("hosts", "profiles", "after")):
        raise click.UsageError("--host, --profile and --after are for a fleet: name it with --lake or --clickhouse.")
    if fleet and (paths or filters["before"] is not None or filters["sort"] == "best"):
        raise click.UsageError(
            "A fleet is searched as a whole, newest or oldest first, and gone on with --after:"
            " leave out PATH, --before and --sort best."
        )
    return fleet


def _find(store: Path, request: Request) -> Answer:
    from state_ledger import companion
    from state_ledger.connection import open_for_reading
    from state_ledger.errors import StoreAccessError, StoreUnreadableError
    from state_ledger.search import answering
    from state_ledger.shape import Shape
    from state_ledger.sqlite import UNREADABLE

    try:
        with closing(open_for_reading(store)) as connection, companion.beside(connection) as beside:
            shape = Shape.read(connection)
            if not shape.is_store:
                raise StoreAccessError(store, f"{store} has no sessions and messages.", "Name a state.db file.")
            return answering.find(connection, request, shape=shape, companion=beside)
    except UNREADABLE as error:
        raise StoreUnreadableError(store, error, f"{store} cannot be searched ({error}).") from error


def _record(store: Path, answer: Answer) -> dict[str, Any]:
    """An answer as JSON has it: snippets in their plain form, with the places of the matches."""
    hits = [
        {**asdict(hit), "snippet": marks.plain(hit.snippet), "matches": marks.places(hit.snippet)}
        for hit in answer.hits
    ]
    return {"store": str(store), **asdict(answer), "hits": hits}


def _show(store: Path, answer: Answer, *, named: bool) -> None:
    from state_ledger.ledger.days import server_zone

    zone = server_zone()
    for hit in answer.hits:
        click.echo(head(hit, zone))
        click.echo(f"    {snippet(hit.snippet)}\n")
    place = f" in {store}" if named else ""
    by = f", found by {ROUTES.get(answer.route, answer.route)}" if answer.route else ""
    number = f"{len(answer.hits):,} {'hit' if len(answer.hits) == 1 else 'hits'}" if answer.hits else "Nothing found"
    click.echo(f"{number}{place}{by}.", err=True)
    if answer.next_before is not None:
        click.echo(f"There is more: --before {answer.next_before}", err=True)
    for sentence in (*answer.notices, *([answer.hint] if answer.hint else [])):
        click.echo(sentence, err=True)


def head(hit: Hit, zone: str) -> str:
    """A line about a hit: when, who, where."""
    from state_ledger.pages import figures

    title = f"  {output.plain(figures.cut(hit.title, 60))}" if hit.title else ""
    who = hit.role if not hit.tool_name else f"{hit.role} {hit.tool_name}"
    line = f"{figures.moment(hit.timestamp, zone)}  {who}  {hit.source}  {hit.session_id}#{hit.id}"
    return output.plain(line) + title


def snippet(text: str) -> str:
    """A snippet with its matches marked, in colour in a terminal."""
    in_terminal = sys.stdout.isatty()
    found = []
    for piece, match in marks.pieces(text):
        shown = output.plain(piece)
        if match:
            shown = click.style(shown, bold=True, fg="yellow") if in_terminal else f"{marks.BEFORE}{shown}{marks.AFTER}"
        found.append(shown)
    return "".join(found)
