"""`state-ledger lake verify`: is a lake whole, and does it say what the stores say?"""

from __future__ import annotations

from pathlib import Path

import click

from state_ledger.cli import output


@click.command()
@click.argument("url", metavar="URL")
@click.option("--against", "paths", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
              help="A store that was pushed, whose totals are made anew; can be given several times.")  # fmt: skip
@click.option("--host", default="", metavar="NAME", help="The host of those stores; by default this machine.")
@click.option("--profile", default="", metavar="NAME", help="The profile of the one PATH; by default its folder's.")
@output.json_option
@output.told()
def verify(url: str, paths: tuple[Path, ...], host: str, profile: str, as_json: bool) -> None:
    """Reads every file of the lake at URL and compares it with its manifest; names what is damaged or missing.

    Each file must be there with the bytes that were pushed, and the rows of each month must add up to the totals
    of the manifest, to the cent. With --against they are compared with the totals of the store itself, too. The
    exit code is 1 if anything is wrong.

    \b
    Examples:
      state-ledger lake verify /srv/lake
      state-ledger lake verify /srv/lake --against ~/.hermes/state.db
    """
    from state_ledger import stores
    from state_ledger.homes import expanded
    from state_ledger.lake import verification
    from state_ledger.lake.names import this_host
    from state_ledger.lake.reading import Lake
    from state_ledger.pages import figures
    from state_ledger.settings import Settings

    if profile and len(paths) > 1:
        raise click.UsageError("--profile names the profile of one PATH.")
    lake = Lake.open(url)
    with output.progress("Reading") as move:
        found = verification.verify(lake, move)
    asked = [(expanded(path), host or this_host(), profile or stores.profile_of(expanded(path))) for path in paths]
    verification.compare(lake, asked, Settings(), found)
    if as_json:
        output.echo_json(
            {"stores": found.stores, "files": found.files, "bytes": found.bytes, "against": found.against,
             "totals": found.totals, "findings": [each._asdict() for each in found.findings]}
        )  # fmt: skip
    else:
        for each in found.findings:
            click.echo(output.plain(str(each)))
        click.echo(
            f"{figures.plural(found.stores, 'store')}, {figures.plural(found.files, 'file')},"
            f" {figures.size(found.bytes)}: {figures.plural(found.totals.sessions, 'session')},"
            f" {figures.money(found.totals.cost_usd)}. "
            + (f"{figures.plural(len(found.findings), 'finding')}." if found.findings else "All is well.")
        )
    if found.findings:
        raise click.exceptions.Exit(output.NOT_WELL)
