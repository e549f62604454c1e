"""One word or phrase that is looked for, and what of it an index can be asked for."""

from __future__ import annotations

import re
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

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds it in folded text."""
        return re.compile(self._source(whole=True))

    @cached_property
    def ascii_pattern(self) -> re.Pattern[str] | None:
        """Finds it in folded text that is ASCII, several times faster; None if it cannot occur there."""
        if not self.folded.isascii():
            return None
        return re.compile(self._source(whole=True, ascii_only=True), re.ASCII)

    @cached_property
    def inside(self) -> re.Pattern[str]:
        """Finds it in folded text also within longer words."""
        return re.compile(self._source(whole=False))

    @cached_property
    def typed_pattern(self) -> re.Pattern[str]:
        """Finds it, letters beyond ASCII exactly as typed, in text whose A to Z are small letters."""
        return re.compile(self._source(whole=True, typed=True))

    def _source(self, *, whole: bool, typed: bool = False, ascii_only: bool = False) -> str:
        gaps, out = self._gaps, []
        for place, piece in enumerate(self.pieces):
            before = self.pieces[place - 1] if place else None
            out.append(_gap(gaps[place], before, piece))
            starts = before is None and not piece.run and whole
            text = piece.typed if typed else piece.text
            if ascii_only:
                # The look behind comes after the word, so that the search begins with plain letters.
                out.append(re.escape(text) + (rf"(?<![a-z0-9]{re.escape(text)})" if starts else ""))
                continue
            if starts:
                out.append(_NOT_AFTER_WORD)
            out.append(re.escape(text) if piece.run else "".join(map(_letter, text)))
        out.append(_gap(gaps[-1], None, None))
        if self.pieces and not self.pieces[-1].run and not gaps[-1].strip() and whole and not self.prefix:
            out.append(_NOT_BEFORE_WORD)
        # A sign after the last word ends it anyway.
        return "".join(out)


_NOT_AFTER_WORD = "".join(
    f"(?<!{letter}{marks})"
    for letter in (_text.SPACED, f"[{_text.PRIVATE}]")
    for marks in ("", f"[{_text.MARKS}]", f"[{_text.MARKS}]{{2}}")
)
_NOT_BEFORE_WORD = f"(?!{_text.SPACED}|[{_text.PRIVATE}])"
_BETWEEN = rf"(?:(?![{_text.PRIVATE}])[\W_])"


def _letter(character: str) -> str:
    return f"{re.escape(character)}[{_text.MARKS}]*"


def _gap(gap: str, before: Piece | None, after: Piece | None) -> str:
    """What may stand between two pieces: the signs typed, and for a blank anything but letters."""
    if before is not None and after is not None and not gap.strip():
        return _BETWEEN + ("*" if before.run != after.run else "+")
    return "".join(r"\s+" if part.isspace() else re.escape(part) for part in _GAP.findall(gap.strip() and gap))
