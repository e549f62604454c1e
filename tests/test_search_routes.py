"""Whichever index serves a search, the messages found are the same, and what was not looked at is said."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import redact, search
from state_ledger.companion import beside, building, identity
from state_ledger.connection import open_for_reading
from state_ledger.search import Answer, Request, engine, match, memory, query, vocabulary
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing.writer import Writer
from tests.test_search_messages import QUERY, SPACED, fill, find, refill, structured, without_index, written

__all__ = ["written"]

TEXTS = st.lists(SPACED | SPACED.map(structured), min_size=1, max_size=6)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Companions of these tests in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "state.db")
    yield made
    made.close()


def ids(answer: Answer) -> list[int]:
    return [hit.id for hit in answer.hits]


@given(rows=TEXTS, tools=TEXTS, typed=QUERY)
def test_without_the_vocabulary_other_indexes_and_a_scan_find_the_same(
    written: Writer, rows: list[Any], tools: list[Any], typed: str
) -> None:
    refill(written, [*rows, *({"role": "tool", "content": text} for text in tools)])
    first = find(written, typed)
    with pytest.MonkeyPatch.context() as patch:
        # As of an index with more of such words than may be kept in memory.
        patch.setattr(vocabulary, "of_words", lambda _words: None)
        patch.setattr(memory, "_kept", type(memory._kept)())
        second = find(written, typed)
    assert ids(second) == ids(first)
    if first.route == "index":
        assert second.route in ("trigram", "scan")


@given(rows=TEXTS, more=TEXTS, typed=QUERY)
def test_messages_added_since_are_found_whether_looked_at_or_learnt(
    written: Writer, rows: list[Any], more: list[Any], typed: str
) -> None:
    refill(written, rows)
    find(written, typed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "QUICK_S", -1.0)  # as in a store that takes long to read
        fill(written, more)
        looked_at = find(written, typed)
        patch.setattr(memory, "MOST_NEW", 0)
        learnt = find(written, typed)
    parsed = query.parse(typed).root
    if parsed is not None and engine.INSIDE_NOTICE not in learnt.notices:
        stored = written.rows("SELECT id, content FROM messages ORDER BY id DESC")
        wanted = [row[0] for row in stored if match.matches(parsed, match.Fields(row[1], None, None))]
        assert ids(looked_at) == ids(learnt) == wanted


def called(text: str) -> dict[str, str]:
    """A message whose tool call holds a text, written as JSON in ASCII."""
    return {"role": "assistant", "content": "x", "tool_calls": json.dumps([{"name": "f", "input": {"text": text}}])}


@pytest.mark.parametrize(
    ("typed", "found"),
    [("x NOT テ", [1, 3]), ("x NOT b", [1, 3]), ("x NOT café", [1, 2, 4]), ("x NOT テス", [1, 2, 3]),
     ("café #x", [3]), ("NOT テ x", [1, 3])],
)  # fmt: skip
@pytest.mark.parametrize("learnt_before", [True, False])
def test_what_is_not_in_a_message_is_seen_in_its_text(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, learnt_before: bool, typed: str, found: list[int]
) -> None:
    monkeypatch.setattr(memory, "QUICK_S", -1.0)  # as in a store that takes long to read
    fill(writer, ["x old"])
    if learnt_before:
        find(writer, typed)
    fill(writer, ["x aテb", called("café #x"), called("スト テスト b")])
    assert sorted(ids(find(writer, typed))) == found
    building.refresh(writer.path)

    def with_companion(connection: Connection) -> Answer:
        with beside(connection) as companion:
            return search.find(connection, Request(typed, limit=-1), companion=companion)

    assert sorted(ids(writer.reading(with_companion))) == found


@given(rows=TEXTS, tools=TEXTS, later=st.lists(SPACED, max_size=2), typed=QUERY)
def test_with_the_companion_the_same_is_found_also_what_came_after_it(
    written: Writer, rows: list[Any], tools: list[Any], later: list[str], typed: str
) -> None:
    refill(written, [*rows, *({"role": "tool", "content": text} for text in tools)])
    building.refresh(written.path)
    fill(written, later)

    def with_companion(connection: Connection) -> Answer:
        with beside(connection) as companion:
            assert companion is not None
            return search.find(connection, Request(typed, limit=-1), companion=companion)

    found = written.reading(with_companion)
    assert ids(found) == ids(find(written, typed))
    assert found.route in ("companion", "trigram", "scan", "index", None)


def test_a_damaged_companion_is_passed_over(writer: Writer) -> None:
    fill(writer, ["修改heron服务", "heron"] * 50)
    building.refresh(writer.path)
    path = identity.companion_path(writer.path)

    def damaged(connection: Connection) -> Answer:
        with beside(connection) as companion:
            assert companion is not None
            with closing(sqlite3.connect(path)) as other:
                other.execute("DELETE FROM found_data WHERE id > 10")
                other.commit()
            return search.find(connection, Request("heron", limit=-1), companion=companion)

    assert len(ids(writer.reading(damaged))) == 100


def test_a_scan_that_runs_out_of_time_says_so_and_what_it_shows_is_right(writer: Writer) -> None:
    fill(writer, [f"heron {number} 杭州" for number in range(300)])
    without_index(writer)
    request = Request("heron", limit=10)
    late = writer.reading(lambda connection: search.find(connection, request, budget_s=0.0))
    assert (ids(late), late.complete) == ([], False)
    assert engine.LATE_NOTICE in late.notices
    assert late.next_before == 301
    whole = writer.reading(lambda connection: search.find(connection, request))
    assert (ids(whole), whole.complete, whole.route) == (list(range(300, 290, -1)), True, "scan")
    assert any("no index of words" in notice for notice in whole.notices)
    count = writer.reading(lambda connection: search.count(connection, request, budget_s=0.0))
    assert (count.number, count.more) == (0, True)


def test_pages_by_key_give_every_hit_once_in_both_directions(writer: Writer) -> None:
    fill(writer, [f"heron {number}" if number % 3 else "nothing" for number in range(50)])
    for sort in ("newest", "oldest"):
        everything = ids(find(writer, "heron", sort=sort))
        seen: list[int] = []
        before = None
        while True:
            page = find(writer, "heron", sort=sort, before=before, limit=7)
            seen += ids(page)
            before = page.next_before
            if before is None:
                break
        assert seen == everything


def test_counts_stop_where_they_are_told_to(writer: Writer) -> None:
    fill(writer, ["heron"] * 30 + ["白鹭"] * 5)

    def counted(typed: str, most: int) -> tuple[int, bool]:
        count = writer.reading(lambda connection: search.count(connection, Request(typed), most=most))
        return count.number, count.more

    assert counted("heron", 10) == (10, True)
    assert counted("heron", 30) == (30, False)
    assert counted("白鹭", 1000) == (5, False)
    assert counted("*", 1000) == (0, False)


def test_models_and_times_filter(writer: Writer) -> None:
    fill(writer, ["heron one", "heron two", "heron three"])
    fill(writer, ["heron four"], session="other")
    writer.connection.execute("UPDATE sessions SET model = 'other-model' WHERE id = 'other'")
    assert ids(find(writer, "heron", models=("other-model",))) == [4]
    assert ids(find(writer, "heron", since=2.0, until=4.0)) == [3, 2]
    assert ids(find(writer, "heron", models=("absent",))) == []


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("", query.NOTHING), ("  ", query.NOTHING), ("*", query.NOTHING), ('"', query.NOTHING), ("()", query.NOTHING),
        ("NOT heron", query.ONLY_NOT), ('"heron', query.UNCLOSED), ("heron " * 500, query.CUT),
    ],
)  # fmt: skip
def test_what_was_read_leniently_is_said(writer: Writer, typed: str, hint: str) -> None:
    fill(writer, ["heron"])
    answer = find(writer, typed)
    assert answer.hint is not None and hint in answer.hint
    assert (answer.route is None) == (not answer.hits)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("C++", [1]), ("c", [1, 2]), ("->", [3]), ("🏗️", [4]), ('"plan 🏗️"', [4]), ("don't", [5, 6]), ("#7", [7]),
        ("50%", [8]), ("main()", [9]), ("(main)", [9, 10]), ("e-mail", [11]), ("Ａ", []), ("straße", [12]),
        ("cafe", [13]), ("CAFÉ", [13]), ("ΛΌΓΟΣ", [14]), ("λόγοσ", [14]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("indexed", [True, False], ids=["index", "scan"])
def test_signs_count_as_typed_and_folding_is_as_documented(
    writer: Writer, typed: str, found: list[int], indexed: bool
) -> None:
    fill(
        writer,
        [
            "uses C++ here", "on drive C:\\temp", "a -> b", "plan 🏗️ ready, plan.txt", "they don't", "they don’t",
            "item #7", "at 50% now", "call main() now", "the main part", "by e-mail", "Hauptstraße eine Straße",
            "Café noir", "λόγοσ",
        ],
    )  # fmt: skip
    if not indexed:
        without_index(writer)
    assert sorted(ids(find(writer, typed))) == found


def test_where_secrets_are_replaced_no_snippet_holds_half_of_one(writer: Writer) -> None:
    key = "sk-proj-" + "a1B2c3D4" * 6
    fill(writer, [f"before {key}", f"heron {'x ' * 90}{key} and more", f"after {key}"])

    def shown(connection: Connection) -> Answer:
        held = connection.text_factory
        connection.text_factory = redact.decode
        try:
            return search.find(connection, Request("heron"))
        finally:
            connection.text_factory = held

    [hit] = writer.reading(shown).hits
    everything = hit.snippet + "".join(each["content"] for each in hit.context)
    assert "sk-proj" not in everything and everything.count("[redacted: ") >= 2


def test_only_tool_calls_are_read_as_json_with_escapes() -> None:
    assert match.Fields(None, "caf\\u00e9", None).unescaped is None
    assert match.Fields(None, "name", '["CAF\\u00e9"]').unescaped == '["café"]'


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "scan"])
def test_an_accent_of_its_own_belongs_to_the_word_before_it(writer: Writer, indexed: bool) -> None:
    around = [(before, after) for before in ("", "x ", "-", "\u4e00") for after in ("", " x", "!", "\u4e00")]
    fill(writer, [before + word + after for before, after in around for word in ("e\u0301b", "be\u0301")])
    if not indexed:
        without_index(writer)
    assert ids(find(writer, "e")) == ids(find(writer, "b")) == []
    assert sorted(ids(find(writer, "eb"))) == list(range(1, 2 * len(around), 2))
    assert sorted(ids(find(writer, "be"))) == list(range(2, 2 * len(around) + 1, 2))


def test_what_is_read_in_the_background_serves_the_next_search(
    demo_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "LARGE", 0)
    monkeypatch.setattr(memory, "_kept", OrderedDict())

    def looked(connection: Connection) -> None:
        search.count(connection, Request("zyzzyva"), budget_s=5.0)

    with closing(open_for_reading(demo_store)) as connection:
        looked(connection)
        for thread in threading.enumerate():
            if thread.name == "state-ledger-search-memory":
                thread.join(timeout=60)
        assert memory._kept
        begun: list[object] = []
        monkeypatch.setattr(memory, "_read_in_background", lambda *asked: begun.append(asked))
        looked(connection)
    assert begun == []
