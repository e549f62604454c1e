"""What stands around a message in its session: the one before and the one after, by time."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from state_ledger.search.snippets import CONTEXT_CHARACTERS
from state_ledger.warehouse.books import Warehouse
from state_ledger.warehouse.searching.looking import Row
from state_ledger.warehouse.searching.messages import Messages

Place = tuple[float, int]
Entry = dict[str, Any]


def contexts(
    warehouse: Warehouse, messages: Messages, rows: Sequence[Row], shown: Callable[[str], str]
) -> list[list[Entry]]:
    """For each message up to three `{"role", "content"}`: the one before, itself, the one after, 200 characters each.

    shown: what of a text may be shown. Messages that were taken back count too.
    """
    timed = [row for row in rows if row.timestamp is not None]
    order = _orders(warehouse, messages, timed)
    beside: dict[tuple[int, int], tuple[int | None, int | None]] = {}
    for row in timed:
        places = order[row.place, row.session_id]
        at = bisect_left(places, (row.timestamp, row.id))
        before = places[at - 1][1] if at else None
        after = places[at + 1][1] if at + 1 < len(places) else None
        beside[row.place, row.id] = before, after
    wanted = {(row.place, row.id) for row in rows}
    wanted |= {(place, each) for (place, _), pair in beside.items() for each in pair if each is not None}
    texts = _texts(warehouse, messages, wanted, shown)
    found = []
    for row in rows:
        before, after = beside.get((row.place, row.id), (None, None))
        listed = [(row.place, each) for each in (before, row.id, after) if each is not None]
        found.append([texts[each] for each in listed if each in texts])
    return found


def _orders(warehouse: Warehouse, messages: Messages, rows: Sequence[Row]) -> dict[tuple[int, str], list[Place]]:
    """The messages of some sessions in their order."""
    found: dict[tuple[int, str], list[Place]] = defaultdict(list)
    if not rows:
        return found
    wanted = {(row.place, row.session_id) for row in rows}
    places = ", ".join(map(str, sorted({place for place, _ in wanted})))
    values = {f"s{number}": each for number, each in enumerate(sorted({name for _, name in wanted}))}
    dialect = warehouse.dialect
    listed = ", ".join(dialect.text(dialect.parameter(name, "text")) for name in values)
    sql = messages.rows(
        "m.place AS place, m.session_id AS session_id, m.timestamp AS timestamp, m.id AS id",
        f"m.place IN ({places}) AND m.session_id IN ({listed}) AND m.timestamp IS NOT NULL",
    )
    for place, session_id, timestamp, each in dialect.run(sql, values)[1]:
        found[place, session_id].append((timestamp, each))
    for listed_places in found.values():
        listed_places.sort()
    return found


def _texts(
    warehouse: Warehouse, messages: Messages, wanted: set[tuple[int, int]], shown: Callable[[str], str]
) -> dict[tuple[int, int], Entry]:
    by_place: dict[int, list[int]] = defaultdict(list)
    for place, each in sorted(wanted):
        by_place[place].append(each)
    if not by_place:
        return {}
    one_of = " OR ".join(
        f"(m.place = {place} AND m.id IN ({', '.join(map(str, ids))}))" for place, ids in by_place.items()
    )
    cells = "m.place AS place, m.id AS id, m.role AS role, m.text AS text"
    _, rows = warehouse.dialect.run(messages.rows(cells, f"({one_of})"))
    return {
        (place, each): {"role": role, "content": shown(text or "")[:CONTEXT_CHARACTERS]}
        for place, each, role, text in rows
    }

