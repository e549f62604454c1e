"""The ways to an answer, and which of them a query needs.

* *index*: one MATCH on the word index, ranked by it.
* *mixed*: terms in scripts without spaces by trigrams (three characters or more) or the CJK index,
  else by LIKE; other words by the word index; joined in SQL, so that AND, OR and NOT hold.
* *trigram*: words inside of longer words, asked when the word index knows none.
* *scan*: every message read and decided on; needs no index at all.

What an index cannot know (structured content, rows not indexed yet, what an old layout leaves out)
is read and decided on one by one, whatever the route, so that a part is never taken for the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from state_ledger.search import glued, match
from state_ledger.search.filters import Filters
from state_ledger.search.indexes import Indexes
from state_ledger.search.query import Branch, Query, Term
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer

_FROM = "messages m JOIN sessions s ON s.id = m.session_id"
_ROWS_AT_A_TIME = 500
_MOST_TERMS_IN_SQL = 60
"""SQLite refuses expressions that are nested deeper than 1,000; longer queries are scanned for."""

Condition = tuple[str, list[Any]]


@dataclass(frozen=True)
class Hit:
    """One message that matches.

    rank: FTS5's bm25 (the smaller, the better), None where nothing ranks. expression: the MATCH that
    found it in the word index, None if it was found otherwise. substrings: found inside of a word.
    """

    id: int
    timestamp: Any
    rank: float | None = None
    expression: str | None = None
    substrings: bool = False


@dataclass(frozen=True)
class Search:
    """One search: query, filters and order over one store.

    order: `newest`, `oldest`, or `rank`, which is newest first on routes without a rank.
    """

    writer: Writer
    query: Query
    filters: Filters
    order: str
    indexes: Indexes

    def run(self, wanted: int | None) -> tuple[str, list[Hit]]:
        """The route taken, and the first `wanted` hits in order; None means all."""
        foreign = any(term.literal and not term.caseless for term in self.query.terms)
        if self.indexes.words and not foreign and len(self.query.terms) <= _MOST_TERMS_IN_SQL:
            try:
                return self._by_index(wanted)
            except sqlite3.OperationalError as error:
                if "interrupted" in str(error):
                    raise
            except sqlite3.DatabaseError:
                pass  # A damaged index; the messages themselves can still be read.
        return "scan", self._first(self._scan(_everything(), substrings=False), wanted)

    def _by_index(self, wanted: int | None) -> tuple[str, list[Hit]]:
        expression = self._expression()
        if expression is not None:
            route, hits = "index", self._indexed(expression, wanted)
        else:
            route, hits = "mixed", self._joined(self._mixed, wanted)
        hits += self._apart(substrings=False)
        if not hits and self._may_be_inside():
            route, hits = "trigram", self._joined(self._inside, wanted, substrings=True)
            hits += self._apart(substrings=True)
        return route, self._first(hits, wanted)

    # -- the word index ------------------------------------------------------------------------

    def _expression(self) -> str | None:
        """The query as one FTS5 expression; None if the word index alone cannot answer it."""
        forms: dict[Term, str] = {}
        for term in self.query.terms:
            form = None if term.literal else self._form(term)
            if form is None:
                return None
            forms[term] = form

        def branch(of: Branch) -> str:
            together = f"({' AND '.join(forms[term] for term in of.wanted)})"
            out = " OR ".join(forms[term] for term in of.unwanted)
            return f"({together} NOT ({out}))" if out else together

        return " OR ".join(branch(of) for of in self.query.branches)

    def _form(self, term: Term) -> str | None:
        assert self.indexes.words is not None
        phrases = glued.phrases(self.writer, self.indexes.words, term)
        if phrases is None:
            return None
        star = " *" if term.prefix else ""
        forms = [f'"{phrases[0]}"{star}', *(f'"{phrase}"' for phrase in phrases[1:])]
        if not term.text.isascii():
            # Tool calls are JSON in ASCII: a letter beyond it stands there as \u00e9.
            forms.append(f"{_quoted(match.escaped(term.text)[0])}{star}")
        return f"({' OR '.join(forms)})"

    def _indexed(self, expression: str, wanted: int | None) -> list[Hit]:
        words = self.indexes.words
        condition, parameters = self._allowed()
        order = {"newest": "m.timestamp DESC, rank", "oldest": "m.timestamp, rank"}.get(self.order, "rank")
        found = self.writer.rows(
            # CROSS JOIN: the index is asked first, once, and not for each message.
            f"SELECT m.id, m.timestamp, rank AS bm25 FROM {words} CROSS JOIN messages m ON m.id = {words}.rowid"
            f" CROSS JOIN sessions s ON s.id = m.session_id WHERE {words} MATCH ? AND {condition}"
            f" ORDER BY {order} LIMIT ?",
            [expression, *parameters, -1 if wanted is None else wanted],
        )
        return [Hit(row[0], row[1], row[2], expression) for row in found]

    # -- conditions of several indexes, joined in SQL --------------------------------------------

    def _joined(
        self, condition_of: Callable[[Term], Condition], wanted: int | None, *, substrings: bool = False
    ) -> list[Hit]:
        parameters: list[Any] = []

        def one(term: Term) -> str:
            sql, values = condition_of(term)
            parameters.extend(values)
            return sql

        branches = []
        for branch in self.query.branches:
            parts = [one(term) for term in branch.wanted]
            parts += [f"NOT {one(term)}" for term in branch.unwanted]
            branches.append(f"({' AND '.join(parts)})")
        allowed, values = self._allowed()
        direction = "ASC" if self.order == "oldest" else "DESC"
        found = self.writer.rows(
            f"SELECT m.id, m.timestamp FROM {_FROM} WHERE ({' OR '.join(branches)}) AND {allowed}"
            f" ORDER BY m.timestamp {direction}, m.id {direction} LIMIT ?",
            [*parameters, *values, -1 if wanted is None else wanted],
        )
        return [Hit(row[0], row[1], substrings=substrings) for row in found]

    def _mixed(self, term: Term) -> Condition:
        """The condition of one term on a message `m`; true or false, never NULL."""
        if not term.literal:
            form = self._form(term)
            if form is not None:
                return _in_index(self.indexes.words, form)
            sql, values = _in_index(self.indexes.words, f'"{" ".join(term.words)}"{" *" if term.prefix else ""}')
            like, patterns = self._like(term)
            return f"({sql} OR {like})", [*values, *patterns]
        return self._inside(term)

    def _inside(self, term: Term) -> Condition:
        """The same, the term being looked for also inside of words."""
        indexed = self._run_in_index(term)
        if indexed is None:
            return self._like(term)
        if not self.filters.tools or (self.indexes.trigrams_know_tools and indexed[0] == self.indexes.trigrams):
            return _in_index(*indexed)
        sql, values = _in_index(*indexed)
        like, patterns = self._like(term)
        return f"({sql} OR (m.role = 'tool' AND {like}))", [*values, *patterns]

    def _run_in_index(self, term: Term) -> tuple[str, str] | None:
        """The index that knows a run of characters, and the MATCH for it."""
        if self.indexes.trigrams and len(term.text) >= 3:
            runs = [term.text, *match.escaped(term.text)]
            return self.indexes.trigrams, " OR ".join(map(_quoted, runs))
        if self.indexes.bigrams and len(term.text) >= 2 and glued.only_bigrams(term.text):
            return self.indexes.bigrams, _quoted(term.text)
        return None

    def _like(self, term: Term) -> Condition:
        """A run of characters by LIKE, in tool calls also as JSON writes it."""

        def pattern(text: str) -> str:
            escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            return f"%{escaped}%"

        runs = {name: [term.text] for name in self._columns}
        if "tool_calls" in runs:
            runs["tool_calls"] += match.escaped(term.text)
        tests = [f"coalesce(m.{name} LIKE ? ESCAPE '\\', 0)" for name, texts in runs.items() for _ in texts]
        return f"({' OR '.join(tests)})", [pattern(text) for texts in runs.values() for text in texts]

    @property
    def _columns(self) -> list[str]:
        shape = self.writer.shape
        return [name for name in ("content", "tool_name", "tool_calls") if shape.has("messages", name)]

    def _may_be_inside(self) -> bool:
        """Whether a query without hits is asked again for parts of words (three characters at least)."""
        return (
            self.indexes.trigrams is not None
            and "tool" not in self.filters.roles
            and all(not term.literal and len(term.text) >= 3 for term in self.query.terms)
        )

    # -- rows read one by one --------------------------------------------------------------------

    def _allowed(self) -> Condition:
        """Filters, without the rows that are decided on one by one."""
        condition, parameters = self.filters.sql(self.writer.shape)
        for rows in self.indexes.apart:
            condition += f" AND NOT coalesce({rows.condition}, 0)"
            parameters += rows.parameters
        return condition, parameters

    def _apart(self, *, substrings: bool) -> list[Hit]:
        hits: dict[int, Hit] = {}
        for rows in self.indexes.apart:
            for hit in self._scan((rows.finder, list(rows.parameters)), substrings=substrings):
                hits[hit.id] = hit
        return list(hits.values())

    def _scan(self, among: Condition, *, substrings: bool) -> Iterator[Hit]:
        condition, parameters = self.filters.sql(self.writer.shape)
        columns = ", ".join(
            f"m.{name}" if name in self._columns else f"NULL AS {name}"
            for name in ("content", "tool_name", "tool_calls")
        )
        last = None
        while True:
            after = "1" if last is None else "m.id > ?"
            rows = self.writer.rows(
                f"SELECT m.id, m.timestamp, {columns} FROM {_FROM}"
                f" WHERE {after} AND {among[0]} AND {condition} ORDER BY m.id LIMIT {_ROWS_AT_A_TIME}",
                [*([] if last is None else [last]), *among[1], *parameters],
            )
            for row in rows:
                fields = match.Fields.of(row[2], row[3], row[4])
                if match.matches(self.query, fields, substrings=substrings):
                    yield Hit(row[0], row[1], substrings=substrings)
            if len(rows) < _ROWS_AT_A_TIME:
                return
            last = rows[-1][0]

    def _first(self, hits: Any, wanted: int | None) -> list[Hit]:
        """The first hits in the order asked for; the ranked ones before the others."""

        def time(hit: Hit) -> float:
            return float(hit.timestamp) if isinstance(hit.timestamp, (int, float)) else 0.0

        def place(hit: Hit) -> tuple[float, ...]:
            if self.order == "oldest":
                return time(hit), hit.rank or 0.0, hit.id
            newest = -time(hit), hit.rank or 0.0, -hit.id
            return newest if self.order == "newest" or hit.rank is None else (hit.rank, hit.id)

        ordered = sorted(hits, key=lambda hit: (self.order == "rank" and hit.rank is None, *place(hit)))
        return ordered if wanted is None else ordered[:wanted]


def _everything() -> Condition:
    return "1", []


def _in_index(index: str | None, expression: str) -> Condition:
    return f"m.id IN (SELECT rowid FROM {index} WHERE {index} MATCH ?)", [expression]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
