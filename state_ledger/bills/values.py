"""The values of a bill: days, amounts, currencies. What could mean two things is refused."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from state_ledger.ledger import days

MOST = Decimal(10) ** 12

_AMOUNT = re.compile(r"(?P<sign>[+-]?)(?P<number>\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,}|\d+\.?\d*|\.\d+)"
                     r"(?P<exponent>[eE][+-]?\d{1,3})?")  # fmt: skip
_SLASHES = re.compile(r"\d{1,2}[./]\d{1,2}[./]\d{2,4}")


class Meaningless(ValueError):
    """A value that cannot be meant; str() is the end of a sentence, without a full stop."""


def amount(value: Any) -> Decimal:
    """US dollars; negative for a credit. `$1,234.56`, `(0.10)` and `1e-05` are read, `1,5` and `1,234` are not."""
    if isinstance(value, bool) or value is None:
        raise Meaningless("the amount is missing")
    text = str(value).strip().replace("\N{MINUS SIGN}", "-")
    if not text:
        raise Meaningless("the amount is empty")
    inner = text[1:-1].strip() if text.startswith("(") and text.endswith(")") else text
    bare = re.sub(r"(?i)^([+-]?)\s*(?:us)?\$\s*|\s*(?:usd|us\$|\$)$", r"\1", inner)
    bare = re.sub(r"(?i)^usd\s*", "", bare)
    match = _AMOUNT.fullmatch(bare)
    if match is None:
        if re.fullmatch(r"[+-]?[\d.]*,\d*|[+-]?\d{1,3}(\.\d{3})*,\d+", bare):
            raise Meaningless(f"{text!r} could be a decimal comma or thousands; write it with a decimal point, 1234.56")
        if re.search(r"[^\x00-\x7f]|[A-Za-z]{3}", bare) and not re.fullmatch(r"(?i)[+-]?(nan|inf(inity)?)", bare):
            raise Meaningless(f"{text!r} is no amount in US dollars; other currencies are not converted")
        raise Meaningless(f"{text!r} is no amount; write a number such as 1234.56")
    number = Decimal(match["sign"] + match["number"].replace(",", "") + (match["exponent"] or ""))
    if abs(number) > MOST:
        raise Meaningless(f"{text!r} is more than any bill")
    return -abs(number) if inner != text else number


def currency(value: Any) -> None:
    """Raises Meaningless unless it says US dollars, or nothing."""
    text = str(value or "").strip().lower()
    if text not in ("", "usd", "us$", "$", "us dollar", "us dollars"):
        raise Meaningless(f"the currency is {str(value).strip()}; amounts must be in US dollars, nothing is converted")


def day(value: Any, zone: str) -> str:
    """The calendar day, ISO: a day as it is, a moment in the zone; a moment that names no zone is UTC."""
    if isinstance(value, bool) or value is None:
        raise Meaningless("the date is missing")
    text = str(value).strip()
    try:
        if re.fullmatch(r"\d{4}[-/]?\d{2}[-/]?\d{2}", text):
            return date(int(text[:4]), int(re.sub(r"\D", "", text)[4:6]), int(text[-2:])).isoformat()
        if re.fullmatch(r"\d{9,13}(\.\d+)?", text):
            seconds = float(text)
            return _in_zone(seconds / 1000 if seconds >= 1e11 else seconds, zone)
        if re.match(r"\d{4}-\d{2}-\d{2}[T ]", text):
            plain = re.sub(r"\s*(Z|UTC)$", "+00:00", text)
            # Python 3.10 reads only fractions of three or six digits, which say nothing of the day.
            moment = datetime.fromisoformat(re.sub(r"\.\d+", "", plain))
            moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
            return _in_zone(moment.timestamp(), zone)
    except (ValueError, OverflowError, OSError) as error:
        raise Meaningless(f"{text!r} is no day of the calendar") from error
    if _SLASHES.fullmatch(text):
        raise Meaningless(f"{text!r} could be day or month first; write it as YYYY-MM-DD")
    raise Meaningless(f"{text!r} is no date; write it as YYYY-MM-DD" if text else "the date is empty")


def _in_zone(epoch: float, zone: str) -> str:
    local = days.local_day(epoch, zone)
    if local is None:
        raise ValueError(epoch)
    return local
