"""Hostile input: laws that hypothesis tries, and a sweep over every route.

The laws run with the other tests, each some dozens of examples; STATE_LEDGER_STRESS=1 makes it many hundreds, and
`python -m tests.fuzz NAME --seconds 300` tries one for as long as is wished, led by what code is reached where
atheris is installed.
"""

from __future__ import annotations

import os

STRESS = os.environ.get("STATE_LEDGER_STRESS") == "1"

SEED = os.environ.get("STATE_LEDGER_SEED", "8")
"""What is chosen where not everything is tried."""


def examples(number: int) -> int:
    """How many examples a law is tried with."""
    return number * 20 if STRESS else number
