"""When things happen in a demo store: weekdays more than weekends, days more than nights, and growth."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from math import exp
from random import Random

_WEEKDAYS = (1.0, 1.15, 1.1, 1.05, 0.9, 0.4, 0.35)
_HOURS = (
    2, 1, 0.5, 0.3, 0.3, 0.5, 1.5, 3, 6, 9, 10, 9, 6, 7, 9, 10, 9, 7, 5, 5, 6, 7, 6, 4,
)  # fmt: skip
_GROWTH = 1.6

_DURATIONS = {  # median seconds from first to last message, spread
    "cron": (90.0, 0.5),
    "subagent": (240.0, 0.7),
    "tool": (60.0, 0.5),
    "telegram": (14_000.0, 1.7),
    "discord": (9_000.0, 1.6),
}
_AT_A_DESK = (2100.0, 0.9)


class Rhythm:
    """Moments within the `days` days before `end` (epoch seconds)."""

    def __init__(self, end: float, days: int) -> None:
        self._days = days
        self.end = end
        self.start = end - days * 86400.0
        first = datetime.fromtimestamp(self.start, timezone.utc)
        # A day counts from the hour at which the period begins, so that no day is a part of one.
        self._weights = [
            _WEEKDAYS[(first + timedelta(days=day)).weekday()] * (1 + _GROWTH * day / days)
            for day in range(days)
        ]

    def moment(self, rng: Random) -> float:
        """A moment at which a person begins a session."""
        day = rng.choices(range(self._days), self._weights)[0]
        hour = rng.choices(range(24), _HOURS)[0]
        midnight = (self.start + day * 86400.0) // 86400.0 * 86400.0
        moment = midnight + hour * 3600.0 + rng.random() * 3600.0
        return moment if moment >= self.start else moment + 86400.0

    def scheduled(self, rng: Random, hour: int, minute: int) -> float:
        """A moment at which a daily job runs: on time, give or take a few seconds."""
        day = rng.randrange(self._days)
        midnight = (self.start + day * 86400.0) // 86400.0 * 86400.0
        moment = midnight + hour * 3600.0 + minute * 60.0 + rng.random() * 20.0
        return moment if moment >= self.start else moment + 86400.0


def duration(rng: Random, source: str) -> float:
    """Seconds from the first to the last message of a session of this source; at most five days."""
    median, spread = _DURATIONS.get(source, _AT_A_DESK)
    return min(432_000.0, median * exp(rng.gauss(0, spread)))
