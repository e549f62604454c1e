"""What of a message the companion's index holds: pairs of characters, and words that touch them.

A script without spaces (`UNSPACED` of `state_ledger.search.text`) has no words that an index could
cut out, so each run of its characters becomes its overlapping pairs, and the run's last character
alone: `데이터` is `데이 이터 터`. Every character then begins exactly one token, which finds single
characters by prefix, and no phrase of pairs reaches from one run into the next.

A Latin word that touches such a run (`youer` in `修改youer服务端`) stands in no word index by itself;
those words are kept whole, folded as the search folds them.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from operator import add
from typing import NamedTuple

from state_ledger import content
from state_ledger.search import text as _text

U = _text.UNSPACED
_MARKS = "\u0300-\u0331"
_ALL_MARKS = "".join(map(chr, range(0x300, 0x332)))
_LETTER = rf"(?:[^\W_{U}]|[\ue000-\uf8ff\U000f0000-\U0010ffff])"
_LETTERS = re.compile(rf"(?:{_LETTER}|[{_MARKS}])+")
_MARK = re.compile(f"[{_MARKS}]")
_RUN = re.compile(f"([{U}])([{U}]*)")
_PIECE = re.compile(rf"(?P<run>[{U}]+)|(?P<word>{_LETTER}(?:{_LETTER}|[{_MARKS}])*)")
_WIDE = f"utf-32-{sys.byteorder[0]}e"
_BLANK = " ".encode(_WIDE)


class Prepared(NamedTuple):
    """The two columns of the index for one message, each a text of tokens separated by blanks."""

    pairs: str
    words: str


def prepare(texts: Iterable[str]) -> Prepared | None:
    """What the index holds of a message with these texts; None if no script without spaces is in them."""
    pairs = ""
    words: dict[str, None] = {}
    for text in texts:
        parts = _RUN.split(text)
        if len(parts) > 1:
            words.update(_touching(parts))
            pairs += _paired(parts)
    return Prepared(pairs, " ".join(words)) if pairs else None


def _paired(parts: list[str]) -> str:
    """The pairs of all runs, without a step of Python for each run or character: they are many.

    parts: as `_RUN.split` gives them, that is a gap, a first character and the rest of its run, and
    so on; the gaps are lost. The list of all characters stands beside the list of what follows each.
    """
    following = array("I", (" ".join(parts[2::3]) + " ").encode(_WIDE))
    parts[::3] = repeat("", len(parts) // 3 + 1)
    out = array("I", _BLANK * (3 * len(following)))
    out[0::3] = array("I", "".join(parts).encode(_WIDE))
    out[1::3] = following
    return out.tobytes().decode(_WIDE)


def _touching(parts: list[str]) -> dict[str, None]:
    """The words that stand directly after or before a run, folded. parts: as `_RUN.split` gives them."""
    words: dict[str, None] = {}
    inner = dict.fromkeys(parts[3:-1:3])
    inner.pop(" ", None)
    for gap in (parts[-1], *inner):
        after = _LETTERS.match(gap)
        if after:
            words[_folded(after.group())] = None
    for gap in (parts[0], *inner):
        # Read backwards, which takes linear time however long the word is.
        before = _LETTERS.match(gap[::-1]) if gap else None
        if before:
            words[_folded(gap[len(gap) - before.end() :].lstrip(_ALL_MARKS))] = None
    words.pop("", None)
    return words


def _folded(word: str) -> str:
    return _MARK.sub("", _text.fold(word))


def texts_of(stored: object, tool_name: object, tool_calls: object) -> list[str]:
    """The texts of a message that may hold such a script, decoded as a reader sees them.

    Each value is as SQLite stores it, text as its UTF-8 bytes; what is plain ASCII without an escape
    of JSON is passed over at once. Tool calls count as stored and with their escapes written out.
    """
    texts = []
    if isinstance(stored, bytes) and (not stored.isascii() or (stored[:1] == b"\0" and b"\\u" in stored)):
        texts.append(content.decode(stored).text)
    if isinstance(tool_name, bytes) and not tool_name.isascii():
        texts.append(content.decode(tool_name).text)
    if isinstance(tool_calls, bytes):
        if not tool_calls.isascii():
            texts.append(content.decode(tool_calls).text)
        if b"\\u" in tool_calls:
            texts.append(content.unescaped(content.decode(tool_calls).text))
    return texts


def expression(run: str, *, prefix: bool = False) -> str | None:
    """The MATCH for a literal run of text; None if it holds neither letters nor such a script.

    Rows that hold the run are among those it finds. In a run of several pieces the words between
    two pieces without spaces are asked for whole, the last one as a prefix; a word at the beginning
    may be the end of a longer one, and is left out.
    """
    pieces = [(match.lastgroup, match.group()) for match in _PIECE.finditer(run)]
    runs = [piece for kind, piece in pieces if kind == "run"]
    if not runs:
        if len(pieces) != 1:
            return None
        return f'words : "{_folded(pieces[0][1])}"{" *" if prefix else ""}'
    return " AND ".join(dict.fromkeys([*map(_phrase, runs), *_words_between(run)]))


def _phrase(run: str) -> str:
    if len(run) == 1:
        return f'pairs : "{run}" *'
    return f'pairs : "{" ".join(map(add, run, run[1:]))}"'


def _words_between(run: str) -> Iterator[str]:
    matches = list(_PIECE.finditer(run))
    for at, match in enumerate(matches):
        before = at > 0 and matches[at - 1].lastgroup == "run" and matches[at - 1].end() == match.start()
        if match.lastgroup != "word" or not before:
            continue  # what precedes it may be the middle of a word
        closed = match.end() < len(run)
        yield f'words : "{_folded(match.group())}"{"" if closed else " *"}'


@lru_cache(maxsize=1)
def rules() -> str:
    """What the index depends on besides the store: another Python or other rules make another index."""
    patterns = "\n".join(pattern.pattern for pattern in (_PIECE, _MARK))
    return hashlib.sha256(f"1\n{unicodedata.unidata_version}\n{patterns}".encode()).hexdigest()[:16]
