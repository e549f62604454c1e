"""How text is compared in a search: folding, words, and scripts that are written without spaces.

Follows FTS5's tokenizer unicode61 (letters, digits and private-use characters make words; case and
the accents of Latin letters do not count), with one difference: where a script without spaces meets
another, a word ends. unicode61 takes `修改youer` for one word; a reader sees two.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from state_ledger.patterns import Pattern

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0002fa1f"
)
"""Inside of a regular expression's brackets: Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean."""

FIRST_UNSPACED = "\u0e00"
"""No character of those scripts sorts before this one."""

MARKS = "\u0300-\u0331"
"""Accents that stand as characters of their own, inside of brackets: part of the word before them."""

PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010ffff"
"""Private-use characters, which unicode61 takes for letters."""

SPACED = rf"[^\W_{UNSPACED}]"
"""One letter or digit of a script that puts blanks between words, private-use characters aside."""

LETTER = rf"(?:{SPACED}|[{PRIVATE}])"
"""One letter or digit of such a script."""

_WORD = Pattern(rf"{LETTER}(?:{LETTER}|[{MARKS}])*|[{UNSPACED}]+")
_LETTER = Pattern(LETTER)
_UNSPACED = Pattern(f"[{UNSPACED}]")
_RUN = Pattern(f"[{UNSPACED}]+")
_MARK = re.compile(f"[{MARKS}]")
HAS_MARKS = _MARK.search
"""Whether a text has an accent that stands as a character of its own."""

_OLD = unicodedata.ucd_3_2_0

# The ranges by which the contract decides what "is CJK".
_CJK = Pattern(
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\u3000-\u303f\u3040-\u309f\u30a0-\u30ff\uac00-\ud7af]"
)

Word = tuple[str, int, int]
"""Folded text, start and end in the original."""


class _Folding(dict[int, int]):
    """Maps a character to its lower case without a Latin accent, always one to one."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        lower = character.lower()
        folded = lower if len(lower) == 1 else lower[0]
        apart = unicodedata.normalize("NFD", folded)
        if len(apart) == 2 and apart[0].isascii() and unicodedata.combining(apart[1]):
            folded = apart[0]
        self[code] = ord(SAME.get(folded, folded))
        return self[code]


SAME = {
    "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2010": "-", "\u2011": "-", "\u2013": "-",
    "\u00b5": "\u03bc", "\u017f": "s", "\u03c2": "\u03c3", "\u03d0": "\u03b2", "\u03d1": "\u03b8", "\u03d5": "\u03c6",
    "\u03d6": "\u03c0", "\u03f0": "\u03ba", "\u03f1": "\u03c1", "\u03f5": "\u03b5", "\u1e9b": "s", "\u1fbe": "\u03b9",
}  # fmt: skip
"""Signs that word processors and models write where a keyboard has another, none of which is in a word; and letters
with the same capital as another one, such as the sigma at the end of a word, between which unicode61 knows no
difference."""

_PLAIN = Pattern(
    "[^\u0080-\u024f\u03a3\u03c2\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5\u1e00-\u1fff\u2010-\u201d\u2100-\u214f]*"
)
"""Text in which `lower` does all that folding does: no accents, nothing with a second form, and no
capital sigma, which becomes another letter at the end of a word."""

_folding = _Folding()


def fold(text: str) -> str:
    """The text as it is compared; as long as the text itself, so that positions hold for both.

    Case does not count in any script, the accents of Latin letters do not, and curly quotation marks
    and typographic hyphens are the ones of the keyboard.
    """
    if text.isascii():
        return text.lower()
    if _PLAIN.now.fullmatch(text):
        lower = text.lower()
        if len(lower) == len(text):
            return lower
    return text.translate(_folding)


def ascii_lower(text: str) -> str:
    """The text with A to Z in small letters, everything else as it is."""
    return text.translate(_SMALL)


_SMALL: dict[int, int] = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def words(text: str) -> list[Word]:
    """The words of a text, folded, with their places."""
    folded = fold(text)
    found = ((match.group(), match.start(), match.end()) for match in _WORD.now.finditer(folded))
    return [(_MARK.sub("", word), start, end) for word, start, end in found]


def is_after_word(text: str, place: int) -> bool:
    """Whether a letter or digit of a script with spaces stands before a place, accents apart."""
    while place and _MARK.match(text, place - 1):
        place -= 1
    return place > 0 and _LETTER.now.match(text, place - 1) is not None


def is_before_word(text: str, place: int) -> bool:
    """Whether a letter or digit of a script with spaces stands at a place."""
    return _LETTER.now.match(text, place) is not None


def is_run(text: str) -> bool:
    """Whether a text is one unbroken run of letters of scripts that are written without spaces."""
    return _RUN.now.fullmatch(text) is not None and text.isalnum()


def runs(text: str) -> list[str]:
    """The unbroken runs of a text in scripts that are written without spaces."""
    return _RUN.now.findall(text)


def is_unspaced(text: str) -> bool:
    """Whether a text has a character of a script that is written without spaces."""
    return _UNSPACED.now.search(text) is not None


def contains_cjk(text: str) -> bool:
    """Whether a text has a Chinese, Japanese or Korean character, as the contract counts them."""
    return _CJK.now.search(text) is not None


@lru_cache(maxsize=1024)
def is_old_letter(character: str) -> bool:
    """Whether every version of unicode61 takes a character for a letter or digit.

    SQLite's tables and Python's are of different ages; Unicode 3.2 is older than both.
    """
    return _OLD.category(character)[0] in "LN" or _OLD.category(character) == "Co"
