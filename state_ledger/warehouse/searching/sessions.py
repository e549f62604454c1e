"""The sessions of messages that match: what is shown of them, and which copy of one counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from state_ledger.warehouse.books import Warehouse
from state_ledger.warehouse.native import held
from state_ledger.warehouse.searching.looking import Row
from state_ledger.warehouse.searching.messages import Messages

Key = tuple[int, str]
"""A session as it stands in a store: the store's number and the id there."""


class Session(NamedTuple):
    """name: by which the fleet knows it. instead: the number of the store whose copy counts; None: this one does."""

    name: str
    source: str
    model: str | None
    title: str | None
    started_at: float | None
    instead: int | None = None


class Sessions:
    """The sessions that were looked up for one search."""

    def __init__(self, warehouse: Warehouse, messages: Messages) -> None:
        self._warehouse, self._messages = warehouse, messages
        self._known: dict[Key, Session | None] = {}
        self._times: dict[Key, set[float | None]] = {}

    def shown(self, rows: Sequence[Row]) -> list[tuple[Row, Session]]:
        """Messages with their sessions; without those that have none, as in a store's own search, and those that
        stand in a copy of a session while the copy that counts has them, and is looked through, too."""
        self._look_up({(row.place, row.session_id) for row in rows} - self._known.keys())
        found = [(row, session) for row in rows if (session := self._known[row.place, row.session_id]) is not None]
        if not self._warehouse.state.uncounted:
            return found
        counting = [self._counting(row, session) for row, session in found]
        self._read_times({key for key in counting if key is not None} - self._times.keys())
        return [
            pair for pair, key in zip(found, counting, strict=True)
            if key is None or pair[0].timestamp not in self._times[key]
        ]  # fmt: skip

    def _counting(self, row: Row, session: Session) -> Key | None:
        """The copy that counts, if that is another one which is looked through, too."""
        if session.instead is None or session.instead not in self._messages.stores:
            return None
        return session.instead, row.session_id

    def _read_times(self, sessions: Iterable[Key]) -> None:
        """When the messages of copies that count were stored."""
        wanted = sorted(sessions)
        if not wanted:
            return
        self._times |= {key: set() for key in wanted}
        values: dict[str, Any] = {}
        one_of = " OR ".join(
            f"(m.place = {place} AND m.session_id = {self._bound(values, session_id)})" for place, session_id in wanted
        )
        for place, session_id, timestamp in self._run(
            f"SELECT m.place, m.session_id, m.timestamp FROM {held('messages')} AS m"
            f" WHERE ({one_of}){self._and_visible('m')}", values
        ):  # fmt: skip
            self._times[place, session_id].add(timestamp)

    def _look_up(self, keys: Iterable[Key]) -> None:
        wanted = sorted(keys)
        if not wanted:
            return
        self._known |= dict.fromkeys(wanted)
        state = self._warehouse.state
        values: dict[str, Any] = {}
        places = ", ".join(map(str, sorted({place for place, _ in wanted})))
        listed = ", ".join(self._bound(values, each) for each in sorted({name for _, name in wanted}))
        renamed = self._beside("fleet_renamed", "r") if state.renamed else ""
        copies = (
            f" LEFT JOIN fleet_copies AS c ON c.generation = {state.generation} AND c.place_of_copy = s.place"
            f" AND c.session_id = {'coalesce(r.name, s.session_id)' if renamed else 's.session_id'}"
        )
        rows = self._run(
            f"SELECT s.place, s.session_id, {'coalesce(r.name, s.session_id)' if renamed else 's.session_id'} AS name,"
            f" s.source, s.model, s.title, s.started_at, {'c.place' if state.uncounted else 'NULL'} AS instead"
            f" FROM {held('session_facts')} AS s{renamed}{copies if state.uncounted else ''}"
            f" WHERE s.place IN ({places}) AND s.session_id IN ({listed}){self._and_visible('s')}",
            values,
        )
        for place, session_id, *rest in rows:
            if (place, session_id) in self._known:
                self._known[place, session_id] = Session(*rest)

    def _beside(self, side: str, alias: str) -> str:
        return (
            f" LEFT JOIN {side} AS {alias} ON {alias}.generation = {self._warehouse.state.generation}"
            f" AND {alias}.place = s.place AND {alias}.session_id = s.session_id"
        )

    def _and_visible(self, alias: str) -> str:
        return "".join(f" AND {each}" for each in self._messages.visible(alias))

    def _bound(self, values: dict[str, Any], value: str) -> str:
        name = f"s{len(values)}"
        values[name] = value
        return self._warehouse.dialect.text(self._warehouse.dialect.parameter(name, "text"))

    def _run(self, sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._warehouse.dialect.run(sql, values)[1]
