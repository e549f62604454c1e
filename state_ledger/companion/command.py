"""`state-ledger index`: making and refreshing the companion of a store on purpose."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath

if TYPE_CHECKING:
    from state_ledger.companion.report import Report
    from state_ledger.companion.status import Status


@click.command()
@click.argument("path", type=StorePath())
@click.option("--rebuild", is_flag=True, help="Throw away what there is and begin anew.")
@click.option("--status", "only_status", is_flag=True, help="Say what state it is in; change nothing.")
@output.json_option
@output.told()
def index(path: Path, rebuild: bool, only_status: bool, as_json: bool) -> None:
    """Makes or refreshes the companion of the store at PATH, which is only read.

    The companion is a file in your cache folder that finds text in scripts without spaces at once. New,
    deleted and changed messages are taken over; what was interrupted is taken up again by the next run.

    \b
    Examples:
      state-ledger index state.db
      state-ledger index state.db --status --json
    """
    from state_ledger.companion.building import refresh
    from state_ledger.companion.status import status

    if only_status:
        state = status(path)
        output.echo_json(state) if as_json else click.echo(_state_in_words(state, path))
        return
    try:
        with output.progress("Reading messages") as move:
            report = refresh(path, rebuild=rebuild, progress=move)
    except OSError as error:
        why = error.strerror or str(error)
        raise click.ClickException(f"The companion of {path} could not be written: {why}.") from error
    output.echo_json(report) if as_json else click.echo(_report_in_words(report))


def _report_in_words(report: Report) -> str:
    lines = [f"It was begun anew: {report.began_anew}."] if report.began_anew else []
    lines.append(
        f"{report.read:,} new messages were read, {report.added:,} of them into the index; {report.reread:,} were"
        f" read again: {report.changed:,} had changed, {report.dropped:,} were dropped."
    )
    if report.usage_rows is not None:
        lines.append(f"The rollup was made of {report.usage_rows:,} rows of usage.")
    lines.append(f"{report.path} covers messages up to {report.covered_up_to} ({report.seconds:.1f} s).")
    return "\n".join(lines)


def _state_in_words(state: Status, store: Path) -> str:
    if not state.usable:
        return f"{state.path} is not used: {state.problem} Run: state-ledger index {store}"
    lines = [
        f"{state.path} ({state.bytes:,} bytes) covers messages up to {state.covered_up_to};"
        f" {state.behind:,} came after.",
        f"{state.indexed:,} messages are in the index; {state.dropped:,} entries are of messages deleted or changed.",
    ]
    if state.unread_since is not None:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(state.unread_since))
        lines.append(f"The store's text was last compared with it, or read into it, on {since} or later.")
    return "\n".join(lines)
