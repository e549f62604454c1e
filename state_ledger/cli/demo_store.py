"""`state-ledger demo`: writes a made-up store."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import click

from state_ledger.cli.given import StorePath


@click.command()
@click.argument("path", type=StorePath())
@click.option("--seed", default=1, show_default=True, help="Equal seeds make equal stores.")
@click.option("--sessions", type=click.IntRange(1), default=150, show_default=True)
@click.option("--days", type=click.IntRange(1), default=90, show_default=True)
@click.option("--messages-per-session", type=click.FloatRange(1), default=30.0, show_default=True)
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="Last day; by default a fixed one.")
def demo(path: Path, seed: int, sessions: int, days: int, messages_per_session: float, until: datetime | None) -> None:
    """Writes a demo store to PATH, which must not exist.

    \b
    Examples:
      state-ledger demo demo.db
      state-ledger demo big.db --sessions 2000 --days 365
    """
    from state_ledger.demo import make_demo

    end = None if until is None else until.replace(tzinfo=timezone.utc) + timedelta(days=1, seconds=-1)
    try:
        made = make_demo(
            path, seed=seed, sessions=sessions, days=days, messages_per_session=messages_per_session, now=end
        )
    except (FileExistsError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{path} could not be written: {error.strerror}.") from error
    click.echo(f"{made.path}: {made.sessions:,} sessions, {made.messages:,} messages, {made.bytes:,} bytes.")
