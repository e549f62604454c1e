"""Which full-text indexes of a store can be asked, and which rows each of them does not know.

Source: store-format, section 1.6. An index may be missing, damaged, emptied, half rebuilt, out of
step at its end (its triggers were dropped), of an older layout that holds less, or made for a
tokenizer that is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state_ledger.full_text import health as index_health
from state_ledger.sqlite import Connection, sqlite3

WORDS = "messages_fts"
TRIGRAMS = "messages_fts_trigram"
BIGRAMS = "messages_fts_cjk"

STRUCTURED = "(m.content >= char(0) || 'json:' AND m.content < char(0) || 'json;')"
"""SQL: the message's content is a NUL and JSON, whose words stand in an index escaped or not at all."""


@dataclass(frozen=True)
class Apart:
    """Rows that an index cannot speak for: an SQL condition on a message `m`, and how to find them.

    condition: holds for exactly these rows. finder: the same, written so that SQLite finds them fast.
    """

    condition: str
    finder: str
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Indexes:
    """What can be asked.

    words, trigrams, bigrams: the name of the index, None where it cannot be asked; bigrams only where
    the connection has its tokenizer and the index is not stale.
    trigrams_know_tools: whether tool results are in the trigram index (layouts B and C).
    apart: rows to be read one by one whatever the indexes say.
    """

    words: str | None
    trigrams: str | None
    bigrams: str | None
    trigrams_know_tools: bool
    apart: tuple[Apart, ...]

    @classmethod
    def read(cls, connection: Connection) -> Indexes:
        """Looks at the indexes: look-ups by key, whatever the store's size."""
        sql = {
            str(name): str(text)
            for name, text in connection.execute(
                "SELECT name, sql FROM main.sqlite_master WHERE type = 'table' AND name IN (?, ?, ?)",
                (WORDS, TRIGRAMS, BIGRAMS),
            )
        }

        def usable(name: str, source: str) -> bool:
            reason = index_health.why_unusable(connection, name, source, when_half_built=True)
            return name in sql and reason is None

        everything = usable(WORDS, "messages")
        with_trigrams = TRIGRAMS in sql and usable(TRIGRAMS, _source(sql[TRIGRAMS], TRIGRAMS))
        with_bigrams = (
            BIGRAMS in sql
            and not _is_stale(connection)
            and usable(BIGRAMS, _source(sql[BIGRAMS], BIGRAMS))
        )
        apart = [_structured(sql[WORDS] if everything else None)]
        ranges = [index_health.rows_waiting(connection)]
        if with_bigrams:
            ranges.append(index_health.rows_waiting(connection, "fts_cjk"))
            ranges.append(_missing_end(connection, BIGRAMS, tools=False))
        if everything:
            ranges.append(_missing_end(connection, WORDS, tools=True))
            apart += _not_in_layout(sql[WORDS])
        if with_trigrams:
            ranges.append(_missing_end(connection, TRIGRAMS, tools=False))
        for waiting in filter(None, ranges):
            between = "(m.id > ? AND m.id <= ?)"
            apart.append(Apart(between, between, waiting))
        return cls(
            WORDS if everything else None,
            TRIGRAMS if with_trigrams else None,
            BIGRAMS if with_bigrams else None,
            with_trigrams and f"{TRIGRAMS}_src" not in sql[TRIGRAMS],
            tuple(dict.fromkeys(apart)),
        )


def _source(sql: str, index: str) -> str:
    return f"{index}_src" if f"{index}_src" in sql else "messages"


def _structured(words_sql: str | None) -> Apart:
    """Structured content, found by its first word where the index holds content as it is stored."""
    if words_sql is None or f"{WORDS}_src" in words_sql:
        return Apart(STRUCTURED, STRUCTURED)
    first_word = f"SELECT rowid FROM {WORDS} WHERE {WORDS} MATCH '{{content}} : ^ \"json\"'"
    return Apart(STRUCTURED, f"(m.id IN ({first_word}) AND {STRUCTURED})")


def _not_in_layout(words_sql: str) -> list[Apart]:
    """Rows with text that the layout of the word index leaves out."""
    if f"{WORDS}_src" in words_sql:
        # Only the beginning of long tool results is in it.
        long = "(m.role = 'tool' AND length(m.content) >= 8000)"
        return [Apart(long, long)]
    if "tool_name" in words_sql or "content=" not in words_sql.replace(" ", "").replace("'", ""):
        return []
    calls = "(m.tool_calls IS NOT NULL OR m.tool_name IS NOT NULL)"
    return [Apart(calls, calls)]


def _missing_end(connection: Connection, index: str, *, tools: bool) -> tuple[int, int] | None:
    """Message ids (after, up to) that were added while an index had no triggers."""
    role = "" if tools else "WHERE role <> 'tool' AND (content IS NOT NULL OR tool_calls IS NOT NULL)"
    try:
        newest = connection.execute(f"SELECT id FROM messages {role} ORDER BY id DESC LIMIT 1").fetchone()
        indexed = connection.execute(f"SELECT max(id) FROM main.{index}_docsize").fetchone()
    except sqlite3.DatabaseError:
        return None
    if newest is None or indexed is None or indexed[0] is None or newest[0] <= indexed[0]:
        return None
    return int(indexed[0]), int(newest[0])


def _is_stale(connection: Connection) -> bool:
    try:
        return bool(
            connection.execute(
                "SELECT 1 FROM main.state_meta WHERE key = 'fts_cjk_stale' AND value <> '0'"
            ).fetchone()
        )
    except sqlite3.DatabaseError:
        return False
