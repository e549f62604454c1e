"""The index, the short addresses, and who may see what."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger.pages import figures
from state_ledger.plugins import assets
from state_ledger.plugins.compat import IS_1
from state_ledger.plugins.stores import registry
from state_ledger.plugins.stores_page import AT_ONCE_BYTES, long_address
from state_ledger.sqlite import sqlite3
from tests.page_checks import check


@pytest.fixture
def two_profiles(tmp_path: Path, demo_store: Path, small_store: Callable[..., Path]) -> list[Path]:
    work = tmp_path / "profiles" / "work" / "state.db"
    work.parent.mkdir(parents=True)
    shutil.copyfile(demo_store, work)
    return [work, small_store(folder=tmp_path / "profiles" / "private")]


async def test_a_card_per_store_and_other_databases_as_links(
    make_datasette: Callable[..., Any], two_profiles: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "library.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE books (title)")
    datasette = await make_datasette([*two_profiles, other])
    answer = await datasette.client.get("/")
    assert answer.status_code == 200
    page = check(answer.text)
    assert "2 stores" in page.text
    assert "/work" in page.hrefs() and "/private" in page.hrefs()
    assert page.hrefs("library") == ["/library"]
    assert "last activity" in page.text and "schema 23" in page.text and "calls of unknown cost" in page.text
    assert str(tmp_path) not in answer.text, "the page does not tell the whole path"
    assert "…/profiles/work/state.db" in page.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_stock_index_and_its_json_stay_reachable(
    make_datasette: Callable[..., Any], two_profiles: list[Path]
) -> None:
    client = (await make_datasette(two_profiles)).client
    stock = await client.get("/-/datasette")
    assert stock.status_code == 200 and "All stores" in stock.text and "stock.css" in stock.text
    assert (await client.get("/.json")).status_code == 200


async def test_pages_live_under_a_base_url(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    datasette = await make_datasette(demo_store, settings={"base_url": "/ledger/"})
    for path, said in (("/", "1 store"), ("/demo", "Needs attention"),
                       ("/demo/-/cost", "Group by"), ("/demo/-/tables", "ledger-back"),
                       ("/-/datasette", "stock.css")):  # fmt: skip
        answer = await datasette.client.get(path)
        assert answer.status_code == 200 and said in answer.text, path
        if "stock" not in said and "back" not in said:
            local = [h for h in check(answer.text).hrefs() if not h.startswith("#")]
            assert local and all(h.startswith("/ledger/") for h in local)


def test_addresses_of_other_databases_are_left_alone() -> None:
    stores = {"work", "a.b"}
    assert long_address("/work", False, stores) == "/work/-/home"
    assert long_address("/work", True, stores) == "/work"
    assert long_address("/a~2Eb", False, stores) == "/a~2Eb/-/home"
    assert long_address("/work/-/tables", False, stores) == "/work"
    for path in ("/library", "/library/-/tables", "/work.json", "/work/sessions", "/work/", "/-/plugins"):
        assert long_address(path, False, stores) == path


async def test_what_a_visitor_may_not_see_is_neither_shown_nor_named(
    make_datasette: Callable[..., Any], two_profiles: list[Path]
) -> None:
    allow = {"databases": {"work": {"allow": {"id": "owner"}}}}
    datasette = await make_datasette(two_profiles, **({"config": allow} if IS_1 else {"metadata": allow}))
    client = datasette.client
    assert set(registry(datasette).stores) == {"work", "private"}
    for path in ("/work", "/work/-/home", "/work/-/cost", "/work/-/cost?tz=Nope"):
        assert (await client.get(path)).status_code == 403, path
    for path in ("/", "/private", "/private/-/cost"):
        answer = await client.get(path)
        assert answer.status_code == 200
        assert "/work" not in check(answer.text).hrefs()
    owner = {"ds_actor": datasette.sign({"a": {"id": "owner"}}, "actor")}
    seen = await client.get("/", cookies=owner)
    assert "/work" in check(seen.text).hrefs()
    assert (await client.get("/work", cookies=owner)).status_code == 200


async def test_a_store_that_does_not_exist_is_not_found(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    client = (await make_datasette(demo_store)).client
    assert (await client.get("/nowhere/-/home")).status_code == 404
    assert (await client.get("/nowhere/-/cost")).status_code == 404


async def test_a_snapshot_says_that_it_is_one(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    registry(datasette).stores["demo"].snapshot_taken_at = 1767225600.0
    for path in ("/", "/demo", "/demo/-/cost"):
        assert "napshot" in check((await datasette.client.get(path)).text).text, path


async def test_static_files_are_kept_for_a_year_under_their_own_version(
    make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    client = (await make_datasette(demo_store)).client
    path = assets.static_path("ledger.css")
    answer = await client.get(path)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    stale = await client.get(path.replace(assets.version(), "0" * 12))
    assert stale.status_code == 200 and stale.headers["cache-control"] == "no-cache"
    assert (await client.get(assets.static_path("pyproject.toml"))).status_code == 404


async def test_templates_are_found_once_also_when_a_checkout_serves_itself(
    make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    folder = str(assets.folder("templates"))
    for options in ({}, {"template_dir": folder}):
        datasette = await make_datasette(demo_store, **options)
        environment = getattr(datasette, "jinja_env", None) or datasette._jinja_env
        path = environment.loader.loaders[0].searchpath
        assert [place for place in path if Path(place) == Path(folder)] == [folder]
        assert path[-1] != folder, "Datasette's own templates come last"


@pytest.fixture
def large_store(tmp_path: Path, demo_store: Path) -> Path:
    """The demo store with so much beside it that the index does not wait for its figures."""
    path = tmp_path / "large.db"
    shutil.copyfile(demo_store, path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE ballast (filling BLOB)")
        connection.execute("INSERT INTO ballast VALUES (zeroblob(?))", (AT_ONCE_BYTES,))
    connection.close()
    return path


async def test_a_large_store_has_its_card_at_once_and_its_figures_on_request(
    make_datasette: Callable[..., Any], large_store: Path, small_store: Callable[..., Path]
) -> None:
    datasette = await make_datasette([small_store("small.db"), large_store])
    index = check((await datasette.client.get("/")).text)
    assert figures.size(large_store.stat().st_size) in index.text and "Add up the last 30 days" in index.text
    assert index.text.count("last activity") == 1, "the small store has its figures"
    [script] = [each["src"] for each in index.all("script") if each["src"].endswith("/cards.js")]
    source = await datasette.client.get(script)
    assert source.headers["content-type"] == "text/javascript; charset=utf-8" and "data-figures" in source.text

    [href] = index.hrefs("figures=1")
    whole = await datasette.client.get(href)
    assert check(whole.text).text.count("last activity") == 2
    assert "Add up" not in whole.text and "cards.js" not in whole.text

    card = await datasette.client.get("/large/-/card")
    assert "default-src 'none'" in card.headers["content-security-policy"]
    assert card.text.strip() in whole.text, "the card is the one of the whole page"
    assert "<html" not in card.text and "last activity" in card.text


async def test_the_card_of_a_store_is_for_those_who_may_see_it(
    make_datasette: Callable[..., Any], large_store: Path
) -> None:
    deny = {"databases": {"large": {"allow": False}}}
    datasette = await make_datasette(large_store, **{"config" if IS_1 else "metadata": deny})
    assert (await datasette.client.get("/large/-/card")).status_code == 403
    assert (await datasette.client.get("/nowhere/-/card")).status_code == 404
    assert "large" not in (await datasette.client.get("/")).text
