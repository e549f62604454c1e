"""Making and refreshing a companion: new messages, deleted ones, changed ones.

What is noticed, and when:

- New messages: by every refresh, since ids only grow.
- Deleted messages, and messages put in with an old id: by every refresh, since the number of
  messages up to the last id that was read then differs; the ranges of ids in which it does are read again.
- Another store in the place of this one: by every refresh and every opening, see `identity`.
- Text that was changed in place, and as many messages deleted as put in with old ids in one range:
  when the range is read again, which every run of `state-ledger index` does for all ranges and the
  app for one range a minute. Until then such a message may be missing among what the companion finds
  for its new text. Hermes Agent changes no text in place; what does is a person's own SQL.

Every step is one transaction of the companion that begins by reading how far things are, so that
processes take turns, and one that was killed leaves a state from which any other goes on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from zlib import crc32

from state_ledger.companion import pairs, rollups
from state_ledger.companion.file import (
    CompanionFile,
    discard,
    is_damage,
    read_identity,
    write_identity,
)
from state_ledger.companion.identity import ANCHORS, companion_path
from state_ledger.companion.pairs import Message
from state_ledger.companion.report import FAST, LONGEST_REST_S, Pace, Report
from state_ledger.companion.source import Source
from state_ledger.connection import open_for_reading
from state_ledger.errors import StateLedgerError, StoreUnreadableError
from state_ledger.settings import Settings
from state_ledger.sqlite import sqlite3

SHIFT = 14
"""A range is 2 ** SHIFT ids."""

STALE_SHARE = 0.1
"""An index of which more than this share was dropped is made anew, so that deleted text leaves the disk."""

STALE_LEAST = 1000


class CompanionReplaced(StateLedgerError):
    """The store or the companion was replaced while it was read; to be begun again."""


Progress = Callable[[int, int], None]
"""Told after each step: ids done, ids in all."""


def refresh(
    store: str | Path,
    *,
    rebuild: bool = False,
    reread: int | None = None,
    settings: Settings | None = None,
    roll_up: bool = True,
    pace: Pace = FAST,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Report:
    """Brings the companion of a store up to date, making it where there is none.

    rebuild: throw away what there is. reread: how many ranges are read again for changed text, the
    longest unread first; None for all. settings: those of the views that the rollup is made by, the
    defaults if they are not given. roll_up: whether the rollup is refreshed too. stop: asked after
    each step whether to end early.
    Raises StoreAccessError if the store cannot be read, CompanionBusyError, OSError without a place
    to write.
    """
    path = companion_path(store)
    began = time.monotonic()
    report = Report(path, began_anew="it was asked for" if rebuild else "")
    for attempt in range(4):
        source = Source(store)
        file = CompanionFile.open_or_make(path)
        with closing(source), closing(file):
            try:
                work = Refresh(source, file, report, pace, progress, stop)
                work.run(rebuild, reread)
                if report.finished and roll_up:
                    work.roll_up(settings)
                report.seconds = time.monotonic() - began
                return report
            except CompanionReplaced:
                if attempt == 3:
                    raise
            except sqlite3.DatabaseError as error:
                if not is_damage(error) or attempt == 3:
                    raise
                discard(path)
                report.began_anew = "it was damaged"
        rebuild = False
    raise AssertionError  # the last attempt returns or raises


class Refresh:
    """One refresh of one companion; the store and the companion are open."""

    def __init__(
        self,
        source: Source,
        file: CompanionFile,
        report: Report,
        pace: Pace,
        progress: Progress | None,
        stop: Callable[[], bool],
    ) -> None:
        self.source = source
        self.file = file
        self.report = report
        self.pace = pace
        self.progress = progress
        self.stop = stop
        self._done = self._total = 0
        self._rested = time.monotonic()

    def run(self, rebuild: bool, reread: int | None) -> None:
        began = time.time()
        if reread is None and not rebuild and not self.file.is_sound():
            raise sqlite3.DatabaseError("the companion is damaged")
        self._settle_identity(rebuild)
        known = self.file.number("covered")
        ranges = self._ranges_to_read(began, reread)
        self._total = max(self.source.last_id() - known, 0) + (len(ranges) << SHIFT)
        if not self._read_new(began):
            return
        for number in self._ranges_that_differ():
            if number not in ranges and not self._read_again(number):
                return
        for number in ranges:
            if not self._read_again(number):
                return
        if not self.source.is_in_place() or not self.file.is_in_place():
            raise CompanionReplaced("The store was replaced while it was read. Run this again.")
        self.report.finished = True

    def roll_up(self, settings: Settings | None) -> None:
        """Makes the rollup anew if the store was written to since it was made and is at rest now."""
        when = rollups.moment(self.source.path)
        if not rollups.settled(when, time.time()):
            return
        with closing(open_for_reading(self.source.path, settings=settings)) as store:
            if rollups.is_fresh(self.file.connection, self.source.path, store):
                return
            tables = []
            try:
                for table in rollups.read(store):
                    tables.append(table)
                    if not self._rest(0):
                        return
            except rollups.NotRolledUp:
                return
            except sqlite3.DatabaseError as error:
                raise StoreUnreadableError(self.source.path, error) from error
            made_by = rollups.layer(store)
        if rollups.moment(self.source.path) != when:
            return  # read from two states of the store; the next refresh finds it at rest
        with self.file.transaction():
            self._check_identity()
            rollups.write(self.file.connection, tables)
            self.file.note("rollup", rollups.remark(when, made_by))
        self.report.usage_rows = len(tables[0][1])

    # -- whose companion it is -------------------------------------------------------------------

    def _settle_identity(self, rebuild: bool) -> None:
        """Empties a companion that is of another store, or has to be made anew."""
        with self.file.transaction():
            stored = read_identity(self.file.connection)
            why = "" if rebuild or stored is None else self._why_anew()
            if stored is not None and not why and not rebuild and not stored.agrees(self.source.identity):
                why = "the store is another file now"
            if why or rebuild:
                self.file.empty()
                self.report.began_anew = why or self.report.began_anew
            if stored != self.source.identity or why or rebuild:
                self.file.note("store", write_identity(self.source.identity))
            if self.file.read("covered") is None:
                # Below 1 only where somebody chose the ids.
                self.file.note("covered", min(self.source.first_id(), 1) - 1)

    def _why_anew(self) -> str:
        anchors = dict(self.file.connection.execute("SELECT id, mark FROM anchor"))
        if self.source.contradicts(self.file.number("covered"), anchors):
            return "the store holds other messages now"
        held = self.file.connection.execute("SELECT count(*) FROM held").fetchone()[0]
        if self.file.number("stale") > max(STALE_LEAST, STALE_SHARE * held):
            return "much of it was of deleted messages"
        return ""

    def _check_identity(self) -> None:
        """Within a transaction: that no other process has turned the companion to another store."""
        stored = read_identity(self.file.connection)
        if stored is None or not stored.agrees(self.source.identity):
            raise CompanionReplaced("The store was replaced while it was read. Run this again.")

    # -- new messages ----------------------------------------------------------------------------

    def _read_new(self, began: float) -> bool:
        """Reads what was written since; False if it was told to stop."""
        while True:
            with self.file.transaction():
                self._check_identity()
                covered = self.file.number("covered")
                messages = self.source.piece(covered, None, self.pace.rows, self.pace.bytes)
                if messages:
                    self.report.added += self._add(messages)
                    self._count(messages, began)
                    covered = messages[-1][0]
                    self.file.note("covered", covered)
                self.report.covered_up_to = covered
            self.report.read += len(messages)
            if not messages:
                return True
            if not self._rest(messages[-1][0] - messages[0][0] + 1):
                return False

    def _add(self, messages: list[Message]) -> int:
        found = pairs.prepare(messages)
        by_id = {message[0]: message for message in messages} if found else {}
        self._insert(found, {row.id: mark(by_id[row.id]) for row in found})
        return len(found)

    def _insert(self, found: list[pairs.Prepared], marks: dict[int, int]) -> None:
        # What was in the index under the same id stays: the newer entry hides it for every pair both
        # have, and a message that is found for a pair it no longer has is no match for its text.
        self.file.connection.executemany("INSERT INTO found(rowid, pairs, words) VALUES (?, ?, ?)", found)
        self.file.connection.executemany("INSERT OR REPLACE INTO held VALUES (?, ?)", marks.items())

    def _count(self, messages: list[Message], began: float) -> None:
        connection = self.file.connection
        connection.executemany(
            "INSERT INTO chunk VALUES (?, ?, ?)"
            " ON CONFLICT (number) DO UPDATE SET messages = messages + excluded.messages",
            [(number, count, began) for number, count in Counter(m[0] >> SHIFT for m in messages).items()],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO anchor VALUES (?, ?)",
            self.source.anchors([message[0] for message in messages[-ANCHORS:]]).items(),
        )
        connection.execute(
            "DELETE FROM anchor WHERE id NOT IN (SELECT id FROM anchor ORDER BY id DESC LIMIT ?)", (ANCHORS,)
        )

    # -- messages that were deleted or changed ---------------------------------------------------

    def _ranges_that_differ(self) -> list[int]:
        """Ranges in which there are more or fewer messages than were read."""
        with self.file.transaction():
            self._check_identity()
            covered = self.file.number("covered")
            read = dict(self.file.connection.execute("SELECT number, messages FROM chunk"))
            if self.source.count_up_to(covered) == sum(read.values()):
                return []
            there = self.source.count_by_chunk(covered, SHIFT)
        return [number for number in {*read, *there} if read.get(number, 0) != there.get(number, 0)]

    def _ranges_to_read(self, began: float, most: int | None) -> list[int]:
        """Ranges that were last read before this refresh began, the longest unread first."""
        limit = -1 if most is None else most
        return [
            int(row[0])
            for row in self.file.connection.execute(
                "SELECT number FROM chunk WHERE read_at < ? ORDER BY read_at, number LIMIT ?", (began, limit)
            )
        ]

    def _read_again(self, number: int) -> bool:
        """Compares a range with what is held of it; False if it was told to stop.

        It may take several transactions. Messages that are read into the range meanwhile have greater
        ids and are met in a later one; one that is deleted meanwhile leaves a count that differs.
        """
        first, last = (number << SHIFT) - 1, ((number + 1) << SHIFT) - 1
        at, seen, began = first, 0, time.time()
        while at < last:
            with self.file.transaction():
                self._check_identity()
                end = min(last, self.file.number("covered"))
                messages = self.source.piece(at, end, self.pace.rows, self.pace.bytes) if at < end else []
                reached = messages[-1][0] if messages else last
                self._compare(messages, at, min(reached, end))
                at, seen = reached, seen + len(messages)
                if at >= last or not messages:
                    at = last
                    self._note_range(number, seen, began)
            self.report.reread += len(messages)
            if not self._rest(0):
                return False
        self._move(1 << SHIFT)
        return True

    def _note_range(self, number: int, seen: int, began: float) -> None:
        connection = self.file.connection
        if seen:
            connection.execute(
                "INSERT INTO chunk VALUES (?, ?, ?) ON CONFLICT (number)"
                " DO UPDATE SET messages = excluded.messages, read_at = excluded.read_at",
                (number, seen, began),
            )
        else:
            connection.execute("DELETE FROM chunk WHERE number = ?", (number,))

    def _compare(self, messages: list[Message], after: int, up_to: int) -> None:
        """Brings what is held of the ids in a range into line with the messages that are there."""
        connection = self.file.connection
        held = dict(connection.execute("SELECT id, mark FROM held WHERE id > ? AND id <= ?", (after, up_to)))
        other = [
            message
            for message in messages
            if pairs.texts_of(message) and (held.get(message[0]) != mark(message) or held.pop(message[0]) is None)
        ]
        found = pairs.prepare(other)
        marks = {message[0]: mark(message) for message in other}
        self._insert(found, {row.id: marks[row.id] for row in found})
        changed = sum(held.pop(row.id, None) is not None for row in found)
        connection.executemany("DELETE FROM held WHERE id = ?", [(number,) for number in held])
        self.report.added += len(found) - changed
        self.report.changed += changed
        self.report.dropped += len(held)
        if held or changed:
            self.file.note("stale", self.file.number("stale") + len(held) + changed)

    # -- pace ------------------------------------------------------------------------------------

    def _rest(self, ids: int) -> bool:
        self._move(ids)
        if self.pace.rest:
            time.sleep(min(self.pace.rest * (time.monotonic() - self._rested), LONGEST_REST_S))
        self._rested = time.monotonic()
        return not self.stop()

    def _move(self, ids: int) -> None:
        self._done += ids
        if self.progress is not None:
            self.progress(min(self._done, self._total), self._total)


def mark(message: Message) -> int:
    """What the text of a message is known by: its length and a checksum, 48 bits."""
    total, sum_ = 0, 0
    for value in message[1:]:
        stored = value if value.__class__ is bytes else b"%r" % (value,)
        total += len(stored) + 1
        sum_ = crc32(stored, sum_ + 1 & 0xFFFFFFFF)
    return sum_ | (total & 0xFFFF) << 32
