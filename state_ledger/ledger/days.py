"""Calendar days of a named zone (accounting rules 19 and 20).

A bucket of `ledger_time` is 15 minutes long: every zone's days begin on a quarter of an hour, so
buckets turn into days of any zone without loss.
"""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

BUCKET_SECONDS = 900


class UnknownZone(ValueError):
    """A name that the zone database does not have; str() is a sentence for the user."""


@lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    """The zone of an IANA name such as `Asia/Seoul`. Raises UnknownZone."""
    if name.upper() == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownZone(
            f"There is no time zone named {name!r}; use an IANA name such as Europe/Berlin, Asia/Seoul or UTC."
        ) from error


def server_zone() -> str:
    """The IANA name of this machine's zone: `TZ`, else the system's setting, else `UTC`."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named and _is_zone(named):
        return named
    try:
        target = str(Path("/etc/localtime").resolve())
    except OSError:
        return "UTC"
    _, found, tail = target.partition("zoneinfo/")
    if found and _is_zone(tail):
        return tail
    try:
        written = Path("/etc/timezone").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return "UTC"
    return written if written and _is_zone(written) else "UTC"


def _is_zone(name: str) -> bool:
    try:
        zone(name)
    except UnknownZone:
        return False
    return True


@lru_cache(maxsize=65536)
def local_day(epoch: float, zone_name: str) -> str | None:
    """The calendar day, `YYYY-MM-DD`, on which an instant falls in a zone; None if it has none."""
    try:
        return datetime.fromtimestamp(epoch, zone(zone_name)).date().isoformat()
    except (OverflowError, OSError, ValueError) as error:
        if isinstance(error, UnknownZone):
            raise
        return None


@lru_cache(maxsize=1024)
def day_start(day: str, zone_name: str) -> float:
    """The instant, epoch seconds, at which a day `YYYY-MM-DD` begins in a zone.

    Where clocks jump over midnight, the day begins at the first instant that exists.
    Raises ValueError for text that is not a day, UnknownZone for an unknown zone.
    """
    first = date.fromisoformat(day)
    moment = datetime(first.year, first.month, first.day, tzinfo=zone(zone_name))
    epoch = moment.timestamp()
    # A midnight that a clock change skips is mapped before or after the gap: step to the day's first quarter.
    while (local_day(epoch, zone_name) or day) < day:
        epoch += BUCKET_SECONDS
    while (local_day(epoch - BUCKET_SECONDS, zone_name) or "") == day:
        epoch -= BUCKET_SECONDS
    return epoch


def day_end(day: str, zone_name: str) -> float:
    """The instant at which a day is over: the beginning of the next one."""
    try:
        return day_start((date.fromisoformat(day) + timedelta(days=1)).isoformat(), zone_name)
    except OverflowError:  # the last day that a calendar here has
        return day_start(day, zone_name) + 86400


def today(zone_name: str, now: float | None = None) -> date:
    """The current calendar day of a zone."""
    tz = zone(zone_name)
    return (datetime.now(tz) if now is None else datetime.fromtimestamp(now, tz)).date()
