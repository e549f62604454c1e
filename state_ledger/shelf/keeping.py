"""The books of several stores, kept together and brought up to date store by store.

Of each store the rows of the semantic layer are read once and again after it has changed (`watch`), on a
connection of its own that is closed at once. A question then runs on all of them as on one store. SQLite
attaches ten files to a connection and could not leave a broken one out; and sums, orders and limits that
are merged from the answers of each store would have to be written for every question anew.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from state_ledger import questions, redact
from state_ledger.connection import decode_text, open_for_reading
from state_ledger.errors import StateLedgerError
from state_ledger.ledger import functions
from state_ledger.questions import OutOfTime, Result
from state_ledger.questions.engines import Several
from state_ledger.settings import Settings
from state_ledger.shelf import copies, facts, kinship, views
from state_ledger.shelf.catalogue import catalogue
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.watch import Watches

READ_FACTOR = 12
"""Reading one store may take so many times what a question of a page may."""

CACHE_KB = 32_000
"""Kilobytes of the books that are kept in memory; the rest is in a nameless temporary file."""


class Member(NamedTuple):
    """One store of several. name: as in its URLs, unique. immutable: that nobody can be writing it."""

    name: str
    path: Path
    profile: str
    immutable: bool = False


class NotOverStores(StateLedgerError):
    """A question that needs what is only read of one store at a time; `views` are what it reads."""

    def __init__(self, views: Collection[str]) -> None:
        super().__init__(
            f"This question reads {', '.join(sorted(views))}, which is not kept of several stores: ask it of one store."
        )


class NothingToAsk(StateLedgerError):
    """None of the stores can be read; the sentence says why."""

    def __init__(self, notices: Sequence[str]) -> None:
        super().__init__(" ".join(["No store can be read.", *notices]))


@dataclass
class _Held:
    """What is held of one store: its number, and the version of the file by which each part was read."""

    number: int
    versions: dict[str, str] = field(default_factory=dict)


class Shelf:
    """Keeps the books of stores for one process. Asked by one thread at a time; others wait.

    settings: as of the instance; with `redact`, texts are redacted as they are read.
    """

    def __init__(self, settings: Settings, watches: Watches | None = None) -> None:
        self.settings = settings
        self.watches = watches or Watches()
        self._lock = threading.Lock()
        self._held: dict[Member, _Held] = {}
        self._settled: frozenset[int] | None = None
        self._kin: frozenset[int] | None = None
        self._books = _private_database()
        self._books.questions = catalogue()
        functions.register(self._books, settings.zone_name, lambda: settings.price_book)
        self._books.executescript(facts.tables())
        views.make(self._books)

    def close(self) -> None:
        """Forgets everything and gives back what was open."""
        with self._lock:
            self._books.close()
        self.watches.close()

    @contextmanager
    def reading(
        self, members: Sequence[Member], *, only: Collection[str] = (), budget_s: float | None = None
    ) -> Iterator[Reading]:
        """These stores as one, while questions are asked.

        only: names of stores to which answers are narrowed; copies are still decided among all members, so
        that the answers for each store add up to the answer for all. budget_s: seconds after which no
        further store is read; what is missing then stands in the reading's notices.
        """
        with self._lock:
            reading = Reading(self, members, only, budget_s)
            self._books.prepare = reading.prepare
            reading.prepare("ledger_stores")
            yield reading

    # -- what a reading asks for ------------------------------------------------------------------

    @property
    def books(self) -> Several:
        """The connection on which questions run; only within a reading."""
        return self._books

    def is_current(self, member: Member, part: str, version: str) -> bool:
        """Whether a part of a store was read since it last changed."""
        return member in self._held and self._held[member].versions.get(part) == version

    def has(self, member: Member, part: str) -> bool:
        """Whether a part of a store was read at all."""
        return member in self._held and part in self._held[member].versions

    def read(self, member: Member, part: str, version: str) -> None:
        """Reads a part of a store. Raises StateLedgerError and sqlite3.DatabaseError; nothing is kept then."""
        with self.opened(member) as store, questions.in_time(store, part, self.limit_ms):
            found = dict(facts.read(store, part))
        held = self._held.setdefault(member, _Held(1 + max((each.number for each in self._held.values()), default=0)))
        self._books.execute("BEGIN")
        try:
            if not held.versions:
                place = (held.number, member.name, member.profile, str(member.path))
                self._books.execute("INSERT OR REPLACE INTO store VALUES (?, ?, ?, ?)", place)
            for each in facts.outdated_by(part):
                held.versions.pop(each, None)
                facts.forget(self._books, held.number, each)
            facts.write(self._books, held.number, part, found)
        except BaseException:
            self._books.execute("ROLLBACK")
            held.versions.clear()
            raise
        self._books.execute("COMMIT")
        held.versions[part] = version
        self._settled = self._kin = None

    @property
    def limit_ms(self) -> int:
        """Milliseconds that reading a part of a store may take."""
        return self.settings.query_time_limit_ms * READ_FACTOR

    def settle(self, visible: Collection[Member], chosen: Collection[Member]) -> None:
        """Decides which copies count among the visible stores; answers are narrowed to the chosen ones."""
        numbers = frozenset(self._held[each].number for each in visible)
        if self._settled != numbers:
            copies.settle(self._books, numbers)
            self._settled, self._kin = numbers, None
        self._books.execute("DELETE FROM chosen")
        self._books.executemany("INSERT INTO chosen VALUES (?)", [(self._held[each].number,) for each in chosen])

    def settle_kinship(self) -> None:
        """Finds out which sessions are one conversation, if that is not known."""
        if self._kin != self._settled:
            kinship.settle(self._books, self._settled or ())
            self._kin = self._settled

    @contextmanager
    def opened(self, member: Member) -> Iterator[Connection]:
        """A connection to one store with the semantic layer. Raises StateLedgerError."""
        connection = open_for_reading(
            member.path, settings=self.settings, profile=member.profile, immutable=member.immutable
        )
        with closing(connection):
            if self.settings.redact:
                connection.text_factory = redact.decode
            yield connection


def _private_database() -> Several:
    """An empty database for this process alone, on disk but without a name: it is gone with the connection.

    In memory where a file that is open cannot lose its name (Windows), or where none can be made.
    """
    path = ""
    if os.name == "posix":
        with suppress(OSError):
            descriptor, path = tempfile.mkstemp(prefix="state-ledger-")
            os.close(descriptor)
    books: Several = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=Several, cached_statements=256
    )
    # A blob that stands where text belongs need not be UTF-8, whatever was made of the text beside it.
    books.text_factory = decode_text
    try:
        # A journal in memory is the only one that does not ask for the name.
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = MEMORY", "synchronous = OFF"):
            books.execute(f"PRAGMA {pragma}").fetchall()
        books.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    finally:
        if path:
            Path(path).unlink()
    return books


class Reading:
    """Several stores as one, at one time.

    missing: stores that are not in the answers, each with a sentence that says why; late: stores whose
    answers are from before their last change.
    """

    def __init__(
        self, shelf: Shelf, members: Sequence[Member], only: Collection[str], budget_s: float | None
    ) -> None:
        self.shelf = shelf
        self.members = tuple(members)
        self.only = frozenset(only)
        self.missing: dict[str, str] = {}
        self.late: list[str] = []
        self._deadline = None if budget_s is None else time.monotonic() + budget_s
        self._read = 0
        self._ready: set[str] = set()
        self._versions = {
            each: shelf.watches.of(each.path, immutable=each.immutable).version() for each in self.members
        }

    @property
    def source(self) -> Several:
        """What questions are asked of: by `questions.ask`, or `pages.Ask`."""
        return self.shelf.books

    @property
    def settings(self) -> Settings:
        """Those of the shelf."""
        return self.shelf.settings

    @property
    def present(self) -> list[Member]:
        """The stores that are in the answers, before they are narrowed."""
        return [each for each in self.members if each.name not in self.missing]

    @property
    def notices(self) -> list[str]:
        """Sentences on what is not in the answers or not up to date."""
        said = [f"{name} is left out: {why}" for name, why in self.missing.items()]
        if self.late:
            said.append(f"{', '.join(self.late)} changed and could not be read again in time: reload to see it.")
        return said

    @property
    def about(self) -> dict[str, Any]:
        """Of which stores an answer is and of which it is not, and how many copies were left out, for programs."""
        shown = [each.name for each in self.present if not self.only or each.name in self.only]
        return {"stores": shown, "left_out": self.missing, "late": self.late, "copies_left_out": self.copies}

    @property
    def copies(self) -> int:
        """How many copies of sessions do not count, since another store has more of the record."""
        (row,) = self.source.execute("SELECT count(*) FROM ledger_copies").fetchall()
        return int(row[0])

    def ask(self, name: str, parameters: Mapping[str, str] | None = None) -> Result:
        """Answers a question over the stores, in the time that a question has.

        Rows about one session have its store in `store`. Raises what `questions.ask_in_time` raises, and
        NotOverStores.
        """
        question = self.source.questions.get(name)
        if question is not None and of_one_session(question):
            return self._ask_owner(name, dict(parameters or {}))
        return questions.ask_in_time(self.source, name, parameters, settings=self.shelf.settings)

    def place(self, session_name: str) -> tuple[Member, str] | None:
        """The store whose copy of a session counts, and the id there; None for a session that no store has."""
        row = self.source.execute(
            "SELECT store, stored_id FROM ledger_places WHERE session_id = ?"
            " UNION ALL SELECT store, stored_id FROM ledger_places WHERE stored_id = ? LIMIT 1",
            (session_name, session_name),
        ).fetchone()
        return next(((each, row[1]) for each in self.members if row and each.name == row[0]), None)

    def owner(self, session_name: str) -> tuple[str, str]:
        """The store that answers for a session and its id there; '' is the session that began last.

        A session that no store has is asked of the first, which has no rows for it. Raises NothingToAsk
        where no store can be read.
        """
        wanted = session_name.strip()
        if not wanted:
            newest = "SELECT session_id FROM ledger_session_facts ORDER BY started_at DESC, session_id DESC LIMIT 1"
            row = self.source.execute(newest).fetchone()
            wanted = str(row[0]) if row else ""
        found = self.place(wanted)
        if found is not None:
            return found[0].name, found[1]
        if not self.present:
            raise NothingToAsk(self.notices)
        return self.present[0].name, wanted

    def counting_copy(self, member: Member, session_id: str) -> str | None:
        """The name of the store whose copy of a session counts in the place of this one; None where this one does."""
        row = self.source.execute(
            "SELECT (SELECT t.name FROM store AS t JOIN session AS o ON o.store = t.number WHERE o.key = s.instead)"
            " FROM session AS s JOIN store AS m ON m.number = s.store"
            " WHERE m.name = ? AND s.id = ? AND s.instead IS NOT NULL",
            (member.name, session_id),
        ).fetchone()
        return None if row is None else str(row[0])

    def prepare(self, sql: str) -> None:
        """Reads what an SQL text needs of the stores and is not there yet. Raises NotOverStores."""
        named = views.named_in(sql)
        unknown = named - views.PARTS.keys()
        if unknown:
            raise NotOverStores(unknown)
        needed = {views.PARTS[name] for name in named} | {facts.BOOKS}
        parts = [each for each in views.ALL_PARTS if each in needed and each not in self._ready]
        # Store by store, so that those which there was time for are in the answers.
        for member in self.present if parts else ():
            self._bring_up(member, parts)
        self._ready.update(parts)
        present = self.present
        self.shelf.settle(present, [each for each in present if not self.only or each.name in self.only])
        if named & views.KINSHIP:
            self.shelf.settle_kinship()

    def _bring_up(self, member: Member, parts: Sequence[str]) -> None:
        version = self._versions[member]
        outdated = [part for part in parts if not self.shelf.is_current(member, part, version)]
        if not outdated:
            return
        # One store is read in any case, so that asking again gets on.
        if self._read and self._deadline is not None and time.monotonic() > self._deadline:
            if all(self.shelf.has(member, part) for part in parts):
                self.late.append(member.name)
            else:
                self.missing[member.name] = "it is not read yet. Reload to go on."
            return
        self._read += 1
        try:
            for part in outdated:
                self.shelf.read(member, part, version)
        except OutOfTime:
            seconds = self.shelf.limit_ms / 1000
            self.missing[member.name] = (
                f"reading it took more than {seconds:g} seconds. Raise the setting query_time_limit_ms."
            )
        except StateLedgerError as error:
            self.missing[member.name] = str(error)
        except sqlite3.DatabaseError as error:
            self.missing[member.name] = f"SQLite cannot read it ({error})."

    def _ask_owner(self, name: str, parameters: dict[str, str]) -> Result:
        """A question about one session, asked of the store whose copy counts."""
        owner, stored = self.owner(parameters.get("session", ""))
        member = next(each for each in self.members if each.name == owner)
        with self.shelf.opened(member) as store:
            result = questions.ask_in_time(store, name, parameters | {"session": stored}, settings=self.shelf.settings)
        rows = [(*row, member.name) for row in result.rows]
        return Result(
            self.source.questions[name], [*result.columns, "store"], rows, result.parameters, result.truncated
        )


def of_one_session(question: questions.Question) -> bool:
    """Whether a question reads the messages of one session, which only its store can answer."""
    return "ledger_messages" in views.named_in(question.sql) and any(p.name == "session" for p in question.parameters)
