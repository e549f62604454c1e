"""`state-ledger sweep`: ending what nobody ended, and taking that back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from state_ledger.cli import consent as consents
from state_ledger.cli import output
from state_ledger.cli.consent import Consent
from state_ledger.cli.given import StorePath
from state_ledger.pages.figures import plural


@click.command()
@click.argument("path", type=StorePath())
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--idle-days", type=click.FloatRange(0), help="Open sessions without activity for so many days.")
@click.option("--source", help="Only sessions of this source.")
@click.option("--reopen", is_flag=True, help="Take it back: reopen what was swept, or those of SESSION that were.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@consents.options
@output.json_option
@output.told()
def sweep(
    path: Path,
    sessions: tuple[str, ...],
    idle_days: float | None,
    source: str | None,
    reopen: bool,
    dry_run: bool,
    consent: Consent,
    as_json: bool,
) -> None:
    """Ends sessions of the store at PATH that are open although nothing happens in them any more.

    A session that a crash or a closed terminal left open never ends, and only what has ended is pruned. A
    swept session has the end reason `swept` and ends at its last activity. Nothing is deleted, and
    --reopen takes it back; an agent that goes on with a swept session finds it as it was.

    \b
    Examples:
      state-ledger sweep state.db --idle-days 30 --dry-run
      state-ledger sweep state.db --idle-days 90 --source telegram
      state-ledger sweep state.db --reopen
      state-ledger sweep state.db --reopen 20260301_101500_ab12cd

    Exit code: 0 if it was done or nothing was to do; 1 if it could not be; 2 if the options cannot be meant;
    3 if the answer was no.
    """
    if reopen:
        if idle_days is not None:
            raise click.UsageError("--reopen takes a sweep back, of any age; leave --idle-days out.")
        _reopen(path, sessions, source, dry_run, consent, as_json)
        return
    if sessions:
        raise click.UsageError("Sessions are named with --reopen only; a sweep goes by --idle-days and --source.")
    if idle_days is None:
        raise click.UsageError("Say with --idle-days for how long nothing must have happened.")
    _sweep(path, idle_days, source, dry_run, consent, as_json)


def _sweep(path: Path, idle_days: float, source: str | None, dry_run: bool, consent: Consent, as_json: bool) -> None:
    from state_ledger.connection import open_for_reading
    from state_ledger.retention import sweeping, told
    from state_ledger.retention.options import typed_command
    from state_ledger.writing.writer import Writer

    with closing(open_for_reading(path)) as connection:
        plan = sweeping.plan_sweep(connection, idle_days, source)
    words = ["sweep", str(path), "--idle-days", f"{idle_days:g}", *(["--source", source] if source else [])]
    text = "\n".join(told.sweep_lines(plan, idle_days, {"sweep": typed_command(*words)}))
    done: list[str] | None = None
    if plan.sweep and not dry_run:
        consent.obtain(path, text)
        writer = Writer(path)
        try:
            with output.progress("Ending") as move:
                done = sweeping.sweep(writer, plan, idle_days, progress=move)
        finally:
            writer.close()
    if as_json:
        output.echo_json(
            {"sweep": plan.sweep, "stay_open": plan.kept, "not_idle_enough": plan.recent, "swept": done}
        )
    elif done is None:
        click.echo(text)
    else:
        click.echo(f"{plural(len(done), 'session')} ended (reason: {sweeping.SWEPT}).")
        if len(done) < len(plan.sweep):
            rest = plural(len(plan.sweep) - len(done), "session")
            click.echo(f"{rest} of the plan stayed open: used, ended, locked or deleted meanwhile.")
        click.echo(f"To take it back: {typed_command('sweep', str(path), '--reopen')}")


def _reopen(
    path: Path, sessions: tuple[str, ...], source: str | None, dry_run: bool, consent: Consent, as_json: bool
) -> None:
    from state_ledger.connection import open_for_reading
    from state_ledger.retention import sweeping
    from state_ledger.writing.writer import Writer

    with closing(open_for_reading(path)) as connection:
        swept = sweeping.swept_sessions(connection, source)
    unknown = sorted(set(sessions) - set(swept))
    if unknown:
        listed = ", ".join(output.plain(id) for id in unknown)
        raise click.ClickException(f"Not ended by a sweep: {listed}. Nothing was done.")
    chosen = [id for id in swept if not sessions or id in sessions]
    text = (
        f"{plural(len(chosen), 'swept session')} would be open again."
        if chosen
        else "Nothing would be reopened: no session was swept."
    )
    done: int | None = None
    if chosen and not dry_run:
        consent.obtain(path, text)
        writer = Writer(path)
        try:
            done = sweeping.reopen(writer, chosen)
        finally:
            writer.close()
    if as_json:
        output.echo_json({"reopen": chosen, "reopened": done})
    else:
        click.echo(text if done is None else f"{plural(done, 'session')} reopened.")
