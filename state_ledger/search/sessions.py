"""How titles and ids of sessions are compared with what a person types.

A title is remembered as `harbour plan`, and stored as `Harbour-Plan`; an id is read aloud without
its underscores. So case does not count, and `-`, `_` and `.` are the same as a blank. Everything
else is literal text: there is no query language here, and no text is an error.
"""

from __future__ import annotations

import unicodedata

from state_ledger.surrogates import scrub

_SEPARATORS = str.maketrans({"-": " ", "_": " ", ".": " ", "\x00": " "})
_ASCII_FOLDED = bytes(ord(chr(each).lower().translate(_SEPARATORS)) for each in range(128)) + bytes(range(128, 256))
_ASCII_BLANKS = b"".join(chr(each).encode() for each in range(128) if chr(each).isspace())


def folded_name(text: object) -> str:
    """A title, an id or a search for one as it is compared.

    >>> folded_name("Harbour-Plan_2.0")
    'harbour plan 2 0'
    """
    if text is None:
        return ""
    # Nearly all are: a search by name folds every title and id there is.
    if isinstance(text, bytes) and text.isascii():
        return text.strip(_ASCII_BLANKS).translate(_ASCII_FOLDED).decode("ascii")
    stored = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    # NFC: file names of macOS, which become titles, hold letters and accents apart.
    return unicodedata.normalize("NFC", scrub(stored)).casefold().strip().translate(_SEPARATORS)
