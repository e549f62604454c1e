"""The pages over all stores through Datasette: figures, links, permissions, what is left out, what has changed."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state_ledger import questions
from state_ledger.plugins.compat import IS_1
from state_ledger.settings import Settings
from state_ledger.shelf import Shelf
from state_ledger.shelf import members as members_of
from state_ledger.shelf.catalogue import catalogue
from state_ledger.sqlite import sqlite3
from tests import books
from tests.books import call, message, session
from tests.page_checks import check, exact_amount

ALL = "/-/ledger/all"
NOON = 1780315200.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, demo_store: Path) -> dict[str, Path]:
    """Two stores of one file name, one of them with a copy of a session of the other; and a broken one."""
    folder = tmp_path_factory.mktemp("all")
    demo, small = folder / "demo" / "state.db", folder / "small" / "state.db"
    for path in (demo, small):
        path.parent.mkdir()
    shutil.copyfile(demo_store, demo)
    with closing(books.open_books(demo)) as connection:
        copied, started = connection.execute(
            "SELECT session_id, started_at FROM ledger_sessions WHERE cost_usd > 0 ORDER BY session_id LIMIT 1"
        ).fetchone()
    books.write(
        small,
        sessions=[session("only-here", title="Beacon", input_tokens=1000, estimated_cost_usd=0.25,
                          cost_status="estimated", cost_source="provider"),
                  session(copied, started_at=started)],
        messages=[message("only-here", NOON, content="the lighthouse at noon")],
        usage=[call(copied, input_tokens=5, estimated_cost_usd=0.01)],
    )  # fmt: skip
    broken = folder / "broken.db"
    broken.write_bytes(small.read_bytes()[:4096] + b"\xff" * 8192)
    return {"demo-state": demo, "small-state": small, "broken": broken}


def cost_of(path: Path) -> float:
    with closing(books.open_books(path)) as connection:
        return sum(row["cost_usd"] or 0 for row in questions.ask(connection, "cost_per_model").records())


async def test_the_pages_hold_together(make_datasette: Callable[..., Any], made: dict[str, Path]) -> None:
    client = (await make_datasette(list(made.values()))).client
    index = check((await client.get("/")).text)
    assert ALL in index.hrefs() and "2 stores" in index.text
    assert "broken is left out: SQLite cannot read" in index.text
    home = check((await client.get(ALL)).text)
    assert "broken is left out" in home.text and "1 copy of sessions left out" in home.text
    assert {"/demo-state", "/small-state", f"{ALL}/cost", f"{ALL}/cache", f"{ALL}/search"} <= set(home.hrefs())
    cost = (await client.get(f"{ALL}/cost?period=all")).text
    page = check(cost)
    expected = cost_of(made["demo-state"]) + 0.25
    assert exact_amount(cost) == pytest.approx(expected, abs=1e-9), "the sum of the stores, the copy once"
    assert any("store=small-state" in href for href in page.hrefs(f"{ALL}/cost_sessions?"))
    one = (await client.get(f"{ALL}/cost?period=all&store=small-state&group=model")).text
    assert exact_amount(one) == 0.25
    assert all("store=small-state" in href for href in check(one).hrefs(f"{ALL}/cost_"))
    assert check((await client.get(f"{ALL}/cost?store=nowhere")).text).text.count("choose among demo-state, small")
    for path in ("/demo-state", "/demo-state/-/cost"):
        assert ALL in check((await client.get(path)).text).hrefs(), "the switcher leads there"
    cache = check((await client.get(f"{ALL}/cache")).text)
    assert len(cache.all("table")) == 4 and "the ratio of the sums" in cache.text
    lines = [row["href"] for row in page.all("a") if "/work/" in row.get("href", "")]
    assert all(line.startswith(f"{ALL}/work/") for line in lines)
    assert (await client.get(f"{ALL}/session/only-here")).headers["location"] == "/small-state/-/session/only-here"
    assert (await client.get(f"{ALL}/session/nobody")).status_code == 404


async def test_a_question_is_a_page_json_and_csv(
    make_datasette: Callable[..., Any], made: dict[str, Path]
) -> None:
    client = (await make_datasette([made["demo-state"], made["small-state"]])).client
    members = members_of([made["demo-state"], made["small-state"]])
    with closing(Shelf(Settings())) as shelf, shelf.reading(members) as core:
        for name in ("cost_per_store", "top_work", "session_messages", "messages_per_day", "duplicate_sessions"):
            assert name in catalogue()
            check((await client.get(f"{ALL}/{name}")).text)
            body = (await client.get(f"{ALL}/{name}.json?tz=UTC")).json()
            expected = core.ask(name, {"tz": "UTC"} if "tz" in body["parameters"] else {})
            assert body["ok"] and body["columns"] == expected.columns and body["rows"] == expected.records(), name
            assert body["stores"] == ["demo-state", "small-state"] and body["left_out"] == {}
            assert body["copies_left_out"] == 1
    answer = await client.get(f"{ALL}/cost_sessions.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert {row["store"] for row in rows} == {"demo-state", "small-state"}
    moved = await client.get(f"{ALL}/session_messages.csv?session=only-here")
    assert moved.headers["location"] == "/small-state/session_messages.csv?session=only-here"
    for path, status in (("cost_per_model.json?since=x", 400), ("cost_per_model?limit=-1", 400),
                         ("cost_per_model.csv?tz=Nope", 400), ("nothing.json", 404)):  # fmt: skip
        assert (await client.get(f"{ALL}/{path}")).status_code == status, path


async def test_a_search_over_all_stores_leads_to_the_transcript_in_each(
    make_datasette: Callable[..., Any], made: dict[str, Path]
) -> None:
    client = (await make_datasette(list(made.values()))).client
    page = check((await client.get(f"{ALL}/search?q=lighthouse")).text)
    assert "/small-state/-/session/only-here?message=1#m1" in page.hrefs() and "small-state" in page.text
    titles = check((await client.get(f"{ALL}/search?q=beacon")).text)
    assert f"{ALL}/session/only-here" in titles.hrefs()
    body = (await client.get(f"{ALL}/search.json?q=the&limit=3")).json()
    assert len(body["hits"]) == 3 and body["after"] and {hit["store"] for hit in body["hits"]} <= set(made)
    following = (await client.get(f"{ALL}/search.json", params={"q": "the", "limit": 3, "after": body["after"]})).json()
    both = [(hit["store"], hit["id"]) for hit in body["hits"] + following["hits"]]
    assert len(set(both)) == 6
    assert (await client.get(f"{ALL}/search?q=the&after=x")).status_code == 400
    assert (await client.get("/-/find?store=&q=a+b")).headers["location"] == f"{ALL}/search?q=a+b"


@pytest.fixture
def forbidding() -> dict[str, Any]:
    rules = {"databases": {"demo-state": {"allow": {"id": "owner"}}, "broken": {"allow": {"id": "owner"}}}}
    return {"config": rules} if IS_1 else {"metadata": rules}


async def test_a_store_that_a_visitor_may_not_see_is_in_no_answer(
    make_datasette: Callable[..., Any], made: dict[str, Path], forbidding: dict[str, Any]
) -> None:
    datasette = await make_datasette(list(made.values()), **forbidding)
    owner = {"ds_actor": datasette.sign({"a": {"id": "owner"}}, "actor")}
    # The owner first, so that everything has been read when the other asks.
    for cookies, stores in ((owner, ["demo-state", "small-state"]), ({}, ["small-state"])):
        body = (await datasette.client.get(f"{ALL}/cost_per_store.json", cookies=cookies)).json()
        assert body["stores"] == stores and [r["store"] for r in body["rows"]] == stores
    for path in ("", "/cost", "/cache", "/search?q=the", "/stores", "/recent_sessions", "/duplicate_sessions.json"):
        text = (await datasette.client.get(f"{ALL}{path}")).text
        assert "demo-state" not in text and "broken" not in text, path
    body = (await datasette.client.get(f"{ALL}/cost_per_model.json")).json()
    assert sum(row["cost_usd"] or 0 for row in body["rows"]) == pytest.approx(0.26), "where no other copy is known"
    assert (await datasette.client.get(f"{ALL}/cost?store=demo-state")).status_code == 400
    hits = (await datasette.client.get(f"{ALL}/search.json?q=the")).json()["hits"]
    assert {hit["store"] for hit in hits} == {"small-state"}


async def test_who_may_see_no_store_sees_none_of_it(make_datasette: Callable[..., Any], made: dict[str, Path]) -> None:
    rules = {"allow": {"id": "owner"}}
    datasette = await make_datasette(made["small-state"], **({"config": rules} if IS_1 else {"metadata": rules}))
    for path in ("", "/cost", "/search?q=a", "/stores.json", "/live.json", "/session/only-here"):
        assert (await datasette.client.get(f"{ALL}{path}")).status_code == 403, path


async def test_the_only_store_is_still_refused_with_its_reason(
    make_datasette: Callable[..., Any], small_store: Callable[..., Path]
) -> None:
    from state_ledger.plugins.store_database import StoreRefused

    path = small_store()
    path.write_bytes(b"\x00" * 4096)
    with pytest.raises(StoreRefused, match="zero bytes"):
        await make_datasette(path)


async def test_changes_are_told_and_nothing_else(
    make_datasette: Callable[..., Any], made: dict[str, Path], tmp_path: Path
) -> None:
    paths = [Path(shutil.copy(made["small-state"], tmp_path / f"{name}.db")) for name in ("one", "two")]
    for path in paths:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = wal").fetchall()
    datasette = await make_datasette(paths)
    client = datasette.client
    asked: list[str] = []
    for name in ("one", "two"):
        database = datasette.get_database(name)
        run = database.execute_fn
        database.execute_fn = lambda fn, run=run, name=name: asked.append(name) or run(fn)
    page = check((await client.get(ALL)).text)
    (place,) = [tag for kind, tag in page.tags if "data-live" in tag]
    assert place["data-live"] == f"{ALL}/live.json"
    tag = {"If-None-Match": f'"{place["data-version"]}"'}
    asked.clear()
    for _ in range(5):
        assert (await client.get(f"{ALL}/live.json", headers=tag)).status_code == 304
    assert asked == [], "no question is asked of a store while nothing changes"
    single = (await client.get("/one/-/live.json")).headers["etag"]
    with closing(sqlite3.connect(paths[1], isolation_level=None, timeout=0)) as writer:
        writer.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('only-here', 'user', 'x', 5)"
        )
        # Nobody who looks keeps the writer from emptying its log.
        assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    changed = await client.get(f"{ALL}/live.json", headers=tag)
    assert changed.status_code == 200 and changed.json()["version"] != place["data-version"]
    unchanged = await client.get("/one/-/live.json", headers={"If-None-Match": single})
    assert unchanged.status_code == 304, "the other store"
    assert (await client.get(f"{ALL}/live.json?store=one", headers=tag)).status_code == 200
    assert (await client.get("/nowhere/-/live.json")).status_code == 404
