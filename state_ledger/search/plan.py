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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple, Protocol

from state_ledger.search import expressions, match, memory, vocabulary
from state_ledger.search.expressions import Expression
from state_ledger.search.filters import Condition
from state_ledger.search.indexes import STRUCTURED, Indexes, decided_by_index
from state_ledger.search.query import And, Node, Not, Query
from state_ledger.search.streams import Store, from_index, from_scan
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


class Asked(NamedTuple):
    """What the sure stream asks an index for: its name, the expression, and a condition on `m`."""

    name: str
    expression: str
    also: Condition


@dataclass(frozen=True)
class Plan:
    """Streams that together offer every match.

    Everything in `sure` is a match, everything else is looked at. asked: of the sure stream. ranked: the
    expression that ranks what is found, where the streams do not. structured: what is remembered of
    structured messages; possible: whether a message can match, by what is remembered of it.
    """

    route: str
    sure: tuple[Iterator[int], ...] = ()
    asked: Asked | None = None
    maybe: tuple[Iterator[int], ...] = ()
    ranked: Expression | None = None
    structured: memory.Structured | None = None
    possible: Callable[[int], bool] = lambda _each: True


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
        known = memory.words(self.store.connection, patient=self._patient)
        expression = expressions.in_words(self.root, None if known is None else known.vocabulary)
        if expression is None:
            return self._scan()
        if expression.whole and known is not None and known.vocabulary is not None:
            return self._by_words(words, expression, "index", self._rest(known.upto))
        return self._with_scan(words, expression)

    @property
    def _patient(self) -> bool:
        return self.store.deadline is None

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
        self, words: str, expression: Expression, route: str, new: tuple[Iterator[int], ...] = ()
    ) -> Plan:
        """What the word index knows, and what it does not speak for."""
        plan = self._apart(Plan(route, maybe=(*self._in_escapes(words), *new)))
        if not expression.exact:
            offered = from_index(self.store, words, expression.text, ranked=True)
            return replace(plan, maybe=(offered, *plan.maybe))
        known = plan.structured
        also = decided_by_index(self.indexes, -1 if known is None else known.upto)
        sure = from_index(self.store, words, expression.text, also, ranked=True)
        if known is not None:
            held = known.members
            sure = (each for each in sure if each not in held)
        asked = Asked(words, expression.text, also)
        return replace(plan, sure=(sure,), asked=asked)

    def _in_escapes(self, words: str) -> tuple[Iterator[int], ...]:
        """Where letters beyond ASCII stand as escapes in tool calls."""
        if all(term.text.isascii() for term in self.terms):
            return ()
        escaped = expressions.in_escapes(self.root)
        return () if escaped is None else (from_index(self.store, words, escaped.text),)

    def _by_companion(self, words: str, companion: Companion) -> Plan | None:
        ranked = expressions.in_words(self.root, vocabulary.NONE)
        new = self._rest(companion.covered_up_to)
        if not self._has_runs:
            # Either no word of a match stands beside a run, or one does.
            if ranked is None:
                return None
            plan = self._by_words(words, ranked, "companion")
            beside = tuple(chain.from_iterable(self._beside(term, companion) for term in self.terms))
            return replace(plan, maybe=(*plan.maybe, *beside, *new))
        offered = self._offered(self.root, words, companion)
        if offered is None:
            return None
        return self._apart(Plan("companion", maybe=(offered, *new), ranked=ranked))

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
            return replace(plan, route=route, maybe=(*plan.maybe, stream, scan))
        scan = from_scan(self.store, self._like(self.root, letters=True))
        return replace(plan, maybe=(*plan.maybe, scan))

    def _scan(self) -> Plan:
        condition, values = self._like(self.root, letters=False)
        return Plan("scan", maybe=(from_scan(self.store, (f"({condition}) OR {STRUCTURED}", values)),))

    # -- rows that no index decides ---------------------------------------------------------------

    def _apart(self, plan: Plan) -> Plan:
        """The plan with what the word index does not speak for: structured messages, others that it lacks."""
        rows = [
            from_scan(self.store, (each.condition, []), each.after, each.up_to) for each in self.indexes.apart
        ]
        known = memory.structured(self.store.connection, self.indexes.structured, patient=self._patient)
        if known is None:
            return replace(plan, maybe=(*plan.maybe, *rows, from_scan(self.store, (STRUCTURED, []))))
        ids = known.beyond(self.store.start, newest_first=self.store.newest_first)
        new = self._rest(known.upto, STRUCTURED)
        return replace(
            plan,
            maybe=(*plan.maybe, *rows, ids, *new),
            structured=known,
            possible=lambda each: known.may_match(each, self.root),
        )

    def _rest(self, upto: int, among: str = "1") -> tuple[Iterator[int], ...]:
        """Messages added after something was read that covers them up to an id."""
        newest = self.store.rows("SELECT coalesce(max(id), 0) FROM main.messages", [])[0][0]
        if newest <= upto:
            return ()
        condition, values = self._like(self.root, letters=False)
        return (from_scan(self.store, (f"{among} AND ({condition} OR {STRUCTURED})", values), after=upto),)

    # -- the companion ------------------------------------------------------------------------------

    def _runs(self, companion: Companion, text: str, prefix: bool) -> Iterator[int]:
        store = self.store
        before, after = (store.start, None) if store.newest_first else (None, store.start)
        return companion.ids(text, before=before, after=after, newest=store.newest_first, prefix=prefix)

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
        if not term.pieces and term.folded.isascii():
            # A sign that word processors write otherwise stands for any.
            pattern = _pattern(term.folded, any_of="'\"-")
            return f"({' OR '.join(f'coalesce(m.{name} LIKE ? ESCAPE {_ESCAPE}, 0)' for name in columns)})", [
                pattern for _ in columns
            ]
        for piece in term.pieces:
            plain = piece.text.isascii() and letters
            if not plain and not _caseless(piece.text):
                continue
            texts = {name: [piece.text] for name in columns}
            if "tool_calls" in texts and not piece.text.isascii():
                texts["tool_calls"].append(match.escaped(piece.typed))
            one = [f"coalesce(m.{name} LIKE ? ESCAPE {_ESCAPE}, 0)" for name, several in texts.items() for _ in several]
            tests.append(f"({' OR '.join(one)})")
            values += [_pattern(text) for several in texts.values() for text in several]
        return (" AND ".join(tests) or "1", values)


def _caseless(text: str) -> bool:
    """Whether LIKE, which folds A to Z only, compares a text as we do."""
    return not text.isascii() and all(c.upper() == c.lower() for c in text)


_ESCAPE = "'\\'"


def _pattern(text: str, any_of: str = "") -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    for sign in any_of:
        escaped = escaped.replace(sign, "_")
    return f"%{escaped}%"
