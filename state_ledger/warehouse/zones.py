"""Calendar days of a zone as SQL that needs no time zones of the engine's own.

An engine has its own copy of the zone database, of another year than ours, and most have no days before 1900 or
after 2299. So the SQL says from which instant on which offset holds, as our own functions know it, for the years
in which there is anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from state_ledger.ledger.days import zone

SPAN = 2**25
"""Seconds of a span, a little more than a year: the instants of a warehouse are known by the spans they fall in."""

FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The first and the last second of the years that have a calendar day here, 1 to 9999."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@lru_cache(maxsize=512)
def offsets(spans: tuple[int, ...], zone_name: str) -> tuple[tuple[int, int], ...]:
    """(instant, offset in seconds) in order: from each instant on its offset holds, within these spans.

    Raises `days.UnknownZone`.
    """
    found: list[tuple[int, int]] = []
    for span in sorted(set(spans)):
        for instant, ahead in _of_span(span, zone_name):
            if not found or found[-1][1] != ahead:
                found.append((instant, ahead))
    return tuple(found) or ((FIRST, 0),)


@lru_cache(maxsize=4096)
def _of_span(span: int, zone_name: str) -> tuple[tuple[int, int], ...]:
    """The offset at the beginning of a span and those that follow in it."""
    first, last = max(span * SPAN, FIRST), min((span + 1) * SPAN - 1, LAST)
    if first > last:
        return ()
    found = [(first, offset(first, zone_name))]
    at = first
    while at < last:
        ahead = min(at + 43_200, last)
        if offset(ahead, zone_name) != found[-1][1]:
            instant = _change(at, ahead, zone_name)
            found.append((instant, offset(instant, zone_name)))
            ahead = instant  # another change may follow at once
        at = ahead
    return tuple(found)


def _change(before: int, after: int, zone_name: str) -> int:
    """The first second at which the offset of `before` does not hold any more."""
    held = offset(before, zone_name)
    while after - before > 1:
        middle = (before + after) // 2
        if offset(middle, zone_name) == held:
            before = middle
        else:
            after = middle
    return after


def offset(epoch: int, zone_name: str) -> int:
    """By how many seconds a zone's clocks are ahead of UTC at an instant."""
    here = zone(zone_name)
    moment = (_EPOCH + timedelta(seconds=epoch)).astimezone(here)
    ahead = moment.utcoffset()
    assert ahead is not None, "every zone has an offset at every instant"
    return int(ahead.total_seconds())


def are_far(spans: Iterable[int]) -> bool:
    """Whether there are spans outside the years 1900 to 2299, which some engines have no dates for."""
    return any(not _DATED[0] < span * SPAN < _DATED[1] - SPAN for span in spans)


_DATED = (-2_208_000_000, 10_413_000_000)


def spans_of(instants: Iterable[float | None]) -> tuple[int, ...]:
    """The spans that instants fall in, and those beside them."""
    found = {int(instant // SPAN) for instant in instants if instant is not None and FIRST <= instant <= LAST}
    return tuple(sorted({near for each in found for near in (each - 1, each, each + 1)}))
