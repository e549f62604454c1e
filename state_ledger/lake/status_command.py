"""`state-ledger lake status`: what is in a lake, and how fresh it is."""

from __future__ import annotations

import click

from state_ledger.cli import output


@click.command()
@click.argument("url", metavar="URL")
@click.option("--stale-after", "hours", default=48.0, show_default=True, type=click.FloatRange(0), metavar="HOURS",
              help="How old a last push may be.")  # fmt: skip
@output.json_option
@output.told()
def status(url: str, hours: float, as_json: bool) -> None:
    """Lists the stores in the lake at URL: last push, sessions, cost, sizes, what is stale. Reads manifests only.

    The exit code is 1 if something of the lake cannot be read, or a store is stale.

    \b
    Examples:
      state-ledger lake status /srv/lake
      state-ledger lake status s3://books/hermes --stale-after 24 --json
    """
    from state_ledger.lake.reading import Lake
    from state_ledger.lake.status import status as status_of
    from state_ledger.ledger.days import server_zone
    from state_ledger.pages import figures

    found = status_of(Lake.open(url), hours)
    if as_json:
        output.echo_json(found)
    else:
        rows = [
            (each.host, each.profile, figures.moment(each.pushed_at, server_zone()), "stale" if each.stale else "",
             each.sessions, each.gone, figures.money(each.cost_usd), each.rows, each.files, figures.size(each.bytes),
             "with messages" if each.with_messages else "", "" if each.redacted else "not redacted")
            for each in found.stores
        ]  # fmt: skip
        columns = ("host", "profile", "last push", "", "sessions", "gone", "cost", "rows", "files", "size", "", "")
        click.echo(output.table(columns, rows))
        click.echo(
            f"{len(found.stores):,} stores of {found.hosts:,} hosts: {found.sessions:,} sessions,"
            f" {figures.money(found.cost_usd)}, {figures.size(found.bytes)}."
        )
        for notice in found.notices:
            click.echo(output.plain(notice), err=True)
    if found.notices or any(each.stale for each in found.stores):
        raise click.exceptions.Exit(output.NOT_WELL)
