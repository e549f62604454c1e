"""How a figure is written: money, tokens, ratios, counts, days.

One place for every page, so that the same amount reads the same everywhere. A value that is not
known is a word, never a zero (accounting.md rules 3 and 6).
"""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from zoneinfo import ZoneInfo

UNKNOWN = "unknown"
NO_DATA = "no data"

_STEPS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def money(amount: float | None, *, unknown: str = UNKNOWN) -> str:
    """Dollars to the cent, or to two significant digits below one cent: `$1,234.56`, `$0.0004`.

    `None` is the word `unknown`. Only a measured zero is `$0.00`.
    """
    if amount is None or not math.isfinite(amount):
        return unknown
    sign = "-" if amount < 0 else ""
    size = abs(amount)
    if size == 0 or size >= 0.00995:
        return f"{sign}${size:,.2f}"
    decimals = min(12, 1 - math.floor(math.log10(size)))
    return f"{sign}${size:.{decimals}f}"


def exact_money(amount: float | None) -> str:
    """Dollars with every digit that counts (up to 12 decimals), for a title: `$3.8105`."""
    if amount is None or not math.isfinite(amount):
        return UNKNOWN
    text = f"{abs(amount):,.12f}".rstrip("0")
    whole, _, decimals = text.partition(".")
    return f"{'-' if amount < 0 else ''}${whole}.{decimals.ljust(2, '0')}"


def count(number: float | None, *, unknown: str = NO_DATA) -> str:
    """A number with thousands separators; only a small share keeps decimals: `1,204`, `957`, `0.4`."""
    if number is None or not math.isfinite(number):
        return unknown
    if abs(number) >= 10 or abs(number - round(number)) < 0.005:
        return f"{round(number):,}"
    return f"{number:,.1f}" if abs(number) >= 0.1 else f"{number:,.2g}"


def short(number: float | None, *, unknown: str = NO_DATA) -> str:
    """A large number in three digits and a letter: `1.24M`, `983k`, `412`."""
    if number is None or not math.isfinite(number):
        return unknown
    for size, letter in _STEPS:
        # 999,950 would print as "1000k": the next larger letter takes over a little earlier.
        if abs(number) >= size * 0.9995:
            scaled = number / size
            decimals = max(0, 2 - math.floor(math.log10(max(abs(scaled), 1))))
            text = f"{scaled:.{decimals}f}"
            return (text.rstrip("0").rstrip(".") if "." in text else text) + letter
    return count(number)


def ratio(share: float | None) -> str:
    """A share between 0 and 1 as a percentage with one decimal; `None` is `no data`, never 0 %."""
    if share is None or not math.isfinite(share):
        return NO_DATA
    return f"{share * 100:.1f} %"


def cut(text: str, most: int = 300) -> str:
    """Text that is a name or a label, cut where nobody would read on: a word of 60,000 letters in a table
    keeps a browser busy for minutes."""
    return text if len(text) <= most else f"{text[:most]}…"


def plural(number: float, one: str, many: str = "") -> str:
    """`1 session`, `2 sessions`, `1,204 calls`."""
    text = count(number)
    return f"{text} {one if text == '1' else many or one + 's'}"


def day(text: str, *, year: bool = False) -> str:
    """An ISO date for a reader: `2026-11-03` is `3 Nov`, or `3 Nov 2026`; other text is unchanged."""
    try:
        parsed = date.fromisoformat(text)
    except ValueError:
        return text
    return f"{parsed.day} {parsed:%b}" + (f" {parsed.year}" if year else "")


def moment(epoch: float | None, zone: str) -> str:
    """Epoch seconds as a minute of the named zone: `2026-11-03 14:05`; `None` is `no data`."""
    if epoch is None:
        return NO_DATA
    try:
        moment_utc = datetime.fromtimestamp(float(epoch), tz=timezone.utc)
    except (ValueError, OverflowError, OSError, TypeError):
        return NO_DATA
    return f"{moment_utc.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}"


def size(bytes_: int) -> str:
    """A file size in binary steps: `1.5 GB`, `512 kB`."""
    amount = float(bytes_)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1024:
            # Three digits; from 1,000 to 1,023 of a unit there are four.
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 100 else f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TB"


def ago(seconds: float) -> str:
    """How long ago something was: `3 days ago`, `12 minutes ago`; less than a minute, or to come, is `just now`."""
    for size_s, one in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size_s * (2 if one == "day" else 1):
            return f"{plural(int(seconds // size_s), one)} ago"
    return "just now"
