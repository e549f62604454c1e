"""Whether a process that left something behind still runs."""

from __future__ import annotations

import os
import sys


def surely_ended(number: int) -> bool:
    """Whether no process of this number runs on this machine; False where that cannot be told.

    A number may be that of another process by now, so that False is no proof either.
    """
    if sys.platform == "win32" or number <= 0:  # asking after a process would end it there
        return False
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
