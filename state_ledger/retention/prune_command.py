"""`state-ledger prune`: doing exactly the plan."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from state_ledger.cli import consent as consents
from state_ledger.cli import output
from state_ledger.cli.consent import Consent
from state_ledger.cli.given import StorePath
from state_ledger.pages.figures import plural
from state_ledger.retention.options import Asked
from state_ledger.retention.options import options as filters

if TYPE_CHECKING:
    from state_ledger.retention.plan import Plan
    from state_ledger.retention.pruning import Pruned
    from state_ledger.retention.safekeeping import Kept
    from state_ledger.writing.writer import Writer

_NAMED = 5


@click.command()
@click.argument("path", type=StorePath())
@filters
@click.option(
    "--export", "folder", type=click.Path(path_type=Path, file_okay=False),
    help="First export the sessions to a file in this folder; delete only what was read back from it unaltered.",
)  # fmt: skip
@consents.options
@output.json_option
@output.told()
def prune(path: Path, asked: Asked, folder: Path | None, consent: Consent, as_json: bool) -> None:
    """Deletes sessions of the store at PATH: exactly those of `state-ledger plan` with the same options.

    Shows the plan, asks, takes a backup, then deletes. Each session is looked at again in the transaction
    that deletes it: what was used, pinned or altered meanwhile stays, and is reported. Other programs can
    go on using the store; a session goes with all its rows at once, or not at all.

    The first parts of a conversation that is still in use stay; with --compat they go, as with Hermes
    Agent, and the part after them loses its parent. Sessions whose parent is deleted become roots.

    \b
    Examples:
      state-ledger prune ~/.hermes/state.db --older-than 90
      state-ledger prune state.db --source cron --yes
      state-ledger prune state.db --older-than 365 --export ~/archive

    Exit code: 0 if the plan was done; 1 if it stopped half way, or a session could not be read back from the
    export or is kept by damage; 2 if the options cannot be meant; 3 if the answer was no.
    """
    from state_ledger.connection import open_for_reading
    from state_ledger.retention import told
    from state_ledger.retention.plan import make_plan
    from state_ledger.retention.pruning import PruneStopped

    with closing(open_for_reading(path)) as connection:
        plan = make_plan(connection, asked.criteria)
    commands = asked.at(plan.criteria.now).commands(path, [left.reason for left in plan.left])
    if folder is not None:
        commands["prune"] += f" --export {shlex.quote(str(folder))}"
    lines = told.plan_lines(plan, commands, last="Command")
    if not plan.delete:
        if as_json:
            output.echo_json({"plan": told.plan_json(plan, commands), "done": None})
        else:
            click.echo("\n".join(lines))
        return
    backup = consent.obtain(path, "\n".join(lines))
    try:
        done, kept = _do(path, plan, folder)
    except PruneStopped as stopped:
        click.echo("\n".join(told.done_lines(stopped.done, commands)), err=as_json)
        raise
    if as_json:
        output.echo_json(
            {
                "plan": told.plan_json(plan, commands),
                "done": told.done_json(done),
                "backup": None if backup is None else str(backup.path),
                "export": None if kept is None else {
                    "file": str(kept.path), "sessions": len(kept.records), "not_exact": list(kept.unlike),
                },
            }
        )  # fmt: skip
    else:
        click.echo("\n".join(told.done_lines(done, commands)))
    if "damaged" in done.left.values() or (kept is not None and kept.unlike):
        raise click.exceptions.Exit(output.NOT_WELL)


def _do(path: Path, plan: Plan, folder: Path | None) -> tuple[Pruned, Kept | None]:
    from state_ledger.retention.pruning import Pruned, PruneStopped
    from state_ledger.retention.pruning import prune as delete
    from state_ledger.writing.writer import Writer

    writer = Writer(path)
    done = Pruned()
    try:
        kept = None if folder is None else _keep(writer, plan, folder)
        with output.progress("Deleting") as move:
            return delete(writer, plan, verify=None if kept is None else kept.holds, progress=move, done=done), kept
    except KeyboardInterrupt as interrupt:
        raise PruneStopped(done, len(plan.delete), "You ended it.") from interrupt
    finally:
        writer.close()


def _keep(writer: Writer, plan: Plan, folder: Path) -> Kept:
    """Exports what is to be deleted as it is now, after what opening the store brought up to date."""
    from state_ledger.retention.safekeeping import keep

    with output.progress("Exporting") as move:
        kept = keep(writer.connection, plan.delete, folder, store=writer.path.stem, progress=move)
    held = (
        plural(len(kept.records), "session"),
        plural(kept.messages, "message"),
        plural(kept.usage_rows, "usage row"),
    )
    click.echo(f"{kept.path}: {', '.join(held)}, read back and the same as in the store.", err=True)
    if kept.unlike:
        listed = ", ".join(output.plain(id) for id in kept.unlike[:_NAMED])
        more = ", …" if len(kept.unlike) > _NAMED else ""
        number = f"{len(kept.unlike):,} of {len(plan.delete):,} sessions"
        click.echo(f"Not in it exactly as they are stored, hence left: {number} ({listed}{more}).", err=True)
    return kept
