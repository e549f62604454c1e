"""The messages of a warehouse as SQL: which stores and filters are looked through, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from state_ledger.search.query import Node
from state_ledger.search.request import Request
from state_ledger.warehouse.books import Store, Warehouse
from state_ledger.warehouse.native import held
from state_ledger.warehouse.searching import conditions, needed
from state_ledger.warehouse.searching.order import BUCKET_S, Axis, ById, ByTime, Place, Window
from state_ledger.warehouse.views import is_visible

T = TypeVar("T")

_CELLS = ("place", "store", "host", "id", "session_id", "timestamp", "role", "text", "tool_name", "tool_calls")


def stores_with_texts(warehouse: Warehouse) -> tuple[Store, ...]:
    """The chosen stores whose messages were pushed, which are the ones that can be searched."""
    return tuple(each for each in warehouse.chosen if each.texts)


class Messages:
    """The messages that a request allows and that may match.

    stores: names of those looked through, by number. axis: what they are ordered by. has_timeless: whether some of
    them may have no place on it.
    """

    def __init__(self, warehouse: Warehouse, request: Request, root: Node, *, inside: bool = False) -> None:
        self._warehouse, self._request = warehouse, request
        self._dialect = warehouse.dialect
        self._writer = conditions.writer(self._dialect)
        self._bound = self._writer.bound
        self.stores = {each.place: each.name for each in stores_with_texts(warehouse)}
        without_tools = ["m.role <> 'tool'"] if inside else []
        self._where = " AND ".join([*self._filters(), *without_tools, self._writer.of(needed.of(root))])
        self._of_stores = " AND ".join(self.visible("m")) or "1 = 1"
        self._has_copies = self._remembered("copies", self._copied)
        self.has_timeless = False
        self.axis = self._axis()

    def read(
        self, window: Window, after: Place | None, most: int, limit_ms: int | None
    ) -> list[tuple[Any, ...]]:
        """Candidates of a window in order, after a hit: the values of `_CELLS`. Raises Interrupted, EngineError."""
        values = dict(self._writer.values)
        where = [*self._within(window), *([self._beyond(after, values)] if after is not None else []), self._where]
        direction = "DESC" if self.axis.newest_first else "ASC"
        order = f"id {direction}" if self.axis.whole else f"timestamp {direction}, store ASC, id {direction}"
        first = f"ORDER BY {order} LIMIT {most}"
        cells = ", ".join(f"m.{name} AS {name}" for name in _CELLS)
        sql = self.rows(cells, " AND ".join(where), first)
        _, rows = self._dialect.run(f"SELECT * FROM ({sql}) AS found {first}", values, limit_ms)
        return rows

    def rows(self, cells: str, where: str, first: str = "") -> str:
        """A SELECT of stored rows as `m`, of the stores that are looked through. first: of each table, how many."""
        where = f"{self._of_stores} AND {where}"
        once = f"SELECT {cells} FROM {held('messages')} AS m WHERE m.copies = 1 AND {where} {first}"
        if not self._has_copies:
            return once
        copies = f"SELECT {cells} FROM {held('message_copies')} AS m WHERE {where} {first}"
        return f"({once}) UNION ALL ({copies})"

    def time_at(self, place: Place) -> float | None:
        """The time of a place."""
        if not self.axis.whole:
            return place.at
        step, direction = (">=", "ASC") if self.axis.newest_first else ("<=", "DESC")
        sql = self.rows("m.timestamp AS timestamp, m.id AS id", f"m.timestamp IS NOT NULL AND m.id {step} {place.at}")
        _, rows = self._dialect.run(f"SELECT timestamp FROM ({sql}) AS found ORDER BY id {direction} LIMIT 1")
        return rows[0][0] if rows else None

    # -- conditions -----------------------------------------------------------------------------------

    def visible(self, alias: str) -> list[str]:
        """Rows of this generation and of the stores that are looked through."""
        state = self._warehouse.state
        found = []
        if len(self._warehouse.chosen) < len(self._warehouse.stores):
            found.append(f"{alias}.place IN ({', '.join(map(str, sorted(self.stores)))})")
        elif len(self.stores) < len(self._warehouse.stores):
            # Of a hundred thousand stores, not each by its number.
            spoken = f"SELECT t.place FROM fleet_stores AS t WHERE t.generation = {state.generation} AND t.texts = 1"
            found.append(f"{alias}.place IN ({spoken})")
        if state.hidden:
            found.append(is_visible(alias, state))
        return found

    def _filters(self) -> list[str]:
        request = self._request
        found = [] if request.inactive else ["coalesce(m.state, '') <> 'taken back'"]
        if request.roles:
            found.append(f"m.role IN ({self._listed(request.roles)})")
        for moment, comparison in ((request.since, ">="), (request.until, "<")):
            if moment is not None:
                found.append(f"m.timestamp {comparison} {moment!r}")
        of_session = []
        if request.sources is not None:
            of_session.append(f"s.source IN ({self._listed(request.sources)})")
        if request.exclude_sources:
            of_session.append(f"coalesce(s.source, '') NOT IN ({self._listed(request.exclude_sources)})")
        if request.models:
            of_session.append(f"s.model IN ({self._listed(request.models)})")
        if of_session:
            sessions = f"SELECT s.place, s.session_id FROM {held('session_facts')} AS s"
            where = " AND ".join([*self.visible("s"), *of_session])
            found.append(f"(m.place, m.session_id) IN ({sessions} WHERE {where})")
        return found

    def _listed(self, texts: Iterable[str]) -> str:
        return ", ".join(self._bound(each) for each in texts)

    def _within(self, window: Window) -> list[str]:
        if window.timeless:
            return ["m.timestamp IS NULL"]
        column = f"m.{self.axis.column}"
        found = [f"{column} IS NOT NULL"] if window.low is window.high is None else []
        if window.low is not None:
            found.append(f"{column} >= {window.low!r}")
        if window.high is not None:
            found.append(f"{column} < {window.high!r}")
        return found

    def _beyond(self, after: Place, values: dict[str, Any]) -> str:
        """What comes after a hit among messages of the same time or later in the order."""
        newest_first = self.axis.newest_first
        id_beyond = f"m.id {'<' if newest_first else '>'} {after.id}"
        if self.axis.whole:
            return id_beyond
        values["after"] = self.stores.get(after.store or 0, "")
        store = self._dialect.text(self._dialect.parameter("after", "text"))
        beside = f"(m.store > {store} OR (m.store = {store} AND {id_beyond}))"
        if after.at is None:
            return beside
        return f"(m.timestamp {'<' if newest_first else '>'} {after.at!r} OR (m.timestamp = {after.at!r} AND {beside}))"

    # -- the order ------------------------------------------------------------------------------------

    def _axis(self) -> Axis:
        newest_first = self._request.newest_first
        if len(self.stores) == 1:
            return ById(self._remembered("ends", self._ends), newest_first)
        hours = self._remembered("hours", self._hours)
        self.has_timeless = None in hours and self._request.since is None and self._request.until is None
        counted = sorted((hour, number) for hour, number in hours.items() if hour is not None)
        return ByTime(counted, newest_first)

    def _remembered(self, what: str, find: Callable[[], T]) -> T:
        """Something about these stores, which is found out once."""
        key = what, frozenset(self.stores)
        known: dict[Any, T] = self._warehouse.remembered
        if key not in known:
            known[key] = find()
        return known[key]

    def _copied(self) -> bool:
        """Whether messages are stored more than once."""
        copied = f"SELECT m.id FROM {held('message_copies')} AS m WHERE {self._of_stores} LIMIT 1"
        return bool(self._dialect.run(copied)[1])

    def _ends(self) -> tuple[int, int] | None:
        sql = self.rows("m.id AS id", "1 = 1")
        ((low, high),) = self._dialect.run(f"SELECT min(id) AS low, max(id) AS high FROM ({sql}) AS found")[1]
        return None if low is None else (int(low), int(high))

    def _hours(self) -> dict[int | None, int]:
        """How many messages the stores have in each hour; None: without a time."""
        where = " AND ".join(self.visible("t")) or "1 = 1"
        _, rows = self._dialect.run(
            f"SELECT floor(t.bucket / {BUCKET_S}) AS hour, sum(t.number) AS number"
            f" FROM {held('message_times')} AS t WHERE {where} GROUP BY hour"
        )
        return {None if hour is None else int(hour): int(number) for hour, number in rows}
