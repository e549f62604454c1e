"""Names of files that every system takes, whatever a session is called."""

from __future__ import annotations

import hashlib
import re

LONGEST = 80

_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)")


def file_name(*parts: str, ending: str) -> str:
    """`file_name("state", "session", "a/b", ending="csv")` is `state-session-a-b-1f3c92.csv`.

    Letters, digits, `-`, `_` and inner dots of ASCII; where anything else had to go, or much of it, a few
    digits of the whole tell it from its neighbours. Never hidden, never an option, never a device.
    """
    wanted = "-".join(part for part in parts if part)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted)
    name = re.sub(r"\.{2,}", ".", name)[:LONGEST].strip("-.")
    if name != wanted or not name or _RESERVED.fullmatch(name.partition(".")[0]):
        digest = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()[:6]
        name = f"{name}-{digest}" if name and not _RESERVED.fullmatch(name.partition(".")[0]) else f"export-{digest}"
    return f"{name}.{ending}"
