"""What a search remembers of a store between two questions: the words that hold runs, and which
messages are structured.

Each takes a pass over an index (two seconds for the words of 700,000 messages), and changes little while
messages are added: those are looked at one by one until they are many, then what is remembered is
extended by them. It is shared by all connections to a file, and forgotten when the file is another.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from state_ledger.search import vocabulary
from state_ledger.search.indexes import STRUCTURED
from state_ledger.search.match import Fields
from state_ledger.search.query import And, Node, Not
from state_ledger.search.term import Term
from state_ledger.search.text import HAS_MARKS
from state_ledger.search.vocabulary import Vocabulary
from state_ledger.sqlite import Connection, read_only_uri, sqlite3, store_path

QUICK_S = 0.02
MAX_AGE_S = 900.0
"""What was read in less than QUICK_S is read anew after every change of the file, the rest at this age:
until then, only what was changed in place within older messages can be missed."""

MOST_NEW = 2000
"""With more messages added since, it is extended by them."""

LARGE = 50_000
"""With more messages, a reader who cannot wait goes without it while it is read in the background."""

_FACTS_KEPT = 128
"""Two of each file: a search over fifty stores must not make each of them forget what it knew."""


class Fact(Protocol):
    """Something known of the messages up to the id `upto`."""

    @property
    def upto(self) -> int: ...

    def extended(self, connection: Connection, newest: int) -> Fact: ...

    def quickly_extended(self, connection: Connection) -> bool: ...


@dataclass(frozen=True)
class Words:
    """vocabulary: None where it is too big to be kept, or cannot be read."""

    vocabulary: Vocabulary | None
    upto: int

    def extended(self, connection: Connection, newest: int) -> Words:
        """With the words of the messages added since, which FTS5 itself tells apart."""
        if self.vocabulary is None or self.quickly_extended(connection):
            return Words(self.vocabulary, newest)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as own:
            own.execute("CREATE VIRTUAL TABLE added USING fts5(text, content='')")
            own.execute("CREATE VIRTUAL TABLE words USING fts5vocab(added, row)")
            for (text,) in connection.execute(
                "SELECT CAST(content AS BLOB) FROM main.messages WHERE id > ? AND id <= ? AND content IS NOT NULL"
                " UNION ALL"
                " SELECT CAST(tool_calls AS BLOB) FROM main.messages"
                " WHERE id > ? AND id <= ? AND tool_calls IS NOT NULL",
                (self.upto, newest) * 2,
            ):
                if not text.isascii():
                    own.execute("INSERT INTO added(text) VALUES (CAST(? AS TEXT))", (text,))
            added = vocabulary.of_words(word for (word,) in own.execute("SELECT term FROM words"))
        return Words(None if added is None else vocabulary.together(self.vocabulary, added), newest)

    def quickly_extended(self, connection: Connection) -> bool:
        """Whether a large store without such scripts still has none, which one look-up tells."""
        return (
            self.vocabulary is not None
            and self.vocabulary.is_empty
            and self.upto > vocabulary.READ_WHOLE
            and not vocabulary.has_any(connection)
        )


MOST_TEXT = 4_000_000
"""Characters of decoded text that are kept of the structured messages of one store."""


class Structured:
    """The messages whose content is structured.

    ids: counting up. members: the same as a set. The texts of those that were looked at are kept, as
    far as they are small: decoding them takes longer than anything else.
    """

    def __init__(self, ids: array[int], upto: int, texts: dict[int, str] | None = None) -> None:
        self.ids = ids
        self.upto = upto
        self.members = frozenset(ids)
        self._texts = {} if texts is None else texts
        self._size = sum(map(len, self._texts.values()))

    def beyond(self, start: int | None, *, newest_first: bool) -> Iterator[int]:
        """The ids after `start`, in order."""
        if newest_first:
            return reversed(self.ids[: len(self.ids) if start is None else bisect_left(self.ids, start)])
        return iter(self.ids[0 if start is None else bisect_right(self.ids, start) :])

    def remember(self, looked_at: Mapping[int, Fields]) -> None:
        """Keeps the texts of structured messages that were just decoded."""
        for each, fields in looked_at.items():
            if each in self.members and each not in self._texts and self._size < MOST_TEXT:
                text = "\n".join(fields.folded)
                # Escapes and accents that stand alone are not found by looking for letters in a row.
                if fields.unescaped is None and not HAS_MARKS(text):
                    self._texts[each] = text
                    self._size += len(text)

    def may_match(self, each: int, root: Node) -> bool:
        """Whether a message can match by its letters; True of what is not remembered."""
        text = self._texts.get(each)
        return text is None or _may_hold(root, text)

    def extended(self, connection: Connection, newest: int) -> Structured:
        """With those of the messages added since."""
        found = connection.execute(
            f"SELECT m.id FROM main.messages m WHERE m.id > ? AND m.id <= ? AND {STRUCTURED} ORDER BY m.id",
            (self.upto, newest),
        )
        return Structured(self.ids + array("q", (row[0] for row in found)), newest, self._texts)

    def quickly_extended(self, connection: Connection) -> bool:
        """Never: it takes reading the messages."""
        return False


def _may_hold(node: Node, text: str) -> bool:
    if isinstance(node, Term):
        return all(piece.text in text for piece in node.pieces)
    if isinstance(node, Not):
        return True
    return (all if isinstance(node, And) else any)(_may_hold(part, text) for part in node.parts)


@dataclass
class _Kept:
    fact: Fact
    changed: tuple[int, ...]
    read_at: float
    took_s: float


_kept: OrderedDict[tuple[str, type[Fact]], _Kept] = OrderedDict()
_being_read: set[tuple[str, type[Fact]]] = set()
_lock = threading.RLock()


def words(connection: Connection, *, patient: bool = True) -> Words | None:
    """The words with runs in the word index of a connection's file.

    patient: whether the caller waits while a large store is read for the first time; else the answer is
    None meanwhile. Raises sqlite3.DatabaseError if the index turns out to be damaged.
    """

    def read(reading: Connection, newest: int) -> Words:
        return Words(vocabulary.read(reading, newest), newest)

    found = _fact(connection, Words, read, patient)
    assert found is None or isinstance(found, Words)
    return found


def structured(connection: Connection, select: str, *, patient: bool = True) -> Structured | None:
    """Which messages of a connection's file are structured; `select` tells their ids. Else as `words`."""

    def read(reading: Connection, newest: int) -> Structured:
        return Structured(array("q", sorted(row[0] for row in reading.execute(select))), newest)

    found = _fact(connection, Structured, read, patient)
    assert found is None or isinstance(found, Structured)
    return found


class _Read(Protocol):
    def __call__(self, reading: Connection, newest: int) -> Fact: ...


def _fact(connection: Connection, kind: type[Fact], read: _Read, patient: bool) -> Fact | None:
    path = store_path(connection)
    newest = _newest(connection)
    if not path:
        return read(connection, newest)
    # The clock of a file system ticks slower than a program writes: what this connection wrote counts too.
    key, changed = (path, kind), (*_changes(path), connection.total_changes)
    with _lock:
        kept = _kept.get(key)
        if kept is not None and kept.changed[0] == changed[0]:
            _kept.move_to_end(key)
            fact = _brought_up(connection, kept, changed, newest)
            if fact is not None:
                return fact
        if patient or newest <= LARGE:
            return _remember(connection, key, read, newest, changed)
        _read_in_background(key, read, connection.total_changes)
        return None


def _brought_up(connection: Connection, kept: _Kept, changed: tuple[int, ...], newest: int) -> Fact | None:
    """What is kept, extended if it lacks many messages; None if it must be read anew."""
    if kept.changed != changed:
        age = time.monotonic() - kept.read_at
        if kept.took_s < QUICK_S or age > max(MAX_AGE_S, 1000 * kept.took_s) or newest < kept.fact.upto:
            return None
    added = newest - kept.fact.upto
    if added > 20 * MOST_NEW:
        return None
    if added > (0 if kept.fact.quickly_extended(connection) else MOST_NEW):
        kept.fact = kept.fact.extended(connection, newest)
    return kept.fact


def _remember(
    connection: Connection, key: tuple[str, type[Fact]], read: _Read, newest: int, changed: tuple[int, ...]
) -> Fact:
    started = time.perf_counter()
    fact = read(connection, newest)
    with _lock:
        _kept[key] = _Kept(fact, changed, time.monotonic(), time.perf_counter() - started)
        while len(_kept) > _FACTS_KEPT:
            _kept.popitem(last=False)
    return fact


def _read_in_background(key: tuple[str, type[Fact]], read: _Read, own_changes: int) -> None:
    """Reads for whoever asks next. own_changes: of the asking connection, as TEMP views are changes too."""
    if key in _being_read:
        return
    _being_read.add(key)

    def work() -> None:
        try:
            with closing(sqlite3.connect(read_only_uri(key[0]), uri=True, isolation_level=None)) as connection:
                vocabulary.prepare(connection)
                _remember(connection, key, read, _newest(connection), (*_changes(key[0]), own_changes))
        except sqlite3.Error:
            pass  # The next search goes without it, and says what it did not look at.
        finally:
            _being_read.discard(key)

    threading.Thread(target=work, name="state-ledger-search-memory", daemon=True).start()


def _newest(connection: Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchone()[0])


def _changes(path: str) -> tuple[int, ...]:
    """What differs after a change of the file: which file it is, and when it and its log were written."""
    out = []
    for name in (path, f"{path}-wal"):
        try:
            status = Path(name).stat()
            out += [status.st_ino, status.st_mtime_ns, status.st_size]
        except OSError:
            out += [0, 0, 0]
    return tuple(out)
