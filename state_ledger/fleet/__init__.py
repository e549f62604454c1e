"""The books of a fleet as pages read them: from whichever engine holds them, kept up to date in the background."""

from __future__ import annotations

from state_ledger.fleet.keeping import Fleet, FleetUnread
from state_ledger.fleet.places import Where, configured
from state_ledger.fleet.reading import FleetReading, Selection

__all__ = ["Fleet", "FleetReading", "FleetUnread", "Selection", "Where", "configured"]
