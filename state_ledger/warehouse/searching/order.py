"""The order of hits over stores, the windows in which a search goes through it, and where it goes on.

Over several stores newest first is by time; messages without one come last. In one store it is by id, as in the
store's own search: compaction and imports store older messages under new ids. A window is a stretch of that order
with about so many messages, so that looking through one takes about so long.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from state_ledger.errors import ParameterError

_WHOLE = re.compile(r"-?[0-9]{1,19}")

BUCKET_S = 3600
"""Messages are counted by the hour to know how far a window goes."""


@dataclass(frozen=True)
class Place:
    """Where a search stands. at: on the axis, None among messages without a time; store, id: of the last hit, None
    where there was none: then all before `at` was looked at.

    found: whether there were hits before; inside: whether words are looked for within longer words.
    """

    at: float | None
    store: int | None = None
    id: int | None = None
    found: bool = False
    inside: bool = False


@dataclass(frozen=True)
class Window:
    """A stretch of the axis: from `low` up to but not including `high`, None where it is open; timeless: the
    messages that have no place on it."""

    low: float | None
    high: float | None
    timeless: bool = False


class Axis(ABC):
    """What hits are ordered by. column: of `held_messages`; ends: the least and the greatest value there may be."""

    column: str
    whole: bool
    """Whether its values are whole numbers."""

    def __init__(self, newest_first: bool) -> None:
        self.newest_first = newest_first

    @abstractmethod
    def ends(self) -> tuple[float, float] | None: ...

    @abstractmethod
    def passed(self, start: float, messages: int) -> float:
        """How far about so many messages reach from a place, in the direction of the search; beyond it."""

    def first(self, start: float | None, messages: int) -> Window:
        """The window from a place on, or from the beginning."""
        ends = self.ends()
        if ends is None:
            return Window(None, None)
        low, high = ends
        if self.newest_first:
            stop = self.passed(high if start is None else start, messages)
            return Window(stop if stop > low else None, start)
        stop = self.passed(low if start is None else start, messages)
        return Window(start, stop if stop <= high else None)

    def last(self, window: Window) -> float | None:
        """Where a window ends in the direction of the search; None where nothing is beyond it."""
        return window.low if self.newest_first else window.high

    def halved(self, window: Window) -> Window | None:
        """The nearer half of a window that took too long; None where it cannot be divided."""
        ends = self.ends()
        if ends is None or window.timeless:
            return None
        low = ends[0] if window.low is None else window.low
        high = ends[1] if window.high is None else window.high
        middle = (int(low) + int(high)) // 2 if self.whole else (low + high) / 2
        if not low < middle < high or high - low < 1:
            return None
        return Window(middle, window.high) if self.newest_first else Window(window.low, middle)


class ById(Axis):
    """The order of one store."""

    column, whole = "id", True

    def __init__(self, ends: tuple[int, int] | None, newest_first: bool) -> None:
        super().__init__(newest_first)
        self._ends = ends

    def ends(self) -> tuple[float, float] | None:
        return self._ends

    def passed(self, start: float, messages: int) -> float:
        return start - messages if self.newest_first else start + messages


class ByTime(Axis):
    """The order of several stores. hours: number of the hour and of the messages in it, counting up."""

    column, whole = "timestamp", False

    def __init__(self, hours: Sequence[tuple[int, int]], newest_first: bool) -> None:
        super().__init__(newest_first)
        self._hours = [hour for hour, _ in hours]
        self._before = [0, *accumulate(number for _, number in hours)]

    def ends(self) -> tuple[float, float] | None:
        return (self._hours[0] * BUCKET_S, (self._hours[-1] + 1) * BUCKET_S) if self._hours else None

    def passed(self, start: float, messages: int) -> float:
        number = self._number(start) + (-messages if self.newest_first else messages)
        if number <= 0:
            return -math.inf
        if number >= self._before[-1]:
            return math.inf
        at = bisect_right(self._before, number) - 1
        inside = (number - self._before[at]) / (self._before[at + 1] - self._before[at])
        return (self._hours[at] + inside) * BUCKET_S

    def _number(self, start: float) -> float:
        """How many messages are before a time, about."""
        hour = math.floor(start / BUCKET_S)
        at = bisect_left(self._hours, hour)
        here = self._before[at + 1] - self._before[at] if at < len(self._hours) and self._hours[at] == hour else 0
        return self._before[at] + here * (start / BUCKET_S - hour)


def written(place: Place) -> str:
    """A place as it stands in an address."""
    flags = ("f" if place.found else "n") + ("i" if place.inside else "w")
    at = "none" if place.at is None else repr(place.at)
    hit = "" if place.id is None else f"_{place.store}_{place.id}"
    return f"{flags}_{at}{hit}"


def read(text: str) -> Place | None:
    """The place of an address; None for ''. Raises ParameterError."""
    if not text:
        return None
    try:
        flags, at, *hit = text.split("_")
        if flags not in ("fw", "nw", "fi", "ni") or len(hit) not in (0, 2):
            raise ValueError
        numbers: list[Any] = [int(each) for each in hit] or [None, None]
        value = None if at == "none" else int(at) if _WHOLE.fullmatch(at) else float(at)
        if value is not None and not math.isfinite(value):
            raise ValueError
        if any(not -(2**63) <= each < 2**63 for each in (*numbers, value) if each is not None):
            raise ValueError
        return Place(value, numbers[0], numbers[1], flags[0] == "f", flags[1] == "i")
    except ValueError:
        raise ParameterError("after", text, "take it from the link to the next page") from None
