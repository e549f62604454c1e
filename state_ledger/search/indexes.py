"""Which full-text indexes of a store can be asked, and which rows each of them does not know.

Source: store-format, section 1.6. An index may be missing, damaged, emptied, half rebuilt, out of
step at its end (its triggers were dropped), of an older layout that holds less, or made for a
tokenizer that is not here.
"""

from __future__ import annotations

from dataclasses import dataclass

from state_ledger.full_text import health as index_health
from state_ledger.search.filters import Condition
from state_ledger.sqlite import Connection, sqlite3

WORDS = "messages_fts"
TRIGRAMS = "messages_fts_trigram"
PAIRS = "messages_fts_cjk"

STRUCTURED = "(m.content >= char(0) || 'json:' AND m.content < char(0) || 'json;')"
"""SQL: the message's content is a NUL and JSON, whose words stand in an index escaped or not at all."""


@dataclass(frozen=True)
class Apart:
    """Rows that the word index cannot speak for, to be looked at one by one.

    condition: an SQL condition on a message `m` that holds for exactly these rows. after, up_to: they
    have ids in between.
    """

    condition: str
    after: int | None = None
    up_to: int | None = None


@dataclass(frozen=True)
class Indexes:
    """What can be asked.

    words, trigrams, pairs: the name of the index, None where it cannot be asked; pairs only where the
    connection has its tokenizer and the index is not stale.
    beyond_trigrams: SQL on `m`: the message is not in the trigram index; beyond_pairs likewise.
    structured: SELECT of the ids of messages with structured content, of which the word index holds the
        JSON, not the text. apart: other rows to be read one by one whatever the word index says.
    notices: sentences on an index that should be there and cannot be asked.
    """

    words: str | None
    trigrams: str | None
    pairs: str | None
    beyond_trigrams: str
    beyond_pairs: str
    structured: str
    apart: tuple[Apart, ...]
    notices: tuple[str, ...]

    @classmethod
    def read(cls, connection: Connection) -> Indexes:
        """Looks at the indexes: look-ups by key, whatever the store's size."""
        sql = {
            str(name): str(text)
            for name, text in connection.execute(
                "SELECT name, sql FROM main.sqlite_master WHERE type = 'table' AND name IN (?, ?, ?)",
                (WORDS, TRIGRAMS, PAIRS),
            )
        }
        notices: list[str] = []

        def usable(name: str) -> bool:
            if name not in sql:
                if name == WORDS:
                    notices.append("This store has no index of words; messages are looked through one by one.")
                return False
            reason = index_health.why_unusable(connection, name, _source(sql[name], name), when_half_built=True)
            if reason is not None:
                notices.append(f"{reason} The search goes round it.")
            return reason is None

        words, trigrams = usable(WORDS), usable(TRIGRAMS)
        stale = PAIRS in sql and _is_stale(connection)
        if stale:
            notices.append(f"The search index {PAIRS} is marked as stale; the search goes round it.")
        pairs = not stale and usable(PAIRS)
        apart: list[Apart] = []
        if words:
            apart = _not_in_layout(sql[WORDS])
            waiting = index_health.rows_waiting(connection)
            if waiting is not None:
                apart.append(Apart("1", after=waiting[0], up_to=waiting[1]))
                notices.append(
                    f"The index is being rebuilt: messages {waiting[0] + 1:,} to {waiting[1]:,} are looked at"
                    " one by one."
                )
            missing = _missing_end(connection)
            if missing is not None:
                apart.append(Apart("1", after=missing[0], up_to=missing[1]))
                notices.append(
                    f"The index lacks the newest messages, from {missing[0] + 1:,} on; they are looked at one by one."
                )
        return cls(
            WORDS if words else None,
            TRIGRAMS if trigrams else None,
            PAIRS if pairs else None,
            _beyond(TRIGRAMS, sql.get(TRIGRAMS, "")),
            _beyond(PAIRS, sql.get(PAIRS, "")),
            _structured(sql.get(WORDS, "")),
            tuple(apart),
            tuple(notices),
        )


def decided_by_index(indexes: Indexes, known_up_to: int) -> Condition:
    """SQL on `m`: the word index speaks for the message.

    known_up_to: up to this id the caller knows the structured messages, and content need not be read.
    """
    out, parameters = [f"(m.id <= ? OR NOT coalesce({STRUCTURED}, 0))"], [known_up_to]
    for rows in indexes.apart:
        if rows.after is not None and rows.up_to is not None:
            out.append("NOT (m.id > ? AND m.id <= ?)")
            parameters += [rows.after, rows.up_to]
        else:
            out.append(f"NOT coalesce({rows.condition}, 0)")
    return " AND ".join(out), parameters


def _source(sql: str, index: str) -> str:
    return f"{index}_src" if f"{index}_src" in sql else "messages"


def _beyond(index: str, sql: str) -> str:
    """Rows of which the index holds nothing, told by its table of sizes, or not their tool calls."""
    absent = f"NOT EXISTS (SELECT 1 FROM main.{index}_docsize d WHERE d.id = m.id)"
    plain = sql.replace(" ", "").replace("'", "")
    inline = "content=" not in plain
    if "tool_calls" in plain or inline:
        return absent
    # Newer layouts leave tool calls out; in ASCII, they are in the word index as far as it matters here.
    return f"({absent} OR m.tool_calls GLOB '*[^ -~]*')"


def _structured(words_sql: str) -> str:
    """Structured content is found by its first word where the index holds content as it is stored."""
    select = f"SELECT m.id FROM main.messages m WHERE {STRUCTURED}"
    if not words_sql or f"{WORDS}_src" in words_sql:
        return select
    return f"{select} AND m.id IN (SELECT rowid FROM main.{WORDS} WHERE {WORDS} MATCH '{{content}} : ^ \"json\"')"


def _not_in_layout(words_sql: str) -> list[Apart]:
    """Rows with text that the layout of the word index leaves out."""
    if f"{WORDS}_src" in words_sql:
        # Only the beginning of long tool results is in it.
        return [Apart("(m.role = 'tool' AND length(m.content) >= 8000)")]
    if "tool_name" in words_sql or "content=" not in words_sql.replace(" ", "").replace("'", ""):
        return []
    return [Apart("(m.tool_calls IS NOT NULL OR m.tool_name IS NOT NULL)")]


def _missing_end(connection: Connection) -> tuple[int, int] | None:
    """Message ids (after, up to) that were added while the word index had no triggers.

    Asked in one statement, so that a message written meanwhile is seen in both or in neither.
    """
    try:
        indexed, newest = connection.execute(
            f"SELECT (SELECT max(id) FROM main.{WORDS}_docsize), (SELECT max(id) FROM main.messages)"
        ).fetchone()
    except sqlite3.DatabaseError:
        return None
    return (int(indexed), int(newest)) if indexed is not None and newest is not None and newest > indexed else None


def _is_stale(connection: Connection) -> bool:
    try:
        return bool(
            connection.execute(
                "SELECT 1 FROM main.state_meta WHERE key = 'fts_cjk_stale' AND value <> '0'"
            ).fetchone()
        )
    except sqlite3.DatabaseError:
        return False
