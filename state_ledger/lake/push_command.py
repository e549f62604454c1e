"""`state-ledger lake push`: brings what a lake has of stores up to date."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from state_ledger.cli import given, output
from state_ledger.lake.names import MAY_BE_LEFT_OUT

if TYPE_CHECKING:
    from state_ledger.lake.push import Pushed

@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=given.StorePath(reads=True))
@click.option("--to", "url", required=True, metavar="URL", help="A folder, or a URL such as s3://bucket/prefix.")
@click.option("--host", default="", metavar="NAME", help="Name of this host in the lake; by default the machine's.")
@click.option("--profile", default="", metavar="NAME", help="Profile of the one PATH; by default its folder's.")
@click.option("--with-messages", is_flag=True, help="Push what was said, too; without it no text leaves the host.")
@click.option("--redact/--no-redact", default=True, show_default=True, help="Replace secrets in texts and titles.")
@click.option("--leave-out", default="", metavar="COLUMNS", help=f"Keep these in, of: {', '.join(MAY_BE_LEFT_OUT)}.")
@click.option("--deleted", type=click.Choice(["tombstone", "keep"]), default="tombstone", show_default=True,
              help="What becomes of sessions that the store does not have any more.")  # fmt: skip
@click.option("--full", is_flag=True, help="Read everything again, and write files that are damaged anew.")
@click.option("--replace", "replace_other", is_flag=True, help="Let the store take the place of another one.")
@output.json_option
@output.told()
def push(
    paths: tuple[Path, ...], url: str, host: str, profile: str, with_messages: bool, redact: bool, leave_out: str,
    deleted: str, full: bool, replace_other: bool, as_json: bool,
) -> None:  # fmt: skip
    """Brings what the lake at URL has of the stores at PATH up to date; the lake is made where there is none.

    Without a PATH: your own stores, as `state-ledger profiles` lists them. Stores are only read, and may be in use.
    Read are the months in which something has changed, and nothing if nothing was written since the last push.
    Killed at any time, a push leaves the lake as it was; the next one goes on.

    What was said stays on the host, and so do arguments of tools, of which a digest goes; docs/fleet.md lists what
    leaves. Sessions that were deleted in the store are taken out of the lake and named there (tombstone), or stay
    in it and in its sums (keep). A store that cannot be pushed is named; the exit code then is 1.

    \b
    Examples:
      state-ledger lake push --to /srv/lake
      state-ledger lake push ~/.hermes/state.db --to s3://books/hermes --host laptop
      state-ledger lake push --to /srv/lake --leave-out title,cwd,git_branch,user_id
      state-ledger lake push --to 's3://books/hermes?endpoint_override=minio.local:9000' --with-messages
    """
    from state_ledger import stores
    from state_ledger.errors import StateLedgerError
    from state_ledger.homes import expanded
    from state_ledger.lake.manifest import Options
    from state_ledger.lake.push import push as push_one

    found = [expanded(path) for path in given.stores(paths)]
    if profile and len(found) > 1:
        raise click.UsageError("--profile names the profile of one PATH.")
    columns = _columns(leave_out)
    profiles = [profile or stores.profile_of(path) for path in found]
    twice = [name for name, count in Counter(profiles).items() if count > 1]
    if twice:
        raise click.UsageError(f"Several stores are of the profile {twice[0]}: push each with a --profile of its own.")
    options = Options(with_messages, redact, columns, deleted)
    told, failed = [], False
    for path, name in zip(found, profiles, strict=True):
        try:
            with output.progress(f"Reading {name}") as move:
                pushed = push_one(
                    path, url, host=host, profile=name, options=options, full=full, replace_other=replace_other,
                    progress=move,
                )  # fmt: skip
        except StateLedgerError as error:
            failed = True
            told.append({"path": path, "profile": name, "error": str(error)})
            click.echo(f"{name}: {error}", err=True)
        else:
            told.append({"path": path, **_record(pushed)})
            if not as_json:
                click.echo(output.plain(_sentence(pushed)))
    if as_json:
        output.echo_json(told)
    if failed:
        raise click.exceptions.Exit(output.NOT_WELL)


def _columns(text: str) -> tuple[str, ...]:
    named = sorted({each.strip() for each in text.split(",")} - {""})
    unknown = [each for each in named if each not in MAY_BE_LEFT_OUT]
    if unknown:
        raise click.UsageError(f"--leave-out {unknown[0]}: it can be any of {', '.join(MAY_BE_LEFT_OUT)}.")
    return tuple(named)


def _record(pushed: Pushed) -> dict[str, Any]:
    state = pushed.state
    return {
        "host": state.host, "profile": state.profile, "changed": pushed.changed, "manifest": state.manifest_id,
        "read_all_because": pushed.why_full or None, "newly_gone": pushed.gone, "totals": state.totals,
        "kept": state.kept, "files": len(state.files), "bytes": state.bytes, "with_messages": state.with_messages,
        "redacted": state.redacted, "left_out": list(state.left_out), "error": None,
    }  # fmt: skip


def _sentence(pushed: Pushed) -> str:
    from state_ledger.pages import figures

    state = pushed.state
    held = (
        f"{state.totals.sessions:,} sessions, {figures.money(state.totals.cost_usd)}, {figures.size(state.bytes)} in"
        f" {len(state.files):,} files"
    )
    if not pushed.changed:
        return f"{state.name}: nothing has changed; {held}."
    read = f"everything was read, since {pushed.why_full}" if pushed.why_full else "what has changed was read"
    gone = f"; {pushed.gone:,} sessions are gone from the store" if pushed.gone else ""
    return f"{state.name}: pushed, {held}; {read}{gone}."
