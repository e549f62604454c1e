"""Stock pages: every store is described, searchable and uncluttered, and the user's own word wins."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger.assets import folder
from state_ledger.plugins import compat
from state_ledger.sqlite import sqlite3

from .conftest import fetch

OLD = {"messages", "schema_version", "sessions"}
AT_22 = {
    *OLD, "state_meta", "session_model_usage", "gateway_routing", "compression_locks", "async_delegations",
}  # fmt: skip
DATA = {
    "small-1.db": OLD,
    "small-11.db": {*OLD, "state_meta"},
    "small-22-to-23.db": AT_22,
    "small-22-to-23-optimized.db": AT_22,
    "small-23-cjk.db": AT_22,
    "schema-25.db": {*AT_22, "system_prompts"},
    "small-30-handmade.db": {
        *AT_22, "system_prompts", "conversation_generations", "gateway_heartbeats", "gateway_hygiene_state",
        "session_turn_leases",
    },
}  # fmt: skip
"""What a person would call data in each of these stores."""


def listed(page: str) -> list[str]:
    """The tables and views that a stock database page lists."""
    tables = re.findall(r'<h3><a href="[^"]*">([^<]*)</a>', page)
    part = re.search(r'(?s)id="views".*?</ul>', page)
    return tables + (re.findall(r'<a href="[^"]*">([^<]*)</a>', part[0]) if part else [])


def described_columns(page: str) -> dict[str, str]:
    return dict(re.findall(r"(?s)<dt>(.*?)</dt><dd>(.*?)</dd>", page))


async def get(datasette: Any, path: str) -> Any:
    return await datasette.client.get(path)


@pytest.mark.parametrize("name", DATA)
async def test_stock_database_page_lists_only_data(name: str, shared_store: Any, make_datasette: Any) -> None:
    datasette = await make_datasette(shared_store(name))
    page = await get(datasette, f"/{name[:-3]}/-/tables")
    assert page.status_code == 200
    assert sorted(listed(page.text)) == sorted(DATA[name])


async def test_hidden_tables_can_still_be_listed_and_opened(shared_store: Any, make_datasette: Any) -> None:
    datasette = await make_datasette(shared_store("small-25.db"))
    page = await get(datasette, "/small-25/-/tables?_show_hidden=1")
    assert "messages_fts" in listed(page.text)
    assert (await get(datasette, "/small-25/messages_fts_trigram_src")).status_code == 200


async def test_a_view_of_the_users_own_is_listed(small_store: Any, make_datasette: Any) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIEW my_view AS SELECT id FROM sessions")
        connection.execute("CREATE VIEW messages_fts_src AS SELECT id, content FROM messages")
    datasette = await make_datasette(path)
    assert sorted(listed((await get(datasette, "/state/-/tables")).text)) == sorted({*OLD, "my_view"})


async def test_left_over_index_tables_are_hidden_and_left_over_usage_is_not(
    small_store: Any, make_datasette: Any
) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE fts_v22_trash_1 (x)")
        connection.execute("CREATE TABLE session_model_usage_v21 (session_id TEXT, model TEXT)")
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(body)")
    datasette = await make_datasette(path)
    page = await get(datasette, "/state/-/tables")
    assert sorted(listed(page.text)) == sorted({*OLD, "session_model_usage_v21"})


async def test_columns_that_the_store_has_are_described_and_no_others(shared_store: Any, make_datasette: Any) -> None:
    datasette = await make_datasette([shared_store("small-1.db"), shared_store("small-25.db")])
    old = described_columns((await get(datasette, "/small-1/sessions")).text)
    new = described_columns((await get(datasette, "/small-25/sessions")).text)
    assert "the prompts (tokens)" in old["input_tokens"] and "Uncached" in old["input_tokens"]
    assert "epoch seconds" in old["started_at"]
    assert "cache_read_tokens" not in old and "last_activity_at" not in old
    for name, described in (("small-1", old), ("small-25", new)):
        assert set(described) == set(await datasette.get_database(name).table_columns("sessions"))
    assert "Continuations" in (await get(datasette, "/small-1/sessions")).text


@pytest.mark.parametrize("name", ["small-1.db", "small-10.db", "small-11.db", "small-23.db", "small-30-handmade.db"])
async def test_search_on_messages_finds_a_word_and_nothing_else(
    name: str, shared_store: Any, make_datasette: Any
) -> None:
    path = shared_store(name)
    with sqlite3.connect(path) as connection:
        session, total = connection.execute("SELECT min(id), (SELECT count(*) FROM messages) FROM sessions").fetchone()
        added = connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1767225600)",
            (session, "hello harbour #123"),
        ).lastrowid
    connection.close()
    datasette = await make_datasette(path)
    stem = name[:-3]

    async def found(words: str) -> list[int]:
        answer = await get(datasette, f"/{stem}/messages.json?_search={words}&_shape=objects&_size=1000")
        assert answer.status_code == 200
        return [row["id"] for row in answer.json()["rows"]]

    assert total > 0
    assert await found("harbour") == [added]
    assert await found("%23123") == [added]
    assert await found("zzzzqx") == []
    page = (await get(datasette, f"/{stem}/messages")).text
    assert 'name="_search"' in page


async def test_search_without_an_index_is_an_error_and_never_every_row(small_store: Any, make_datasette: Any) -> None:
    datasette = await make_datasette(small_store())
    answer = await get(datasette, "/state/messages.json?_search=zzzz&_shape=objects")
    assert answer.status_code == 400
    assert "hello" not in answer.text
    assert (await get(datasette, "/state/messages.json?_shape=objects")).json()["rows"]


async def test_newest_rows_come_first(shared_store: Any, make_datasette: Any) -> None:
    datasette = await make_datasette(shared_store("schema-23.db"))
    rows = (await get(datasette, "/schema-23/messages.json?_shape=objects")).json()["rows"]
    ids = [row["id"] for row in rows]
    assert len(ids) == 50 and ids == sorted(ids, reverse=True)
    rows = (await get(datasette, "/schema-23/sessions.json?_shape=objects")).json()["rows"]
    starts = [row["started_at"] for row in rows]
    assert len(starts) > 1 and starts == sorted(starts, reverse=True)


async def test_a_session_is_linked_by_its_id_and_never_as_none(shared_store: Any, make_datasette: Any) -> None:
    path = shared_store("small-23.db")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sessions SET title = NULL")
        session = connection.execute("SELECT session_id FROM messages ORDER BY id DESC LIMIT 1").fetchone()[0]
    connection.close()
    datasette = await make_datasette(path)
    page = (await get(datasette, "/small-23/messages")).text
    assert f">{session}</a>" in page and ">None</a>" not in page


async def test_the_users_own_words_win_key_by_key(shared_store: Any, make_datasette: Any) -> None:
    mine = {
        "title": "Our agents",
        "databases": {
            "small-23": {
                "description": "The store of the office",
                "tables": {
                    "sessions": {"sort": "id", "columns": {"source": "Where from"}},
                    "messages": {"size": 3},
                    "state_meta": {"hidden": True},
                },
            }
        },
    }
    datasette = await make_datasette(shared_store("small-23.db"), metadata=mine)
    index = (await get(datasette, "/-/datasette")).text
    assert "Our agents" in index and "without changing it" in index
    database = (await get(datasette, "/small-23/-/tables")).text
    assert "The store of the office" in database and "only read here" not in database
    assert "state_meta" not in listed(database)
    sessions = await get(datasette, "/small-23/sessions")
    columns = described_columns(sessions.text)
    assert columns["source"] == "Where from" and "Uncached" in columns["input_tokens"]
    rows = (await get(datasette, "/small-23/sessions.json?_shape=objects")).json()["rows"]
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    messages = (await get(datasette, "/small-23/messages.json?_shape=objects&_search=zzzzqx")).json()["rows"]
    assert messages == []
    assert len((await get(datasette, "/small-23/messages.json?_shape=objects")).json()["rows"]) <= 3


async def test_a_store_that_the_user_closed_stays_closed(small_store: Any, make_datasette: Any) -> None:
    mine = {"databases": {"state": {"tables": {"messages": {"allow": False}}}}}
    datasette = await make_datasette(small_store(), metadata=mine)
    assert (await get(datasette, "/state/messages")).status_code == 403
    assert (await get(datasette, "/state/sessions")).status_code == 200
    assert "messages" not in listed((await get(datasette, "/state/-/tables")).text)


async def test_what_is_no_store_keeps_its_own_face(tmp_path: Path, make_datasette: Any) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)")
        connection.execute("INSERT INTO messages (content) VALUES ('mine')")
    connection.close()
    datasette = await make_datasette(path)
    page = (await get(datasette, "/state/messages")).text
    assert "<dt>" not in page and 'name="_search"' not in page
    assert "state-ledger</h1>" not in (await get(datasette, "/-/datasette")).text


async def test_lookups_do_not_change_what_the_next_one_finds(shared_store: Any, make_datasette: Any) -> None:
    mine = {"databases": {"small-23": {"tables": {"sessions": {"columns": {"id": "Mine"}}}}}}
    path = shared_store("small-23.db")
    first = await make_datasette(path, metadata=mine)
    for _ in range(2):
        assert described_columns((await get(first, "/small-23/sessions")).text)["id"] == "Mine"
    second = await make_datasette(path)
    assert described_columns((await get(second, "/small-23/sessions")).text)["id"].startswith("Name of")


async def test_a_checkout_served_as_a_folder_doubles_nothing(
    small_store: Callable[..., Path], tmp_path: Path, make_datasette: Any
) -> None:
    checkout = tmp_path / "checkout"
    small_store(folder=checkout)  # checkout/state.db has the very name of the template
    (checkout / "metadata.yaml").write_bytes(folder("metadata.yaml").read_bytes())
    datasette = await make_datasette([], config_dir=checkout)
    page = (await get(datasette, "/state/sessions")).text
    columns = described_columns(page)
    live = await datasette.get_database("state").table_columns("sessions")
    assert set(columns) == set(live) and page.count("<dt>") == len(live)
    assert page.count("One row per session") == 1
    assert sorted(listed((await get(datasette, "/state/-/tables")).text)) == sorted(OLD)
    if compat.IS_1:
        kept = await datasette.get_resource_metadata("state", "gateway_heartbeats")
        assert kept == {}, "a table that the store does not have"


def test_a_checkout_is_served_by_the_command_line(
    served: Callable[..., str], shared_store: Any, tmp_path: Path
) -> None:
    shared_store("small-23.db").rename(tmp_path / "state.db")
    (tmp_path / "metadata.yaml").write_bytes(folder("metadata.yaml").read_bytes())
    for name in ("plugins", "templates", "static"):
        (tmp_path / name).symlink_to(folder(name))
    address = served([tmp_path])
    status, page = fetch(f"{address}/state/messages?_search=zzzzqx")
    assert status == 200 and "messages: 0 rows where search matches" in page
    assert page.count("<dt>content</dt>") == 1
