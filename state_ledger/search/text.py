"""How text is compared in a search: folding, words, and scripts that are written without spaces.

Follows FTS5's tokenizer unicode61 (letters, digits and private-use characters make words; case and
the accents of Latin letters do not count), with one difference: where a script without spaces meets
another, a word ends. unicode61 takes `修改youer` for one word; a reader sees two.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3000-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0002fa1f"
)
"""Inside of a regular expression's brackets: Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean."""

FIRST_UNSPACED = "\u0e00"
"""No character of those scripts sorts before this one."""

_MARKS = "\u0300-\u0331"
_LETTER = rf"(?:[^\W_{UNSPACED}]|[\ue000-\uf8ff\U000f0000-\U0010ffff])"
_WORD = re.compile(rf"{_LETTER}(?:{_LETTER}|[{_MARKS}])*|[{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_MARK = re.compile(f"[{_MARKS}]")
_OLD = unicodedata.ucd_3_2_0

# The ranges by which the contract decides what "is CJK".
_CJK = re.compile(
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
        self[code] = ord(folded)
        return self[code]


_folding = _Folding()


def fold(text: str) -> str:
    """The text as it is compared; as long as the text itself, so that positions hold for both."""
    return text.lower() if text.isascii() else text.translate(_folding)


def words(text: str) -> list[Word]:
    """The words of a text, folded, with their places."""
    folded = fold(text)
    found = ((match.group(), match.start(), match.end()) for match in _WORD.finditer(folded))
    return [(_MARK.sub("", word), start, end) for word, start, end in found]


def is_unspaced(text: str) -> bool:
    """Whether a text has a character of a script that is written without spaces."""
    return _UNSPACED.search(text) is not None


def contains_cjk(text: str) -> bool:
    """Whether a text has a Chinese, Japanese or Korean character, as the contract counts them."""
    return _CJK.search(text) is not None


@lru_cache(maxsize=1024)
def is_old_letter(character: str) -> bool:
    """Whether every version of unicode61 takes a character for a letter or digit.

    SQLite's tables and Python's are of different ages; Unicode 3.2 is older than both.
    """
    return _OLD.category(character)[0] in "LN" or _OLD.category(character) == "Co"
