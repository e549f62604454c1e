"""Whether a message matches, decided on its decoded text.

This is what a match is; indexes only say where to look. A message is searched in its decoded
content, its tool's name, and its tool calls as the JSON that is stored; there, letters beyond ASCII are
found also where they are written as escapes, but then only as they are typed, case and accents included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from state_ledger import content
from state_ledger.search import text as _text
from state_ledger.search.query import Node, holds
from state_ledger.search.term import Term

_ESCAPED = "\\u"

Span = tuple[int, int]


class Fields:
    """The texts of one message in which a query is looked for, each folded once and only if needed.

    content, tool_name, tool_calls: as stored.
    """

    def __init__(self, stored: object, tool_name: object, tool_calls: object) -> None:
        self._stored = stored
        self._tool_name = content.decode(tool_name).text
        self._tool_calls = content.decode(tool_calls).text

    @classmethod
    def decoded(cls, text: str, tool_name: object, tool_calls: object) -> Fields:
        """Of a message whose content was decoded before."""
        fields = cls(None, tool_name, tool_calls)
        fields.__dict__["text"] = text
        return fields

    @cached_property
    def text(self) -> str:
        """The decoded content."""
        return content.decode(self._stored).text

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Content, tool name and tool calls; the empty ones left out."""
        return tuple(filter(None, (self.text, self._tool_name, self._tool_calls)))

    @cached_property
    def folded(self) -> tuple[str, ...]:
        return tuple(map(_text.fold, self.texts))

    @cached_property
    def unescaped(self) -> str | None:
        r"""Tool calls with `\uXXXX` written out and A to Z in small letters; None if there is no such escape."""
        calls = self._tool_calls
        return _text.ascii_lower(content.unescaped(calls)) if _ESCAPED in calls else None

    def has(self, term: Term, *, inside: bool = False) -> bool:
        """Whether a term occurs. inside: also within longer words."""
        return next(self._found(term, inside), None) is not None

    def _found(self, term: Term, inside: bool) -> Iterator[bool]:
        first = term.pieces[0].text if term.pieces else term.folded
        for folded in self.folded:
            # Almost every text is decided by this, at a tenth of a pattern's cost.
            if (first in folded or not folded.isascii()) and any(term.occurrences(folded, inside=inside)):
                yield True
        if not term.text.isascii() and self.unescaped is not None and term.occurs_typed(self.unescaped):
            yield True


def matches(root: Node, fields: Fields, *, inside: bool = False) -> bool:
    """Whether a message matches a query."""
    return holds(root, lambda term: fields.has(term, inside=inside))


def spans(terms: tuple[Term, ...], text: str, *, inside: bool = False, most: int = 100) -> list[tuple[Span, int]]:
    """Where terms occur in a text, from left to right, at most `most` times each: place and number of the term."""
    folded = _text.fold(text)
    found = [
        ((each.start(), each.end()), number)
        for number, term in enumerate(terms)
        for each in islice(term.occurrences(folded, inside=inside), most)
        if each.end() > each.start()
    ]
    return sorted(found)


def escaped(text: str) -> str:
    r"""How a text stands in JSON that was written in ASCII: `\u6842`."""
    return json.dumps(text)[1:-1]

