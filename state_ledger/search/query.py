"""What a person types into a search box, read without ever complaining.

Words (all must occur), "exact phrases", AND, OR and NOT in capitals, `prefix*` and parentheses;
everything else is literal text, so that `don't`, `#123`, `src/main.py`, `50%` and `main()` find what
they look like. NOT binds closest, then AND, which is understood between words, then OR.

A parenthesis groups where a word could begin; inside of a word it is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from state_ledger.search.term import Term

MAX_CHARACTERS = 2048
"""Longer queries are cut, as the agent does it."""

MAX_DEPTH = 24
"""Parentheses nested deeper are passed over."""

OPERATORS = ("AND", "OR", "NOT")

NOTHING = "Type a word to look for; a blank, quotation marks or a star alone find nothing."
ONLY_NOT = "NOT takes away from what other words find: add a word to look for."
UNCLOSED = "The last quotation mark is not closed; it was passed over."
CUT = f"The query was cut at {MAX_CHARACTERS:,} characters."

TOKEN = re.compile(r'"([^"]*)"(\*?)|([^\s"]+)')
"""A phrase with its star, or a word."""


@dataclass(frozen=True)
class And:
    """All of them must hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Or:
    """One of them must hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Not:
    """It must not hold; stands only within an And that has other parts."""

    part: Node


Node: TypeAlias = Term | And | Or | Not


@dataclass(frozen=True)
class Query:
    """A query as a tree. root: None when nothing is looked for. hints: sentences on what was read leniently."""

    root: Node | None
    hints: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every term, once, in the order typed."""
        return tuple(dict.fromkeys(_terms(self.root, everything=True)))

    @property
    def wanted(self) -> tuple[Term, ...]:
        """The terms to be marked in what is found: those that are not taken out by NOT."""
        return tuple(dict.fromkeys(_terms(self.root, everything=False)))

    def __bool__(self) -> bool:
        return self.root is not None


def _terms(node: Node | None, *, everything: bool) -> Iterator[Term]:
    if isinstance(node, Term):
        yield node
    elif isinstance(node, Not):
        if everything:
            yield from _terms(node.part, everything=True)
    elif node is not None:
        for part in node.parts:
            yield from _terms(part, everything=everything)


def holds(node: Node, has: Callable[[Term], bool]) -> bool:
    """Whether a tree holds where `has` says of each term whether it occurs."""
    if isinstance(node, Term):
        return has(node)
    if isinstance(node, Not):
        return not holds(node.part, has)
    return (all if isinstance(node, And) else any)(holds(part, has) for part in node.parts)


def parse(query: object, *, edges_in_any_case: bool = False) -> Query:
    """Reads a query. Nothing is an error: a dangling operator, quote or parenthesis is passed over.

    edges_in_any_case: a first and a last word that is an operator in small letters is dropped, too, as
    the agent has it (`and cats` looks for cats).
    """
    if not isinstance(query, str):
        return Query(None, (NOTHING,))
    hints = [CUT] if len(query) > MAX_CHARACTERS else []
    clean, closed = readable(_cut(query))
    if not closed:
        hints.append(UNCLOSED)
    tokens = _tokens(clean, edges_in_any_case)
    root = _simplified(_Reader(tokens).alternatives(0))
    if root is None:
        root_hint = ONLY_NOT if any(isinstance(token, Term) for token in tokens) else NOTHING
        hints.append(root_hint)
    return Query(root, tuple(hints))


def _cut(query: str) -> str:
    if len(query) <= MAX_CHARACTERS:
        return query
    # Half a word would be looked for as a whole one.
    end = query.rfind(" ", 0, MAX_CHARACTERS + 1)
    return query[: end if end > 0 else MAX_CHARACTERS]


def readable(query: str) -> tuple[str, bool]:
    """What was typed in a form that SQLite can be handed, and whether every quotation mark was closed.

    A last one that is not becomes a blank.
    """
    # A lone surrogate cannot be handed to SQLite, and a NUL ends SQLite's own reading.
    clean = query.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    if clean.count('"') % 2 == 0:
        return clean, True
    last = clean.rindex('"')
    return f"{clean[:last]} {clean[last + 1 :]}", False


Token: TypeAlias = Term | str
"""A term, or `AND`, `OR`, `NOT`, `(`, `)`."""


def _tokens(clean: str, edges_in_any_case: bool) -> list[Token]:
    found: list[Token] = []
    raw = list(TOKEN.finditer(clean))
    last = len(raw) - 1
    for place, match in enumerate(raw):
        phrase, star, word = match.groups()
        if word is None:
            _add(found, Term(" ".join(phrase.split()), bool(star)))
            continue
        at_edge = edges_in_any_case and last and place in (0, last) and word.upper() in OPERATORS
        if word in OPERATORS or at_edge:
            found.append(word.upper())
        else:
            _add_word(found, word)
    return found


def _add_word(found: list[Token], word: str) -> None:
    """A word, with the parentheses around it that group."""
    opened = len(word) - len(word.lstrip("("))
    if opened == len(word) or not word.strip("()"):
        found.extend(word)
        return
    found.extend("(" * opened)
    body = word[opened:]
    closed = 0
    # A closing parenthesis belongs to the word as long as one was opened in it: `main()`.
    while body.endswith(")") and body.count(")") > body.count("("):
        body, closed = body[:-1], closed + 1
    if body in OPERATORS:
        found.append(body)
    else:
        _add(found, Term(body.strip("*"), body.endswith("*")))
    found.extend(")" * closed)


def _add(found: list[Token], term: Term) -> None:
    if term.text.strip():
        found.append(term)


class _Reader:
    """Reads tokens into a tree; whatever is missing is left out."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def alternatives(self, depth: int) -> Node | None:
        branches: list[Node] = []
        while True:
            branch = self.conjunction(depth)
            if branch is not None:
                branches.append(branch)
            if self._next() != "OR":
                break
            self.at += 1
        return None if not branches else branches[0] if len(branches) == 1 else Or(tuple(branches))

    def conjunction(self, depth: int) -> Node | None:
        parts: list[Node] = []
        negative = False
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token == "OR":
                # Of several operators in a row the last counts: OR AND x.
                if not parts and self.at + 1 < len(self.tokens):
                    self.at += 1
                    continue
                break
            if token == ")":
                if depth:
                    break
                self.at += 1
                continue
            self.at += 1
            if token in ("AND", "NOT"):
                negative = token == "NOT"
                continue
            part: Node | None
            if token == "(":
                part = self.group(depth)
            else:
                assert isinstance(token, Term)
                part = token
            if part is not None:
                parts.append(Not(part) if negative else part)
            negative = False
        return None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))

    def group(self, depth: int) -> Node | None:
        if depth >= MAX_DEPTH:
            return None
        inner = self.alternatives(depth + 1)
        if self._next() == ")":
            self.at += 1
        return inner

    def _next(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None


def _simplified(node: Node | None) -> Node | None:
    """The tree without what says nothing: a NOT that has nothing to take away from, a group of one."""
    if node is None or isinstance(node, Term):
        return node
    if isinstance(node, Not):
        return None
    if isinstance(node, Or):
        branches = [part for part in map(_simplified, node.parts) if part is not None]
        flat = [inner for part in branches for inner in (part.parts if isinstance(part, Or) else (part,))]
        return None if not flat else flat[0] if len(flat) == 1 else Or(tuple(dict.fromkeys(flat)))
    wanted: list[Node] = []
    unwanted: list[Node] = []
    for part in node.parts:
        if isinstance(part, Not):
            inner = part.part.part if isinstance(part.part, Not) else _simplified(part.part)
            if inner is not None:
                unwanted.append(Not(inner))
            continue
        simple = _simplified(part)
        if simple is not None:
            wanted.extend(simple.parts if isinstance(simple, And) else (simple,))
    if not any(not isinstance(part, Not) for part in wanted):
        return None
    parts = tuple(dict.fromkeys([*wanted, *unwanted]))
    return parts[0] if len(parts) == 1 else And(parts)
