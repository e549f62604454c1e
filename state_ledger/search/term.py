"""One word or phrase that is looked for, and what of it an index can be asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from state_ledger.search import text as _text

_GAP = re.compile(r"\s+|[^\s]")


@dataclass(frozen=True)
class Piece:
    """An unbroken run of letters and digits of a term.

    text: folded. run: whether it is of a script written without spaces, where any part of a run counts.
    typed: as it was typed, with only A to Z in small letters.
    """

    text: str
    run: bool
    typed: str


@dataclass(frozen=True)
class Term:
    """Literal text that is looked for.

    text: as typed, without quotes and star. prefix: whether its last word may go on.

    A word occurs where it stands as a whole word; a run of a script without spaces wherever it stands;
    a sign only as itself. A blank stands for anything between two words that is neither letter nor
    digit. Case does not count, nor do the accents of Latin letters.
    """

    text: str
    prefix: bool = False

    @cached_property
    def folded(self) -> str:
        return _text.fold(self.text)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Its words and runs, in order."""
        return tuple(
            Piece(word, _text.is_unspaced(word), _text.ascii_lower(self.text[start:end]))
            for word, start, end in _text.words(self.text)
        )

    @cached_property
    def has_signs(self) -> bool:
        """Whether it has a sign, which no index knows: then what an index finds is looked at again."""
        return any(gap.strip() for gap in self._gaps)

    @cached_property
    def spaced(self) -> bool:
        """Whether it consists of words of scripts with spaces only."""
        return bool(self.pieces) and not any(piece.run for piece in self.pieces)

    @cached_property
    def certain(self) -> bool:
        """Whether every SQLite takes its letters for letters, whatever its version of Unicode."""
        return all(
            _text.is_old_letter(letter) and letter.isalnum() for piece in self.pieces for letter in piece.text
        )

    @property
    def _gaps(self) -> list[str]:
        words = _text.words(self.text)
        ends = [0, *(end for _, _, end in words)]
        starts = [*(start for _, start, _ in words), len(self.text)]
        return [self.folded[end:start] for end, start in zip(ends, starts, strict=True)]

    def occurrences(self, folded: str, *, inside: bool = False) -> Iterator[re.Match[str]]:
        """Where it stands in folded text, from left to right. inside: also within longer words."""
        if not inside and folded.isascii():
            return self._ascii.finditer(folded) if self._ascii is not None else iter(())
        return self._pattern.finditer(folded) if inside else self._whole(self._pattern, folded)

    def occurs_typed(self, text: str) -> bool:
        """Whether it stands, letters beyond ASCII exactly as typed, in text whose A to Z are small letters."""
        return next(self._whole(self._typed, text), None) is not None

    def _whole(self, pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
        """What a pattern finds where no word goes on beyond it.

        Looked at beside what is found, not by the pattern: classes of letters are big, and a pattern with
        them takes milliseconds to compile, for every word that is asked for.
        """
        starts, ends = self._starts_a_word, self._ends_a_word
        at = 0
        while (match := pattern.search(text, at)) is not None:
            start, end = match.span()
            if (starts and _text.is_after_word(text, start)) or (ends and _text.is_before_word(text, end)):
                at = start + 1
                continue
            yield match
            at = max(end, start + 1)

    @property
    def _starts_a_word(self) -> bool:
        return bool(self.pieces) and not self.pieces[0].run and not self._gaps[0].strip()

    @property
    def _ends_a_word(self) -> bool:
        # A sign after the last word ends it anyway.
        return bool(self.pieces) and not self.pieces[-1].run and not self._gaps[-1].strip() and not self.prefix

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._source(lambda piece: piece.text, _with_accents))

    @cached_property
    def _typed(self) -> re.Pattern[str]:
        return re.compile(self._source(lambda piece: piece.typed, _with_accents))

    @cached_property
    def _ascii(self) -> re.Pattern[str] | None:
        """Finds it as whole words in folded text that is ASCII, several times faster; None if it cannot occur there."""
        if not self.folded.isascii():
            return None
        source = self._source(lambda piece: piece.text, re.escape)
        if self._starts_a_word:
            # The look behind comes after the word, so that the search begins with plain letters.
            first = re.escape(self.pieces[0].text)
            source = f"{first}(?<![a-z0-9]{first}){source[len(first) :]}"
        return re.compile(source + ("(?![a-z0-9])" if self._ends_a_word else ""), re.ASCII)

    def _source(self, text: Callable[[Piece], str], word: Callable[[str], str]) -> str:
        """A pattern of its pieces and gaps. text: of a piece; word: makes a pattern of one in a script with spaces."""
        gaps, out = self._gaps, []
        for place, piece in enumerate(self.pieces):
            out.append(_gap(gaps[place], self.pieces[place - 1] if place else None, piece))
            out.append(re.escape(text(piece)) if piece.run else word(text(piece)))
        out.append(_gap(gaps[-1], None, None))
        return "".join(out)


_BETWEEN = rf"(?:(?![{_text.PRIVATE}])[\W_])"


def _with_accents(word: str) -> str:
    """A pattern of a word whose letters may have accents that are characters of their own."""
    return "".join(f"{re.escape(letter)}[{_text.MARKS}]*" for letter in word)


def _gap(gap: str, before: Piece | None, after: Piece | None) -> str:
    """What may stand between two pieces: the signs typed, and for a blank anything but letters."""
    if before is not None and after is not None and not gap.strip():
        return _BETWEEN + ("*" if before.run != after.run else "+")
    return "".join(r"\s+" if part.isspace() else re.escape(part) for part in _GAP.findall(gap.strip() and gap))
