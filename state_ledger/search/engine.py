"""One search from the request to the ids of its hits: planned, offered, looked at, ordered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

from state_ledger.errors import StateLedgerError
from state_ledger.search import filters, match
from state_ledger.search.indexes import Indexes
from state_ledger.search.plan import Companion, Plan, Planner
from state_ledger.search.query import Query
from state_ledger.search.request import BEST, RANKED, Request
from state_ledger.search.streams import MESSAGES, Store, found_by
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, sqlite3

FIRST_LOOK, LONGEST_LOOK = 8, 200
"""How many messages are read at a time to be looked at."""

BEST_NOTICE = f"Best match ranks the newest {RANKED:,} matches, if there are more; older ones follow by time."
INSIDE_NOTICE = (
    "No message has these as whole words. Shown are messages that hold them within longer words; tool results "
    "are not looked through for that."
)
LATE_NOTICE = (
    "Messages that no index knows were not all looked at in the time given: what is shown matches, "
    "and there may be more."
)


_Read = Callable[[Plan, Store], tuple[list[int], bool]]
_DAMAGE = (sqlite3.DatabaseError, StateLedgerError)


@dataclass(frozen=True)
class Found:
    """The ids of the hits in order, and how they were found.

    more: whether others follow; after: what they follow, the last hit, or where a scan stopped.
    """

    ids: list[int]
    more: bool
    after: int | None
    route: str
    complete: bool
    inside: bool
    notices: tuple[str, ...]


class Search:
    """A query on one store, asked once or several times with other bounds."""

    def __init__(
        self,
        connection: Connection,
        request: Request,
        query: Query,
        *,
        shape: Shape,
        companion: Companion | None = None,
        budget_s: float | None = None,
    ) -> None:
        assert query.root is not None
        self.connection, self.request, self.query, self.shape = connection, request, query, shape
        self.root = query.root
        self.companion = companion
        self.where = filters.condition(request, shape)
        self.indexes = Indexes.read(connection)
        self.deadline = None if budget_s is None else time.monotonic() + budget_s

    def hits(self) -> Found:
        """The hits that the request asks for, in its order."""
        request = self.request
        wanted = None if request.limit < 0 else request.offset + request.limit
        if request.sort == BEST:
            found = self._best(wanted)
        else:
            found = self._run(lambda plan, store: self._listed(plan, store, wanted), request.before)
        return replace(found, ids=found.ids[request.offset :])

    def count(self, most: int) -> tuple[int, bool]:
        """How many messages match, up to `most`, and whether there are more or may be."""
        found = self._run(lambda plan, store: self._listed(plan, store, most), None)
        return len(found.ids), found.more or not found.complete

    # -- in order of ids ------------------------------------------------------------------------

    def _run(self, read: _Read, before: int | None) -> Found:
        """Reads with a plan, and again without what turns out to be damaged."""
        while True:
            try:
                return self._planned(read, before)
            except _DAMAGE as error:
                if not self._without_the_damaged(error):
                    raise

    def _planned(self, read: _Read, before: int | None) -> Found:
        store = self._store(before)
        plan = self._planner(store).plan()
        ids, more = read(plan, store)
        after = ids[-1] if ids and more else None if ids else store.stopped_at
        found = Found(ids, more, after, plan.route, not store.stopped, False, self._notices(store))
        if ids or store.stopped or not self._may_be_inside(before):
            return found
        store = self._store(before)
        wider = self._planner(store).inside()
        if wider is None:
            return found
        self.inside = True
        try:
            ids, more = read(wider, store)
        finally:
            self.inside = False
        if not ids:
            return found
        return Found(ids, more, ids[-1] if more else None, wider.route, True, True, (*found.notices, INSIDE_NOTICE))

    inside = False
    """Whether words are looked for within longer words at the moment."""

    def _listed(self, plan: Plan, store: Store, wanted: int | None) -> tuple[list[int], bool]:
        merged = self._matching(plan, store)
        if wanted is None:
            return list(merged), False
        ids = list(islice(merged, wanted))
        return ids, len(ids) == wanted and next(merged, None) is not None

    def _matching(self, plan: Plan, store: Store) -> Iterator[int]:
        """The ids that match, in order; of those that are not sure the text is looked at."""
        offered = store.labelled(plan.sure, plan.maybe)
        size = FIRST_LOOK
        while batch := list(islice(offered, size)):
            doubtful = [each for each, sure in batch if not sure and plan.possible(each)]
            if doubtful and store.late:
                store.stopped = True
                doubtful = []
            fields = self._fields(doubtful) if doubtful else {}
            if plan.structured is not None:
                plan.structured.remember(fields)
            for each, sure in batch:
                if sure or (each in fields and self._matches(fields[each])):
                    yield each
            size = min(size * 2, LONGEST_LOOK)

    def _matches(self, fields: match.Fields) -> bool:
        return match.matches(self.root, fields, inside=self.inside)

    def _fields(self, ids: list[int]) -> dict[int, match.Fields]:
        columns = ", ".join(
            f"CAST(m.{name} AS BLOB)" if self.shape.has("messages", name) else "NULL"
            for name in ("content", "tool_name", "tool_calls")
        )
        rows = self.connection.execute(
            f"SELECT m.id, {columns} FROM {MESSAGES} WHERE m.id IN ({', '.join('?' * len(ids))}) AND {self.where[0]}",
            (*ids, *self.where[1]),
        )
        return {row[0]: match.Fields(row[1], row[2], row[3]) for row in rows}

    def _may_be_inside(self, before: int | None) -> bool:
        """Whether nothing was found because no message has the words as whole words."""
        if "tool" in self.request.roles:
            return False
        if before is None:
            return True
        store = self._store(None)
        plan = self._planner(store).plan()
        return next(self._matching(plan, store), None) is None

    # -- by rank ----------------------------------------------------------------------------------

    def _best(self, wanted: int | None) -> Found:
        """The newest 2,000 matches by rank, then the others, newest first."""
        ranks: dict[int, float] = {}

        def read(plan: Plan, store: Store) -> tuple[list[int], bool]:
            first = None if wanted is None else self._first_by_rank(plan, store, wanted, ranks)
            if first is not None:
                return first
            ranks.clear()
            store.ranks, store.piece = ranks, RANKED + 1
            merged = self._matching(plan, store)
            newest = list(islice(merged, RANKED))
            if newest and plan.ranked is not None and self.indexes.words is not None:
                ranks.update(self._ranks(self.indexes.words, plan.ranked.text, newest))
            newest.sort(key=lambda each: (each not in ranks, ranks.get(each, 0.0), -each))
            ordered = chain(newest, merged)
            if wanted is None:
                return list(ordered), False
            ids = list(islice(ordered, wanted))
            return ids, len(ids) == wanted and next(ordered, None) is not None

        found = self._run(read, None)
        return replace(found, notices=(*found.notices, BEST_NOTICE)) if found.more else found

    def _first_by_rank(
        self, plan: Plan, store: Store, wanted: int, ranks: dict[int, float]
    ) -> tuple[list[int], bool] | None:
        """The best of the newest 2,000 matches as the index itself orders them; None if it takes more than that."""
        if plan.asked is None or wanted > RANKED // 2:
            return None
        index, expression, (also, values) = plan.asked
        source = f"{found_by(index)} AND {store.where[0]} AND {also}"
        parameters = [expression, *store.where[1], *values]
        oldest = self.connection.execute(
            f"SELECT {index}.rowid {source} ORDER BY {index}.rowid DESC LIMIT 1 OFFSET {RANKED - 1}", parameters
        ).fetchone()
        low = 0 if oldest is None else int(oldest[0])
        held = frozenset[int]() if plan.structured is None else plan.structured.members
        found = self.connection.execute(
            f"SELECT m.id, {index}.rank {source} AND {index}.rowid >= ?"
            f" ORDER BY {index}.rank, {index}.rowid DESC LIMIT ?",
            [*parameters, low, wanted + 1 + len(held)],
        )
        ranked = [(each, rank) for each, rank in found if each not in held]
        if len(ranked) <= wanted:
            return None
        ranks.update(ranked)
        return [each for each, _ in ranked[:wanted]], True

    def _ranks(self, words: str, expression: str, ids: list[int]) -> dict[int, float]:
        """FTS5's bm25 of messages that the word index finds: the smaller, the better."""
        wanted = set(ids)
        rows = self.connection.execute(
            f"SELECT rowid, rank FROM main.{words} WHERE {words} MATCH ? AND rowid >= ? AND rowid <= ?",
            (expression, min(ids), max(ids)),
        )
        return {row[0]: row[1] for row in rows if row[0] in wanted}

    # -- around it ----------------------------------------------------------------------------------

    def _store(self, before: int | None) -> Store:
        newest_first = self.request.newest_first
        return Store(self.connection, self.where, newest_first, before, self.deadline)

    def _planner(self, store: Store) -> Planner:
        return Planner(store, self.query, self.shape, self.indexes, self.companion)

    def _notices(self, store: Store) -> tuple[str, ...]:
        return (*self.indexes.notices, LATE_NOTICE) if store.stopped else self.indexes.notices

    def _without_the_damaged(self, error: Exception) -> bool:
        """Goes on without an index that cannot be read after all; whether there is anything to leave out."""
        if isinstance(error, sqlite3.OperationalError) and "interrupted" in str(error):
            return False
        if self.companion is not None:
            self.companion = None
            return True
        if self.indexes.words or self.indexes.trigrams or self.indexes.pairs:
            notice = f"The search index is damaged ({error}); messages are looked through one by one."
            notices = (*self.indexes.notices, notice)
            self.indexes = Indexes(None, None, None, "1", "1", "", (), notices)
            return True
        return False
