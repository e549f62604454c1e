"""Regular expressions that are compiled when they are first used.

One with the ranges of all scripts without spaces takes some 10 ms to compile, and a page that searches
nothing should not wait for it.
"""

from __future__ import annotations

import re
from functools import cached_property


class Pattern:
    """A regular expression that is compiled at its first use; `now` is the compiled one."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source, self._flags = source, flags

    @cached_property
    def now(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)
