"""What the tests of the companion share: a store with text in several scripts, and looks into a companion."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from state_ledger.companion.identity import companion_path
from state_ledger.companion.reading import Companion, open_for_search
from state_ledger.sqlite import sqlite3

WORDS = (
    "데이터", "오류가", "데", "修改youer服务端", "桂林旅游", "ひらがな", "カタカナ。", "ภาษาไทย",
    "plain", "words", "ab확인", "café",
)  # fmt: skip


def text(source: random.Random) -> str:
    """A few words, with spaces between them or not."""
    return source.choice((" ", "", ", ")).join(source.choices(WORDS, k=source.randint(1, 12)))


def append(path: Path, texts: Iterable[str], first: int | None = None) -> None:
    """Writes messages into a store of the fixture `small_store`, from the id `first` on."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for offset, each in enumerate(texts):
            connection.execute(
                "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (?, 'first', 'user', ?, ?)",
                (None if first is None else first + offset, each, 1767225600 + offset),
            )


def change(path: Path, sql: str, parameters: tuple[Any, ...] = ()) -> None:
    """Runs SQL on a store, as a person would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, parameters)


def opened(path: Path) -> Companion:
    """The companion of a store, which must be usable."""
    companion = open_for_search(path)
    assert companion is not None
    return companion


def ids(path: Path, run: str, **options: Any) -> list[int]:
    """What the companion of a store answers."""
    with opened(path) as companion:
        return list(companion.ids(run, **options))


def contents(path: Path) -> dict[str, list[Any]]:
    """All that a companion holds: two with equal contents answer alike."""
    with closing(sqlite3.connect(companion_path(path))) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'found', 'instance')")
        return {
            name: connection.execute(sql).fetchall()
            for name, sql in {
                "tokens": "SELECT term, doc, col, offset FROM temp.vocabulary ORDER BY 1, 2, 3, 4",
                "held": "SELECT id, mark FROM held ORDER BY id",
                "chunks": "SELECT number, messages FROM chunk ORDER BY number",
                "anchors": "SELECT id, mark FROM anchor ORDER BY id",
                "covered": "SELECT value FROM note WHERE key = 'covered'",
            }.items()
        }
