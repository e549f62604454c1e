"""Deleting sessions by name: what goes along, what stays as a root, and that it is what was shown.

Source: session-db, section 10; case 13.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from state_ledger.errors import StateLedgerError
from state_ledger.ledger.columns import column
from state_ledger.ledger.retention import held_lock
from state_ledger.retention import archiving, deletion, weight
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection
from state_ledger.writing.writer import Writer


class DeletionRefused(StateLedgerError):
    """Nothing was deleted: a session is locked, or other sessions would go than were shown."""


@dataclass(frozen=True)
class Doomed:
    """A session that would go. named: by the user, else it is a delegate of one that was."""

    session_id: str
    source: str
    title: str | None
    named: bool


@dataclass(frozen=True)
class NamedPlan:
    """named: the sessions asked for. delegates: theirs, at any depth. detached: other children, which stay.
    messages: rows that would go. rows: one of each session that would go."""

    named: tuple[str, ...]
    delegates: tuple[str, ...]
    detached: tuple[str, ...]
    messages: int
    rows: tuple[Doomed, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """All that would go."""
        return self.named + self.delegates


def plan_delete(connection: Connection, session_ids: Sequence[str]) -> NamedPlan:
    """What deleting these sessions would delete. Reads only.

    Raises UnknownSessionError if one is not in the store, DeletionRefused if one that would go is locked.
    """
    shape = Shape.read(connection)
    named = archiving.named(connection, session_ids)
    targets = deletion.with_delegates(connection, shape, named)
    _refuse_locked(connection, shape, targets)
    loads = weight.loads(connection, shape, targets)
    title = column(shape, "sessions", "title", "s")
    facts = {
        id: connection.execute(f"SELECT s.source, {title} FROM sessions AS s WHERE s.id = ?", (id,)).fetchone()
        for id in targets
    }
    rows = (Doomed(id, str(row[0]), row[1], id in named) for id, row in facts.items() if row is not None)
    return NamedPlan(
        tuple(named),
        tuple(targets[len(named) :]),
        deletion.children_that_stay(connection, shape, targets),
        sum(load.messages for load in loads.values()),
        tuple(rows),
    )


def delete(writer: Writer, plan: NamedPlan) -> Counter[str]:
    """Deletes exactly what a plan shows, in one transaction; returns the rows removed by table.

    Raises DeletionRefused, with nothing deleted, if other sessions would go by now or one is locked.
    """

    def work(connection: Connection) -> Counter[str]:
        targets = deletion.with_delegates(connection, writer.shape, plan.named)
        if set(targets) != set(plan.targets):
            raise DeletionRefused("By now other sessions would go than those shown. Nothing was deleted; look again.")
        _refuse_locked(connection, writer.shape, targets)
        return deletion.remove(connection, writer.shape, targets)

    return writer.write(work)


def _refuse_locked(connection: Connection, shape: Shape, targets: Sequence[str]) -> None:
    locked = f"SELECT {held_lock(shape, '?')}"
    now = time.time()
    for id in targets:
        if connection.execute(locked, (id, now)).fetchone()[0]:
            raise DeletionRefused(f"Session {id} is being compressed at the moment. Nothing was deleted; try later.")
