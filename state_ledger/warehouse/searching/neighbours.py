"""What stands around a message in its session: the one before and the one after, by time."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from state_ledger.search.snippets import CONTEXT_CHARACTERS
from state_ledger.warehouse.books import Warehouse
from state_ledger.warehouse.native import held
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
    where = "".join(f" AND {each}" for each in messages.visible("m"))
    for place, session_id, timestamp, each in dialect.run(
        f"SELECT m.place, m.session_id, m.timestamp, m.id FROM {held('messages')} AS m WHERE m.place IN ({places})"
        f" AND m.session_id IN ({listed}) AND m.timestamp IS NOT NULL{where}", values
    )[1]:  # fmt: skip
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
    where = "".join(f" AND {each}" for each in messages.visible("m"))
    _, rows = warehouse.dialect.run(
        f"SELECT m.place, m.id, m.role, m.text, m.shown_parts FROM {held('messages')} AS m WHERE ({one_of}){where}"
    )
    return {
        (place, each): {"role": role, "content": _short(text, parts, shown)} for place, each, role, text, parts in rows
    }


def _short(text: str | None, parts: str | None, shown: Callable[[str], str]) -> str:
    """The first 200 characters of a message; `[multimodal content]` for parts without text."""
    if parts is None:
        return shown(text or "")[:CONTEXT_CHARACTERS]
    texts = [str(words) for kind, words in json.loads(parts) if "image" not in kind]
    return shown(" ".join(filter(None, texts)) or "[multimodal content]")[:CONTEXT_CHARACTERS]
