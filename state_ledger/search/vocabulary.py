"""The words of an index that hold letters of a script without spaces, kept in memory.

FTS5's word index takes a run such as `修改youer服务端` for one word, so neither `youer` nor `服务` finds it.
Which such words an index holds can be read from it, though: then a part of one is found by asking for
the whole words that hold it, in any kind of message, and completely. One pass over the index reads
them; they are kept for every connection to the file, and messages added since are looked at one by one.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from state_ledger.search import text as _text
from state_ledger.sqlite import Connection, sqlite3

TABLE = "ledger_vocabulary"
"""The TEMP table by which FTS5 tells the words of the word index; see `prepare`."""

TRIGRAM_TABLE = "ledger_trigrams"

MOST = 400
"""A part that occurs in more words than these is common: it is found faster otherwise."""

MOST_CHARACTERS = 12_000_000
"""An index with more text in such words than this is not kept in memory."""

QUICK_S = 0.02
MAX_AGE_S = 60.0
"""A list that was read in less than QUICK_S is read anew after every change of the file, a slower one
at this age: only words of messages that were changed in place can be missing from it."""

MOST_NEW = 2000
"""With more messages added since, it is read anew."""

READ_WHOLE = 20_000
"""A store with more messages, in which no word begins with a character of such a script, is taken for one
without it; in a smaller one every word is looked at."""

_FILES_KEPT = 8


def prepare(connection: Connection) -> None:
    """Makes the TEMP tables that tell the words of the indexes. Does nothing where there are none.

    Call it before a connection is guarded; on others it is called when it is needed.
    """
    for table, index in ((TABLE, "messages_fts"), (TRIGRAM_TABLE, "messages_fts_trigram")):
        with suppress(sqlite3.DatabaseError):
            connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table} USING fts5vocab(main, {index}, row)")


@dataclass(frozen=True)
class Vocabulary:
    """The words with such letters, one a line between line feeds; `upto`: the last message they cover."""

    words: str
    upto: int

    def containing(self, run: str) -> list[str] | None:
        """The words that hold a run of such letters; None if they are too many."""
        return self._lines(re.compile(re.escape(run)))

    def beside(self, word: str, *, prefix: bool) -> list[str] | None:
        """The words in which another word stands beside such letters. prefix: it may go on."""
        end = "" if prefix else rf"(?=[{_text.UNSPACED}\n])"
        return self._lines(re.compile(rf"(?<=[{_text.UNSPACED}\n]){re.escape(word)}{end}"))

    def ending(self, word: str) -> list[str] | None:
        """The words that end with another word after such a letter."""
        return self._lines(re.compile(rf"(?<=[{_text.UNSPACED}]){re.escape(word)}(?=\n)"))

    def beginning(self, word: str, *, prefix: bool) -> list[str] | None:
        """The words that begin with another word before such a letter."""
        end = "" if prefix else rf"(?=[{_text.UNSPACED}])"
        return self._lines(re.compile(rf"(?<=\n){re.escape(word)}{end}"))

    def _lines(self, pattern: re.Pattern[str]) -> list[str] | None:
        found: list[str] = []
        at = 0
        while (match := pattern.search(self.words, at)) is not None:
            start = self.words.rfind("\n", 0, match.start()) + 1
            end = self.words.find("\n", match.end() - (self.words[match.end() - 1] == "\n"))
            found.append(self.words[start:end])
            if len(found) > MOST:
                return None
            at = end
        return found


NONE = Vocabulary("\n", 0)
"""The vocabulary of a store without such scripts."""


@dataclass
class _Kept:
    vocabulary: Vocabulary | None
    changed: tuple[int, ...]
    read_at: float
    took_s: float


_kept: OrderedDict[str, _Kept] = OrderedDict()
_lock = threading.Lock()


def of(connection: Connection) -> Vocabulary | None:
    """The vocabulary of the word index of a connection's file; None if it is too big or cannot be read.

    Its words are empty for a store in which no such script occurs.
    """
    path = _path(connection)
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM main.messages").fetchone()[0]
    with _lock:
        kept = _kept.get(path)
        changed = _changes(connection, path)
        if kept is not None and path and _still_good(kept, changed, newest):
            _kept.move_to_end(path)
            return kept.vocabulary
        started = time.perf_counter()
        vocabulary = _read(connection, newest)
        took = time.perf_counter() - started
        if path:
            _kept[path] = _Kept(vocabulary, changed, time.monotonic(), took)
            while len(_kept) > _FILES_KEPT:
                _kept.popitem(last=False)
        return vocabulary


def _still_good(kept: _Kept, changed: tuple[int, ...], newest: int) -> bool:
    if kept.changed == changed:
        return True
    if kept.took_s < QUICK_S or kept.changed[0] != changed[0]:
        return False
    young = time.monotonic() - kept.read_at < max(MAX_AGE_S, 50 * kept.took_s)
    return young and (kept.vocabulary is None or newest - kept.vocabulary.upto <= MOST_NEW)


def _read(connection: Connection, newest: int) -> Vocabulary | None:
    try:
        some = _has_any(connection)
    except sqlite3.DatabaseError:
        prepare(connection)
        try:
            some = _has_any(connection)
        except sqlite3.DatabaseError:
            return None
    if not some and newest > READ_WHOLE:
        return Vocabulary("\n", newest)
    words, size = [""], 0
    has_letter = re.compile(f"[{_text.UNSPACED}]").search
    try:
        for (word,) in connection.execute(f"SELECT term FROM temp.{TABLE}"):
            if not word.isascii() and has_letter(word):
                words.append(word)
                size += len(word)
                if size > MOST_CHARACTERS:
                    return None
    except sqlite3.DatabaseError:
        return None
    words.append("")
    return Vocabulary("\n".join(words), newest)


def _has_any(connection: Connection) -> bool:
    """Whether a word begins with a character from Thai on: one look-up."""
    row = connection.execute(f"SELECT 1 FROM temp.{TABLE} WHERE term >= ? LIMIT 1", (_text.FIRST_UNSPACED,)).fetchone()
    return row is not None


def _path(connection: Connection) -> str:
    return str(next((row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main"), ""))


def _changes(connection: Connection, path: str) -> tuple[int, ...]:
    """What differs after a change of the file: which file it is, and when it and its log were written."""
    if not path:
        return ()
    out = []
    for name in (path, f"{path}-wal"):
        try:
            status = Path(name).stat()
            out += [status.st_ino, status.st_mtime_ns, status.st_size]
        except OSError:
            out += [0, 0, 0]
    return tuple(out)
