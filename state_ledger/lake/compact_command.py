"""`state-ledger lake compact`: clears a lake of what nothing names any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from state_ledger.cli import output

if TYPE_CHECKING:
    from state_ledger.lake.compaction import Plan


@click.command()
@click.argument("url", metavar="URL")
@click.option("--grace", "hours", default=24.0, show_default=True, type=click.FloatRange(0), metavar="HOURS",
              help="What was in use so recently stays; pushes and readers must take less.")  # fmt: skip
@click.option("--keep", default=10, show_default=True, type=click.IntRange(1), metavar="NUMBER",
              help="Manifests of each store that stay.")  # fmt: skip
@click.option("--merge/--no-merge", default=True, show_default=True,
              help="Put the months of a past year in one where they are many small files.")  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output.json_option
@output.told()
def compact(url: str, hours: float, keep: int, merge: bool, yes: bool, as_json: bool) -> None:
    """Removes from the lake at URL what no current state needs: says what, asks, and does it.

    That is: old manifests, data files that no manifest names any more, and what killed pushes left. What was
    current within the grace stays, so that no reader loses a file that it is about to read. Stores that a newer
    version pushed are left alone.

    \b
    Examples:
      state-ledger lake compact /srv/lake
      state-ledger lake compact s3://books/hermes --grace 48 --keep 3 --yes
    """
    from state_ledger.cli import consent
    from state_ledger.lake import compaction
    from state_ledger.lake.reading import Lake

    lake = Lake.open(url)
    planned = compaction.plan(lake, grace_s=hours * 3600, keep=keep, merge=merge)
    if planned.remove or planned.merge:
        consent.agree(_sentence(planned), yes=yes)
        compaction.carry_out(lake, planned)
    if as_json:
        merged = [{"host": state.host, "profile": state.profile, "year": year} for state, year in planned.merge]
        output.echo_json(
            {"removed": dict(planned.counts), "bytes": planned.bytes, "merged": merged, "waiting": planned.waiting}
        )
        return
    done = planned.remove or planned.merge
    waiting = f" {planned.waiting:,} files wait for their grace to end." if planned.waiting else ""
    click.echo(f"{'Done.' if done else 'There is nothing to clear.'}{waiting}")


def _sentence(planned: Plan) -> str:
    from state_ledger.pages import figures

    counted = ", ".join(f"{number:,} {kind}{'s' if number > 1 else ''}" for kind, number in planned.counts.items())
    lines = [f"Removes {counted}: {figures.size(planned.bytes)}."] if planned.remove else []
    if planned.merge:
        lines.append(f"Puts the months of {len(planned.merge):,} past years of stores in one each.")
    return " ".join(lines)
