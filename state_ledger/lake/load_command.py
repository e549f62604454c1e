"""`state-ledger lake load`: brings what the server of an engine has of a lake up to date."""

from __future__ import annotations

import click

from state_ledger.cli import output
from state_ledger.fleet.places import Where
from state_ledger.fleet.sources import dialect_of


@click.command()
@click.argument("url")
@click.option("--postgresql", metavar="ADDRESS", help="A PostgreSQL database: postgresql://user@host/database.")
@click.option("--clickhouse", metavar="ADDRESS", help="A ClickHouse database: clickhouse://user@host:8123/database.")
@output.json_option
@output.told()
def load(url: str, postgresql: str | None, clickhouse: str | None, as_json: bool) -> None:
    """Brings the tables of a server up to date with the lake at URL; what has not changed is not read again.

    Pages and questions see the new state at once, when all of it is there: state-ledger serve --postgresql ADDRESS.
    DuckDB needs no load, it reads a lake by itself: state-ledger serve --lake URL. In PostgreSQL the tables are in
    the schema state_ledger, unless the address has a search path.

    Everybody on this machine sees the words of a command line: leave passwords to PGPASSWORD or ~/.pgpass.

    \b
    Examples:
      state-ledger lake load /srv/lake --postgresql postgresql://books@db.example.com/fleet
      state-ledger lake load s3://books/hermes --clickhouse clickhouse://books@ch.example.com:8123/fleet
    """
    if (postgresql is None) == (clickhouse is None):
        raise click.UsageError("Name the server: --postgresql ADDRESS or --clickhouse ADDRESS.")
    named = ("postgresql", postgresql) if postgresql is not None else ("clickhouse", str(clickhouse))
    dialect = dialect_of(Where(*named))
    from state_ledger.lake.reading import Lake
    from state_ledger.warehouse import loading

    try:
        lake = Lake.open(url)
        with output.steps() as tell:
            done = loading.fill(dialect, lake, tell)
        generation = loading.newest(dialect)
    finally:
        dialect.close()
    for notice in lake.notices:
        click.echo(notice, err=True)
    if as_json:
        output.echo_json({"generation": generation, "stores": done.stores, "files": done.files, "rows": done.rows})
    elif done.stores:
        click.echo(f"{done.stores:,} stores have changed; {done.files:,} files, {done.rows:,} rows were read.")
    else:
        click.echo("Nothing has changed.")
