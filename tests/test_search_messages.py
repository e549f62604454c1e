"""Searching messages: what is typed is found, whatever the route, and never an exception."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from state_ledger import content, full_text, search
from state_ledger.search import (
    MAX_CHARACTERS,
    Answer,
    Request,
    contains_cjk,
    engine,
    match,
    sanitize_fts5_query,
    search_messages,
)
from state_ledger.search import (
    query as queries,
)
from state_ledger.search.text import fold, is_old_letter, is_unspaced, words
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer

Make = Callable[..., Writer]


def fill(writer: Writer, rows: Iterable[Any], source: str = "cli", session: str = "one") -> None:
    """Stores messages given as text or as dicts of columns; ids and times count from 1."""
    execute = writer.connection.execute
    execute("INSERT OR IGNORE INTO sessions(id, source, started_at, model) VALUES (?, ?, 100, 'm')", (session, source))
    start = writer.value("SELECT coalesce(max(id), 0) FROM messages")
    for time, row in enumerate(rows, start + 1):
        columns = {"role": "user", **({"content": row} if not isinstance(row, dict) else row)}
        columns = {"session_id": session, "timestamp": float(time), **columns}
        columns["content"] = content.encode(columns.get("content"))
        marks = ", ".join("?" * len(columns))
        execute(f"INSERT INTO messages({', '.join(columns)}) VALUES ({marks})", list(columns.values()))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Writer] = []

    def store(*rows: Any, **options: Any) -> Writer:
        writer = Writer(tmp_path / f"state-{len(made)}.db")
        made.append(writer)
        fill(writer, rows, **options)
        return writer

    yield store
    for writer in made:
        writer.close()


def ids(writer: Writer, query: str, **options: Any) -> list[int]:
    return sorted(row["id"] for row in search_messages(writer, query, limit=-1, **options))


def find(writer: Writer, query: str, **options: Any) -> Answer:
    """The answer on the writer's connection, all hits of it unless told otherwise."""
    request = Request(query, **{"limit": -1, **options})
    return writer.reading(lambda connection: search.find(connection, request))


def without_index(writer: Writer) -> None:
    """Drops every full-text table with its triggers, as a file from elsewhere may lack them."""
    for index in full_text.INDEXES:
        for trigger in index.triggers:
            writer.connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        writer.connection.execute(f"DROP TABLE IF EXISTS {index.name}")
    writer.renew_shape()


PUNCTUATED = (
    "issue #482 was closed",
    "look into lib/parser.rs first",
    "we shouldn't wait",
    "memory at 73% again",
    "mail bob.k@mail.example please",
    "an off-by-one mistake",
    "NOTE: rerun re-index",
    "pay $9 for x,y",
    "C++ with vue.js v4.5.6",
    'cry "wolf again" softly',
    "max_retry_count reached",
    r"copied to D:\work\z",
)


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "scan"])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("#482", [1]), ("lib/parser.rs", [2]), ("shouldn't", [3]), ("73%", [4]), ("bob.k@mail.example", [5]),
        ("off-by-one", [6]), ("max_retry_count", [11]), ("NOTE: rerun", [7]), ("re-index", [7]), ("$9", [8]),
        ("x,y", [8]), ("vue.js", [9]), ('"wolf again"', [10]), (r"D:\work", [12]), ("C++", [9]),
        ("(parser)", [2]), ("NOTE:rerun", []),
        ("main()", []), ("(pay OR memory) NOT 73%", [8]), ("-one", [6]), (".rs", [2]), ("@mail", [5]), ("sho*", [3]),
        ("wolf softly", [10]), ('"softly wolf"', []), ("issue OR max_retry_count", [1, 11]), ("wolf AND", [10]),
        ("wolf AND OR issue", [1, 10]), ("at NOT memory", []), ("again NOT memory", [10]), ("and wolf", [10]),
        ("again NOT memory NOT wolf", []), ("wolf NOT absent OR issue", [1, 10]),
    ],
)  # fmt: skip
def test_everyday_punctuation_finds_the_text(make: Make, query: str, found: list[int], indexed: bool) -> None:
    writer = make(*PUNCTUATED)
    if not indexed:
        without_index(writer)
    assert ids(writer, query) == found
    assert find(writer, query).route == ("index" if indexed else "scan")


@pytest.mark.parametrize("query", ["", "   ", "*", "***", '"', '""', "@ # %", "NOT", "AND", '"unclosed', "\x00", None])
def test_nothing_to_look_for_is_an_empty_answer(make: Make, query: Any) -> None:
    assert search_messages(make(*PUNCTUATED), query) == []


def test_a_query_of_punctuation_says_what_is_missing(make: Make) -> None:
    answer = find(make(*PUNCTUATED), "*")
    assert answer.route is None
    assert answer.hint is not None and answer.hint.endswith(".")


MIXED = (
    "他们到杭州西湖划船",
    "重启nginx代理的步骤",
    "부산 항구 지도",
    "부산항 야경 사진",
    "京都ホテルの値段",
    "결과값kb저장",
    "only latin words",
    {"role": "tool", "content": "杭州西湖天气"},
)


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "scan"])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("杭州", [1, 8]), ("杭州西湖", [1, 8]), ("부산", [3, 4]), ("京都", [5]), ("ホテル", [5]), ("nginx", [2]),
        ("kb", [6]), ("latin", [7]), ("湖", [1, 8]), ("杭州 AND 划船", [1]), ("杭州 NOT 天气", [1]),
        ("latin OR 京都", [5, 7]), ("latin 京都", []), ("words NOT 京都", [7]), ("nginx 步骤", [2]),
        ("부산 NOT 지도", [4]), ("重启nginx", [2]), ("ngi*", [2]), ('"nginx代理"', [2]),
        ("杭州西湖 NOT 划船", [8]), ("GINX代", []), ("NGINX代", [2]),
    ],
)  # fmt: skip
def test_scripts_without_spaces_are_found_completely(
    make: Make, query: str, found: list[int], indexed: bool
) -> None:
    writer = make(*MIXED)
    if not indexed:
        without_index(writer)
    assert ids(writer, query) == found


def test_tool_results_can_be_left_out(make: Make) -> None:
    writer = make(*MIXED)
    assert ids(writer, "杭州", role_filter=["user", "assistant"]) == [1]
    assert ids(writer, "杭州西湖", role_filter=["user"]) == [1]
    assert ids(writer, "杭州西湖", role_filter=["tool"]) == [8]


def test_a_word_that_stands_alone_somewhere_does_not_hide_where_it_is_glued(make: Make) -> None:
    writer = make("restart redis now", "重启redis代理", "重启redisearch代理", "redises", "用vue.js写的", "vue.js")
    assert ids(writer, "redis") == [1, 2]
    assert ids(writer, "vue.js") == [5, 6]
    fill(writer, ["又见redis了"])
    assert ids(writer, "redis") == [1, 2, 7]
    assert search_messages(writer, "redis", sort="newest")[0]["snippet"] == "又见>>>redis<<<了"


def test_words_are_searched_inside_of_words_only_when_none_is_found(make: Make) -> None:
    writer = make("the kubernetes cluster", {"role": "tool", "content": "kubernetes pods"}, "bernet alone")
    assert ids(writer, "bernet") == [3]
    fill(writer, ["kubernetes again"])
    # As the agent has it, tool results are not looked through for parts of words.
    assert ids(writer, "ubernete") == [1, 4]
    assert ids(writer, "ubernete", role_filter=["tool"]) == []
    assert ids(writer, "ubernete NOT cluster") == [4]
    assert engine.INSIDE_NOTICE in find(writer, "ubernete").notices
    older = find(writer, "ubernete", limit=1)
    assert ([hit.id for hit in older.hits], older.next_before) == ([4], 4)
    assert [hit.id for hit in find(writer, "ubernete", before=4).hits] == [1]
    assert find(writer, "bernet", before=3).hits == []
    assert search_messages(writer, "ubernete")[0]["snippet"].count(">>>ubernete<<<") == 1


def structured(*texts: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    image = {"url": "data:image/png;base64,QUJDRA=="}
    return [*parts[:1], {"type": "image_url", "image_url": image}, *parts[1:]]


@pytest.mark.parametrize("indexed", [True, False], ids=["index", "scan"])
def test_structured_content_is_searched_as_it_is_read(make: Make, indexed: bool) -> None:
    writer = make(structured("lighthouse sketch", "西湖划船\nnextline café"), "plain lighthouse text")
    if not indexed:
        without_index(writer)
    assert ids(writer, "lighthouse") == [1, 2]
    for query in ("西湖划船", "西湖", "nextline", "café", "cafe", "lighthouse 西湖", "nextl*"):
        assert ids(writer, query) == [1], query
    assert ids(writer, "lighthouse NOT 西湖") == [2]
    for query in ("image_url", "QUJDRA", "base64"):
        assert ids(writer, query) == [], query
    [row] = search_messages(writer, "sketch")
    assert row["snippet"].startswith("lighthouse >>>sketch<<<")
    assert "json" not in row["snippet"]
    assert row["context"][0]["content"] == "lighthouse sketch 西湖划船\nnextline café"


def test_tool_calls_are_searched_also_where_json_escapes_them(make: Make) -> None:
    call = [{"function": {"name": "lookup", "arguments": json.dumps({"q": "杭州西湖 Zürich"})}}]
    writer = make({"role": "assistant", "content": None, "tool_name": "atlas", "tool_calls": json.dumps(call)})
    for query in ("lookup", "atlas", "杭州西湖", "杭州", "Zürich"):
        assert ids(writer, query) == [1], query


def test_rows_have_the_documented_keys_in_order(make: Make) -> None:
    writer = make("before it", "the heron stands", "after it")
    fill(writer, ["a heron elsewhere"], session="two")
    rows = search_messages(writer, "heron", source_filter=["cli"], sort="oldest")
    assert list(rows[0]) == [
        "id", "session_id", "role", "snippet", "timestamp", "tool_name", "source", "model", "session_started",
        "context",
    ]  # fmt: skip
    assert rows[0] == {
        "id": 2, "session_id": "one", "role": "user", "snippet": "the >>>heron<<< stands", "timestamp": 2.0,
        "tool_name": None, "source": "cli", "model": "m", "session_started": 100.0,
        "context": [{"role": "user", "content": text} for text in ("before it", "the heron stands", "after it")],
    }  # fmt: skip
    assert [entry["content"] for entry in rows[1]["context"]] == ["a heron elsewhere"]


def test_context_is_cut_and_follows_time_within_the_session(make: Make) -> None:
    image = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]
    writer = make(
        {"content": "x" * 500, "timestamp": 3.0}, {"content": "a heron", "timestamp": 2.0},
        {"content": image, "timestamp": 1.0},
    )  # fmt: skip
    [row] = search_messages(writer, "heron")
    assert [entry["content"] for entry in row["context"]] == ["[multimodal content]", "a heron", "x" * 200]


def test_filters_at_their_edges(make: Make) -> None:
    writer = make("heron one")
    fill(writer, ["heron two"], source="cron", session="two")
    fill(writer, [{"role": "assistant", "content": "heron three"}], session="one")
    assert ids(writer, "heron", source_filter=["cron"]) == [2]
    assert ids(writer, "heron", source_filter=[]) == []
    assert ids(writer, "heron", exclude_sources=["cron"]) == [1, 3]
    assert ids(writer, "heron", exclude_sources=[]) == [1, 2, 3]
    assert ids(writer, "heron", role_filter=["assistant"]) == [3]
    assert ids(writer, "heron", role_filter=[]) == [1, 2, 3]
    assert search_messages(writer, "heron", limit=0) == []


@pytest.mark.parametrize("word", ["heron", "白鹭"])
def test_order_and_pages(make: Make, word: str) -> None:
    writer = make(*(f"{word} {number}" for number in range(9)))
    newest = [row["id"] for row in search_messages(writer, word, sort="NEWEST", limit=-1)]
    assert newest == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert [row["id"] for row in search_messages(writer, word, sort="oldest", limit=3, offset=2)] == [3, 4, 5]
    pages = [row["id"] for at in range(0, 10, 4) for row in search_messages(writer, word, limit=4, offset=at)]
    assert sorted(pages) == sorted(newest)


def test_the_best_match_comes_first_by_rank(make: Make) -> None:
    filler = " ".join(f"filler{number}" for number in range(60))
    writer = make(f"heron {filler}", "heron heron heron", *(["nothing here"] * 10))
    assert [row["id"] for row in search_messages(writer, "heron")] == [2, 1]


def test_rewound_messages_are_found_only_when_asked_for(make: Make) -> None:
    writer = make("heron live", "heron compacted", "heron rewound", "白鹭 rewound")
    writer.connection.execute("UPDATE messages SET active = 0, compacted = (id = 2) WHERE id > 1")
    assert ids(writer, "heron") == [1, 2]
    assert ids(writer, "heron", include_inactive=True) == [1, 2, 3]
    assert ids(writer, "白鹭") == []


def test_messages_without_a_session_are_no_hits(make: Make) -> None:
    writer = make("heron kept")
    writer.connection.execute("PRAGMA foreign_keys = OFF")
    fill(writer, [{"session_id": "gone", "content": "heron lost"}])
    assert ids(writer, "heron") == [1]


def test_a_read_only_handle_searches(make: Make) -> None:
    writer = make(*MIXED)
    reader = Writer(writer.path, read_only=True)
    try:
        assert (ids(reader, "nginx"), ids(reader, "부산"), ids(reader, "latin")) == ([2], [3, 4], [7])
    finally:
        reader.close()


def test_a_snippet_without_an_index_is_a_window_with_marks(make: Make) -> None:
    writer = make("a" * 300 + " 前文" + "桂花" + "b" * 300)
    [row] = search_messages(writer, "桂花")
    assert row["snippet"].startswith("...") and row["snippet"].endswith("...")
    assert row["snippet"].count(">>>桂花<<<") == 1
    assert len(row["snippet"]) == 240 + len("......>>><<<")


# -- indexes that are not what they should be ----------------------------------------------------


def half_built(writer: Writer) -> None:
    """As during a rebuild in steps: messages 2 to 3 wait for it."""
    for table, source in (("messages_fts", "messages"), ("messages_fts_trigram", "messages_fts_trigram_src")):
        writer.connection.execute(
            f"INSERT INTO {table}({table}, rowid, content, tool_name, tool_calls) "
            f"SELECT 'delete', id, content, tool_name, tool_calls FROM {source} WHERE id IN (2, 3)"
        )
    writer.connection.execute(
        "INSERT INTO state_meta VALUES ('fts_rebuild_high_water', '3'), ('fts_rebuild_progress', '1')"
    )


def emptied(writer: Writer) -> None:
    writer.connection.execute("INSERT INTO messages_fts(messages_fts) VALUES ('delete-all')")


def damaged(writer: Writer) -> None:
    writer.connection.execute("DELETE FROM messages_fts_data WHERE id > 10")


def trigrams_damaged(writer: Writer) -> None:
    writer.connection.execute("DELETE FROM messages_fts_trigram_data WHERE id > 10")


def without_triggers(writer: Writer) -> None:
    """The last message was stored by a program that had dropped the triggers."""
    for index in full_text.INDEXES:
        for trigger in index.triggers:
            writer.connection.execute(f"DROP TRIGGER {trigger}")
    writer.connection.execute("DELETE FROM messages WHERE id = 4")
    for table in ("messages_fts", "messages_fts_trigram"):
        writer.connection.execute(f"INSERT INTO {table}({table}) VALUES ('rebuild')")
    fill(writer, ["heron 杭州西湖 four"])


def words_only(writer: Writer) -> None:
    for trigger in full_text.TRIGRAMS.triggers:
        writer.connection.execute(f"DROP TRIGGER {trigger}")
    writer.connection.execute("DROP TABLE messages_fts_trigram")


@pytest.mark.parametrize(
    "state", [half_built, emptied, damaged, trigrams_damaged, without_triggers, words_only, without_index]
)
def test_an_index_that_lacks_rows_hides_none(make: Make, state: Callable[[Writer], None]) -> None:
    writer = make(*(f"heron 杭州西湖 {number}" for number in ("one", "two", "three", "four")))
    state(writer)
    everything = [row[0] for row in writer.rows("SELECT id FROM messages ORDER BY id")]
    assert len(everything) == 4
    for query in ("heron", "杭州", "杭州西湖", "heron 西湖", "hero*"):
        assert ids(writer, query) == everything, query
    assert ids(writer, "heron NOT two") == [id for id in everything if id != 2]
    assert ids(writer, "four") == everything[-1:]


LAYOUTS = {
    "A": ("content, content=messages, content_rowid=id", None, "content"),
    "B": ("content, content=messages, content_rowid=id", "content, content=messages, content_rowid=id", "content"),
    "C": ("content", "content", "content || ' ' || coalesce(tool_name, '') || ' ' || coalesce(tool_calls, '')"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_older_layouts_answer_alike(make: Make, layout: str) -> None:
    calls = json.dumps([{"function": {"name": "lookup", "arguments": '{"q": "osprey"}'}}])
    writer = make("heron one", "杭州西湖", structured("heron two", "西湖"), {"content": "", "tool_calls": calls})
    fill(writer, [{"role": "tool", "tool_name": "atlas", "content": "杭州西湖天气"}])
    without_index(writer)
    base, trigrams, expression = LAYOUTS[layout]
    tables = {"messages_fts": base}
    if trigrams:
        tables["messages_fts_trigram"] = f"{trigrams}, tokenize='trigram'"
    for name, columns in tables.items():
        writer.connection.execute(f"CREATE VIRTUAL TABLE {name} USING fts5({columns})")
        writer.connection.execute(f"INSERT INTO {name}(rowid, content) SELECT id, {expression} FROM messages")
    answers = {"heron": [1, 3], "osprey": [4], "atlas": [5], "杭州西湖": [2, 5], "西湖": [2, 3, 5], "lookup": [4]}
    for query, found in answers.items():
        assert ids(writer, query) == found, query
    assert find(writer, "heron").route == "index"


@pytest.mark.parametrize(
    "name",
    [
        "small-1.db", "small-10.db", "small-22.db", "small-23.db", "small-23-cjk.db", "small-1-to-23.db",
        "small-25.db", "small-30-handmade.db", "schema-23.db",
    ],
)  # fmt: skip
def test_stores_of_the_real_program_answer_as_a_scan_does(shared_store: Callable[[str], Path], name: str) -> None:
    reader = Writer(shared_store(name), read_only=True)
    try:
        texts = [content.decode(row[0]).text for row in reader.rows("SELECT content FROM messages LIMIT 40")]
        typed = sorted({word for text in texts for word, _, _ in words(text)})[::7]
        for word in typed:
            found = find(reader, word)
            assert found.route in ("index", "trigram", "scan"), (word, found.route)
            shown = {hit.id for hit in found.hits}
            for row in reader.rows(
                "SELECT m.id, m.content FROM messages m WHERE coalesce(m.active, 1) = 1"
                if reader.shape.has("messages", "active")
                else "SELECT id, content FROM messages"
            ):
                here = {each for each, _, _ in words(content.decode(row[1]).text)}
                assert word not in here or row[0] in shown, (word, row[0])
    finally:
        reader.close()


# -- laws ------------------------------------------------------------------------------------------

ANYTHING = st.text(st.characters(codec="utf-8") | st.sampled_from('"*()-+:^{}%_\\\'#@/. ANDORT\x00杭州kb'), max_size=40)
LETTERS = "abcxyzABCäÖéßñжЖλΣ0١9杭州西湖부산ホテル"
SPACED = st.text(st.sampled_from(LETTERS + "   .,-'_#/\n"), max_size=30)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    writer = Writer(tmp_path_factory.mktemp("laws") / "state.db")
    writer.connection.execute("PRAGMA synchronous = OFF")
    yield writer
    writer.close()


def refill(writer: Writer, rows: list[Any]) -> None:
    writer.connection.execute("BEGIN")
    writer.connection.execute("DELETE FROM messages")
    fill(writer, rows)
    writer.connection.execute("COMMIT")


@given(query=ANYTHING | st.text(max_size=20), rows=st.lists(ANYTHING, max_size=3))
def test_no_text_raises_and_what_is_sanitized_fts5_accepts(written: Writer, query: str, rows: list[str]) -> None:
    refill(written, [*rows, structured(query.encode("utf-8", "replace").decode())])
    for row in search_messages(written, query):
        assert row["context"]
    sanitized = sanitize_fts5_query(query)
    if sanitized:
        written.rows("SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?", (sanitized,))


@given(rows=st.lists(SPACED | SPACED.map(structured), min_size=1, max_size=5), pick=st.integers(0, 10_000))
def test_a_word_of_a_message_finds_it(written: Writer, rows: list[Any], pick: int) -> None:
    refill(written, rows)
    stored = {row[0]: content.decode(row[1]).text for row in written.rows("SELECT id, content FROM messages")}
    here = {id: {word for word, _, _ in words(text)} for id, text in stored.items()}
    everything = sorted(set().union(*here.values()))
    if not everything:
        return
    word = everything[pick % len(everything)]
    wanted = {id for id, found in here.items() if word in found}
    assert wanted <= set(ids(written, word))
    assert wanted <= set(ids(written, word.upper())) or word.upper().lower() != word


@given(rows=st.lists(SPACED, min_size=1, max_size=5), one=SPACED, two=SPACED)
def test_and_or_not_are_sets(written: Writer, rows: list[str], one: str, two: str) -> None:
    refill(written, rows)
    assume(words(one) and words(two))
    first, second = words(one)[0][0], words(two)[0][0]

    def found(query: str) -> set[int] | None:
        answer = find(written, query)
        # Parts of words count only where whole words find nothing: then no law joins the answers.
        return None if engine.INSIDE_NOTICE in answer.notices else {hit.id for hit in answer.hits}

    left, right = found(first), found(second)
    assume(left is not None and right is not None)
    assert left is not None and right is not None
    expected = {"AND": left & right, "OR": left | right, "NOT": left - right}
    for operator, together in expected.items():
        assert found(f"{first} {operator} {second}") in (together, None), operator


QUERY = st.lists(
    st.sampled_from(["AND", "OR", "NOT", "(", ")", '"', "*"]) | SPACED, max_size=5
).map(" ".join)


@given(rows=st.lists(SPACED | SPACED.map(structured), min_size=1, max_size=6), query=QUERY, newest=st.booleans())
def test_hits_are_the_messages_whose_text_matches_whatever_serves(
    written: Writer, rows: list[Any], query: str, newest: bool
) -> None:
    refill(written, rows)
    root = queries.parse(query).root
    answer = find(written, query, sort="newest" if newest else "oldest")
    if root is None:
        assert answer.hits == [] and answer.hint
        return
    stored = written.rows("SELECT id, content FROM messages ORDER BY id")
    inside = engine.INSIDE_NOTICE in answer.notices
    wanted = [row[0] for row in stored if match.matches(root, match.Fields(row[1], None, None), inside=inside)]
    assert [hit.id for hit in answer.hits] == (wanted[::-1] if newest else wanted)


def test_a_very_long_query_is_cut_and_answered(make: Make) -> None:
    writer = make("杭州 " + " ".join(f"w{number}" for number in range(700)))
    assert ids(writer, " ".join(f"w{number}" for number in range(400))) == [1]
    assert ids(writer, " OR ".join(["杭", "absent"] * 300)) == [1]
    assert ids(writer, "w1 " + "(" * 3000) == [1]
    assert len(sanitize_fts5_query("x" * 5000)) == MAX_CHARACTERS


@pytest.mark.parametrize(
    ("typed", "sanitized"),
    [
        ("hello world", "hello world"), ("hello AND", "hello"), ("and cats", "cats"), ("NOT", ""), ("***", ""),
        ("deploy*", "deploy*"), ("chat-send", '"chat-send"'), ("sp_new*", '"sp_new"*'), ("61.2%", '"61.2%"'),
        ("src/main.py", '"src/main.py"'), ("don't", '"don\'t"'), ('"exact words" x', '"exact words" x'),
        ("a AND OR b", "a OR b"), ("x OR chat-send", 'x OR "chat-send"'), ('say "half', "say half"), ("@ x", "x"),
    ],
)  # fmt: skip
def test_sanitized_queries(typed: str, sanitized: str) -> None:
    assert sanitize_fts5_query(typed) == sanitized


def test_what_counts_as_cjk() -> None:
    assert all(map(contains_cjk, ("桂", "ホ", "부", "a。b")))
    assert not any(map(contains_cjk, ("", "café", "สวัสดี", "жук")))


def test_an_error_that_is_not_about_the_index_is_not_hidden(make: Make) -> None:
    writer = make("heron")
    writer.connection.execute("PRAGMA foreign_keys = OFF")
    writer.connection.execute("DROP TABLE sessions")
    with pytest.raises(sqlite3.OperationalError):
        search_messages(writer, "heron")


LETTERS_OF_INDEX = [
    letter for letter in map(chr, range(0x80, 0x20000))
    if letter.isalnum() and is_old_letter(letter) and is_old_letter(fold(letter)) and not is_unspaced(letter)
]  # fmt: skip


def test_letters_are_folded_as_the_index_folds_them() -> None:
    """So that what the index finds is what a scan finds: also a final sigma, a long s, a micro sign."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE letters USING fts5(letter)")
    connection.execute("CREATE VIRTUAL TABLE folded USING fts5vocab(letters, instance)")
    connection.executemany("INSERT INTO letters(rowid, letter) VALUES (?, ?)", enumerate(LETTERS_OF_INDEX))
    there = dict(connection.execute("SELECT doc, term FROM folded").fetchall())
    assert len(there) > 5000
    assert [LETTERS_OF_INDEX[doc] for doc, term in there.items() if fold(LETTERS_OF_INDEX[doc]) != term] == []
    connection.close()
