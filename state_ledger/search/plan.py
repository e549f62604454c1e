"""Which indexes serve a query, so that every message that matches is among what they offer.

* *index*: the word index alone. Runs of scripts without spaces, and words beside them, are asked for
  by the words that hold them (`vocabulary`).
* *companion*: the same with the companion's index of such runs.
* *cjk*, *trigram*: what the word index knows, what the other index knows, and a scan of what neither does.
* *scan*: newest first through every message; needs no index at all.

What the word index cannot speak for (structured content, rows not indexed yet, what a layout leaves
out) is looked at one by one, whatever the route.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol

from state_ledger.search import expressions, match, vocabulary
from state_ledger.search.expressions import Expression
from state_ledger.search.filters import Condition
from state_ledger.search.indexes import STRUCTURED, Indexes, decided_by_index
from state_ledger.search.query import And, Node, Not, Query
from state_ledger.search.streams import Store, bounded, from_index, from_rows, from_scan
from state_ledger.search.term import Term
from state_ledger.shape import Shape

_ESTIMATED_UP_TO = 1000


class Companion(Protocol):
    """What a search needs of a companion: see `state_ledger.companion`."""

    @property
    def covered_up_to(self) -> int: ...

    def ids(
        self, run: str, *, before: int | None, after: int | None = None, newest: bool = True, prefix: bool = False
    ) -> Iterator[int]: ...


@dataclass(frozen=True)
class Plan:
    """Streams that together offer every match. ranked: the expression that ranks what is found.

    exact: everything in `sure` is a match, everything else is looked at again.
    """

    route: str
    sure: tuple[Iterator[int], ...] = ()
    maybe: tuple[Iterator[int], ...] = ()
    ranked: Expression | None = None
    notices: tuple[str, ...] = field(default=())


class Planner:
    """Makes plans for one query on one store."""

    def __init__(self, store: Store, query: Query, shape: Shape, indexes: Indexes, companion: Companion | None) -> None:
        assert query.root is not None
        self.store, self.root, self.shape, self.indexes = store, query.root, shape, indexes
        self.terms = query.terms
        self.companion = companion

    def plan(self) -> Plan:
        """The quickest plan that finds everything."""
        words = self.indexes.words
        if words is None or len(self.terms) > expressions.MOST_TERMS:
            return self._scan()
        if self.companion is not None:
            plan = self._by_companion(words, self.companion)
            if plan is not None:
                return plan
        known = vocabulary.of(self.store.connection)
        expression = expressions.in_words(self.root, known)
        if expression is None:
            return self._scan()
        if expression.whole and known is not None:
            new = () if known.words == "\n" and not self._has_runs else self._rest(known.upto)
            return self._by_words(words, expression, "index", new)
        return self._with_scan(words, expression)

    @property
    def _has_runs(self) -> bool:
        return any(not term.spaced for term in self.terms)

    def inside(self) -> Plan | None:
        """For words within longer words: what the trigram index offers; None where it cannot."""
        index = self.indexes.trigrams
        if index is None or not all(t.spaced and all(len(p.text) >= 3 for p in t.pieces) for t in self.terms):
            return None
        expression = expressions.in_trigrams(self.root, self.store.connection)
        if expression is None:
            return None
        return Plan("trigram", maybe=(from_index(self.store, index, expression.text),))

    # -- routes ---------------------------------------------------------------------------------

    def _by_words(
        self, words: str, expression: Expression, route: str, more: tuple[Iterator[int], ...] = ()
    ) -> Plan:
        stream = from_index(self.store, words, expression.text, self._decided() if expression.exact else ("1", []))
        maybe = (*self._apart(), *more)
        if expression.exact:
            return Plan(route, (stream,), maybe, expression)
        return Plan(route, (), (stream, *maybe), expression)

    def _by_companion(self, words: str, companion: Companion) -> Plan | None:
        ranked = expressions.in_words(self.root, vocabulary.NONE)
        new = self._rest(companion.covered_up_to)
        if not self._has_runs:
            # Either no word of a match stands beside a run, or one does.
            if ranked is None:
                return None
            plan = self._by_words(words, ranked, "companion" if new else "index", new)
            beside = tuple(chain.from_iterable(self._beside(term, companion) for term in self.terms))
            return Plan("companion", plan.sure, (*plan.maybe, *beside), ranked)
        offered = self._offered(self.root, words, companion)
        if offered is None:
            return None
        return Plan("companion", (), (offered, *self._apart(), *new), ranked)

    def _with_scan(self, words: str, expression: Expression) -> Plan:
        """What indexes know at once, and a scan of what none of them knows."""
        plan = self._by_words(words, expression, "scan")
        for route, index, other, beyond in (
            ("cjk", self.indexes.pairs, expressions.in_pairs(self.root), self.indexes.beyond_pairs),
            (
                "trigram",
                self.indexes.trigrams,
                expressions.in_trigrams(self.root, self.store.connection),
                self.indexes.beyond_trigrams,
            ),
        ):
            if index is None or other is None:
                continue
            stream = from_index(self.store, index, other.text)
            rest, values = self._like(self.root, letters=True)
            among = f"({beyond}) AND ({rest})" if other.whole else f"({rest})"
            scan = from_scan(self.store, (among, values))
            return Plan(route, plan.sure, (*plan.maybe, stream, scan), expression)
        scan = from_scan(self.store, self._like(self.root, letters=True))
        return Plan("scan", plan.sure, (*plan.maybe, scan), expression)

    def _scan(self) -> Plan:
        condition, values = self._like(self.root, letters=False)
        return Plan("scan", maybe=(from_scan(self.store, (f"({condition}) OR {STRUCTURED}", values)),))

    # -- rows that no index decides ---------------------------------------------------------------

    def _decided(self) -> Condition:
        return decided_by_index(self.indexes)

    def _apart(self) -> tuple[Iterator[int], ...]:
        return tuple(
            from_rows(self.store, (rows.quick, list(rows.parameters)))
            if rows.quick is not None
            else from_scan(self.store, (rows.condition, list(rows.parameters)), rows.after, rows.up_to)
            for rows in self.indexes.apart
        )

    def _rest(self, upto: int) -> tuple[Iterator[int], ...]:
        """Messages added after something was read that covers them up to an id."""
        newest = self.store.rows("SELECT coalesce(max(id), 0) FROM main.messages", [])[0][0]
        if newest <= upto:
            return ()
        return (from_scan(self.store, self._like(self.root, letters=False), after=upto),)

    # -- the companion ------------------------------------------------------------------------------

    def _runs(self, companion: Companion, text: str, prefix: bool) -> Iterator[int]:
        store = self.store
        before, after = (store.start, None) if store.newest_first else (None, store.start)
        return bounded(store, companion.ids(text, before=before, after=after, newest=store.newest_first, prefix=prefix))

    def _beside(self, term: Term, companion: Companion) -> list[Iterator[int]]:
        """Messages in which an end of a term stands beside a run."""
        first, last = term.pieces[0], term.pieces[-1]
        out = [self._runs(companion, last.text, term.prefix)]
        if first is not last:
            out.append(self._runs(companion, first.text, False))
        return out

    def _offered(self, node: Node, words: str, companion: Companion) -> Iterator[int] | None:
        """A stream with every match of a tree; of an AND, the part with the fewest. None if none can be."""
        if isinstance(node, Term):
            return self._of_term(node, words, companion)
        assert not isinstance(node, Not)
        parts = [self._offered(part, words, companion) for part in node.parts if not isinstance(part, Not)]
        if not isinstance(node, And):
            known = [part for part in parts if part is not None]
            return self.store.merged(known) if len(known) == len(parts) else None
        best: Iterator[int] | None = None
        fewest = None
        for part in parts:
            if part is None:
                continue
            seen = list(islice(part, _ESTIMATED_UP_TO))
            size = self._span(seen)
            if fewest is None or size < fewest:
                fewest, best = size, chain(seen, part)
        return best

    def _span(self, seen: list[int]) -> float:
        """How thick a stream is: ids per message passed; its number where it ended."""
        if len(seen) < _ESTIMATED_UP_TO:
            return len(seen)
        return _ESTIMATED_UP_TO + 1e9 / max(abs(seen[0] - seen[-1]), 1)

    def _of_term(self, term: Term, words: str, companion: Companion) -> Iterator[int] | None:
        expression = expressions.in_words(term, vocabulary.NONE)
        if not term.pieces:
            return None
        streams = [] if expression is None else [from_index(self.store, words, expression.text)]
        if term.spaced:
            if expression is None:
                return None
            streams += self._beside(term, companion)
        else:
            longest = max((piece for piece in term.pieces if piece.run), key=lambda piece: len(piece.text))
            streams.append(self._runs(companion, longest.text, False))
        return self.store.merged(streams)

    # -- LIKE ---------------------------------------------------------------------------------------

    def _like(self, node: Node, *, letters: bool) -> Condition:
        """What a message must have by SQL's LIKE; more than matches has it. Never NULL.

        letters: whether words of A to Z are asked for, which passes over accents in the text.
        """
        if isinstance(node, Term):
            return self._like_term(node, letters)
        if isinstance(node, Not):
            return "1", []
        joint = " AND " if isinstance(node, And) else " OR "
        parts = [self._like(part, letters=letters) for part in node.parts if not isinstance(part, Not)]
        return f"({joint.join(sql for sql, _ in parts)})", [value for _, values in parts for value in values]

    def _like_term(self, term: Term, letters: bool) -> Condition:
        columns = [name for name in ("content", "tool_name", "tool_calls") if self.shape.has("messages", name)]
        tests: list[str] = []
        values: list[str] = []
        for piece in term.pieces:
            plain = piece.text.isascii() and letters
            if not plain and not _caseless(piece.text):
                continue
            texts = {name: [piece.text] for name in columns}
            if "tool_calls" in texts and not piece.text.isascii():
                texts["tool_calls"].append(match.escaped(piece.typed))
            one = [f"coalesce(m.{name} LIKE ? ESCAPE '\\', 0)" for name, several in texts.items() for _ in several]
            tests.append(f"({' OR '.join(one)})")
            values += [_pattern(text) for several in texts.values() for text in several]
        return (" AND ".join(tests) or "1", values)


def _caseless(text: str) -> bool:
    """Whether LIKE, which folds A to Z only, compares a text as we do."""
    return not text.isascii() and all(c.upper() == c.lower() for c in text)


def _pattern(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
