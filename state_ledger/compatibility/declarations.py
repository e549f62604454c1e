"""The declaration of schema 23 as SQL scripts, each harmless where what it makes is there already."""

from __future__ import annotations

import re
from collections.abc import Iterable

from state_ledger import full_text, schema
from state_ledger.full_text import CJK, TRIGRAMS, WORDS, TextIndex, cjk
from state_ledger.full_text import layout as text_layout

_MADE = re.compile(r"\ACREATE ((?:VIRTUAL )?TABLE|VIEW|TRIGGER|(?:UNIQUE )?INDEX) ")


def _script(statements: Iterable[str]) -> str:
    return "".join(f"{_MADE.sub(_unless_there, sql)};\n" for sql in statements)


def _unless_there(found: re.Match[str]) -> str:
    return f"CREATE {found[1]} IF NOT EXISTS "


def _family(index: TextIndex) -> list[str]:
    view = [] if index.source == "messages" else [full_text.source_view_sql(index)]
    return [*view, full_text.table_sql(index), *full_text.trigger_sql(index)]


SCHEMA_SQL = _script(schema.create_table_sql(table) for table in schema.TABLES)
"""Every table but the full-text ones."""

DEFERRED_INDEX_SQL = _script(index.sql for index in schema.INDEXES)
"""The named indexes; they need the columns of schema 23, and titles that differ."""

FTS_SQL = _script(_family(WORDS))
FTS_TRIGRAM_SQL = _script(_family(TRIGRAMS))
FTS_CJK_TABLE_SQL = _script([full_text.source_view_sql(CJK), full_text.table_sql(CJK)])
FTS_CJK_TRIGGER_SQL = _script(full_text.trigger_sql(CJK))

FTS_STORAGE_VERSION = int(text_layout.STORAGE_VERSION)
FTS_CJK_STALE_KEY = cjk.STALE_KEY
