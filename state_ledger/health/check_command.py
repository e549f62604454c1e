"""`state-ledger check`: is this store well, and which command mends what is not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath

if TYPE_CHECKING:
    from state_ledger.health.finding import Finding, Report


@click.command()
@click.argument("path", type=StorePath())
@click.option("--full", is_flag=True, help="Also compare every index with its table, entry by entry; takes long.")
@click.option(
    "--watch", type=click.FloatRange(0.1), metavar="SECONDS", help="Look again and again, and say what changes."
)
@output.json_option
@output.told()
def check(path: Path, full: bool, watch: float | None, as_json: bool) -> None:
    """Says whether the store at PATH is well: schema, file system, log, damage, search indexes, orphans, growth.

    The store is only read, no writer waits, and nothing is left beside it. A store without a write-ahead log
    is copied for --full, as a long look would hold its writers up. Each finding is ok, note, warning or error,
    and names the command that mends it. Damage to an index, which can be made anew, is told apart from damage
    to rows.

    Exit codes: 0 where nothing is worse than a note, 1 for a warning or an error, 2 for a wrong command line.
    With --watch: that of the last look, when Ctrl-C ends it.

    \b
    Examples:
      state-ledger check ~/.hermes/state.db
      state-ledger check ~/.hermes/state.db --full --json
      state-ledger check ~/.hermes/state.db --watch 60
    """
    report = _look(path, full)
    _say(report, as_json)
    if watch is not None:
        report = _watch(path, full, watch, report, as_json)
    if not report.is_well:
        raise click.exceptions.Exit(output.NOT_WELL)


def _look(path: Path, full: bool) -> Report:
    from state_ledger.health import checkup

    with output.steps() as tell:
        return checkup.check(path, full=full, tell=tell)


def _watch(path: Path, full: bool, seconds: float, report: Report, as_json: bool) -> Report:
    try:
        while True:
            time.sleep(seconds)
            before, report = report, _look(path, full)
            _say_changes(before, report, as_json)
    except KeyboardInterrupt:
        return report


def _say(report: Report, as_json: bool) -> None:
    if as_json:
        output.echo_json(report.record())
        return
    for finding in report.findings:
        click.echo(_line(finding))
    troubles = sum(finding.is_trouble for finding in report.findings)
    notes = sum(finding.severity == "note" for finding in report.findings)
    read = {"snapshot": ", read from a private copy", "at rest": "", "live": "", "not": ""}[report.how]
    click.echo(f"{report.path}: {troubles} to mend, {notes} to know{read}.")


def _say_changes(before: Report, after: Report, as_json: bool) -> None:
    old = {finding.kind: finding for finding in before.findings}
    new = {finding.kind: finding for finding in after.findings}
    at = time.strftime("%Y-%m-%d %H:%M:%S")
    for kind in [*new, *(kind for kind in old if kind not in new)]:
        was, now = old.get(kind), new.get(kind)
        if was is not None and now is not None and (was.severity, was.sentence) == (now.severity, now.sentence):
            continue
        if as_json:
            change: dict[str, Any] = {"at": time.time(), "kind": kind}
            output.echo_json(change | {"before": was and was.record(), "after": now and now.record()})
        else:
            click.echo(f"{at} {_line(now) if now is not None else f'gone: {kind}'}")


def _line(finding: Finding) -> str:
    text = f"{finding.severity:<8} {output.plain(finding.sentence)}"
    return f"{text}\n         -> {output.plain(finding.remedy)}" if finding.remedy else text
