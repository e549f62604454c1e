"""The marks around a match: private-use characters until text is escaped or written out.

A message may hold `>>>` or `<mark>` itself; it must not look like a match. So the characters that mark
are taken out of every text that is searched for a snippet, and become what a reader sees at the end.
"""

from __future__ import annotations

import html as _html

START, END = "\ue000", "\ue001"

_GONE = str.maketrans({START: "\ufffd", END: "\ufffd"})


def free(text: str) -> str:
    """Text without the two characters, each replaced by one other: positions stay."""
    return text.translate(_GONE) if START in text or END in text else text


def plain(snippet: str) -> str:
    """The snippet with `>>>match<<<`, as `SessionDB.search_messages` gives it."""
    return snippet.replace(START, ">>>").replace(END, "<<<")


def html(snippet: str) -> str:
    """The snippet as HTML: everything escaped, matches in `<mark>`."""
    return _html.escape(snippet).replace(START, "<mark>").replace(END, "</mark>")


def unmarked(snippet: str) -> str:
    """The snippet's text alone."""
    return snippet.replace(START, "").replace(END, "")
