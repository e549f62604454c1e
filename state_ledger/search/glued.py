"""Words that stand directly beside a script without spaces, as `youer` does in `修改youer服务端`.

The word index takes such a run for one word, so the run itself has to be asked for. FTS5 tells which
words an index holds; the mixed ones among them are few and are kept until the store changes.

A store in which no word begins in such a script, and none with the word looked for, is taken for
one without it: to make sure would mean to read the whole index on every first search.
"""

from __future__ import annotations

import re
import weakref
from contextlib import suppress
from itertools import product

from state_ledger.search import text as _text
from state_ledger.search.query import Term
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing.writer import Writer

_MOST = 400
_MIXED = re.compile(rf"[^{_text.UNSPACED}][{_text.UNSPACED}]|[{_text.UNSPACED}][^{_text.UNSPACED}]")
_BIGRAMS = re.compile(
    "[\uac00-\ud7af\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\ud7b0-\ud7ff\u4e00-\u9fff\u3400-\u4dbf"
    "\uf900-\ufaff\U00020000-\U0002fa1f\u3040-\u309f\u30a0-\u30ff\u31f0-\u31ff]+"
)

_kept: weakref.WeakKeyDictionary[Writer, tuple[tuple[int, int], str]] = weakref.WeakKeyDictionary()


def phrases(writer: Writer, index: str, term: Term) -> list[str] | None:
    """The term and every form of it in which it touches a script without spaces, as phrases.

    Returns None if there are too many of them to be asked for one by one.
    """
    mixed = _mixed_words(writer, index, term.words[0])
    plain = " ".join(term.words)
    if not mixed:
        return [plain]
    first, last, between = term.words[0], term.words[-1], " ".join(term.words[1:-1])
    side = f"[{_text.UNSPACED}]"
    if len(term.words) == 1:
        end = "" if term.prefix else rf"(?={side}|$)"
        found = _found(mixed, rf"(?:^|(?<={side})){re.escape(first)}{end}")
        return [plain, *found] if len(found) <= _MOST else None
    starts = [first, *_found(mixed, rf"(?<={side}){re.escape(first)}$")]
    ends = [last, *_found(mixed, rf"^{re.escape(last)}{'' if term.prefix else f'(?={side})'}")]
    if len(starts) * len(ends) > _MOST:
        return None
    return [" ".join(filter(None, (start, between, end))) for start, end in product(starts, ends)]


def _found(mixed: str, pattern: str) -> list[str]:
    found = []
    for match in re.finditer(pattern, mixed, re.MULTILINE):
        start = mixed.rfind("\n", 0, match.start()) + 1
        end = mixed.find("\n", match.end())
        found.append(mixed[start : end if end >= 0 else None])
    return list(dict.fromkeys(found))


def _mixed_words(writer: Writer, index: str, first: str) -> str:
    """The mixed words of an index, one a line; a store without such scripts is recognised at once."""
    with writer.lock:
        connection = writer.connection
        version = int(connection.execute("PRAGMA main.data_version").fetchone()[0])
        kept = _kept.get(writer)
        if kept is not None and kept[0] == (version, connection.total_changes):
            return kept[1]
        mixed = _read_vocabulary(connection, index, first)
        if mixed is None:
            return ""
        _kept[writer] = ((version, connection.total_changes), mixed)
        return mixed


def _read_vocabulary(connection: Connection, index: str, first: str) -> str | None:
    """The mixed words; None if there are none beside `first` and nothing was found out about others."""
    name = "state_ledger_vocabulary"
    # A TEMP table: a handle that only reads may have it, and nobody else sees it.
    connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
    connection.execute(f"CREATE VIRTUAL TABLE temp.{name} USING fts5vocab(main, {index}, row)")
    try:
        some = connection.execute(
            f"SELECT EXISTS (SELECT 1 FROM temp.{name} WHERE term >= ?)"
            f" OR EXISTS (SELECT 1 FROM temp.{name} WHERE term >= ? AND term < ?)",
            (_text.FIRST_UNSPACED, first + _text.FIRST_UNSPACED, first + "\U0010ffff"),
        ).fetchone()[0]
        if not some:
            return None
        terms = (str(row[0]) for row in connection.execute(f"SELECT term FROM temp.{name}"))
        return "\n".join(term for term in terms if not term.isascii() and _MIXED.search(term))
    finally:
        # A damaged index may hold on to it; it goes with the connection.
        with suppress(sqlite3.DatabaseError):
            connection.execute(f"DROP TABLE temp.{name}")


def only_bigrams(text: str) -> bool:
    """Whether the CJK tokenizer makes bigrams of a whole text: store format, section 2."""
    return _BIGRAMS.fullmatch(text) is not None
