"""Keeps the copies of PostgreSQL databases up to date that `state-ledger serve ADDRESS` shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from datasette import hookimpl

from state_ledger import postgresql

if TYPE_CHECKING:
    from datasette.app import Datasette


@hookimpl(specname="startup", trylast=True)
def keep_copies(datasette: Datasette) -> None:
    """Runs once in each instance, for the addresses that `serve` has copied a moment ago."""
    addresses = [postgresql.Address.of(line) for line in os.environ.get(postgresql.VARIABLE, "").splitlines() if line]
    if addresses and getattr(datasette, "_state_ledger_refresher", None) is None:
        from state_ledger.postgresql.background import Refresher  # imports the driver

        refresher = Refresher(addresses)
        refresher.start()
        datasette._state_ledger_refresher = refresher
