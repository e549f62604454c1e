"""Datasette's own pages over stores of every age: they answer, search honestly, stay quick and private."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state_ledger.full_text.health import why_unusable
from state_ledger.plugins import compat, counts
from state_ledger.plugins.stores import registry
from state_ledger.sqlite import sqlite3
from state_ledger.store_metadata import hidden_names

from .conftest import SHARED_STORES

AGES = [
    "small-1", "small-7", "small-10", "small-11", "small-16", "small-22", "small-23", "small-23-cjk", "small-1-to-23",
    "small-22-to-23", "small-25", "small-30-handmade", "schema-23",
]  # fmt: skip
SEARCHED = [
    "small-1", "small-10", "small-11", "small-22", "small-23", "small-1-to-23", "small-30-handmade", "small-23-cjk",
]  # fmt: skip

Store = Callable[[str], Path]


@pytest.mark.parametrize("name", AGES)
async def test_every_stock_page_answers(make_datasette: Any, shared_store: Store, name: str) -> None:
    datasette = await make_datasette(shared_store(f"{name}.db"))
    get = datasette.client.get
    for path in ("/-/datasette", f"/{name}/-/tables", f"/{name}.json", f"/{name}?sql=select+1"):
        assert (await get(path, follow_redirects=True)).status_code == 200, path
    for table in ("sessions", "messages", "schema_version"):
        rows = (await get(f"/{name}/{table}.json?_shape=array&_size=1")).json()
        assert rows
        extra = {"messages": "&role=user", "sessions": "&_facet=source"}.get(table, "")
        for path in (table, f"{table}.json", f"{table}.csv", f"{table}?_size=2{extra}", f"{table}.json?_size=2{extra}"):
            assert (await get(f"/{name}/{path}")).status_code == 200, path
        key = rows[0].get("id", 1)
        for path in (f"{table}/{key}", f"{table}/{key}.json"):
            assert (await get(f"/{name}/{path}")).status_code == 200, path


@pytest.mark.parametrize("name", SEARCHED)
async def test_index_tables_are_not_listed_as_data(make_datasette: Any, shared_store: Store, name: str) -> None:
    datasette = await make_datasette(shared_store(f"{name}.db"))
    hidden = set(await datasette.get_database(name).hidden_table_names())
    indexes = {
        table for table in await datasette.get_database(name).table_names() if table.startswith("messages_fts")
    }
    assert indexes
    assert indexes <= hidden
    listed = (await datasette.client.get(f"/{name}/-/tables")).text
    assert f'<a href="/{name}/messages">messages</a>' in listed
    assert "messages_fts_trigram_src</a>" not in listed


@pytest.mark.parametrize("name", SEARCHED)
async def test_the_search_box_of_messages_finds_the_right_rows(
    make_datasette: Any, shared_store: Store, name: str
) -> None:
    path = shared_store(f"{name}.db")
    with sqlite3.connect(path) as connection:
        found = {i for (i,) in connection.execute("SELECT rowid FROM messages_fts WHERE messages_fts MATCH '\"the\"'")}
        total = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    connection.close()
    assert 0 < len(found) < total
    datasette = await make_datasette(path)
    assert 'name="_search"' in (await datasette.client.get(f"/{name}/messages")).text

    async def ids(term: str) -> set[int]:
        rows = (await datasette.client.get(f"/{name}/messages.json?_shape=array&_search={term}")).json()
        return {row["id"] for row in rows}

    assert await ids("the") == found
    assert await ids("zzzz") == set()
    assert await ids("%22the%22") == found
    assert await ids("the&_search_content=zzzz") <= found


@pytest.mark.parametrize("term", ["%22", "%22%22%22", "%20", "%00", "%22%20%22", "%00the"])
@pytest.mark.parametrize("path", ["messages", "messages.json", "messages.csv"])
async def test_a_search_without_a_word_is_an_error_in_words(
    make_datasette: Any, shared_store: Store, path: str, term: str
) -> None:
    datasette = await make_datasette(shared_store("small-23.db"))
    answer = await datasette.client.get(f"/small-23/{path}?_search={term}")
    assert answer.status_code == 400
    assert "has no word in it" in answer.text


@pytest.mark.parametrize(
    "term", ["%22the", "%23", "...", "a%22b", "(", "*", "NEAR(", "content:x", "%F0%9F%98%80", "%FF"]
)
async def test_no_search_term_breaks_the_page(make_datasette: Any, shared_store: Store, term: str) -> None:
    datasette = await make_datasette(shared_store("small-23.db"))
    everything = len((await datasette.client.get("/small-23/messages.json?_shape=array")).json())
    for mode in ("", "&_searchmode=raw", "&_searchmode=escaped"):
        answer = await datasette.client.get(f"/small-23/messages.json?_shape=array&_search={term}{mode}")
        assert answer.status_code == 400 or len(answer.json()) < everything


async def test_an_empty_box_sent_along_with_a_filter_is_no_search(make_datasette: Any, shared_store: Store) -> None:
    datasette = await make_datasette(shared_store("small-23.db"))
    rows = (await datasette.client.get("/small-23/messages.json?_shape=array&_search=&role=user")).json()
    assert {row["role"] for row in rows} == {"user"}


@pytest.mark.parametrize("path", ["sessions", "schema_version", "messages_fts_trigram_src"])
async def test_a_table_without_an_index_is_not_searched_in_silence(
    make_datasette: Any, shared_store: Store, path: str
) -> None:
    datasette = await make_datasette(shared_store("small-23.db"))
    for suffix in ("", ".json", ".csv"):
        for parameter in ("_search", "_search_id"):
            answer = await datasette.client.get(f"/small-23/{path}{suffix}?{parameter}=the&_shape=array")
            assert answer.status_code == 400
            assert "has no search index" in answer.text
    answer = await datasette.client.get(f"/small-23/{path}.json?_search=the")
    assert answer.json()["ok"] is False


BREAKAGES = {
    "empty": "INSERT INTO messages_fts(messages_fts) VALUES ('delete-all')",
    "dropped": "DROP TABLE messages_fts",
    "damaged": "DELETE FROM messages_fts_data WHERE id > 10",
    "half rebuilt": "INSERT OR REPLACE INTO state_meta (key, value) VALUES ('fts_rebuild_high_water', '10'), "
    "('fts_rebuild_progress', '3')",
}


APPENDED = "INSERT INTO messages (session_id, role, content, timestamp) SELECT id, 'tool', 'the kite', 1 FROM sessions"
LAST_GONE = "DELETE FROM messages WHERE id = (SELECT max(id) FROM messages)"


@pytest.mark.parametrize("name", ["small-1", "small-10", "small-11", "small-23", "small-30-handmade"])
async def test_an_index_that_lacks_the_newest_messages_is_an_error(
    make_datasette: Any, shared_store: Store, name: str
) -> None:
    path = shared_store(f"{name}.db")
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'messages'")
    for (trigger,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.commit()
    datasette = await make_datasette(path)
    assert (await datasette.client.get(f"/{name}/messages.json?_search=the")).status_code == 200
    connection.execute(APPENDED)
    connection.commit()
    for suffix in ("", ".json", ".csv"):
        answer = await datasette.client.get(f"/{name}/messages{suffix}?_search=the")
        assert answer.status_code == 400
        assert "lacks the newest messages" in answer.text
        assert "Nothing was searched" in answer.text
    connection.execute("INSERT INTO messages_fts(messages_fts) VALUES ('rebuild')")
    connection.commit()
    connection.close()


async def test_an_index_in_step_answers_whatever_came_or_went(make_datasette: Any, shared_store: Store) -> None:
    path = shared_store("small-23.db")
    datasette = await make_datasette(path)
    for change in (APPENDED, LAST_GONE, APPENDED):
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.commit()
        connection.close()
        assert (await datasette.client.get("/small-23/messages.json?_search=kite")).status_code == 200


@pytest.mark.parametrize("store", sorted(SHARED_STORES.glob("*.db")), ids=lambda store: store.stem)
def test_no_index_of_a_healthy_store_is_called_useless(store: Path) -> None:
    with closing(sqlite3.connect(f"file:{store}?immutable=1", uri=True)) as connection:
        assert why_unusable(connection, "messages_fts", "messages") is None


def test_an_index_that_leaves_rows_out_on_purpose_is_not_called_stale(shared_store: Store) -> None:
    path = shared_store("small-23.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(APPENDED)
        last = connection.execute("SELECT max(id) FROM messages").fetchone()
        assert connection.execute("SELECT max(id) FROM messages_fts_trigram_docsize").fetchone() < last
        assert why_unusable(connection, "messages_fts_trigram", "messages") is None


@pytest.mark.parametrize("breakage", BREAKAGES)
async def test_an_index_that_cannot_answer_is_an_error(
    make_datasette: Any, shared_store: Store, breakage: str
) -> None:
    path = shared_store("small-23.db")
    connection = sqlite3.connect(path)
    connection.executescript(BREAKAGES[breakage])
    connection.close()
    datasette = await make_datasette(path)
    for suffix in ("", ".json"):
        answer = await datasette.client.get(f"/small-23/messages{suffix}?_search=the")
        assert answer.status_code == 400
        assert "Nothing was searched" in answer.text
    assert (await datasette.client.get("/small-23/messages")).status_code == 200


async def test_an_index_whose_tokenizer_is_missing_is_an_error_too(
    make_datasette: Any, shared_store: Store
) -> None:
    datasette = await make_datasette(shared_store("small-23-cjk.db"))
    answer = await datasette.client.get("/small-23-cjk/messages_fts_cjk?_search=the")
    assert answer.status_code in (400, 404)


async def test_facets_are_not_guessed(make_datasette: Any, shared_store: Store) -> None:
    datasette = await make_datasette(shared_store("schema-23.db"))
    assert datasette.setting("suggest_facets") is False
    assert "suggested-facets" not in (await datasette.client.get("/schema-23/messages")).text


async def test_facets_are_guessed_where_the_user_has_no_store(make_datasette: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    assert (await make_datasette(path)).setting("suggest_facets") is True


@pytest.fixture
def big_store(small_store: Callable[..., Path]) -> Path:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) WITH RECURSIVE n(i) AS "
            "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) "
            "SELECT 'first', iif(i % 2, 'user', 'tool'), printf('%500d', i), 1767225600 + i FROM n"
        )
    connection.close()
    return path


@pytest.fixture
def no_patience() -> Iterator[None]:
    """A limit that no count of many rows keeps."""
    patience, counts.COUNT_LIMIT_MS = counts.COUNT_LIMIT_MS, 1
    yield
    counts.COUNT_LIMIT_MS = patience


@pytest.mark.usefixtures("no_patience")
@pytest.mark.parametrize("query", ["?role=user", "?_where=length(content)>400", ".json?role=user"])
async def test_a_page_goes_without_its_count_if_counting_takes_long(
    make_datasette: Any, big_store: Path, query: str
) -> None:
    datasette = await make_datasette(big_store)
    answer = await datasette.client.get(f"/state/messages{query}")
    assert answer.status_code == 200
    assert "30,001" not in answer.text
    assert "10,000" not in answer.text


@pytest.mark.usefixtures("no_patience")
async def test_a_count_that_the_visitor_asks_for_has_all_the_time_there_is(
    make_datasette: Any, big_store: Path
) -> None:
    datasette = await make_datasette(big_store)
    sql = "select count(*) from messages where content like '%7%'"
    answer = await datasette.client.get("/state.json?_shape=array&sql=" + sql, follow_redirects=True)
    assert answer.json()[0]["count(*)"] > 1000


@pytest.mark.parametrize("name", SEARCHED)
async def test_parts_of_an_index_are_never_counted(make_datasette: Any, shared_store: Store, name: str) -> None:
    datasette = await make_datasette(shared_store(f"{name}.db"))
    database = datasette.get_database(name)
    hidden = hidden_names(registry(datasette).stores[name].shape)
    found = await database.table_counts(1000)
    assert {"messages_fts", "messages_fts_data", "messages_fts_docsize"} <= hidden
    assert {table for table, count in found.items() if count is None} == hidden & set(found)
    assert found["messages"] > 0
    assert (await datasette.client.get(f"/{name}/-/tables")).status_code == 200
    page = await datasette.client.get(f"/{name}/messages_fts.json?_extra=count")
    assert page.json()["count" if compat.IS_1 else "filtered_table_rows_count"] is None


async def test_parts_of_an_index_are_counted_for_who_asks(make_datasette: Any, shared_store: Store) -> None:
    datasette = await make_datasette(shared_store("small-23.db"))
    for table in ("messages_fts_docsize", "[messages_fts_docsize]", '"messages_fts_docsize"'):
        for suffix in ("json", "csv"):
            answer = await datasette.client.get(
                f"/small-23.{suffix}?_shape=array&sql=select count(*) from {table}", follow_redirects=True
            )
            assert answer.status_code == 200
            assert "18" in answer.text


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("select count(*) from [messages_fts_data]", "messages_fts_data"),
        ("select count(*) from messages_fts_data ", "messages_fts_data"),
        ("select count(*) from messages_fts_data where id > :p0 ", "messages_fts_data"),
        ('select count(*) from (select * from "messages_fts_data" limit 10001)', "messages_fts_data"),
        ("select count(*) from (select * from messages_fts_data  limit 10001)", "messages_fts_data"),
        ('select count(*) from "odd ""name"" [here]"', 'odd "name" [here]'),
        ("select count(*) from (select id, role from messages_fts_data)", None),
    ],
)
def test_the_table_of_a_count_is_told_in_the_words_of_both_lines(sql: str, table: str | None) -> None:
    assert counts.counted_table(sql) == table


async def test_a_quick_count_is_shown(make_datasette: Any, shared_store: Store) -> None:
    datasette = await make_datasette(shared_store("small-23.db"))
    assert "18 rows" in (await datasette.client.get("/small-23/messages")).text


@pytest.mark.browser
def test_a_browser_finds_nothing_to_object_to(served: Callable[..., str], shared_store: Store) -> None:
    """The content policy lets every stock page's own scripts and styles work, and no script in data."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    from tests.test_browser import CHROMIUM, FLAGS

    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    address = served([shared_store("schema-23.db")])
    store = "/schema-23"
    paths = ["/-/datasette", f"{store}/-/tables", f"{store}/messages?_facet=role", f"{store}/messages/1",
             f"{store}?sql=select+*+from+sessions", f"{store}/cost_per_model"]  # fmt: skip
    said: list[str] = []
    with playwright.sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        for path in paths:
            assert page.goto(address + path).status == 200
        assert said == []
        page.goto(f"{address}{store}?sql=select+1")
        page.wait_for_selector(".CodeMirror, .cm-editor")
        page.goto(f"{address}{store}/messages")
        chooser = page.locator(".choose-columns-mobile")  # only 1.0 has it, with a handler in an attribute
        if chooser.count():
            chooser.click()
            page.wait_for_selector("dialog[open]")
        assert said == []
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')")
        page.wait_for_timeout(300)
        assert page.evaluate("window.ran") is None
        browser.close()
    assert any("Content Security Policy" in text for text in said)
