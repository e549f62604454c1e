"""`state-ledger delete`: named sessions and what was delegated by them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from state_ledger.cli import consent as consents
from state_ledger.cli import output
from state_ledger.cli.consent import Consent
from state_ledger.cli.given import StorePath
from state_ledger.pages.figures import plural

if TYPE_CHECKING:
    from state_ledger.retention.named import NamedPlan


@click.command()
@click.argument("path", type=StorePath())
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@consents.options
@output.json_option
@output.told()
def delete(path: Path, sessions: tuple[str, ...], dry_run: bool, consent: Consent, as_json: bool) -> None:
    """Deletes sessions of the store at PATH by id, with the runs that were delegated by them, at any depth.

    Every other child stays and becomes a root. A session that is open or pinned goes too: you named it.
    One that is locked by a compression does not. If by the time of your answer other sessions would go than
    those shown, nothing is deleted.

    \b
    Examples:
      state-ledger delete state.db 20260301_101500_ab12cd --dry-run
      state-ledger delete state.db 20260301_101500_ab12cd cron_digest_20260301_070000 --yes

    Exit code: 0 if it was done; 1 if it could not be; 2 if the options cannot be meant; 3 if the answer was no.
    """
    from state_ledger import storage
    from state_ledger.connection import open_for_reading
    from state_ledger.retention import named, told
    from state_ledger.retention.options import typed_command
    from state_ledger.writing.writer import Writer

    with closing(open_for_reading(path)) as connection:
        plan = named.plan_delete(connection, sessions)
    text = "\n".join(_lines(plan))
    if dry_run:
        if as_json:
            output.echo_json({"plan": plan, "rows_removed": None})
        else:
            click.echo(text)
        return
    consent.obtain(path, text)
    writer = Writer(path)
    try:
        rows = named.delete(writer, plan)
        pages = writer.reading(storage.pages)
    finally:
        writer.close()
    if as_json:
        output.echo_json({"plan": plan, "rows_removed": dict(rows)})
    else:
        removed = ", ".join(f"{number:,} of {table}" for table, number in sorted(rows.items()))
        click.echo(f"{plural(rows['sessions'], 'session')} deleted; rows removed: {removed}.")
        click.echo(told.free_pages(pages, typed_command("vacuum", str(path))))


def _lines(plan: NamedPlan) -> list[str]:

    what = plural(len(plan.named), "session")
    if plan.delegates:
        delegates = plural(len(plan.delegates), "delegate")
        what = f"{plural(len(plan.named), 'named session')} and {delegates}"
    lines = [f"{what} with {plural(plan.messages, 'message')} would be deleted."]
    rows = [(row.session_id, row.source, row.title, "named" if row.named else "delegate") for row in plan.rows]
    lines += ["", output.table(("session", "source", "title", "why"), rows)]
    if plan.detached:
        become = "become a root" if len(plan.detached) == 1 else "become roots"
        lines += ["", f"{plural(len(plan.detached), 'other child session')} would stay and {become}."]
    return lines
