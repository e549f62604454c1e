"""The plan of a clean-up: what would be deleted, what it weighs, and what stays for which reason.

Source: accounting rules 22 to 24; case 12. Reads only; works on any connection that has the semantic
layer (`connection.open_for_reading`), to a store of any schema.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from state_ledger import storage
from state_ledger.retention import weight
from state_ledger.retention.choice import Choice, Protection, choose
from state_ledger.retention.deletion import children_that_stay
from state_ledger.retention.selection import DAY_S, LAYER_FILTERS, Selection, select
from state_ledger.retention.weight import Load, Shares, Weight
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, Row
from state_ledger.storage import Pages

AGE_CLASSES = (1, 7, 30, 90, 180, 365)
"""Days at which one age class ends and the next begins."""


@dataclass(frozen=True)
class Criteria:
    """What a clean-up is asked for.

    older_than_days: days without activity; None for any age. source: only this one. filters: by name, all
    of which must hold (`selection.LAYER_FILTERS`). `archived` and `pinned` False keep such sessions, which
    the plan then names; True asks for them alone, and pinned ones then go. Left out, pinned ones stay and
    archived ones go. compat: whether the first segments of a conversation in use go all the same, as the
    documented prune does it. now: epoch seconds from which ages count, None for the moment of the plan.
    """

    older_than_days: float | None = None
    source: str | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)
    compat: bool = False
    now: float | None = None

    def at(self, now: float) -> Criteria:
        """The same with its moment settled."""
        return replace(self, now=now if self.now is None else self.now)

    def selection(self, shape: Shape) -> Selection:
        """The sessions that all filters but the age select. Raises TypeError for an unknown filter."""
        kept = {name for name in ("archived", "pinned") if self.filters.get(name) is False}
        asked = {name: value for name, value in self.filters.items() if name not in kept}
        return select(shape, self.older_than_days, self.source, asked, now=self.now, with_layer=True)

    @property
    def protection(self) -> Protection:
        """What is spared. Only of criteria with their moment settled."""
        assert self.now is not None
        return Protection(
            self.now,
            pinned=self.filters.get("pinned") is not True,
            archived=self.filters.get("archived") is False,
            in_use=not self.compat,
        )


@dataclass(frozen=True)
class Group:
    """Sessions that would be deleted and have something in common: its name, and what they weigh."""

    name: str
    weight: Weight


@dataclass(frozen=True)
class Left:
    """Sessions that the other filters select and that stay for one reason.

    reason: a key of `choice.REASONS`. ids: oldest start first. by_source: how many of each source.
    idle_since: of the one that has been idle longest, epoch seconds.
    """

    reason: str
    ids: tuple[str, ...]
    by_source: Mapping[str, int]
    idle_since: float | None


@dataclass(frozen=True)
class Plan:
    """What a prune with these criteria would do.

    criteria: with the moment from which ages were counted. delete: ids, oldest start first. left: what
    stays, by reason, without reasons that hold for none. detached: ids of sessions that stay and would
    lose their parent. total, by_source, by_age: what would go. pages: of the file as it is.
    pages_freed: estimate of the pages that would wait for VACUUM besides those that do already. sessions:
    in the store. orphans: messages and usage rows whose session is gone already; none of them is touched.
    """

    criteria: Criteria
    delete: tuple[str, ...]
    left: tuple[Left, ...]
    detached: tuple[str, ...]
    total: Weight
    by_source: tuple[Group, ...]
    by_age: tuple[Group, ...]
    pages: Pages
    pages_freed: int
    sessions: int
    orphans: int

    @property
    def matching(self) -> int:
        """How many sessions all filters but the age select."""
        return len(self.delete) + sum(len(left.ids) for left in self.left)


def make_plan(
    connection: Connection,
    criteria: Criteria,
    *,
    sizes: Callable[[], Mapping[str, int]] | None = None,
    shape: Shape | None = None,
) -> Plan:
    """Plans; which sessions go and which stay was true at one moment.

    sizes: gives bytes of tables and indexes by name, for the estimates (`storage.Sizes.by_owner`); by
    default they are measured; `dict` leaves the estimates out.
    Raises TypeError for an unknown filter.
    """
    shape = Shape.read(connection) if shape is None else shape
    criteria = criteria.at(time.time())
    with _one_moment(connection):
        choice = choose(connection, criteria.selection(shape), criteria.protection)
        detached = children_that_stay(connection, shape, choice.ids)
    # From here on only weights are read, in statements that each end soon: no writer waits for a plan.
    loads = weight.loads(connection, shape, choice.ids)
    measured: Mapping[str, int] = {}
    if loads:  # a plan that deletes nothing has nothing to estimate
        measured = storage.measure(connection).by_owner if sizes is None else sizes()
    shares = Shares(connection, shape, measured)
    pages = storage.pages(connection)
    total = shares.weigh(list(loads.values()))
    return Plan(
        criteria,
        tuple(choice.ids),
        tuple(_left(reason, rows) for reason, rows in choice.stay.items() if rows),
        detached,
        total,
        _groups(choice, loads, shares, lambda row: str(row["source"])),
        _by_age(choice, loads, shares, criteria.now or 0.0),
        pages,
        total.estimated_bytes // pages.size,
        int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0]),
        _orphans(connection, shape),
    )


def age_class(idle_s: float | None) -> str:
    """The age class of a session that has been idle for so many seconds."""
    if idle_s is None:
        return "unknown"
    days = idle_s / DAY_S
    below = 0
    for limit in AGE_CLASSES:
        if days < limit:
            return f"{below} to {limit} days"
        below = limit
    return f"{below} days and more"


def _by_age(choice: Choice, loads: Mapping[str, Load], shares: Shares, now: float) -> tuple[Group, ...]:
    def name(row: Row) -> str:
        return age_class(None if row["last_active"] is None else now - row["last_active"])

    order = {age_class(None if at is None else at * DAY_S): at for at in (None, 0, *AGE_CLASSES)}
    return tuple(
        sorted(_groups(choice, loads, shares, name), key=lambda group: -(order[group.name] or 0))
    )


def _groups(
    choice: Choice, loads: Mapping[str, Load], shares: Shares, name: Callable[[Row], str]
) -> tuple[Group, ...]:
    members: dict[str, list[Load]] = {}
    for row in choice.rows:
        members.setdefault(name(row), []).append(loads[row["id"]])
    found = (Group(name, shares.weigh(of)) for name, of in members.items())
    return tuple(sorted(found, key=lambda group: (-group.weight.text_bytes, group.name)))


def _left(reason: str, rows: Sequence[Row]) -> Left:
    sources = Counter(str(row["source"]) for row in rows)
    idle = [row["last_active"] for row in rows if row["last_active"] is not None]
    return Left(reason, tuple(row["id"] for row in rows), dict(sources.most_common()), min(idle, default=None))


def _orphans(connection: Connection, shape: Shape) -> int:
    return sum(
        int(
            connection.execute(
                f"SELECT count(*) FROM {table} AS t"
                " WHERE NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = t.session_id)"
            ).fetchone()[0]
        )
        for table in ("messages", "session_model_usage")
        if shape.has(table)
    )


@contextmanager
def _one_moment(connection: Connection) -> Iterator[None]:
    """Reads within see one state of the store.

    A guarded connection lets nobody begin a transaction; but as long as one statement is not at its end,
    those that follow read what it reads.
    """
    cursor = connection.execute("SELECT id FROM sessions UNION ALL SELECT NULL UNION ALL SELECT NULL")
    cursor.fetchone()
    try:
        yield
    finally:
        cursor.close()


__all__ = ["AGE_CLASSES", "LAYER_FILTERS", "Criteria", "Group", "Left", "Plan", "age_class", "make_plan"]
