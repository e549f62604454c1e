"""What can go wrong with a lake, each as a sentence that a user can act on."""

from __future__ import annotations

from state_ledger.errors import StateLedgerError


class LakeError(StateLedgerError):
    """A lake cannot be read or written as asked; what it held before is as it was."""


class LakeMissing(LakeError):
    """pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "A lake needs pyarrow, which is not installed. Install it with: pip install 'state-ledger[lake]'"
        )


class LakeTooNew(LakeError):
    """Something in a lake was written by a newer version in a form that this one does not know."""


class LakeDamaged(LakeError):
    """A file of a lake is not there, or is not what its manifest says."""
