"""Whether a message matches a query, decided on its decoded text.

The indexes answer most questions; this answers for the rows they cannot know, and says where in a
text the matches are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from state_ledger import content
from state_ledger.search import text as _text
from state_ledger.search.query import Query, Term

_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")

Span = tuple[int, int]


@dataclass(frozen=True)
class Fields:
    """What of a message is searched: decoded content, tool name, tool calls as stored and unescaped."""

    texts: tuple[str, ...]

    @classmethod
    def of(cls, stored: object, tool_name: object, tool_calls: object) -> Fields:
        calls = content.decode(tool_calls).text
        texts = [content.decode(stored).text, content.decode(tool_name).text, calls]
        if "\\u" in calls:
            texts.append(unescaped(calls))
        return cls(tuple(filter(None, texts)))


def matches(query: Query, fields: Fields, *, substrings: bool = False) -> bool:
    """Whether a message matches. substrings: words count inside of longer words, too."""

    def has(term: Term) -> bool:
        return any(spans(term, text, substrings=substrings) for text in fields.texts)

    return any(
        all(has(term) for term in branch.wanted) and not any(has(term) for term in branch.unwanted)
        for branch in query.branches
    )


def spans(term: Term, text: str, *, substrings: bool = False) -> list[Span]:
    """Where a term occurs in a text, from left to right."""
    if substrings or term.literal:
        return _runs(term.folded, _text.fold(text))
    folded = text.lower() if text.isascii() else None
    if folded is not None and term.words[0] not in folded:
        return []
    return _phrases(term, _text.words(text))


def _runs(wanted: str, folded: str) -> list[Span]:
    found = []
    at = folded.find(wanted) if wanted else -1
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = folded.find(wanted, at + len(wanted))
    return found


def _phrases(term: Term, words: Sequence[_text.Word]) -> list[Span]:
    found = []
    wanted = term.words
    size = len(wanted)
    for at in range(len(words) - size + 1):
        if words[at][0] != wanted[0] and size > 1:
            continue
        here = [word for word, _, _ in words[at : at + size]]
        last = here[-1].startswith(wanted[-1]) if term.prefix else here[-1] == wanted[-1]
        if last and tuple(here[:-1]) == wanted[:-1]:
            found.append((words[at][1], words[at + size - 1][2]))
    return found


def unescaped(stored: str) -> str:
    r"""JSON text with `\uXXXX` written out, also where JSON stands within JSON."""

    def character(match: re.Match[str]) -> str:
        return chr(int(match.group(1), 16))

    plain = _ESCAPE.sub(character, stored)
    # Characters beyond the first plane are written as two escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escaped(text: str) -> tuple[str, ...]:
    r"""How a text may stand in JSON that was written in ASCII: `\u6842`, and `\\u6842` inside of a string."""
    if text.isascii():
        return ()
    once = json.dumps(text)[1:-1]
    return once, json.dumps(once)[1:-1]
