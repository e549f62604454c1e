"""The difference between two texts, laid out so that a reader sees what was put in and what was left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

MOST_STEPS = 400_000
"""Comparing takes up to this many looks at pairs, below a fifth of a second; coarser pieces take fewer."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def difference(shown: str, sent: str) -> str:
    """What is in `shown` only as `<del>`, what is in `sent` only as `<ins>`, the rest as it is.

    Word by word where that is quick, else line by line, else as a whole. Long stretches that are the
    same are left out in the middle.
    """
    start = _whole_words(shown, _common(shown, sent))
    backwards = shown[start:][::-1]
    end = _whole_words(backwards, _common(backwards, sent[start:][::-1]))
    middle_shown, middle_sent = shown[start : len(shown) - end], sent[start : len(sent) - end]
    pieces = [("same", shown[:start]), *_middle(middle_shown, middle_sent), ("same", shown[len(shown) - end :])]
    body = "".join(_html(kind, text) for kind, text in pieces if text)
    return f'<pre class="difference">{body}</pre>'


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _whole_words(text: str, length: int) -> int:
    """A length that ends within a word, shortened to where the word begins; long ones stay cut."""
    least = max(0, length - 40)
    at = length
    while at > least and text[at - 1].isalnum():
        at -= 1
    return at if at > least or at == 0 else length


def _middle(shown: str, sent: str) -> list[tuple[str, str]]:
    if not shown or not sent:
        return [("gone", shown), ("new", sent)]
    for pattern in (_WORDS, _LINES):
        before, after = pattern.findall(shown), pattern.findall(sent)
        if len(before) * len(after) <= MOST_STEPS:
            return _matched(before, after)
    return [("gone", shown), ("new", sent)]


def _matched(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, str]]:
    pieces = []
    for kind, low, high, new_low, new_high in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(("same", "".join(before[low:high])))
        else:
            pieces += [("gone", "".join(before[low:high])), ("new", "".join(after[new_low:new_high]))]
    return pieces


def _html(kind: str, text: str) -> str:
    if kind == "gone":
        return f"<del>{escape(text)}</del>"
    if kind == "new":
        return f"<ins>{escape(text)}</ins>"
    if len(text) > 1200:
        left_out = len(text) - 800
        return (
            f"{escape(text[:400])}<span class=\"left-out\"> … {left_out:,} characters that are the same … </span>"
            f"{escape(text[-400:])}"
        )
    return escape(text)
