"""What the texts of a message must hold for a query to match, as parts that an engine can look for.

An engine narrows down, `search.match` decides: so the parts may be found too often, and never too seldom.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from state_ledger.search import text as _text
from state_ledger.search.query import And, Node, Not
from state_ledger.search.term import Term

MOST_OF_ALL = 6
"""Of the terms that must all occur, so many are asked for, the longest: each costs a look at every text."""

MOST_OF_SOME = 24
"""With more alternatives than these nothing is narrowed down."""

_MARK = re.compile(f"[{_text.MARKS}]")


@dataclass(frozen=True)
class Needed:
    """What one term needs: every segment, in one and the same of a message's texts.

    segments: folded, without blanks and without accents that stand as characters of their own. escaped: letters
    beyond ASCII, each of which stands in tool calls as itself or as JSON's escape where the segments do not; ''
    for a term in ASCII, which is not looked for in escapes.
    """

    segments: tuple[str, ...]
    escaped: str = ""

    @property
    def weight(self) -> int:
        """How much it narrows down, roughly: the bytes of its longest segment."""
        return max((len(each.encode()) for each in self.segments), default=0)


@dataclass(frozen=True)
class All:
    """All of them must hold."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Some:
    """One of them must hold."""

    parts: tuple[Tree, ...]


Tree: TypeAlias = Needed | All | Some


def of(node: Node) -> Tree | None:
    """What a query needs; None where nothing can be said, so that every message has to be looked at."""
    if isinstance(node, Term):
        return of_term(node)
    assert not isinstance(node, Not), "it stands within an And only, which passes over it"
    parts = [of(part) for part in node.parts if not isinstance(part, Not)]
    known = [part for part in parts if part is not None]
    if isinstance(node, And):
        kept = sorted(known, key=_weight, reverse=True)[:MOST_OF_ALL]
        return None if not kept else kept[0] if len(kept) == 1 else All(tuple(kept))
    if len(known) < len(parts) or len(known) > MOST_OF_SOME:
        return None
    return Some(tuple(known))


def of_term(term: Term) -> Needed | None:
    """What one term needs; None for one that consists of accents alone."""
    segments = tuple(dict.fromkeys(_segments(term)))
    beyond = "".join(dict.fromkeys(each for each in term.text if not each.isascii() and not each.isspace()))
    return Needed(segments, _text.ascii_lower(beyond)) if segments else None


def _segments(term: Term) -> list[str]:
    """The texts of a term between which anything may stand."""
    out = [""]
    ends = 0
    for word, start, end in _text.words(term.text):
        gap = term.folded[ends:start]
        if ends and not gap.strip():
            out.append("")
        else:
            out[-1] += gap
        out[-1] += word
        ends = end
    out[-1] += term.folded[ends:]
    return [piece for each in out for piece in _MARK.sub("", each).split()]


def _weight(tree: Tree) -> int:
    if isinstance(tree, Needed):
        return tree.weight
    return (max if isinstance(tree, All) else min)(map(_weight, tree.parts))
