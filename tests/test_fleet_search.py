"""Searching a fleet: the same messages as each store's own search finds, on every engine, in every script."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from state_ledger import search
from state_ledger.connection import open_for_reading
from state_ledger.errors import ParameterError
from state_ledger.search import Request, match
from state_ledger.search import text as _text
from state_ledger.search.query import parse
from state_ledger.settings import Settings
from state_ledger.writing.writer import Writer
from tests.conftest import STRESS, copy_of_shared
from tests.test_search_messages import MIXED, PUNCTUATED, fill, structured

fleet = pytest.importorskip("tests.fleet", reason="needs the extra lake")

from state_ledger.lake.manifest import Options  # noqa: E402
from state_ledger.lake.push import push  # noqa: E402
from state_ledger.warehouse import Warehouse  # noqa: E402
from state_ledger.warehouse.searching import conditions, index, looking, needed, order  # noqa: E402
from state_ledger.warehouse.searching.finding import NO_RANKS, NO_TEXTS, Found, count, find  # noqa: E402

SETTINGS = Settings()


def call(name: str, arguments: dict[str, Any], *, escaped: bool) -> str:
    inner = json.dumps(arguments, ensure_ascii=escaped)
    return json.dumps([{"function": {"name": name, "arguments": inner}}], ensure_ascii=escaped)


CALLS = [call("lookup", {"q": "杭州西湖 Zürich 🎉"}, escaped=escaped) for escaped in (True, False)]

EVERY_SCRIPT = (
    *PUNCTUATED,
    *MIXED,
    "Le Café de la Gare, naïve façade",
    "cafe\u0301 apart, re\u0301sume\u0301",
    "ΟΔΟΣ οδός ΟΔΟΥΣ",
    "Straße STRASSE İstanbul ISPARTA ışık",
    "Ёлка ёлка ЕЛКА, тестовый запуск",
    "สวัสดีครับ ยินดีต้อนรับ",
    "ภาษาไทย nginx ภาษา",
    "ship it 🎉🎉 now 👩‍💻 done",
    "a ≯ b and 5 > 3 -> ok => fine",
    "“quoted” it’s a re‐index – done",
    "नमस्ते दुनिया, مَرحبا بالعالم",
    "K\u212a kelvin ohm \u2126 ſtill",
    "tab\tand\nnew   line",
    r"100%_sure \d+ [a-z]* {x:String} $q0 ' \" ;--",
    "\u1112\u1161\u11ab jamo 한 syllable",
    "ガギグ か\u3099き\u3099 kana",
    {"content": structured("lighthouse sketch", "西湖划船\nnextline café")},
    {"role": "assistant", "content": "", "tool_name": "atlas", "tool_calls": CALLS[0]},
    {"role": "assistant", "content": "", "tool_name": "atlas", "tool_calls": CALLS[1]},
    {"role": "tool", "tool_name": "read_file", "content": "def main():\n    return rollback(Käse)"},
    {"role": "tool", "content": "kubernetes pods"},
    {"content": "kubernetes cluster, rewound", "active": 0},
    {"content": "kubernetes compacted Käse", "active": 0, "compacted": 1},
    "the kubernetes cluster",
)  # fmt: skip

QUERIES = (
    "#482", "lib/parser.rs", "shouldn't", "73%", "bob.k@mail.example", "off-by-one", "max_retry_count", "$9", "x,y",
    '"wolf again"', r"D:\work", "C++", "(pay OR memory) NOT 73%", "issue OR max_retry_count", "wolf AND OR issue",
    "again NOT memory NOT wolf", "杭州", "杭州西湖", "부산", "ホテル", "nginx", "kb", "湖", "杭州 NOT 天气",
    "latin OR 京都", "nginx 步骤", "重启nginx", "ngi*", '"nginx代理"', "NGINX代",
    "cafe", "café", "CAFÉ", "resume", "naive", "facade",
    "οδος", "ΟΔΟΣ", "οδός", "strasse", "straße", "istanbul", "ışık", "isparta", "ёлка", "елка", "тест*", "ТЕСТОВЫЙ",
    "ไทย", "ภาษา", "สวัส", "ต้อน", "🎉", "🎉🎉", "👩‍💻", "->", "=>", ">", "it's", '"quoted"', "re-index", "-", "'",
    "नमस्ते", "दुनिया", "مَرحبا", "بالعالم", "kelvin", "\u212a", "k*", "\u2126", "still", "ſtill", "and new line",
    '"new line"', "100%_sure", "%", "_", r"\d+", "[a-z]*", "{x:String}", "$q0", "--", ";--", "한", "\u1112", "ガ", "か",
    "lighthouse 西湖", "nextline", "image_url", "lookup", "atlas", "Zürich", "zürich", "西湖 lookup", "杭 NOT 州",
    "read_file", "main()", "kase", "Käse", "kubernetes", "ubernete", "bernet NOT cluster", "ubern OR wolf",
    "absentword", "的", "步骤 OR 划船", "e", "nothing here at all", "\u0301", "\ue000", "\x00", "NOT wolf", '"',
    "(" * 30, "a* b*", "", "ubernete lighthous",
)  # fmt: skip

Ask = Callable[..., Found]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with texts of every script, in two sessions, with messages that are stored more than once."""
    path = tmp_path_factory.mktemp("corpus") / "state.db"
    writer = Writer(path)
    fill(writer, EVERY_SCRIPT[::2])
    fill(writer, EVERY_SCRIPT[1::2], source="cron", session="two")
    execute = writer.connection.execute
    # In-place compaction stores a message again; calls that are made at once share time and text.
    for change in ("tool_calls", "NULL"):
        execute(
            "INSERT INTO messages(session_id, role, content, timestamp, tool_calls)"
            f" SELECT session_id, role, content, timestamp, {change} FROM messages WHERE id % 7 = 1"
        )
    execute("UPDATE messages SET tool_calls = '[\"anchor copy\"]' WHERE id = (SELECT max(id) FROM messages)")
    execute("UPDATE messages SET active = 0 WHERE id = 8")
    execute("PRAGMA foreign_keys = OFF")
    fill(writer, [{"session_id": "gone", "content": "heron lost with kubernetes"}])
    execute("DELETE FROM sessions WHERE id = 'gone'")
    writer.close()
    return path


LETTERS = "abcxyzABCäÖéßñжЖλΣς0١9杭州西湖부산ホテルสวัสไทย🎉"
CHANCE = random.Random(9)


def random_text(most: int) -> str:
    return "".join(CHANCE.choices(LETTERS + "  \n.,-'_#/\u0301\u2019", k=CHANCE.randint(1, most)))


RANDOM_TEXTS = [random_text(60) for _ in range(2000 if STRESS else 200)]
RANDOM_QUERIES = [
    *(random_text(3) for _ in range(400 if STRESS else 10)),
    *(CHANCE.choice(RANDOM_TEXTS)[2:5] for _ in range(400 if STRESS else 10)),
    *(f"{random_text(2)} {joint} {random_text(2)}" for joint in ("OR", "NOT", "AND", "") for _ in range(3)),
]


@pytest.fixture(scope="module")
def shared_corpora(corpus: Path, demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("stores")
    writer = Writer(folder / "random.db")
    fill(writer, RANDOM_TEXTS, session="random")
    writer.close()
    found = {"corpus": corpus, "demo": demo_store, "random": folder / "random.db"}
    for name in ("schema-11", "schema-23", "schema-25", "small-23"):
        try:
            found[name] = copy_of_shared(f"{name}.db", folder)
        except pytest.skip.Exception:
            continue
    return found


@pytest.fixture(scope="module")
def loaded_in(
    shared_corpora: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Warehouse]]:
    """`loaded_in(engine)`: a warehouse with these stores, as pushed from one host each, with all that was said."""
    made: dict[str, Warehouse] = {}

    def load(name: str) -> Warehouse:
        if name not in made:
            few = shared_corpora if name == "duckdb" or STRESS else ("corpus", "random")
            stores = {(each, "main"): path for each, path in shared_corpora.items() if each in few}
            lake = fleet.lake_of(tmp_path_factory.mktemp(name) / "lake", stores, SETTINGS)
            made[name] = fleet.loaded(fleet.engine(name), lake, SETTINGS)
        return made[name]

    yield load
    for each in made.values():
        each.close()


@pytest.fixture(scope="module", params=fleet.MOST_ENGINES)
def warehouse(request: pytest.FixtureRequest, loaded_in: Callable[[str], Warehouse]) -> Warehouse:
    return loaded_in(request.param)


@pytest.fixture(scope="module", params=fleet.ENGINES if STRESS else ["duckdb"])
def one_engine(request: pytest.FixtureRequest, loaded_in: Callable[[str], Warehouse]) -> Warehouse:
    """For what is done by our own code, whichever engine offers."""
    return loaded_in(request.param)


def in_it(warehouse: Warehouse, shared_corpora: dict[str, Path]) -> dict[str, Path]:
    """The stores that were pushed to it."""
    return {name: path for name, path in shared_corpora.items() if any(each.host == name for each in warehouse.stores)}


def every(warehouse: Warehouse, request: Request, **options: Any) -> list[Any]:
    """All hits, page by page, however often the time runs out."""
    found, after = [], ""
    while True:
        answer = find(warehouse, request, after=after, **options)
        found += answer.hits
        if answer.after is None:
            assert answer.complete
            return found
        assert answer.after != after, "a search gets on"
        after = answer.after


def shown(hits: Sequence[Any]) -> list[Any]:
    return [(each.id, each.session_id, each.role, each.snippet, each.tool_name, each.source) for each in hits]


def seconds(timestamp: float) -> float:
    """Some programs wrote milliseconds, which the books read as such (accounting rule 19)."""
    return timestamp / 1000 if timestamp > 1e11 else timestamp


def of_store(path: Path, request: Request) -> list[Any]:
    connection = open_for_reading(path)
    try:
        return search.find(connection, request).hits
    finally:
        connection.close()


@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_one_store_answers_as_it_does_itself(
    warehouse: Warehouse, shared_corpora: dict[str, Path], sort: str
) -> None:
    for name, path in in_it(warehouse, shared_corpora).items():
        one = warehouse.narrowed(hosts=[name])
        # Every query where every script is, and some of them elsewhere.
        if STRESS:
            step = 1
        elif name == "corpus" and sort == "newest":
            step = 1 if warehouse.name == "duckdb" else 3
        else:
            step = 20 if name == "corpus" else 60
        for query in RANDOM_QUERIES[:: 1 if STRESS else 2] if name == "random" else QUERIES[::step]:
            request = Request(query, sort=sort, limit=-1)
            found = [each.hit for each in find(one, request).hits]
            assert shown(found) == shown(of_store(path, request)), (name, query)


def test_filters_narrow_down_as_in_a_store(warehouse: Warehouse, corpus: Path) -> None:
    one = warehouse.narrowed(hosts=["corpus"])
    for options in (
        {"sources": ("cron",)}, {"exclude_sources": ("cron",)}, {"roles": ("tool",)}, {"roles": ("user", "assistant")},
        {"models": ("m",)}, {"models": ("other",)}, {"since": 5.0, "until": 9.0}, {"until": 9.0, "sort": "oldest"},
        {"inactive": True}, {"sources": ()}, {"sources": ("cron", "cli"), "roles": ("user",), "inactive": True},
    ):  # fmt: skip
        request = Request("kubernetes OR wolf OR 杭州 OR a*", limit=-1, **options)  # type: ignore[arg-type]
        found = [each.hit for each in find(one, request).hits]
        assert shown(found) == shown(of_store(corpus, request)), options


def test_what_stands_around_a_hit_is_shown(one_engine: Warehouse, corpus: Path) -> None:
    request = Request("wolf OR 부산 OR syllable", limit=-1)
    hits = find(one_engine.narrowed(hosts=["corpus"]), request).hits
    # The same, but for the place of an image, which is told.
    contexts = json.dumps([each.hit.context for each in hits]).replace("\\n\\n[image: image/png, 4 bytes]\\n\\n", " ")
    assert json.loads(contexts) == [each.context for each in of_store(corpus, request)]


@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_several_stores_are_merged_by_time(
    warehouse: Warehouse, shared_corpora: dict[str, Path], sort: str
) -> None:
    for query in ("error OR 杭州", "ubernete"):
        request = Request(query, sort=sort, limit=-1)
        expected = [
            (f"{name}/main", hit)
            for name, path in in_it(warehouse, shared_corpora).items()
            for hit in of_store(path, request)
        ]
        sign = -1 if sort == "newest" else 1
        expected.sort(key=lambda pair: (sign * seconds(pair[1].timestamp), pair[0], sign * pair[1].id))
        found = find(warehouse, request).hits
        assert [(each.store, each.hit.id) for each in found] == [(name, hit.id) for name, hit in expected], query
        assert [each.host for each in found] == [name.split("/")[0] for name, _ in expected]


@pytest.mark.parametrize("hosts", [("corpus",), ("corpus", "random")], ids=["one store", "two"])
def test_pages_give_every_hit_once_in_order(one_engine: Warehouse, hosts: tuple[str, ...]) -> None:
    narrowed = one_engine.narrowed(hosts=hosts)
    for query, limit in (("kubernetes OR 杭州", 3), ("a* OR e* OR 西湖", 40), ("ubernete", 1)):
        for sort in ("newest", "oldest"):
            whole = find(narrowed, Request(query, sort=sort, limit=-1)).hits
            paged = every(narrowed, Request(query, sort=sort, limit=limit))
            assert paged == list(whole), (query, sort)


@pytest.mark.parametrize("hosts", [("corpus",), ("corpus", "random")], ids=["one store", "two"])
def test_a_search_whose_time_is_over_is_gone_on_with(
    one_engine: Warehouse, hosts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small windows, and no time at all: each answer looks through one of them."""
    monkeypatch.setattr(looking, "FIRST_WINDOW", 40)
    narrowed = one_engine.narrowed(hosts=hosts)
    for query in ("lookup OR 西湖", "absentword", "ubernete"):
        for sort in ("newest", "oldest"):
            request = Request(query, sort=sort, limit=9)
            whole = find(narrowed, replaced(request, limit=-1)).hits
            first = find(narrowed, request, budget_s=0.0)
            assert first.after is not None
            if not first.complete:
                assert first.reached is not None
            assert every(narrowed, request, budget_s=0.0) == list(whole), (query, sort)


def replaced(request: Request, **changes: Any) -> Request:
    return Request(**{**vars(request), **changes})


def test_hits_are_counted_up_to_a_bound(one_engine: Warehouse) -> None:
    some = one_engine.narrowed(hosts=["corpus", "random"])
    for query in ("kubernetes", "a* OR e*", "ubernete", ""):
        number = len(find(some, Request(query, limit=-1)).hits)
        assert count(some, Request(query)) == search.Count(number)
        assert count(some, Request(query), most=2) == search.Count(min(number, 2), number > 2)
    assert count(some, Request("absentword"), budget_s=0.0).number == 0


PIECES = st.text(st.sampled_from(LETTERS + "   .,-'_#/\u0301\u2019\\%\n>"), max_size=12)
TEXTS = st.lists(
    st.lists(PIECES | st.sampled_from(["kb", "杭州", "Σς", "cafe\u0301", "\u1112\u1161"]), max_size=4).map("".join),
    min_size=1,
    max_size=6,
)
Offered = Callable[[Sequence[tuple[str, str]], str], set[int]]
ASKED = st.lists(PIECES | st.sampled_from(["OR", "NOT", "AND", "(", ")", "kb*", "é*", "杭", '"a b"']), max_size=4)


@pytest.fixture(scope="module")
def offered(warehouse: Warehouse) -> Offered:
    """Which of some messages, given as text and tool calls, an engine offers for a query."""
    pyarrow = pytest.importorskip("pyarrow")
    dialect = warehouse.dialect
    texts = [(each, "text") for each in ("text", "tool_name", "tool_calls")]
    dialect.make("texts", (("id", "integer"), *texts, ("timestamp", "real")), ("id",))
    index.prepare(dialect, "texts")
    known = 0

    def offer(rows: Sequence[tuple[str, str]], query: str) -> set[int]:
        nonlocal known
        first, known = known, known + len(rows)
        texts, calls = zip(*rows, strict=True)
        dialect.insert("texts", pyarrow.table({
            "id": pyarrow.array(range(first, known), pyarrow.int64()), "text": pyarrow.array(texts, pyarrow.string()),
            "tool_name": pyarrow.nulls(len(rows), pyarrow.string()),
            "tool_calls": pyarrow.array(calls, pyarrow.string()),
            "timestamp": pyarrow.nulls(len(rows), pyarrow.float64()),
        }))  # fmt: skip
        writer = conditions.writer(dialect)
        where = writer.of(needed.of(parse(query).root))
        _, found = dialect.run(f"SELECT m.id FROM texts AS m WHERE m.id >= {first} AND {where}", writer.values)
        return {row[0] - first for row in found}

    return offer


@hypothesis_settings(max_examples=2000 if STRESS else 25)
@given(texts=TEXTS, asked=ASKED, picked=st.integers(0, 400), escaped=st.booleans())
def test_what_matches_is_offered(
    offered: Offered, texts: list[str], asked: list[str], picked: int, escaped: bool
) -> None:
    """For every query and every text: no engine's condition leaves out what is a match."""
    known = [word for text in texts for word in text.split() if word]
    query = " ".join([*asked, known[picked % len(known)]] if known else asked)
    parsed = parse(query)
    if parsed.root is None:
        return
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    rows = [(text, call("f", {"q": texts[at - 1]}, escaped=escaped)) for at, text in enumerate(texts)]
    matching = {
        at for at, (text, calls) in enumerate(rows)
        for inside in (False, True)
        if match.matches(parsed.root, match.Fields.decoded(text, None, calls), inside=inside)
    }  # fmt: skip
    assert matching <= offered(rows, query), (query, rows)


def test_engines_fold_every_character_as_coarsely_as_a_search() -> None:
    """What is folded to the same by a search is folded to the same by DuckDB, for all of Unicode."""
    dialect = fleet.engine("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    # No character beyond the second plane has another form.
    last = 0x110000 if STRESS else 0x20000
    characters = [chr(code) for code in range(1, last) if not 0xD800 <= code <= 0xDFFF]
    dialect.make("every", (("one", "text"), ("folded", "text")), ())
    folded = [_text.fold(each) for each in characters]
    dialect.insert("every", pyarrow.table({"one": characters, "folded": folded}))
    as_there = conditions._folded
    _, wrong = dialect.run(f"SELECT one, folded FROM every WHERE {as_there('one')} <> {as_there('folded')}")
    assert wrong == []
    # What is looked for as it stands must be what nothing else is folded to.
    changed = {each: other for each, other in zip(characters, folded, strict=True) if each != other}
    assert [each for each in changed.values() if conditions._is_plain(each)] == []
    assert dict(zip(*index.folding(), strict=True)) == changed
    dialect.close()


def test_a_text_index_serves_words_and_pairs(warehouse: Warehouse) -> None:
    """ClickHouse skips what its index rules out: nothing at all is read for what no message has."""
    if warehouse.name != "clickhouse":
        assert find(warehouse, Request("杭州")).route == "scan"
        return
    assert find(warehouse, Request("杭州")).route == "text index"
    for query, name in (("absentword", "words_searched"), ("桂林", "pairs_searched")):
        writer = conditions.writer(warehouse.dialect)
        where = writer.of(needed.of(parse(query).root))
        sql = f"EXPLAIN indexes = 1 SELECT m.id FROM held_messages AS m WHERE {where}"
        plan = "\n".join(str(row[0]) for row in warehouse.dialect.run(sql, writer.values)[1])
        assert name in plan and "Granules: 0/" in plan, plan


HOSTILE = (
    "'; DROP TABLE held_messages; --", "\\", "\\'", "%", "_%_", "{q0:String}", "{{", "$q0", "?", "\ud800", "\udcff a",
    "\x00\x01", "a" * 5000, " OR ".join(f"w{n}" for n in range(700)), " ".join(f"w{n}" for n in range(700)),
    "(" * 500 + "a" + ")" * 500, "NOT " * 400 + "a", "a\u0301" * 300, "(?i)[", "\\Qa\\E", "*" * 100, '"' * 99,
    "\U0010ffff", "\u202e", "\ue000\ue001", "${jndi:x}", "<script>", "\r\n\t", "NEAR(a b)", "content:a", "^a", "a^2",
)  # fmt: skip


def test_no_query_raises(warehouse: Warehouse, corpus: Path) -> None:
    one = warehouse.narrowed(hosts=["corpus"])
    for query in HOSTILE if STRESS or warehouse.name == "duckdb" else HOSTILE[::3]:
        found = find(one, Request(query, limit=-1))
        expected = of_store(corpus, Request(query, limit=-1))
        assert [each.hit.id for each in found.hits] == [each.id for each in expected], query


IDS = st.integers(-(2**62), 2**62)
STOPPED = st.none() | IDS | st.floats(-1e12, 1e12)
PLACES = st.builds(order.Place, STOPPED, found=st.booleans(), inside=st.booleans()) | st.builds(
    order.Place, STOPPED, IDS, IDS, st.booleans(), st.booleans()
)


@given(PLACES)
def test_a_place_in_an_address_is_read_back(place: order.Place) -> None:
    assert order.read(order.written(place)) == place


@pytest.mark.parametrize(
    "text", ["x", "fw", "fw_", "fw_nan", "fw_inf", "fw_1_2", "zz_1", "fw_1_2_3_4", "fw_1e999", "fw_9" + "9" * 40]
)
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="link to the next page"):
        order.read(text)


# -- stores that are pushed otherwise ------------------------------------------------------------

SECRET = "sk-proj-Zq3vT8xYw1Lm5NcR7bKd2HfJ9gPs4UaE6oXiVtWyBnMeQzCl"


def pushed(folder: Path, stores: dict[tuple[str, str], Path], options: dict[tuple[str, str], Options]) -> Warehouse:
    for (host, profile), path in stores.items():
        push(path, folder, host=host, profile=profile, options=options[host, profile], settings=SETTINGS)
    return fleet.loaded(fleet.engine("duckdb"), folder, SETTINGS)


def test_a_secret_that_was_redacted_is_not_found(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "state.db")
    calls = call("x", {"key": SECRET}, escaped=True)
    fill(writer, [f"the key is {SECRET} for now", {"role": "assistant", "tool_calls": calls}])
    writer.close()
    said = {("h", "p"): Options(with_messages=True)}
    found = pushed(tmp_path / "lake", {("h", "p"): tmp_path / "state.db"}, said)
    assert find(found, Request(SECRET)).hits == find(found, Request(f"{SECRET[:20]}*")).hits == []
    [hit] = find(found, Request("key now")).hits
    assert "[redacted" in hit.hit.snippet


def test_a_secret_that_was_pushed_is_not_shown_where_texts_are_redacted(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "state.db")
    fill(writer, [f"the key is {SECRET} for now"])
    writer.close()
    lake = fleet.lake_of(tmp_path / "lake", {("h", "p"): tmp_path / "state.db"}, SETTINGS)
    redacting = Settings(redact=True)
    found = fleet.loaded(fleet.engine("duckdb"), lake, redacting)
    [hit] = find(found, Request("key now")).hits
    assert "[redacted" in hit.hit.snippet and SECRET not in str(hit)


def test_stores_without_messages_are_named(tmp_path: Path, corpus: Path) -> None:
    silent, spoken = Options(), fleet.ALL_OF_IT
    options = {("a", "p"): silent, ("b", "p"): silent}
    none = pushed(tmp_path / "none", dict.fromkeys(options, corpus), options)
    assert find(none, Request("atlas")) == Found([], notices=(NO_TEXTS,))
    some = pushed(tmp_path / "some", dict.fromkeys(options, corpus), options | {("b", "p"): spoken})
    answer = find(some, Request("atlas"))
    assert {each.store for each in answer.hits} == {"b/p"} and "a/p" in answer.notices[0]


def test_a_copy_of_a_session_is_found_once(tmp_path: Path, corpus: Path) -> None:
    """Of two copies the one that counts is shown; where only the other is searched, its messages are."""
    other = tmp_path / "copy.db"
    other.write_bytes(corpus.read_bytes())
    writer = Writer(other)
    fill(writer, ["kubernetes, said after the copy was made"])
    writer.close()
    stores = {("a", "p"): corpus, ("b", "p"): other}
    found = pushed(tmp_path / "lake", stores, dict.fromkeys(stores, fleet.ALL_OF_IT))
    both = find(found, Request("kubernetes", limit=-1)).hits
    assert len(both) == len(of_store(other, Request("kubernetes", limit=-1)))
    assert {each.store for each in both} <= {"a/p", "b/p"}
    alone = find(found.narrowed(hosts=["a"]), Request("kubernetes", limit=-1)).hits
    assert [each.hit.id for each in alone] == [each.id for each in of_store(corpus, Request("kubernetes", limit=-1))]


def test_sessions_of_one_id_have_names_of_their_own(tmp_path: Path) -> None:
    stores = {}
    for host, began in (("a", 100), ("b", 200)):
        writer = Writer(tmp_path / f"{host}.db")
        fill(writer, [f"heron of {host}"])
        writer.connection.execute("UPDATE sessions SET started_at = ?", (began,))
        writer.close()
        stores[host, "p"] = tmp_path / f"{host}.db"
    found = pushed(tmp_path / "lake", stores, dict.fromkeys(stores, fleet.ALL_OF_IT))
    assert [each.hit.session_id for each in find(found, Request("heron")).hits] == ["a/p:one", "b/p:one"]


def test_best_match_is_newest_first_and_says_so(one_engine: Warehouse) -> None:
    answer = find(one_engine, Request("kubernetes", sort="best", limit=-1))
    assert NO_RANKS in answer.notices
    assert answer.hits == find(one_engine, Request("kubernetes", limit=-1)).hits
