"""Copies of PostgreSQL databases kept up to date while the app shows them."""

from __future__ import annotations

from collections.abc import Sequence

from state_ledger.postgresql import copying
from state_ledger.postgresql.address import Address
from state_ledger.rounds import Rounds

ROUND_S = 60.0
"""Seconds between two looks at the servers."""


class Refresher(Rounds[Address]):
    """Renews the copies of some databases until it is told to stop; ends with the process."""

    name = "state-ledger PostgreSQL"
    complaint = "The copy of %s stays as it is"
    pauses = 20.0
    """At most a twentieth of the time is spent reading: a look reads through the tables, if not much of them."""

    def __init__(self, addresses: Sequence[Address], round_s: float = ROUND_S) -> None:
        super().__init__(addresses, round_s)

    def work(self, subject: Address, number: int) -> None:
        """One look at one database; the first round finds a copy that was made a moment ago."""
        copying.refresh(subject, lambda _what: None)
