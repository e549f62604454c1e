"""What the companion finds is never less than what the text holds: laws over any text."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger import content
from state_ledger.companion import pairs
from state_ledger.companion.building import refresh
from state_ledger.companion.reading import Companion
from state_ledger.search import text as search_text
from state_ledger.sqlite import sqlite3
from tests.companions import opened
from tests.conftest import SCHEMA

CHARACTERS = st.one_of(
    st.sampled_from("데이터오류확인桂林旅游修改服务端ひらがなカタ。、　「ภาษา가각"),
    st.sampled_from("abyouerÉéİß_-./#'\" \n\0\u0301\u0300한글\U0002a6d0\ue000"),
    st.characters(exclude_categories=["Cs"]),
)
TEXTS = st.text(CHARACTERS, max_size=30)


@contextmanager
def companion_of(folder: Path, stored: list[tuple[object, object, object]]) -> Iterator[Companion]:
    """The companion of a new store with these contents, tool names and tool calls."""
    path = folder / "state.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        connection.executescript("DELETE FROM messages; DELETE FROM sqlite_sequence;")
        connection.execute("ALTER TABLE messages ADD COLUMN tool_name TEXT")
        connection.execute("ALTER TABLE messages ADD COLUMN tool_calls TEXT")
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, tool_name, tool_calls, timestamp)"
            " VALUES ('first', 'tool', ?, ?, ?, 1)",
            stored,
        )
        connection.commit()
    refresh(path, rebuild=True)
    companion = opened(path)
    try:
        yield companion
    finally:
        companion.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = os.environ.get("XDG_CACHE_HOME")
    path = tmp_path_factory.mktemp("companion")
    os.environ["XDG_CACHE_HOME"] = str(path / "cache")
    yield path
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@settings(max_examples=40)
@given(data=st.data(), texts=st.lists(TEXTS, min_size=1, max_size=6), structured=st.booleans())
def test_every_message_whose_text_holds_a_run_is_told(
    data: st.DataObject, texts: list[str], structured: bool, folder: Path
) -> None:
    stored = [content.encode([{"type": "text", "text": each}] if structured else each) for each in texts]
    calls = [content.json_text([{"arguments": content.json_text({"q": each})}]) for each in texts]
    decoded = [[content.decode(one).text, content.unescaped(two)] for one, two in zip(stored, calls, strict=True)]
    whole = data.draw(st.sampled_from([text for pair in decoded for text in pair]))
    start = data.draw(st.integers(0, len(whole)))
    run = whole[start : start + data.draw(st.integers(1, 8))]
    with companion_of(folder, [(one, None, two) for one, two in zip(stored, calls, strict=True)]) as companion:
        expected = {
            number
            for number, pair in enumerate(decoded, start=1)
            if any(search_text.fold(run) in search_text.fold(text) for text in pair)
        }
        if search_text.is_unspaced(run):
            found = list(companion.ids(run))
            assert expected <= set(found)
            assert found == sorted(set(found), reverse=True)
        elif len(search_text.words(run)) != 1:
            with pytest.raises(ValueError, match="neither one word"):
                companion.ids(run)


@settings(max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_every_word_that_touches_such_a_script_is_told(texts: list[str], folder: Path) -> None:
    with companion_of(folder, [(each, None, None) for each in texts]) as companion:
        for number, text in enumerate(texts, start=1):
            words = search_text.words(text)
            for (word, _, end), (other, start, _) in pairwise(words):
                if end != start:
                    continue
                for each in (word, other):
                    if not search_text.is_unspaced(each):
                        assert number in companion.ids(each)
                        assert number in companion.ids(each[:2], prefix=True)


@settings(max_examples=40)
@given(text=st.text(st.sampled_from("한국어中文ab "), max_size=40))
def test_phrases_find_exactly_the_texts_that_hold_the_run(text: str, folder: Path) -> None:
    with companion_of(folder, [(text, None, None)]) as companion:
        for run in ("한", "국", "어", "中", "한국", "국어", "한국어", "한국어한", "中文中"):
            assert bool(list(companion.ids(run))) == (run in text)


def test_no_run_is_changed_by_the_folding_of_a_search() -> None:
    """Pairs are stored as they stand in the text: a search folds both sides and must not miss them."""
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    outside = re.compile(f"[^{search_text.UNSPACED}]")
    assert outside.sub("-", everything) == outside.sub("-", search_text.fold(everything))


def test_a_message_without_such_a_script_is_not_in_the_index() -> None:
    stored = [(1, b"plain", b"name", b'[{"a": "b"}]'), (2, "café “quoted” …".encode(), None, 1.5), (3, 5, None, None)]
    assert pairs.prepare(stored) == []
    assert [pairs.texts_of(message) for message in stored] == [[], ["café “quoted” …"], []]


def test_a_rewritten_index_entry_is_found_by_what_it_holds_now() -> None:
    """SQLite's FTS5 keeps the newer of two entries for one id, which the refresh of changed text relies on."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE found USING fts5(pairs, content = '', columnsize = 0, tokenize = 'ascii')"
        )
        connection.execute("INSERT INTO found(rowid, pairs) VALUES (1, 'ab bc cd'), (2, 'ab bc')")
        connection.execute("INSERT INTO found(rowid, pairs) VALUES (1, 'bc cx xy ab')")

        def found(query: str) -> list[int]:
            return [row[0] for row in connection.execute("SELECT rowid FROM found(?) ORDER BY rowid", (query,))]

        for _ in range(2):
            assert found('"bc cx xy"') == [1]
            assert found('"ab bc"') == [2]
            connection.execute("INSERT INTO found(found) VALUES ('optimize')")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 2_000_000 + " " + "y" * 2_000_000 + "中",
        "中" + "z" * 2_000_000,
        "\u0301" * 1_000_000 + "中",
        "a中" * 500_000,
    ],
    ids=["before", "after", "marks", "edges"],
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    began = time.process_time()
    assert len(pairs.prepare([(1, text.encode(), None, None)])) == 1
    # Quadratic time would be hours.
    assert time.process_time() - began < 30
