"""The views of the semantic layer over the tables of a warehouse, under their usual names, as SQL of SQLite.

They show the files of one generation, of a session that stands in several stores the copy that counts, and of
sessions that share an id each under a name of its own. What no session needs is left out of the SQL. Beside the
usual columns they have `store` and `host`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from state_ledger.lake import tables
from state_ledger.ledger import view_statements
from state_ledger.ledger.session_sums import SUMS
from state_ledger.shape import Shape
from state_ledger.warehouse import rollups
from state_ledger.warehouse.native import COUNTED, FOLDED, held

PRICES = "ledger_prices"
"""The view whose rows are worked out from the price list when they are asked for."""

NOW = "now"
"""The one parameter that views have: this moment, in whole epoch seconds."""

_NAMED_SESSIONS: Mapping[str, tuple[str, ...]] = {"continuations": ("session_id", "continues_session_id")}
_OF_A_FILE = frozenset({"orphans", "locks", "delegations", "routing", "storage"})
"""Tables about a file, which is there whether its copy of a session counts or not."""

OF_FILES = frozenset(f"ledger_{name}" for name in _OF_A_FILE)
"""Views whose rows are about the file of a store."""


@dataclass(frozen=True)
class State:
    """What a reader needs to know of a generation to write its SQL.

    hidden: whether rows of files that do not count are in the tables. uncounted, renamed, related, families:
    whether there are such sessions and stores. spans: when there is anything (`zones.SPAN`). longest: more than any
    chain of sessions, each of which descends from the next, has. rolled: the zone of whose days there are rollups,
    '' where there are none.
    """

    generation: int
    hidden: bool = False
    uncounted: bool = False
    renamed: bool = False
    related: bool = False
    families: bool = False
    spans: tuple[int, ...] = ()
    longest: int = 1
    rolled: str = ""


def names() -> frozenset[str]:
    """The views that can be asked, without the prices."""
    return frozenset(_bodies())


def body(name: str, state: State) -> str:
    """The SELECT of a view; it may name other views. Raises KeyError."""
    return _bodies()[name](state)


@lru_cache(maxsize=1)
def _bodies() -> Mapping[str, Callable[[State], str]]:
    layer = dict(view_statements(Shape({})))
    made: dict[str, Callable[[State], str]] = {
        f"ledger_{table.name}": _rows_of(table) for table in tables.tables() if table.name != "lineage"
    }
    sums = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
    of_session = f"SELECT session_id, {sums}, store, host FROM ledger_usage GROUP BY session_id, store, host"
    facts = [column.name for table in tables.tables() if table.name == "session_facts" for column in table.columns]
    every = ", ".join([*(f"f.{name}" for name in facts), *(f"u.{name}" for name in SUMS)])
    made |= {
        "ledger_session_usage": lambda state: of_session,
        "ledger_session_sums": lambda state: of_session,
        "ledger_sessions": lambda state: (
            f"SELECT {every}, f.store, f.host FROM ledger_session_facts AS f"
            " LEFT JOIN ledger_session_usage AS u ON u.session_id = f.session_id"
        ),
        "ledger_lineage": _lineage,
        "ledger_family": _family,
        "ledger_conversations": lambda state: layer["ledger_conversations"],
        "ledger_work": lambda state: layer["ledger_work"],
        "ledger_places": lambda state: (
            "SELECT session_id, store, host FROM ledger_session_facts"
            " UNION SELECT session_id, store, host FROM ledger_usage"
        ),
        "ledger_stores": _stores,
        "ledger_copies": lambda state: (
            "SELECT session_id, store, host, copy_in, messages, messages_of_copy, last_active, last_active_of_copy,"
            " processed_tokens, processed_tokens_of_copy, cost_usd, cost_usd_of_copy, place, place_of_copy"
            f" FROM fleet_copies WHERE generation = {state.generation}"
        ),
    }
    for name in rollups.views(0):
        made[name] = partial(_rolled, name)
    return made


def _rolled(name: str, state: State) -> str:
    return rollups.views(state.generation)[name]


def _rows_of(table: tables.Table) -> Callable[[State], str]:
    columns = [column.name for column in table.columns]
    sessions = _NAMED_SESSIONS.get(table.name, ("session_id",) if "session_id" in columns else ())
    derived = list(FOLDED.get(table.name, ()))

    def select(state: State) -> str:
        cells = {name: f"k.{name}" for name in (*columns, *derived)}
        joins, conditions = "", []
        for at, name in enumerate(sessions if state.renamed else ()):
            joins += _beside(state, "fleet_renamed", f"r{at}", f"k.{name}")
            cells[name] = f"coalesce(r{at}.name, k.{name})"
        if state.uncounted and sessions and table.name not in _OF_A_FILE:
            joins += _beside(state, "fleet_uncounted", "c", "k.session_id")
            conditions.append("c.session_id IS NULL")
        if state.hidden:
            conditions.append(is_visible("k", state))
        if table.name == "locks":
            cells["lock_state"] = (
                f"CASE WHEN k.expires_at > :{NOW} THEN 'held' ELSE 'run out' END"
            )
        listed = ", ".join(f"{cell} AS {name}" for name, cell in cells.items())
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        beside = "k.store AS store, k.host AS host, k.place AS place"
        return f"SELECT {listed}, {beside} FROM {held(table.name)} AS k{joins}{where}"

    return select


def _beside(state: State, side: str, alias: str, session: str) -> str:
    return (
        f" LEFT JOIN {side} AS {alias} ON {alias}.generation = {state.generation} AND {alias}.place = k.place"
        f" AND {alias}.session_id = {session}"
    )


def is_visible(alias: str, state: State) -> str:
    """A condition: a row is of a file that a generation shows."""
    return f"{alias}.file IN (SELECT v.file FROM fleet_visible AS v WHERE v.generation = {state.generation})"


def _lineage(state: State) -> str:
    (table,) = (each for each in tables.tables() if each.name == "lineage")
    listed = ", ".join(f"k.{column.name}" for column in table.columns) + ", k.store, k.host, k.place"
    conditions = [is_visible("k", state)] if state.hidden else []
    if not state.related:
        where = f" WHERE {conditions[0]}" if conditions else ""
        return f"SELECT {listed} FROM {held('lineage')} AS k{where}"
    related = f"SELECT a.place FROM fleet_related AS a WHERE a.generation = {state.generation}"
    conditions.append(f"k.place NOT IN ({related})")
    return (
        f"SELECT {listed} FROM {held('lineage')} AS k WHERE {' AND '.join(conditions)}"
        f" UNION ALL SELECT {listed} FROM fleet_kinship AS k WHERE k.generation = {state.generation}"
    )


def _family(state: State) -> str:
    columns = [column.name for each in tables.tables() if each.name == "lineage" for column in each.columns]
    listed = ", ".join(f"l.{name}" for name in (*columns, "store", "host", "place"))
    if not state.families:
        return f"SELECT l.session_id AS of_session_id, {listed} FROM ledger_lineage AS l"
    member = f"(SELECT m.session_id, m.family FROM fleet_family AS m WHERE m.generation = {state.generation})"
    return (
        f"SELECT a.session_id AS of_session_id, {listed} FROM {member} AS a JOIN {member} AS b ON b.family = a.family"
        " JOIN ledger_lineage AS l ON l.session_id = b.session_id"
        f" UNION ALL SELECT l.session_id AS of_session_id, {listed} FROM ledger_lineage AS l"
        f" LEFT JOIN {member} AS a ON a.session_id = l.session_id WHERE a.session_id IS NULL"
    )


def _stores(state: State) -> str:
    visible = f" WHERE {is_visible('k', state)}" if state.hidden else ""
    counts = (
        "count(f.session_id) AS sessions, count(f.session_id) - count(c.session_id) AS counted,"
        " coalesce(sum(f.messages), 0) AS messages, max(f.last_active) AS last_active"
    )
    return (
        f"SELECT t.store, t.profile, NULL AS path, {counts}, t.host, t.place, t.pushed_at"
        f" FROM (SELECT s.* FROM fleet_stores AS s WHERE s.generation = {state.generation}) AS t LEFT JOIN"
        f" (SELECT k.place, k.session_id, k.messages, k.last_active FROM {held('session_facts')} AS k{visible}) AS f"
        " ON f.place = t.place LEFT JOIN"
        f" (SELECT u.place, u.session_id FROM fleet_uncounted AS u WHERE u.generation = {state.generation}) AS c"
        " ON c.place = f.place AND c.session_id = f.session_id"
        " GROUP BY t.store, t.profile, t.host, t.place, t.pushed_at"
    )


COUNTED_VIEWS = frozenset(f"ledger_{name}" for name in COUNTED)
"""Views in which a row stands for `number` rows."""
