"""A query as an FTS5 expression, for each index what it can say of it.

An expression may find too much (then the messages are looked at again) or too little (then others are
looked for elsewhere); `Expression` says both. Text goes into it in quotes, never as syntax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from state_ledger.search import match
from state_ledger.search import text as _text
from state_ledger.search.query import And, Node, Not
from state_ledger.search.term import Piece, Term
from state_ledger.search.vocabulary import MOST, TRIGRAM_TABLE, Vocabulary
from state_ledger.sqlite import Connection, sqlite3

MOST_TERMS = 60
"""SQLite refuses expressions that are nested deeper; queries with more terms are looked for otherwise."""

MOST_TRIGRAMS = 200


@dataclass(frozen=True)
class Expression:
    """What to ask an index for.

    exact: everything it finds is a match. whole: everything in the index that matches is found.
    """

    text: str
    exact: bool
    whole: bool


def combine(root: Node, form: Callable[[Term], Expression | None]) -> Expression | None:
    """The expression of a tree from those of its terms; None if the index cannot narrow it down."""
    if isinstance(root, Term):
        return form(root)
    assert not isinstance(root, Not)
    parts = [(part, combine(part, form)) for part in root.parts if not isinstance(part, Not)]
    found = [expression for _, expression in parts if expression is not None]
    if not isinstance(root, And):
        if len(found) < len(parts):
            return None
        text = " OR ".join(f"({each.text})" for each in found)
        return Expression(text, all(each.exact for each in found), all(each.whole for each in found))
    if not found:
        return None
    exact = len(found) == len(parts) and all(each.exact for each in found)
    text = " AND ".join(f"({each.text})" for each in found)
    for part in root.parts:
        if isinstance(part, Not):
            taken = combine(part.part, form)
            if taken is not None and taken.exact:
                text = f"({text}) NOT ({taken.text})"
            # That a message lacks something, no index tells for certain: it may stand in an escape, or
            # in a word that was stored after the words were learnt.
            exact = False
    return Expression(text, exact, all(each.whole for each in found))


def in_words(root: Node, vocabulary: Vocabulary | None) -> Expression | None:
    """For the word index. vocabulary: None where it is not known, then parts of runs are not found."""

    def form(term: Term) -> Expression | None:
        if not term.pieces:
            return None
        if not term.certain:
            return None
        star = " *" if term.prefix and not term.pieces[-1].run and term.folded.endswith(term.pieces[-1].text) else ""
        if term.spaced:
            phrases = _phrases(term, vocabulary, bool(star))
            plain = [f'"{" ".join(piece.text for piece in term.pieces)}"{star}']
            whole = phrases is not None
            return Expression(
                " OR ".join([*plain, *map(_quoted, phrases or ())]),
                exact=not term.has_signs,
                whole=whole,
            )
        forms = [_part(piece, vocabulary, bool(star) and piece is term.pieces[-1]) for piece in term.pieces]
        known = [each for each in forms if each]
        whole = len(known) == len(forms)
        # What can be said is still a place to look: a run as a word, or the beginning of one.
        known = known or [[f"{_quoted(term.pieces[0].text)} *"]]
        together = " AND ".join(f"({' OR '.join(each)})" for each in known)
        return Expression(together, exact=whole and len(known) == 1 and not term.has_signs, whole=whole)

    return combine(root, form)


def in_escapes(root: Node) -> Expression | None:
    """For the word index: where letters beyond ASCII may stand in tool calls, as JSON in ASCII writes them."""

    def form(term: Term) -> Expression | None:
        if not term.pieces:
            return None
        if _ascii(term):
            texts = [_quoted(piece.text) for piece in term.pieces]
            if term.prefix:
                texts[-1] += " *"
            return Expression(" AND ".join(texts), exact=False, whole=True)
        return Expression(f"{_quoted(_escaped_words(term))} *", exact=False, whole=True)

    return combine(root, form)


def _phrases(term: Term, vocabulary: Vocabulary | None, prefix: bool) -> list[str] | None:
    """The forms of a phrase in which its ends touch a script without spaces; None if not known."""
    if vocabulary is None:
        return None
    if vocabulary.is_empty:
        return []
    words = [piece.text for piece in term.pieces]
    if len(words) == 1:
        return vocabulary.beside(words[0], prefix=prefix)
    starts, ends = vocabulary.ending(words[0]), vocabulary.beginning(words[-1], prefix=prefix)
    if starts is None or ends is None or (len(starts) + 1) * (len(ends) + 1) > MOST:
        return None
    pairs = product([words[0], *starts], [words[-1], *ends])
    return [" ".join([start, *words[1:-1], end]) for start, end in pairs][1:]


def _part(piece: Piece, vocabulary: Vocabulary | None, prefix: bool) -> list[str] | None:
    """What finds one piece of a term that has runs: every word it can be in. None if not known."""
    if vocabulary is None:
        return None
    if piece.run:
        found = vocabulary.containing(piece.text) if _text.is_run(piece.text) else None
        return None if found is None else [_quoted(word) for word in found] or [_quoted(piece.text)]
    beside = vocabulary.beside(piece.text, prefix=prefix)
    return None if beside is None else [f"{_quoted(piece.text)}{' *' if prefix else ''}", *map(_quoted, beside)]


def in_trigrams(root: Node, connection: Connection) -> Expression | None:
    """For the trigram index, which finds any three characters in a row; nothing it finds is certain."""

    def form(term: Term) -> Expression | None:
        texts, whole = [], bool(term.pieces)
        for piece in term.pieces:
            if len(piece.text) >= 3:
                texts.append(_quoted(piece.text))
                continue
            whole = False
            if piece.run:
                found = _beginning_with(connection, piece.text)
                if found:
                    texts.append(f"({' OR '.join(map(_quoted, found))})")
        calls = [] if _ascii(term) else [_quoted(match.escaped(piece.typed)) for piece in term.pieces]
        if not texts:
            return None
        text = " AND ".join(texts)
        return Expression(f"({text}) OR ({' AND '.join(calls)})" if calls else text, exact=False, whole=whole)

    return combine(root, form)


def _beginning_with(connection: Connection, run: str) -> list[str]:
    """The trigrams that begin with one or two characters; none if there are too many."""
    try:
        found = connection.execute(
            f"SELECT term FROM temp.{TRIGRAM_TABLE} WHERE term >= ? AND term < ? LIMIT {MOST_TRIGRAMS + 1}",
            (run, f"{run}\U0010ffff"),
        ).fetchall()
    except sqlite3.DatabaseError:
        return []
    return [row[0] for row in found] if len(found) <= MOST_TRIGRAMS else []


def in_pairs(root: Node) -> Expression | None:
    """For the index of the CJK tokenizer, which holds pairs of characters and the words between them."""

    def form(term: Term) -> Expression | None:
        parts = [piece for piece in term.pieces if not piece.run or len(piece.text) > 1]
        if not parts:
            return None
        star = " *" if term.prefix and not term.pieces[-1].run else ""
        texts = [_quoted(piece.text) + (star if piece is term.pieces[-1] else "") for piece in parts]
        calls = [] if _ascii(term) else [f'{_quoted(_escaped_words(term))} *']
        text = " AND ".join(texts)
        whole = len(parts) == len(term.pieces) and all(not p.run or _text.contains_cjk(p.text) for p in parts)
        return Expression(f"({text}) OR {calls[0]}" if calls else text, exact=False, whole=whole)

    return combine(root, form)


def _ascii(term: Term) -> bool:
    return all(piece.typed.isascii() for piece in term.pieces)


def _escaped_words(term: Term) -> str:
    r"""The first piece beyond ASCII as JSON in ASCII writes it, `\u6842`: words of their own to an index."""
    return match.escaped(next(piece.typed for piece in term.pieces if not piece.typed.isascii()))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
