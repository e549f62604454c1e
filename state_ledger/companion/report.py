"""How fast a companion is refreshed, and what a refresh did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pace:
    """How a refresh works: what one step reads at most, and how long it rests after each.

    rows: messages. bytes: of text. rest: the rest as a multiple of what the step took.
    """

    rows: int = 20_000
    bytes: int = 8 << 20
    rest: float = 0.0


FAST = Pace()
GENTLE = Pace(rows=500, bytes=1 << 20, rest=4.0)
"""At most a fifth of one core, in steps of some milliseconds, so that pages do not wait."""


LONGEST_REST_S = 2.0


@dataclass
class Report:
    """What a refresh did, in messages; began_anew: why the companion was made anew, '' if it was not.

    usage_rows: how many rows of usage the rollup was made of anew, None if it was left as it is.
    read: new messages. added: those of them that are in the index. dropped: messages that were
    deleted or hold no such script any more. changed: messages whose text was changed. reread:
    messages that were read again. finished: False if it was told to stop.
    """

    path: Path
    covered_up_to: int = 0
    read: int = 0
    added: int = 0
    dropped: int = 0
    changed: int = 0
    reread: int = 0
    usage_rows: int | None = None
    began_anew: str = ""
    finished: bool = False
    seconds: float = 0.0
