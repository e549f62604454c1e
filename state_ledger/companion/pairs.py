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
from typing import Any, NamedTuple

from state_ledger import content
from state_ledger.patterns import Pattern
from state_ledger.search import text as _text

Message = tuple[Any, ...]
"""id, content, tool_name, tool_calls; text as its stored bytes."""

U = _text.UNSPACED
_ALL_MARKS = "".join(map(chr, range(0x300, 0x332)))
_LETTERS = Pattern(rf"(?:{_text.LETTER}|[{_text.MARKS}])+")
_MARK = re.compile(f"[{_text.MARKS}]")
_RUN = Pattern(f"([{U}])([{U}]*)")
_PIECE = Pattern(rf"(?P<run>[{U}]+)|(?P<word>{_text.LETTER}(?:{_text.LETTER}|[{_text.MARKS}])*)")
_WIDE = f"utf-32-{sys.byteorder[0]}e"
_BLANK = " ".encode(_WIDE)


class Prepared(NamedTuple):
    """A row of the index: a message and two texts of tokens separated by blanks."""

    id: int
    pairs: str
    words: str


def prepare(messages: Iterable[Message]) -> list[Prepared]:
    """What the index holds of some messages, in their order; those without such a script are left out.

    All of them are paired at once, with one step of Python for a message and none for a run or a
    character: both are many, and SQLite needs only 0.15 microseconds to index a pair.
    """
    ids: list[int] = []
    words: list[str] = []
    ends: list[int] = []
    first: list[str] = []
    second: list[str] = []
    end = 0
    for message in messages:
        texts = texts_of(message)
        if not texts:
            continue
        begin = end
        touching: dict[str, None] = {}
        for text in texts:
            # A gap, the first character of a run, the rest of the run, a gap, and so on.
            parts = _RUN.now.split(text)
            if len(parts) > 1:
                touching.update(_touching(parts))
                rest = " ".join(parts[2::3])
                parts[::3] = repeat("", len(parts) // 3 + 1)
                first.append("".join(parts))
                second.append(rest)
                end += len(rest) + 1
        if end > begin:
            ids.append(message[0])
            words.append(" ".join(touching))
            ends.append(end)
    pairs = _interleaved("".join(first), " ".join(second) + " ") if ids else ""
    starts = [0, *ends]
    return [
        Prepared(number, pairs[3 * start : 3 * end], word)
        for number, start, end, word in zip(ids, starts, ends, words, strict=False)
    ]


def _interleaved(first: str, second: str) -> str:
    """Two equally long texts, character by character, with a blank after each pair."""
    out = array("I", _BLANK * (3 * len(first)))
    out[0::3] = array("I", first.encode(_WIDE))
    out[1::3] = array("I", second.encode(_WIDE))
    return out.tobytes().decode(_WIDE)


def _touching(parts: list[str]) -> dict[str, None]:
    """The words that stand directly after or before a run, folded. parts: as `_RUN` splits them."""
    words = dict.fromkeys((_word_at_start(parts[-1]), _word_at_end(parts[0])))
    for gap in dict.fromkeys(parts[3:-1:3]):
        words.update(_edges(gap) if len(gap) < _SHORT else _words_at_edges(gap))
    words.pop("", None)
    return words


def _words_at_edges(gap: str) -> dict[str, None]:
    return dict.fromkeys((_word_at_start(gap), _word_at_end(gap)))


_SHORT = 40
_edges = lru_cache(maxsize=10_000)(_words_at_edges)
"""Between runs the same few blanks and signs stand again and again."""


def _word_at_start(gap: str) -> str:
    found = _LETTERS.now.match(gap)
    return _folded(found.group()) if found else ""


def _word_at_end(gap: str) -> str:
    # Read backwards, which takes linear time however long the word is.
    found = _LETTERS.now.match(gap[::-1])
    return _folded(gap[len(gap) - found.end() :].lstrip(_ALL_MARKS)) if found else ""


def _folded(word: str) -> str:
    # Python writes a small sigma in two ways, by what follows it in the text.
    return _MARK.sub("", _text.fold(word)).replace("ς", "σ")


def texts_of(message: Message) -> list[str]:
    """The texts of a message that may hold such a script, decoded as a reader sees them.

    message: id, content, tool name and tool calls as SQLite stores them, text as its UTF-8 bytes.
    What is plain ASCII without an escape of JSON is passed over at once. Tool calls count as stored
    and with their escapes written out.
    """
    _, stored, tool_name, tool_calls = message
    texts = []
    if stored.__class__ is bytes:
        if stored[:1] != b"\0":
            if not stored.isascii():
                texts.append(stored.decode("utf-8", "replace"))
        elif not stored.isascii() or b"\\u" in stored:
            texts.append(content.decode(stored).text)
    if tool_name.__class__ is bytes and not tool_name.isascii():
        texts.append(content.decode(tool_name).text)
    if tool_calls.__class__ is bytes:
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
    pieces = [(match.lastgroup, match.group()) for match in _PIECE.now.finditer(run)]
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
    matches = list(_PIECE.now.finditer(run))
    for at, match in enumerate(matches):
        before = at > 0 and matches[at - 1].lastgroup == "run" and matches[at - 1].end() == match.start()
        if match.lastgroup != "word" or not before:
            continue  # what precedes it may be the middle of a word
        closed = match.end() < len(run)
        yield f'words : "{_folded(match.group())}"{"" if closed else " *"}'


@lru_cache(maxsize=1)
def rules() -> str:
    """What the index depends on besides the store: another Python or other rules make another index."""
    patterns = "\n".join((_PIECE.now.pattern, _MARK.pattern))
    return hashlib.sha256(f"1\n{unicodedata.unidata_version}\n{patterns}".encode()).hexdigest()[:16]
