"""`state-ledger optimize`: statistics, merged and rebuilt indexes, an emptied log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from state_ledger.cli import consent, output
from state_ledger.cli.consent import Consent
from state_ledger.cli.given import StorePath
from state_ledger.homes import expanded


@click.command()
@click.argument("path", type=StorePath())
@click.option("--fast-appends", is_flag=True, help="Make full-text indexes merge late from now on (16 and 64 pieces).")
@click.option(
    "--rebuild-index",
    "names",
    multiple=True,
    metavar="NAME",
    help="Make this index anew from its table; may be repeated.",
)
@consent.options
@output.json_option
@output.told()
def optimize(path: Path, fast_appends: bool, names: tuple[str, ...], consent: Consent, as_json: bool) -> None:
    """Renews statistics, merges the full-text indexes of the store at PATH in small steps, and empties its log.

    Others may write between two steps. With --rebuild-index only those indexes are made anew, each in one
    transaction: ordinary ones and full-text indexes, also such as are damaged, half built or behind, as long as
    their pages can be read. --fast-appends takes the long waits out of appending messages (docs/performance.md);
    the setting stays in the file.

    \b
    Examples:
      state-ledger optimize ~/.hermes/state.db
      state-ledger optimize ~/.hermes/state.db --rebuild-index messages_fts
      state-ledger optimize ~/.hermes/state.db --fast-appends --yes
    """
    from state_ledger.health import upkeep

    path = expanded(path).absolute()
    plan = (
        f"Makes anew, from their tables in {path}: {', '.join(names)}. Other programs cannot write meanwhile."
        if names
        else f"Renews statistics of {path}, merges its full-text indexes in steps, and empties its log."
    )
    if fast_appends:
        plan += " Its full-text indexes are set to merge late (automerge 16, crisismerge 64)."
    consent.obtain(path, plan)
    said: dict[str, Any] = {"rebuilt": list(names)}
    for name in names:
        upkeep.rebuild_index(path, name)
        if not as_json:
            click.echo(f"{name} was made anew.")
    if not names or fast_appends:
        with output.progress("Merging") as move:
            done = upkeep.optimize(path, fast_appends=fast_appends, tell=move)
        said |= {"merged": done.merged, "unmerged": done.unmerged, "tuned": done.tuned, "log_bytes": done.log_bytes}
        if not as_json:
            _say(done)
    if as_json:
        output.echo_json(said)


def _say(done: Any) -> None:
    steps = ", ".join(f"{name} {number:,} steps" for name, number in done.merged.items()) or "no full-text index"
    click.echo(f"Statistics renewed; merged: {steps}.")
    for name in done.unmerged:
        click.echo(f"{name} has more to merge; run this again.")
    if done.tuned:
        click.echo(f"Set to merge late: {', '.join(done.tuned)}.")
    if done.log_emptied is False:
        click.echo(
            f"The log could not be emptied ({done.log_bytes:,} bytes): somebody reads or writes; try again later."
        )
    elif done.log_emptied:
        click.echo("The log is empty.")
