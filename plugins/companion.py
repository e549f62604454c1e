"""Keeps the companions of the stores that are shown up to date, where the user wants them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from datasette import hookimpl

from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette

COMPANION_VARIABLE = "STATE_LEDGER_COMPANION"
"""`1`: keep companions, as the setting `companion` does."""


@hookimpl(specname="startup", trylast=True)
def keep_companions(datasette: Datasette) -> None:
    """Runs once the stores have their databases; a snapshot is shown as it was, and has no companion."""
    held = registry(datasette)
    if not (held.settings.companion or os.environ.get(COMPANION_VARIABLE) == "1"):
        return
    stores = [state.store.path for state in held.stores.values() if state.snapshot_taken_at is None]
    if stores and getattr(datasette, "_state_ledger_keeper", None) is None:
        from state_ledger.companion.background import Keeper  # a fifth of what a start imports, for few

        keeper = Keeper(stores, held.settings)
        keeper.start()
        datasette._state_ledger_keeper = keeper
