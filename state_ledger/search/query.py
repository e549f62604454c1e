"""What a person types into a search box, read without ever complaining.

Words (all must occur), "phrases", AND, OR and NOT in capitals, and `prefix*`; everything else is
literal text, so that `don't`, `#123`, `src/main.py` and `50%` find what they look like.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from state_ledger.search import text as _text

MAX_CHARACTERS = 2048
"""Longer queries are cut."""

OPERATORS = ("AND", "OR", "NOT")

_TOKEN = re.compile(r'"([^"]*)"(\*?)|([^\s"]+)')
_BARE = re.compile(r"[^\W]+\*?")


@dataclass(frozen=True)
class Term:
    """One word or phrase that is looked for.

    text: as typed, without quotes and star. prefix: whether longer words count too.
    """

    text: str
    prefix: bool = False

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words, folded; a star belongs to the last one."""
        return tuple(word for word, _, _ in _text.words(self.text))

    @cached_property
    def literal(self) -> bool:
        """Whether it is looked for as a run of characters rather than as whole words.

        True for scripts without spaces, where an index of words knows no part of a run, for signs
        and emoji, and for letters that this SQLite may not take for letters.
        """
        if not self.words or _text.is_unspaced(self.text):
            return True
        return not all(_text.is_old_letter(letter) for word in self.words for letter in word)

    @cached_property
    def caseless(self) -> bool:
        """Whether SQL's LIKE, which folds A to Z only, compares it as we do."""
        folded = _text.fold(self.text)
        return all(c.isascii() or (c.upper() == c.lower() and _text.fold(c) == c) for c in folded)

    @property
    def folded(self) -> str:
        return _text.fold(self.text)

    @property
    def vanishes(self) -> bool:
        """Punctuation alone says nothing about what is wanted."""
        return not self.words and self.text.isascii()


@dataclass(frozen=True)
class Branch:
    """Terms that must all occur, and terms of which none may."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        return (*self.wanted, *self.unwanted)


@dataclass(frozen=True)
class Query:
    """Branches of which one must hold; none when nothing is looked for."""

    branches: tuple[Branch, ...] = field(default=())

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(dict.fromkeys(term for branch in self.branches for term in branch.terms))

    @property
    def wanted(self) -> tuple[Term, ...]:
        """The terms to be marked in what is found."""
        return tuple(dict.fromkeys(term for branch in self.branches for term in branch.wanted))

    def __bool__(self) -> bool:
        return bool(self.branches)


def parse(query: object) -> Query:
    """Reads a query. Nothing is an error: a dangling operator or quote is passed over.

    AND is understood between words; OR binds least; NOT takes the next word or phrase out. Of
    several operators in a row the last counts. A leading or trailing operator is dropped in any
    case, once, as the contract has it: `and cats` looks for cats.
    """
    branches: list[tuple[list[Term], list[Term]]] = [([], [])]
    operator = "AND"
    for token in _tokens(query):
        if isinstance(token, str):
            operator = token
            continue
        if operator == "OR" and branches[-1][0]:
            branches.append(([], []))
        branches[-1][operator == "NOT"].append(token)
        operator = "AND"
    return Query(tuple(Branch(tuple(yes), tuple(no)) for yes, no in branches if yes))


def sanitize_fts5_query(query: str) -> str:
    """The query as text that FTS5's MATCH accepts: whole words with punctuation stand in quotes.

    `src/main.py` becomes `"src/main.py"`, `sp_new*` becomes `"sp_new"*`, `hello AND` becomes `hello`.
    Returns "" when nothing is left to look for.
    """
    out: list[str] = []
    pending: str | None = None
    for token in _tokens(query):
        if isinstance(token, str):
            pending = token
            continue
        if pending and out:
            out.append(pending)
        pending = None
        star = "*" if token.prefix else ""
        plain = _BARE.fullmatch(token.text) and token.text.upper() not in OPERATORS and "_" not in token.text
        quoted = '"' + token.text + '"'
        out.append((token.text if plain else quoted) + star)
    return " ".join(out)


def _tokens(query: object) -> list[Term | str]:
    """Terms, and operators as plain strings, in the order typed."""
    if not isinstance(query, str):
        return []
    # A lone surrogate cannot be handed to SQLite, and a NUL ends SQLite's own reading.
    clean = query[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    if clean.count('"') % 2:
        last = clean.rindex('"')
        clean = f"{clean[:last]} {clean[last + 1 :]}"
    found: list[Term | str] = []
    raw = [(match.group(1), match.group(2), match.group(3)) for match in _TOKEN.finditer(clean)]
    last_place = len(raw) - 1
    for place, (phrase, star, word) in enumerate(raw):
        if word is None:
            term = Term(phrase, bool(star))
        elif word in OPERATORS or (last_place and place in (0, last_place) and word.upper() in OPERATORS):
            found.append(word.upper() if 0 < place < last_place else "AND")
            continue
        else:
            term = Term(word.strip("*"), word.endswith("*"))
        if not term.vanishes:
            found.append(term)
    return found
