"""The pages over the books of a fleet, through Datasette: figures, links, narrowing, who sees them, what goes wrong."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from state_ledger.errors import StateLedgerError
from state_ledger.fleet.places import VARIABLES, Where, configured
from state_ledger.fleet.reading import Selection
from state_ledger.plugins import fleet
from state_ledger.plugins.compat import IS_1
from state_ledger.plugins.heavy_work import OF_FLEET, SMALL, kind_of
from state_ledger.plugins.routes import FLEET
from state_ledger.settings import Settings
from state_ledger.shelf import ask_stores
from tests import fleet_books, prepared, routes
from tests.conftest import free_port, unix
from tests.fleet_books import SECRET, needs_engine
from tests.page_checks import check, exact_amount
from tests.postgres import postgres

__all__ = ["postgres"]

Make = Callable[..., Any]
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder for this file, so that the lake is read into an engine once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        for variable in VARIABLES.values():
            patch.delenv(variable, raising=False)
        yield folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    return fleet_books.lake(tmp_path_factory.mktemp("fleet"))


def options(settings: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Options of an instance with these settings of ours; `given` stands beside the plugins."""
    return {"config" if IS_1 else "metadata": {"plugins": {"state-ledger": settings}, **given}}


async def ready(datasette: Any) -> Any:
    """The fleet of an instance once it was read, however long that takes on this machine."""
    desk = fleet.desk(datasette)
    assert desk is not None
    await asyncio.to_thread(desk.fleet.read, lambda reading: None, Selection(), PATIENCE_S)
    return datasette.client


@pytest.fixture
def started(make_datasette: Make, lake: Path) -> Callable[..., Any]:
    """`await started(paths, **settings)`: what asks an instance that shows the lake, once it was read."""

    async def start(paths: Any = (), **settings: Any) -> Any:
        return await ready(await make_datasette(list(paths), **options({"lake": str(lake), "zone": "UTC", **settings})))

    return start


def status(answer: Any) -> int:
    return int(answer.status_code)


@needs_engine
async def test_the_pages_hold_together_without_any_store(started: Any, lake: Path) -> None:
    client = await started()
    index = check((await client.get("/")).text)
    assert FLEET in index.hrefs() and "2 hosts · 3 stores" in index.text and "No store here" not in index.text
    home = check((await client.get(f"{FLEET}?tz=UTC")).text)
    assert "2 hosts" in home.text and "1 copy of sessions left out" in home.text and "As of pushes from" in home.text
    assert "Answered by DuckDB." in home.text and f"{FLEET}?host=web-01" in home.hrefs()
    cost = (await client.get(f"{FLEET}/cost?period=all")).text
    stores = [each for each in (lake.parent / "stores").glob("*/state.db")]
    expected = ask_stores(stores, "cost_per_model", {"tz": "UTC"}, settings=Settings(zone="UTC"))
    total = sum(row["cost_usd"] or 0 for row in expected.result.records())
    assert exact_amount(cost) == pytest.approx(total, abs=1e-9) and total == pytest.approx(6.76)
    page = check(cost)
    for group in ("host", "store", "model", "day", "profile", "conversation", "work"):
        assert any(f"group={group}" in href for href in page.hrefs(f"{FLEET}/cost?")), group
    assert any("host=db.example.org" in href for href in page.hrefs(f"{FLEET}/cost_sessions?"))
    cache = check((await client.get(f"{FLEET}/cache")).text)
    assert len(cache.all("table")) >= 4 and "Cache ratio per host" in cache.text
    for path in ("", "/cost", "/cache", "/lineage", "/ops"):
        assert any(href.startswith(f"{FLEET}{path}") for href in page.hrefs(FLEET)), path


@needs_engine
async def test_narrowed_pages_stay_narrowed_and_add_up(started: Any) -> None:
    client = await started()

    async def amount(query: str) -> float:
        return exact_amount((await client.get(f"{FLEET}/cost?period=all{query}")).text)

    assert await amount("&host=web-01") + await amount("&host=db.example.org") == pytest.approx(6.76)
    assert await amount("&host=web-01&profile=coder") == pytest.approx(2.0)
    assert await amount("&host=web-01,db.example.org&profile=default") == pytest.approx(4.76)
    assert await amount("&store=web-01/coder&store=db.example.org/default") == pytest.approx(6.0)
    home = check((await client.get(f"{FLEET}?host=web-01")).text)
    assert "Stores of web-01" in home.text and "2 stores of 3" in home.text
    kept = [href for href in home.hrefs(FLEET) if "host=" not in href and "store=" not in href]
    assert set(kept) == {FLEET}, "but for the whole fleet"
    assert {"name": "host", "value": "web-01", "type": "hidden"} in [
        {key: each.get(key, "") for key in ("name", "value", "type")} for each in home.all("input")
    ]
    shown = check((await client.get(f"{FLEET}/recent_sessions?profile=coder&limit=5")).text)
    assert "Coder at work" in shown.text and "Lighthouse" not in shown.text
    for query, choices in (("host=nowhere", "choose among db.example.org, web-01"), ("profile=x", "coder, default"),
                           ("store=web-01", "web-01/coder")):  # fmt: skip
        answer = await client.get(f"{FLEET}?{query}")
        assert status(answer) == 400 and choices in check(answer.text).text
    assert status(await client.get(f"{FLEET}/hosts.json?host=nowhere")) == 400
    none = check((await client.get(f"{FLEET}/hosts?host=db.example.org&profile=coder")).text)
    assert "No store is in this choice" in none.text


@needs_engine
async def test_a_question_is_a_page_json_and_csv_as_over_several_stores(started: Any, lake: Path) -> None:
    client = await started()
    stores = sorted((lake.parent / "stores").glob("*/state.db"))
    for name in ("cost_per_model", "sessions_per_source", "estimated_vs_actual"):
        body = (await client.get(f"{FLEET}/{name}.json")).json()
        expected = ask_stores(stores, name, settings=Settings(zone="UTC")).result
        assert body["ok"] and body["engine"] == "duckdb" and body["hosts"] == ["db.example.org", "web-01"]
        assert body["columns"] == expected.columns and body["rows"] == expected.records(), name
        rows = list(csv.DictReader(io.StringIO((await client.get(f"{FLEET}/{name}.csv")).text)))
        assert len(rows) == len(body["rows"]) and list(rows[0]) == body["columns"]
        check((await client.get(f"{FLEET}/{name}")).text)
    hosts = (await client.get(f"{FLEET}/hosts.json")).json()["rows"]
    assert {row["host"]: (row["stores"], row["sessions"]) for row in hosts} == {
        "web-01": (2, 5), "db.example.org": (1, 2),
    }  # fmt: skip
    sizes = (await client.get(f"{FLEET}/store_sizes.json")).json()["rows"]
    assert len(sizes) == 3 and sum(row["share"] for row in sizes) == pytest.approx(1)
    first = list(csv.DictReader(io.StringIO((await client.get(f"{FLEET}/cost_sessions.csv?limit=1")).text)))
    assert [row["session_id"] for row in first] == ["d1"] and first[0]["host"] == "db.example.org"
    for path, expected_status in (("cost_per_model.json?since=x", 400), ("cost_per_model?limit=-1", 400),
                                  ("cost_per_model.csv?tz=Nope", 400), ("nothing.json", 404), ("nothing", 404),
                                  ("cost?since=yesterday", 400)):  # fmt: skip
        assert status(await client.get(f"{FLEET}/{path}")) == expected_status, path


@needs_engine
async def test_lineage_leads_to_a_session_and_its_messages_where_they_were_pushed(started: Any) -> None:
    client = await started()
    plain = check((await client.get(f"{FLEET}/lineage")).text)
    assert "Longest conversations" in plain.text and "missing parent" in plain.text
    of_one = check((await client.get(f"{FLEET}/lineage?session=s2")).text)
    assert f"{FLEET}/session/s1" in of_one.hrefs() and f"{FLEET}/session/s2" in of_one.hrefs()
    for kind in ("conversation", "work"):
        moved = await client.get(f"{FLEET}/{kind}/s2?host=web-01")
        assert moved.headers["location"] == f"{FLEET}/lineage?session=s2&host=web-01#lineage_{kind}"
        assert f"lineage_{kind}" in [tag.get("id") for _, tag in of_one.tags]
    answer = (await client.get(f"{FLEET}/session/s1")).text
    page = check(answer)
    assert "Lighthouse" in page.text and "web-01/default" in page.text and "the keeper's key is" in page.text
    assert "<b>kept</b>" not in answer and "&lt;b&gt;kept" in answer
    assert "unsaid" not in answer and "far away" not in answer, "no message of the same id in another store"
    rest = check((await client.get(f"{FLEET}/session/s1?after=1")).text)
    assert "the keeper's key is" not in rest.text and "From the beginning" in rest.text
    other = check((await client.get(f"{FLEET}/session/c1")).text)
    assert "lake push --with-messages" in other.text and "unsaid" not in other.text
    for path, expected in (
        ("session/nobody", 404), ("session/s1?host=db.example.org", 404), ("session/s1?after=x", 400),
    ):  # fmt: skip
        assert status(await client.get(f"{FLEET}/{path}")) == expected, path


@needs_engine
async def test_ops_shows_what_each_question_says_and_nothing_that_writes(started: Any) -> None:
    client = await started()
    answer = (await client.get(f"{FLEET}/ops")).text
    page = check(answer)
    assert "This page only reads" in page.text and 'method="post"' not in answer.lower()
    for name in ("pushes", "store_sizes", "open_idle_sessions", "sessions_by_age", "orphans", "locks", "delegations"):
        for end in ("", ".json", ".csv"):
            assert any(href.partition("?")[0] == f"{FLEET}/{name}{end}" for href in page.hrefs()), name
    assert "db.example.org/default" in page.text


@needs_engine
async def test_secrets_are_replaced_again_where_the_instance_redacts(started: Any) -> None:
    client = await started(redact=True)
    for path in ("session/s1", "session_messages?session=s1", "session_messages.json?session=s1",
                 "session_messages.csv?session=s1"):  # fmt: skip
        answer = await client.get(f"{FLEET}/{path}")
        assert status(answer) == 200 and "keeper" in answer.text, path
        assert SECRET not in answer.text and "[redacted: " in answer.text, path
    open_client = await started()
    assert SECRET in (await open_client.get(f"{FLEET}/session/s1")).text, "else there would be nothing to replace"


ONE_TIME = re.compile(r'nonce="[^"]*"|name="csrftoken" value="[^"]*"|[\d.]+ ?ms')
"""What is of one request."""


def our_addresses(datasette: Any) -> list[str]:
    values = {"session": ("s1",), "kind": ("session",), "query": ("hosts",)}
    return [
        address
        for pattern, _view in datasette._routes()
        if pattern.pattern.startswith(FLEET)
        for address in routes.addresses(pattern, values)
    ]


@needs_engine
@pytest.mark.parametrize("rule", ["instance", "fleet"])
async def test_who_may_not_see_the_fleet_learns_nothing_of_it(
    make_datasette: Make, lake: Path, tmp_path: Path, small_store: Any, rule: str
) -> None:
    """Two instances of which one has a fleet and the other a lake of which nothing can be read answer alike."""
    allow = {"id": "ada"}
    both, store = [], small_store()
    for url in (lake, tmp_path / "nothing"):
        settings = {"lake": str(url)} | ({"fleet_allow": allow} if rule == "fleet" else {})
        given = {"allow": allow} if rule == "instance" else {}
        both.append(await make_datasette(store, **options(settings, **given)))
    await ready(both[0])
    addresses = our_addresses(both[0])
    assert len(addresses) >= 10
    guessed = ("/nothing", "?host=web-01", "?host=nowhere", "/cost?since=x", "/session/nobody")
    for address in (*addresses, *(f"{FLEET}{each}" for each in guessed), "/", "/state"):
        full, blank = [await each.client.get(address) for each in both]
        if address.startswith(FLEET):
            assert status(full) == 403, address
        assert (status(full), ONE_TIME.sub("", full.text)) == (status(blank), ONE_TIME.sub("", blank.text)), address
        assert FLEET not in full.text.replace(address, "") and "web-01" not in full.text.replace(address, ""), address
    cookies = {"ds_actor": both[0].sign({"a": {"id": "ada"}}, "actor")}
    assert status(await both[0].client.get(f"{FLEET}/hosts", cookies=cookies)) == 200
    assert FLEET in (await both[0].client.get("/", cookies=cookies)).text


async def test_without_a_fleet_its_addresses_say_so(make_datasette: Make, small_store: Any, cache: Path) -> None:
    datasette = await make_datasette(small_store())
    for address in our_addresses(datasette):
        answer = await datasette.client.get(address)
        assert status(answer) == 404 and "serve --lake" in answer.text, address
    assert FLEET not in (await datasette.client.get("/")).text


@needs_engine
async def test_a_lake_that_cannot_be_read_is_a_page_with_a_sentence(
    make_datasette: Make, lake: Path, tmp_path: Path
) -> None:
    newer, other = tmp_path / "newer", tmp_path / "other"
    for folder, content in ((newer, {"kind": "state-ledger lake", "format": 99}), (other, {"kind": "x", "format": 1})):
        folder.mkdir()
        (folder / "lake.json").write_text(json.dumps(content))
    for url, said in ((tmp_path / "none", "There is no lake"), (newer, "newer than this program knows"),
                      (other, "something else than a lake")):  # fmt: skip
        client = (await make_datasette([], **options({"lake": str(url)}))).client
        for path in ("", "/cost", "/ops", "/session/s1", "/hosts"):
            answer = await client.get(f"{FLEET}{path}")
            assert status(answer) == 503 and said in check(answer.text).text, (path, said)
        for form in ("json", "csv"):
            answer = await client.get(f"{FLEET}/hosts.{form}")
            assert status(answer) == 503 and said in answer.text
        assert status(await client.get("/")) == 200


async def test_a_missing_extra_is_named(make_datasette: Make, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("state_ledger.warehouse")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    client = (await make_datasette([], **options({"lake": str(cache)}))).client
    answer = await client.get(f"{FLEET}/cost")
    assert status(answer) == 503 and "pip install 'state-ledger[lake]'" in check(answer.text).text
    body = (await client.get(f"{FLEET}/hosts.json")).json()
    assert body["status"] == 503 and "sqlglot" in body["error"]


@needs_engine
async def test_a_new_push_shows_by_itself_and_a_lake_that_is_gone_leaves_what_was_read(
    make_datasette: Make, tmp_path: Path, cache: Path
) -> None:
    from state_ledger.lake.push import push

    url = fleet_books.lake(tmp_path)
    datasette = await make_datasette([], **options({"lake": str(url), "fleet_refresh_s": 1}))
    client = await ready(datasette)
    first = await client.get(f"{FLEET}/live.json")
    tag = {"If-None-Match": first.headers["etag"]}
    assert status(await client.get(f"{FLEET}/live.json", headers=tag)) == 304
    push(tmp_path / "stores" / "web-01-coder" / "state.db", url, host="new-host", profile="default")
    await _until(lambda: _changed(client, tag))
    hosts = (await client.get(f"{FLEET}/hosts.json")).json()["hosts"]
    assert "new-host" in hosts
    shutil.move(url, tmp_path / "moved")
    await _until(lambda: _says(client, "as of the last time"))
    body = (await client.get(f"{FLEET}/hosts.json")).json()
    assert body["hosts"] == hosts and "as of the last time" in body["notices"][0]


async def _changed(client: Any, tag: dict[str, str]) -> bool:
    return status(await client.get(f"{FLEET}/live.json", headers=tag)) == 200


async def _says(client: Any, said: str) -> bool:
    answer = await client.get(f"{FLEET}/hosts")
    return status(answer) == 200 and said in answer.text


async def _until(holds: Callable[[], Any]) -> None:
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while not await holds():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.1)


@unix
@needs_engine
async def test_a_page_does_not_wait_for_a_lake_that_does_not_answer(
    make_datasette: Make, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, small_store: Any
) -> None:
    """A file of the lake that is a pipe nobody writes to: as storage that hangs."""
    url = tmp_path / "lake"
    url.mkdir()
    os.mkfifo(url / "lake.json")
    monkeypatch.setattr(fleet, "WAIT_S", 0.1)
    client = (await make_datasette(small_store(), **options({"lake": str(url)}))).client
    answer = await client.get(FLEET)
    assert status(answer) == 503 and "is being read for the first time" in check(answer.text).text
    assert status(await client.get("/state")) == 200
    await asyncio.to_thread((url / "lake.json").write_text, "{}")  # lets the thread go


@needs_engine
async def test_an_engine_that_is_busy_keeps_no_page_of_a_store_waiting(
    make_datasette: Make, lake: Path, small_store: Any
) -> None:
    datasette = await make_datasette(small_store(), **options({"lake": str(lake)}))
    client = await ready(datasette)
    desk, go_on = fleet.desk(datasette), threading.Event()
    assert desk is not None
    busy = [asyncio.ensure_future(desk.read(lambda reading: go_on.wait(), Selection())) for _ in range(fleet.AT_ONCE)]
    try:
        for path in ("/state", "/state/-/cost", "/state/recent_sessions"):
            assert status(await client.get(path)) == 200
    finally:
        go_on.set()
    assert await asyncio.gather(*busy) == [True] * fleet.AT_ONCE


@needs_engine
async def test_what_is_late_is_named_and_the_rest_of_the_page_stands(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await started()
    monkeypatch.setattr("state_ledger.fleet.reading.PAGE_FACTOR", 0)
    home = await client.get(FLEET)
    assert status(home) == 200 and "The question top_work did not answer within 5 seconds" in check(home.text).text
    ops = await client.get(f"{FLEET}/ops")
    assert status(ops) == 200 and check(ops.text).text.count("did not answer within") == 8
    assert status(await client.get(f"{FLEET}/cost")) == 503 and status(await client.get(f"{FLEET}/hosts")) == 503


@needs_engine
def test_the_command_shows_a_lake_and_makes_no_store(lake: Path, cache: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HERMES_HOME": str(tmp_path / "nowhere"), "HOME": str(tmp_path)}
    ended = prepared.run(
        "-c", "from state_ledger.cli import main; main()", "serve", "--lake", lake, "--get", f"{FLEET}/hosts.json",
        timeout=300, env=environment,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["hosts"] == ["db.example.org", "web-01"]
    assert "demo" not in ended.stdout + ended.stderr and not list(tmp_path.rglob("*.db"))


def test_a_variable_goes_before_a_setting_and_two_servers_are_refused() -> None:
    settings = Settings(lake="/srv/lake")
    assert configured(settings, {}) == Where("lake", "/srv/lake")
    assert configured(settings, {"STATE_LEDGER_CLICKHOUSE": "clickhouse://h/d"}) == Where("clickhouse", "clickhouse://h/d")
    assert configured(Settings(), {}) is None
    both = {"STATE_LEDGER_LAKE": "/x", "STATE_LEDGER_POSTGRESQL": "postgresql://h/d"}
    assert configured(settings, both) == Where("postgresql", "postgresql://h/d", "/x")
    with pytest.raises(StateLedgerError, match="clickhouse and postgresql: name one"):
        configured(Settings(clickhouse="a", postgresql="b"), {})


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:hush@host/books", "host=h password=hush dbname=d", "s3://b/f?access_key=hush&secret_key=hush",
     "clickhouse://me:hush@host:8443/d"],
)  # fmt: skip
def test_no_page_names_the_password_in_an_address(address: str) -> None:
    assert "hush" not in Where("postgresql", address).shown


def test_pages_of_a_fleet_take_turns_of_their_own() -> None:
    for path in ("", "/cost", "/ops", "/session/s1", "/hosts.csv"):
        assert kind_of(f"{FLEET}{path}", (), {}) == OF_FLEET
    assert kind_of(f"{FLEET}/live.json", (), {}) == SMALL and kind_of("/-/ledger/fleets", (), {}) is None


@needs_engine
async def test_a_server_is_filled_from_a_lake_and_asked_by_its_address(
    make_datasette: Make, lake: Path, postgres: Any
) -> None:
    """The server's password is in no page; who names the server alone gets what was filled in before."""
    address = postgres.database()
    empty = (await make_datasette([], **options({"postgresql": address}))).client
    refused = await empty.get(f"{FLEET}/hosts")
    assert status(refused) == 503 and "Name the lake too" in check(refused.text).text
    filled = await ready(await make_datasette([], **options({"postgresql": address, "lake": str(lake)})))
    cost = (await filled.get(f"{FLEET}/cost?period=all")).text
    assert exact_amount(cost) == pytest.approx(6.76) and "Answered by PostgreSQL." in check(cost).text
    alone = await ready(await make_datasette([], **options({"postgresql": address})))
    body = (await alone.get(f"{FLEET}/cost_per_host.json")).json()
    assert body["engine"] == "postgresql" and sum(row["cost_usd"] for row in body["rows"]) == pytest.approx(6.76)


@needs_engine
async def test_a_server_that_does_not_answer_is_a_sentence(make_datasette: Make, cache: Path) -> None:
    pytest.importorskip("psycopg")
    address = f"postgresql://reader:hush@127.0.0.1:{free_port()}/books"
    client = (await make_datasette([], **options({"postgresql": address}))).client
    answer = await client.get(f"{FLEET}/cost")
    assert status(answer) == 503 and "hush" not in answer.text and "cannot be asked" in check(answer.text).text
