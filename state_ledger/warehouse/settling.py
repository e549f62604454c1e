"""What stands in several stores at once is settled when a warehouse is loaded, as `shelf` does it for files.

Copies of a session count once (`shelf.copies` states the rule), different sessions of one id get names of their
own, and sessions are related across stores. Only what occurs in several stores is looked at, so that where nothing
does, nothing is written and no question pays for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from state_ledger.shelf import kinship
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.native import held, number_of

Session = tuple[int, str]
"""A session of one store: the store's number and the id there."""


class Copy(NamedTuple):
    """A session that several stores have, as one of them has it; the figures decide which one counts."""

    session_id: str
    began: float | None
    place: int
    store: str
    host: str
    messages: float | None
    last_active: float | None
    processed_tokens: float
    cost_usd: float | None

    @property
    def session(self) -> Session:
        return self.place, self.session_id

    @property
    def rank(self) -> tuple[Any, ...]:
        """The least rank counts; SQLite puts what is NULL last where the greatest comes first."""
        figures = (self.messages, self.last_active, self.processed_tokens, self.cost_usd)
        return (*(float("inf") if each is None else -each for each in figures), self.store)


@dataclass
class Settled:
    """instead: for each copy that does not count the one that does. names: of sessions that share an id."""

    instead: dict[Session, Copy] = field(default_factory=dict)
    names: dict[Session, str] = field(default_factory=dict)
    copies: list[tuple[Copy, Copy]] = field(default_factory=list)


def copies(dialect: Dialect, generation: int) -> Settled:
    """Looks at the sessions that several stores of a generation have."""
    settled = Settled()
    for _session_id, group in groupby(_in_several(dialect, generation), key=lambda each: each.session_id):
        _settle(list(group), settled)
    return settled


def _settle(found: list[Copy], settled: Settled) -> None:
    # Usage without a session belongs to the session of its id.
    earliest = min((each.began for each in found if each.began is not None), default=None)
    found = [each._replace(began=earliest if each.began is None else each.began) for each in found]
    same: dict[float | None, list[Copy]] = defaultdict(list)
    for each in found:
        same[each.began].append(each)
    for group in same.values():
        best, *others = sorted(group, key=lambda each: each.rank)
        for other in others:
            settled.instead[other.session] = best
            settled.copies.append((best, other))
    if len({each.began for each in found} - {None}) > 1:
        settled.names |= {each.session: f"{each.store}:{each.session_id}" for each in found}


def _in_several(dialect: Dialect, generation: int) -> Iterable[Copy]:
    visible = f"file IN (SELECT file FROM fleet_visible WHERE generation = {generation})"
    tables = ("session_facts", "usage", "usage_rows")
    known = " UNION ".join(f"SELECT place, session_id FROM {held(table)} WHERE {visible}" for table in tables)
    twice = f"SELECT session_id FROM ({known}) AS t GROUP BY session_id HAVING count(*) > 1"
    facts = (
        f"SELECT place, session_id, started_at AS began, messages, last_active, 0.0 AS tokens, NULL AS cost"
        f" FROM {held('session_facts')} WHERE {visible} AND session_id IN ({twice})"
    )
    usage = (
        "SELECT place, session_id, NULL AS began, NULL AS messages, NULL AS last_active, processed_tokens AS tokens,"
        f" cost_usd AS cost FROM {held('usage')} WHERE {visible} AND session_id IN ({twice})"
    )
    rows = (
        "SELECT place, session_id, NULL AS began, NULL AS messages, NULL AS last_active, 0.0 AS tokens, NULL AS cost"
        f" FROM {held('usage_rows')} WHERE {visible} AND session_id IN ({twice})"
    )
    _, found = dialect.run(
        "SELECT a.session_id, max(a.began) AS began, a.place, s.store, s.host,"
        " coalesce(max(a.messages), 0) AS messages, max(a.last_active) AS last_active,"
        " coalesce(sum(a.tokens), 0) AS tokens, sum(a.cost) AS cost"
        f" FROM ({facts} UNION ALL {usage} UNION ALL {rows}) AS a"
        f" JOIN fleet_stores AS s ON s.place = a.place AND s.generation = {generation}"
        " GROUP BY a.session_id, a.place, s.store, s.host ORDER BY a.session_id, s.store"
    )
    return (Copy(*row) for row in found)


class Related(NamedTuple):
    """Where the sessions of the stores that are related to others stand; `places` are those stores' numbers."""

    places: frozenset[int]
    rows: list[tuple[Any, ...]]
    """place, session_id, parent_session_id, link_session_id, kind, conversation_id, work_id, tip_session_id,
    segment, depth, trouble."""


def related(dialect: Dialect, generation: int, settled: Settled) -> Related:
    """Arranges anew the sessions of the stores that share sessions, or whose sessions descend from another's."""
    visible = f"file IN (SELECT file FROM fleet_visible WHERE generation = {generation})"
    _, descended = dialect.run(
        f"SELECT DISTINCT l.place, f.place FROM (SELECT place, parent_session_id FROM {held('lineage')}"
        f" WHERE trouble = 'missing parent' AND {visible}) AS l"
        f" JOIN (SELECT place, session_id FROM {held('session_facts')} WHERE {visible}) AS f"
        " ON f.session_id = l.parent_session_id"
    )
    places = {place for place, _ in settled.instead} | {best.place for best in settled.instead.values()}
    places |= {place for place, _ in settled.names} | {place for pair in descended for place in pair}
    if not places:
        return Related(frozenset(), [])
    listed = ", ".join(map(str, sorted(places)))
    _, rows = dialect.run(
        "SELECT f.place, s.store, f.session_id, CASE WHEN l.trouble = 'loop' THEN l.link_session_id ELSE"
        " l.parent_session_id END AS parent, l.parent_session_id, f.kind, f.end_reason, f.ended_at, f.last_active,"
        " f.started_at, l.trouble"
        f" FROM (SELECT * FROM {held('session_facts')} WHERE {visible} AND place IN ({listed})) AS f"
        f" JOIN (SELECT * FROM {held('lineage')} WHERE {visible} AND place IN ({listed})) AS l"
        " ON l.place = f.place AND l.session_id = f.session_id"
        f" JOIN fleet_stores AS s ON s.place = f.place AND s.generation = {generation}"
        " ORDER BY s.store, f.started_at, f.session_id"
    )
    keys = {(row[0], row[2]): key for key, row in enumerate(rows)}
    stated = []
    for key, row in enumerate(rows):
        place, _store, session_id, parent, _, kind, end_reason, ended_at, last_active, started_at, _trouble = row
        best = settled.instead.get((place, session_id))
        counts = key if best is None else keys.get(best.session, key)
        stated.append((key, place, session_id, counts, parent, kind, end_reason, ended_at, last_active, started_at))
    names = [settled.names.get((row[0], row[2]), row[2]) for row in rows]
    found = []
    for place, kind in kinship.arranged(stated):
        row = rows[place.row]
        trouble = "loop" if row[10] == "loop" else place.trouble
        found.append(
            (row[0], names[place.row], row[4], None if place.link is None else names[place.link], kind,
             names[place.conversation], names[place.work], names[place.tip], place.segment, place.depth, trouble)
        )  # fmt: skip
    return Related(frozenset(places), found)


class Families(NamedTuple):
    """members: for every session that has another in its family, by name, a number that its family shares.

    longest: more than the number of sessions of any chain, each of which descends from the next, loops twice over.
    """

    members: dict[str, int]
    longest: int


def families(links: Iterable[tuple[str, str]]) -> Families:
    """links: a session and the one it descends from, without loops."""
    above = dict(links)
    places: dict[str, tuple[int, int]] = {}  # the family, and how far from its first session
    for name in above:
        chain = []
        step: str | None = name
        while step is not None and step not in places:
            chain.append(step)
            step = above.get(step)
        for each in reversed(chain):
            higher = above.get(each)
            places[each] = (number_of(each), 1) if higher is None else (places[higher][0], places[higher][1] + 1)
    longest = max((depth for _, depth in places.values()), default=0)
    return Families({name: family for name, (family, _) in places.items()}, 2 * longest + 2)
