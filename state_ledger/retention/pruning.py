"""Doing a plan: exactly its sessions, each looked at again, in transactions short enough for others.

Source: accounting rules 23 and 24; case 12. A session goes as a whole, with all its rows, in one
transaction. Children go before their parents, later segments of a conversation before earlier ones, so
that whatever happens in between, no segment that is in use loses what it continues.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from state_ledger import ledger, storage, stores
from state_ledger.errors import StateLedgerError
from state_ledger.retention import deletion, weight
from state_ledger.retention.choice import choose
from state_ledger.retention.plan import Plan
from state_ledger.retention.weight import Load
from state_ledger.sessions import conversations
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, says_damaged, sqlite3
from state_ledger.storage import Pages
from state_ledger.writing.writer import Writer

FIRST_ROWS, LEAST_ROWS, MOST_ROWS = 200, 20, 5000
"""Message rows deleted in the first transaction, and the bounds within which that number moves."""

HOLD_S = 0.2
"""How long a transaction should keep the write lock: a writer waits a second before it tries again."""

PAUSE_MIN_S, PAUSE_MAX_S = 0.02, 0.25
"""Between two transactions others get the lock, for about as long as the last one took."""

CHANGED = {
    "gone": "deleted by another program meanwhile",
    "other": "not what the filters select any more",
    "changed": "changed since it was exported, or not to be exported exactly",
    "damaged": "kept by damage that SQLite met while deleting it; `state-ledger check` says more",
}
"""Besides `choice.REASONS`: why a session of a plan was left."""

Verify = Callable[[Connection, Shape, str], bool]
"""Whether a session is, inside the transaction, exactly what was verified before."""



@dataclass
class Pruned:
    """What a prune did.

    deleted: ids. rows: rows removed by table, those of sessions too. left: sessions of the plan that were
    not deleted, with the reason (`choice.REASONS`, CHANGED). transactions: how many. longest_s: for how
    long one of them held the write lock at most. pages: of the file afterwards, None before the end.
    """

    deleted: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    left: dict[str, str] = field(default_factory=dict)
    transactions: int = 0
    longest_s: float = 0.0
    pages: Pages | None = None


class PruneStopped(StateLedgerError):
    """A prune could not go on. done: what it did until then, which stays done."""

    def __init__(self, done: Pruned, of: int, why: Exception | str) -> None:
        super().__init__(
            f"Stopped after {len(done.deleted):,} of {of:,} sessions; those are deleted as a whole, the others are"
            f" as they were. {why}"
        )
        self.done = done


def prune(
    writer: Writer,
    plan: Plan,
    *,
    verify: Verify | None = None,
    progress: Callable[[int, int], None] | None = None,
    done: Pruned | None = None,
) -> Pruned:
    """Deletes the sessions of a plan that are still what the plan says, and no others.

    verify: asked of every session before it goes; one of which it says no is left as `changed`.
    progress: told of sessions done and sessions in all. done: what is filled and returned, for callers that
    may be interrupted.
    Raises PruneStopped if the store stays locked, the disk is full, the file was replaced or cannot be read.
    """
    ledger.install(writer.connection, shape=writer.shape, profile=stores.profile_of(writer.path))
    done = Pruned() if done is None else done
    order = _children_first(writer, plan.delete)
    loads = writer.reading(lambda connection: weight.loads(connection, writer.shape, order))
    batches = _Batches(order, loads)
    for batch in batches:
        try:
            took = _portion(writer, plan, batch, verify, done)
        except (StateLedgerError, sqlite3.DatabaseError) as error:
            raise PruneStopped(done, len(order), error) from error
        batches.settle(took)
        if progress is not None:
            progress(len(done.deleted) + len(done.left), len(order))
        if batches.left:
            time.sleep(min(max(took, PAUSE_MIN_S), PAUSE_MAX_S))
    done.pages = writer.reading(storage.pages)
    return done


def _portion(writer: Writer, plan: Plan, batch: Sequence[str], verify: Verify | None, done: Pruned) -> float:
    """Deletes a portion; where damage is met, session by session, so that the sound ones go."""
    try:
        return _one_transaction(writer, plan, batch, verify, done)
    except sqlite3.DatabaseError as error:
        if not says_damaged(error):
            raise
    if len(batch) == 1:
        done.left[batch[0]] = "damaged"
        return 0.0
    return max(_portion(writer, plan, [id], verify, done) for id in batch)


def _one_transaction(
    writer: Writer, plan: Plan, batch: Sequence[str], verify: Verify | None, done: Pruned
) -> float:
    """Deletes what may go of some sessions in one transaction; for how long that had the lock, in seconds."""
    began = 0.0

    def work(connection: Connection) -> tuple[list[str], dict[str, str], Counter[str]]:
        nonlocal began
        began = time.monotonic()
        going, left = _again(connection, writer, plan, batch)
        if verify is not None:
            changed = [id for id in going if not verify(connection, writer.shape, id)]
            left.update(dict.fromkeys(changed, "changed"))
            going = [id for id in going if id not in left]
        return going, left, deletion.remove(connection, writer.shape, going)

    going, left, rows = writer.write(work)
    took = time.monotonic() - began
    done.deleted += going
    done.left.update(left)
    done.rows.update(rows)
    done.transactions += 1
    done.longest_s = max(done.longest_s, took)
    return took


def _again(
    connection: Connection, writer: Writer, plan: Plan, batch: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """The sessions of a batch that may still go, and the others with the reason why not."""
    choice = choose(connection, plan.criteria.selection(writer.shape), plan.criteria.protection, among=batch)
    chosen = set(choice.ids)
    left = {row["id"]: reason for reason, rows in choice.stay.items() for row in rows}
    missing = [id for id in batch if id not in chosen and id not in left]
    for id in missing:
        there = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).fetchone()
        left[id] = "other" if there else "gone"
    return [id for id in batch if id in chosen], left


def _children_first(writer: Writer, ids: Sequence[str]) -> list[str]:
    """The same sessions, each before its parent, so that none is altered (its link taken away) before it goes."""
    if not writer.shape.has("sessions", "parent_session_id"):
        return list(ids)
    wanted = set(ids)
    links = writer.rows("SELECT id, parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL")
    parents = {row[0]: row[1] for row in links if row[0] in wanted and row[1] in wanted}
    children = list(conversations.last_segments_first(parents))
    return [*children, *(id for id in ids if id not in parents)]


class _Batches:
    """Sessions in portions of about as many message rows as the lock may be held for.

    A session is never cut, so that one with more messages is a portion of its own.
    """

    def __init__(self, order: Sequence[str], loads: Mapping[str, Load]) -> None:
        self._order = order
        self._loads = loads
        self._at = 0
        self._rows = FIRST_ROWS
        self._taken = 0

    @property
    def left(self) -> int:
        """How many sessions are still to come."""
        return len(self._order) - self._at

    def __iter__(self) -> Iterator[list[str]]:
        while self.left:
            batch: list[str] = []
            self._taken = 0
            while self.left:
                id = self._order[self._at]
                rows = self._loads[id].messages + 1
                if batch and self._taken + rows > self._rows:
                    break
                batch.append(id)
                self._taken += rows
                self._at += 1
            yield batch

    def settle(self, took_s: float) -> None:
        """Sets the size of the next portion by how long the last one took."""
        fitting = int(self._taken * HOLD_S / max(took_s, 0.001))
        # Not at once to ten times as many: the first rows may have been the short ones.
        self._rows = max(LEAST_ROWS, min(fitting, 2 * self._rows, MOST_ROWS))
