"""The text index of ClickHouse: a column of what is searched, folded as a search folds it, with indexes on it.

It is folded by a table of characters, the same as `search.text.fold` has, so that what the index offers does not
depend on the server's tables of Unicode. The words of the column are in a text index where the server has one
(26.2 and later), else in a Bloom filter of three characters; the runs of scripts without spaces, which no such
index takes apart, are in one of pairs.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from state_ledger.questions import EngineError
from state_ledger.search import text as _text
from state_ledger.warehouse.dialect import Dialect

SEARCHED, PAIRS = "searched", "pairs"
"""The columns beside those of the lake."""

_LAST = 0x1FFFF
"""No character beyond the second plane has another form."""

_IN_SQL = str.maketrans({"\\": "\\\\", "'": "\\'"})


@lru_cache(maxsize=1)
def folding() -> tuple[str, str]:
    """Every character that is folded to another, and what it becomes, place by place."""
    codes = (code for code in range(1, _LAST + 1) if not 0xD800 <= code <= 0xDFFF)
    changed = [(chr(code), _text.fold(chr(code))) for code in codes]
    changed = [(before, after) for before, after in changed if before != after]
    return "".join(before for before, _ in changed), "".join(after for _, after in changed)


def prepare(dialect: Dialect, table: str) -> None:
    """Makes the columns and indexes of a table that is still empty, where the engine has such.

    Raises EngineError if the columns cannot be made; an index that the server does not know is gone without.
    """
    if dialect.name != "clickhouse":
        return
    add = f"ALTER TABLE {table} ADD"
    dialect.run(f"{add} COLUMN IF NOT EXISTS {SEARCHED} String MATERIALIZED {_searched()}")
    dialect.run(f"{add} COLUMN IF NOT EXISTS {PAIRS} Array(String) MATERIALIZED {_pairs()}")
    for name, column, kinds in _INDEXES:
        for kind in kinds:
            with suppress(EngineError):
                dialect.run(f"{add} INDEX IF NOT EXISTS {name} {column} TYPE {kind} GRANULARITY 1")
                break


_INDEXES = (
    ("words_searched", SEARCHED, ("text(tokenizer = splitByNonAlpha)", "ngrambf_v1(3, 32768, 3, 0)")),
    ("pairs_searched", PAIRS, ("text(tokenizer = array)", "bloom_filter(0.005)")),
    ("times_searched", "timestamp", ("minmax",)),
)
"""Name, column, and the kinds of index, of which the first that the server takes is made."""


def pairs(text: str) -> set[str]:
    """The pairs of characters that stand in the runs of a text; single characters are in none."""
    return {run[at : at + 2] for run in _text.runs(text) for at in range(len(run) - 1)}


def _searched() -> str:
    before, after = (each.translate(_IN_SQL) for each in folding())
    texts = "concat(coalesce(text, ''), '\\n', coalesce(tool_name, ''), '\\n', coalesce(tool_calls, ''))"
    return f"replaceRegexpAll(translateUTF8({texts}, '{before}', '{after}'), '[{_class(_text.MARKS)}]+', '')"


def _pairs() -> str:
    runs = f"extractAll({SEARCHED}, '[{_class(_text.UNSPACED)}]{{2,}}')"
    return f"arrayDistinct(arrayFlatten(arrayMap(run -> ngrams(run, 2), {runs})))"


def _class(ranges: str) -> str:
    """The inside of a regular expression's brackets as RE2 reads it, within a text of SQL."""
    return "".join(each if each == "-" else f"\\\\x{{{ord(each):x}}}" for each in ranges)
