"""Marks around the matches in a snippet, and the forms in which a snippet is shown.

Inside, a match stands between two private-use characters, which are taken out of the text before:
nothing that a message says can look like a mark. They become `>>>match<<<` for programs and
`<mark>` for pages, each at the very end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

START, END = "\ue000", "\ue001"
"""What stands before and after a match."""

BEFORE, AFTER = ">>>", "<<<"
"""The same in plain text, as `search_messages` gives it."""

_MARK = re.compile(f"([{START}{END}])")

Piece = tuple[str, bool]
"""Some text, and whether it is a match."""


def free(text: str) -> str:
    """A text in which no mark occurs: its own private-use characters of that kind become U+FFFD."""
    return _MARK.sub("\ufffd", text)


def pieces(snippet: str) -> list[Piece]:
    """A snippet as matches and what stands between them, in order; a mark without its other one ends a piece."""
    found: list[Piece] = []
    inside = False
    for part in _MARK.split(snippet):
        if part in (START, END):
            inside = part == START
        elif part:
            found.append((part, inside))
    return found


def plain(snippet: str) -> str:
    """A snippet for programs: `the >>>harbour<<< at night`."""
    return "".join(f"{BEFORE}{piece}{AFTER}" if match else piece for piece, match in pieces(snippet))


def unmarked(snippet: str) -> str:
    """A snippet without its marks."""
    return _MARK.sub("", snippet)


def html(snippet: str) -> str:
    """A snippet for pages: everything escaped, then each match in `<mark>`."""
    return "".join(
        f"<mark>{escape(piece)}</mark>" if match else escape(piece) for piece, match in pieces(snippet)
    )


def places(snippet: str) -> list[tuple[int, int]]:
    """Where the matches stand in `plain(snippet)`, with their `>>>` and `<<<`: first and past-the-end character.

    Text of a message may hold `>>>` too; these tell the one from the other. Counted in code points.
    """
    found: list[tuple[int, int]] = []
    at = 0
    for piece, match in pieces(snippet):
        length = len(piece) + (len(BEFORE) + len(AFTER) if match else 0)
        if match:
            found.append((at, at + length))
        at += length
    return found


def marked(shown: str, spans: Iterable[Sequence[int]]) -> str:
    """The snippet of which `shown` is the plain form and `spans` are the places; the way back.

    Spans that do not hold a match in that form are passed over: what they name stays text.
    """
    out: list[str] = []
    at = 0
    for span in spans:
        if len(span) != 2 or not all(type(place) is int for place in span):
            continue
        first, end = span
        if first < at or end - first < len(BEFORE) + len(AFTER):
            continue
        if shown[first : first + len(BEFORE)] != BEFORE or shown[end - len(AFTER) : end] != AFTER:
            continue
        match = free(shown[first + len(BEFORE) : end - len(AFTER)])
        out += [free(shown[at:first]), START, match, END]
        at = end
    return "".join([*out, free(shown[at:])])


def cut(snippet: str, most: int) -> str:
    """The first `most` characters of a snippet, marks not counted; a match that is cut keeps its marks."""
    out: list[str] = []
    left = most
    for piece, match in pieces(snippet):
        if left <= 0:
            break
        kept = piece[:left]
        out.append(f"{START}{kept}{END}" if match else kept)
        left -= len(kept)
    return "".join(out)
