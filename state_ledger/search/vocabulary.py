"""The words of an index that hold letters of a script without spaces, kept in memory.

FTS5's word index takes a run such as `修改youer服务端` for one word, so neither `youer` nor `服务` finds it.
Which such words an index holds can be read from it, though: then a part of one is found by asking for
the whole words that hold it, in any kind of message, and completely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from state_ledger.search import text as _text
from state_ledger.sqlite import Connection, sqlite3

TABLE = "ledger_vocabulary"
"""The TEMP table by which FTS5 tells the words of the word index; see `prepare`."""

TRIGRAM_TABLE = "ledger_trigrams"

MOST = 400
"""A part that occurs in more words than these is common: it is found faster otherwise."""

MOST_CHARACTERS = 12_000_000
"""An index with more text in such words than this is not kept in memory."""

READ_WHOLE = 20_000
"""A store with more messages, in which no word begins with a character of such a script, is taken for one
without it; in a smaller one every word is looked at."""


def prepare(connection: Connection) -> None:
    """Makes the TEMP tables that tell the words of the indexes. Does nothing where there are none.

    Call it before a connection is guarded; on others it is called when it is needed.
    """
    for table, index in ((TABLE, "messages_fts"), (TRIGRAM_TABLE, "messages_fts_trigram")):
        with suppress(sqlite3.DatabaseError):
            connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table} USING fts5vocab(main, {index}, row)")


@dataclass(frozen=True)
class Vocabulary:
    """The words with such letters, one a line between line feeds."""

    words: str

    @property
    def is_empty(self) -> bool:
        """Whether no such script occurs."""
        return self.words == "\n"

    def containing(self, run: str) -> list[str] | None:
        """The words that hold a run of such letters; None if they are too many."""
        return self._lines(run, "", "")

    def beside(self, word: str, *, prefix: bool) -> list[str] | None:
        """The words in which another word stands beside such letters. prefix: it may go on."""
        end = "" if prefix else rf"(?=[{_text.UNSPACED}\n])"
        return self._lines(word, rf"(?<=[{_text.UNSPACED}\n])", end)

    def ending(self, word: str) -> list[str] | None:
        """The words that end with another word after such a letter."""
        return self._lines(word, rf"(?<=[{_text.UNSPACED}])", r"(?=\n)")

    def beginning(self, word: str, *, prefix: bool) -> list[str] | None:
        """The words that begin with another word before such a letter."""
        end = "" if prefix else rf"(?=[{_text.UNSPACED}])"
        return self._lines(word, r"(?<=\n)", end)

    def _lines(self, part: str, before: str, after: str) -> list[str] | None:
        """The words in which a part stands between what two patterns look for."""
        if part not in self.words:
            return []
        pattern = re.compile(f"{before}{re.escape(part)}{after}")
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


NONE = Vocabulary("\n")
"""The vocabulary of a store without such scripts."""


def read(connection: Connection, newest: int) -> Vocabulary | None:
    """The vocabulary of the word index, in one pass; None if it is too big or cannot be read.

    newest: the last message id, for the size of the store.
    """
    try:
        return _read(connection, newest)
    except sqlite3.DatabaseError:
        prepare(connection)
    try:
        return _read(connection, newest)
    except sqlite3.DatabaseError:
        return None


def _read(connection: Connection, newest: int) -> Vocabulary | None:
    if newest > READ_WHOLE and not has_any(connection):
        return NONE
    return of_words(word for (word,) in connection.execute(f"SELECT term FROM temp.{TABLE}"))


def of_words(words: Iterable[str]) -> Vocabulary | None:
    """The vocabulary of some words, those without such letters left out; None if it is too big."""
    kept, size = [""], 0
    for word in words:
        if not word.isascii() and _text.is_unspaced(word):
            kept.append(word)
            size += len(word)
            if size > MOST_CHARACTERS:
                return None
    return Vocabulary("\n".join([*kept, ""]))


def together(one: Vocabulary, other: Vocabulary) -> Vocabulary | None:
    """The words of both, each once."""
    return of_words(dict.fromkeys([*one.words.split("\n"), *other.words.split("\n")]))





def has_any(connection: Connection) -> bool:
    """Whether a word begins with a character from Thai on: one look-up."""
    row = connection.execute(f"SELECT 1 FROM temp.{TABLE} WHERE term >= ? LIMIT 1", (_text.FIRST_UNSPACED,)).fetchone()
    return row is not None
