"""`state-ledger lake`: the books of many hosts in one place."""

from __future__ import annotations

import click

from state_ledger.cli import Verbs

VERBS = {
    "push": "state_ledger.lake.push_command",
    "load": "state_ledger.lake.load_command",
    "status": "state_ledger.lake.status_command",
    "compact": "state_ledger.lake.compact_command",
    "verify": "state_ledger.lake.verify_command",
}


@click.group(cls=Verbs, verbs=VERBS)
def lake() -> None:
    """A lake holds the books of many stores, on many hosts, as Parquet files in a folder or a bucket.

    Needs the extra `lake`: pip install 'state-ledger[lake]'. What leaves a host, and how to keep it in, says
    docs/fleet.md.

    \b
    Examples:
      state-ledger lake push --to /srv/lake
      state-ledger lake status /srv/lake
    """
