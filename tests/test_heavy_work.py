"""The limiter for heavy work, with real clients: slow ones, ones that vanish, and far too many at once.

STATE_LEDGER_STRESS=1 is the long form: 200 requests at once, and more and larger downloads that are broken off.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from state_ledger import SessionDB
from state_ledger.plugins import compat, heavy_work, model_tools
from state_ledger.plugins.heavy_work import PAGE, SMALL, STREAM, TOGETHER, kind_of
from state_ledger.plugins.stores import StoreState
from state_ledger.plugins.turns import TooBusyError, Turns
from state_ledger.shape import Shape
from state_ledger.sqlite import sqlite3
from state_ledger.stores import name_stores
from tests import load
from tests.conftest import STRESS, Servers, drop_triggers
from tests.our_pages import pages

AT_ONCE, WAITING = 2, 4
PLACES = AT_ONCE * heavy_work.STREAMS_PER_TURN
CROWD, VANISHING, MESSAGES = (200, 100, 12_000) if STRESS else (24, 6, 3_000)
MOST_MB = 100.0
MOST_THREADS = 3 + AT_ONCE + 1 + 6 + 2
"""Datasette's, ours for heavy work, the shelf's, asyncio's own (two cores and four), the loop's and a spare."""

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what a process holds is read from /proc")

ENDLESS = "with recursive n(n) as (select 1 union all select n + 1 from n) select count(*) from n"
SMALL_ONES = ("/", "/state", "/state/-/home", "/state/-/card", "/state/-/session/talk", "/state/sessions",
              "/state/sessions/talk", "/state/sessions.json?_shape=array", "/state/-/live.json")  # fmt: skip
HEAVY_ONES = ("/state/cost_per_day?since=2026-01-01", "/state/-/search?q=pier", "/state/-/ops", "/state/top_work.json",
              "/state/messages?content__contains=zzz", "/state/-/export/session.csv?id=talk", "/state/tool_calls.csv",
              "/-/ledger/all", "/state/-/cost")  # fmt: skip


def own_sql(sql: str, form: str = ".json") -> str:
    return f"/state{'/-/query' if compat.IS_1 else ''}{form}?sql={quote(sql)}"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long session of more text than the buffers between a server and a client hold, and a short one."""
    path = tmp_path_factory.mktemp("heavy") / "state.db"
    with SessionDB(path) as db:
        for name in ("long", "talk"):
            db.create_session(name, "cli", model="a-model")
        db.append_message("talk", "user", "Which pier has the grain barge?")
        db.update_token_counts("talk", 700, 80, model="a-model", estimated_cost_usd=0.25, api_call_count=3)
    connection = sqlite3.connect(path)
    drop_triggers(connection)
    connection.executemany(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('long', 'user', ?, ?)",
        ((f"{number} {'barge ' * 600}", 1767225600 + number) for number in range(MESSAGES)),
    )
    connection.commit()
    connection.close()
    return path


@pytest.fixture(scope="module")
def server(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, load.Process]]:
    """Two at a time, four may wait; a question may take a minute, so that only a client that leaves ends one."""
    given = tmp_path_factory.mktemp("settings") / "settings.yaml"
    given.write_text(
        "plugins: {state-ledger: {query_time_limit_ms: 60000,"
        f" heavy_at_once: {AT_ONCE}, heavy_waiting: {WAITING}}}}}",
        encoding="utf-8",
    )
    servers = Servers()
    address = servers([store], "--metadata", str(given))
    yield address, load.Process(servers.processes[-1].pid)
    servers.end()


@linux
async def test_small_pages_are_answered_and_others_sent_away_while_all_turns_are_taken(
    server: tuple[str, load.Process],
) -> None:
    address, _process = server
    endless = [load.Idler(address, own_sql(ENDLESS)) for _ in range(AT_ONCE)]
    waiting = [load.Idler(address, "/state/top_work.json") for _ in range(WAITING)]
    refused = await load.crowd(address, ["/state/-/ops", "/state/cost_per_day.json", "/state/-/export/all.csv"])
    for answer in refused:
        assert answer.status == 503 and int(answer.headers["retry-after"]) > 0, answer
        assert b"The server is busy" in answer.body and b"Try again in a moment" in answer.body
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert [answer.headers["content-type"].partition(";")[0] for answer in refused] == [
        "text/html", "application/json", "text/plain"
    ]  # fmt: skip
    assert [(each.path, each.status) for each in await load.crowd(address, SMALL_ONES)] == [
        (path, 200) for path in SMALL_ONES
    ]
    # Who waits has a turn as soon as a client has left, since what was read for it is interrupted.
    endless[0].vanish()
    endless[1].leave()
    for client in waiting:
        assert await asyncio.to_thread(client.read, 15) == b"HTTP/1.1 200 OK"
        client.leave()
    assert (await load.get(address, "/state/-/ops")).status == 200


@linux
async def test_slow_clients_hold_no_turn_and_no_transaction_and_those_that_vanish_leave_nothing(
    server: tuple[str, load.Process], store: Path
) -> None:
    address, process = server
    await load.crowd(address, ["/-/ledger/all", *SMALL_ONES])
    idle_mb, files = process.memory_mb(), process.open_files()
    downloads = ("/state/-/export/all.csv", "/state/-/export/session.jsonl?id=long", "/state/messages.csv?_stream=on",
                 "/state/-/export/question/session_messages.csv?session=long")  # fmt: skip
    left = VANISHING
    while left > 0:
        clients = []
        for number in range(min(left, PLACES)):
            clients.append(load.Idler(address, downloads[number % len(downloads)]))
            assert (await asyncio.to_thread(clients[-1].read, 100)).startswith(b"HTTP/1.1 200 OK")
        assert (await load.get(address, "/state/-/cost")).status == 200
        owner = sqlite3.connect(store, timeout=0, isolation_level=None)
        owner.execute("UPDATE sessions SET title = title WHERE id = 'talk'")
        truncate = partial(owner.execute, "PRAGMA wal_checkpoint(TRUNCATE)")
        assert await load.awaited(lambda truncate=truncate: truncate().fetchone()[0] == 0)
        owner.close()
        for number, client in enumerate(clients):
            client.leave() if number % 3 else client.vanish()
        left -= len(clients)
    assert await load.awaited(lambda: process.open_files().count("socket") <= files.count("socket"))
    # The file of what was being sent goes when its sender hears of it, a moment after the socket.
    assert await load.awaited(lambda: _nameless(process.open_files()) == _nameless(files))
    assert process.threads() <= MOST_THREADS
    assert process.memory_mb("VmHWM") - idle_mb < MOST_MB


@linux
async def test_far_too_many_requests_at_once_are_answered_or_sent_away_and_memory_stays_bounded(
    server: tuple[str, load.Process],
) -> None:
    address, process = server
    await load.crowd(address, ["/-/ledger/all", *SMALL_ONES])
    idle_mb, files = process.memory_mb(), process.open_files()
    crowd = asyncio.ensure_future(load.crowd(address, [HEAVY_ONES[n % len(HEAVY_ONES)] for n in range(CROWD)]))
    small = []
    while not crowd.done() or not small:
        small += await load.crowd(address, SMALL_ONES[:3])
    assert {(each.status, each.whole) for each in small} == {(200, True)}
    answers = await crowd
    assert {(each.status, each.whole) for each in answers} == {(200, True), (503, True)}
    assert all("retry-after" in each.headers for each in answers if each.status == 503)
    assert len([each for each in answers if each.status == 200]) >= AT_ONCE + WAITING
    assert await load.awaited(lambda: process.open_files().count("socket") <= files.count("socket"))
    # The file of what was being sent goes when its sender hears of it, a moment after the socket.
    assert await load.awaited(lambda: _nameless(process.open_files()) == _nameless(files))
    assert process.threads() <= MOST_THREADS
    assert process.memory_mb("VmHWM") - idle_mb < MOST_MB


def _nameless(files: list[str]) -> list[str]:
    """Files of a process that have lost their name, as temporary ones have."""
    return [each for each in files if each.endswith("(deleted)")]


async def test_a_download_whose_client_takes_nothing_loses_its_place_to_one_that_asks(
    store: Path, make_datasette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heavy_work, "STALLED_S", 0.0)
    datasette = await make_datasette(store)
    app, limits = datasette.app(), heavy_work.limits(datasette)
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "path": "/state/-/export/all.csv", "query_string": b"",
        "raw_path": b"/state/-/export/all.csv", "headers": [(b"host", b"localhost")], "scheme": "http",
    }  # fmt: skip

    async def stalled(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def silent() -> Any:
        await asyncio.Event().wait()

    downloads = [asyncio.ensure_future(app(dict(scope), silent, stalled)) for _ in range(limits.streams.at_once)]
    assert await load.awaited(lambda: sum(visit.sending_since is not None for visit in limits.open) == len(downloads))
    assert limits.works.held == 0, "who waits for a client has no turn"
    answer = await datasette.client.get("/state/-/export/session.csv?id=talk")
    assert answer.status_code == 200 and "grain barge" in answer.text
    assert [each.done() for each in downloads].count(True) == 1
    for each in downloads:
        each.cancel()
    await asyncio.gather(*downloads, return_exceptions=True)
    assert (limits.streams.held, limits.works.held, limits.open) == (0, 0, set())


async def test_a_call_of_a_language_model_waits_for_its_turn_as_a_page_does(
    store: Path, make_datasette: Callable[..., Any]
) -> None:
    datasette = await make_datasette(store)
    assert (await datasette.client.get("/state/top_work.json?_shape=objects")).status_code == 200
    limits = heavy_work.limits(datasette)
    limits.works.at_most_waiting = 0
    held = [await limits.works.take() for _ in range(limits.works.at_once)]
    with pytest.raises(TooBusyError, match=r"2 heavy requests are worked on at a time.*Try again"):
        await model_tools.answered(datasette, None, "state", "top_work", {})
    for _ in held:
        limits.works.give_back()
    assert (await model_tools.answered(datasette, None, "state", "top_work", {}))["rows"]
    assert limits.works.held == 0


async def test_turns_are_had_in_the_order_of_asking_and_none_is_lost() -> None:
    turns, order = Turns(1, 3, 30.0, "jobs"), []
    loop = asyncio.get_running_loop()
    assert await turns.take()

    async def work(name: str, unless: asyncio.Future[None] | None = None) -> None:
        if await turns.take(unless):
            order.append(name)
            await asyncio.sleep(0)
            turns.give_back()

    async def again() -> None:
        await turns.take_again()
        order.append("again")
        turns.give_back()

    gone: asyncio.Future[None] = loop.create_future()
    jobs = [loop.create_task(each) for each in (work("a"), again(), work("left", gone), work("b"), again())]
    await asyncio.sleep(0)
    with pytest.raises(TooBusyError, match="as many as may wait are waiting"):
        await turns.take()
    gone.set_result(None)
    jobs[3].cancel()
    await asyncio.sleep(0)
    turns.give_back()
    await asyncio.gather(*jobs, return_exceptions=True)
    assert order == ["a", "again", "again"]
    assert (turns.held, turns.newcomers) == (0, 0)
    # A turn that was given to one who is cancelled at that moment goes on to the next.
    assert await turns.take()
    doomed, heir = loop.create_task(work("doomed")), loop.create_task(work("heir"))
    await asyncio.sleep(0)
    turns.give_back()
    doomed.cancel()
    await heir
    assert order[-1] == "heir" and turns.held == 0
    turns.patience_s = 0.0
    assert await turns.take()
    with pytest.raises(TooBusyError, match="within 0 seconds"):
        await turns.take()


def _stores(store: Path) -> dict[str, StoreState]:
    with closing(sqlite3.connect(store)) as connection:
        return {"state": StoreState(name_stores([store])[0], Shape.read(connection))}


def test_every_page_of_ours_is_heavy_work_unless_it_is_known_to_be_small(store: Path) -> None:
    """A page that is added takes turns until somebody has looked what it costs, and says so here."""
    stores, small = _stores(store), set()
    for address in pages(store, "talk", "pier"):
        path, _, query = address.partition("?")
        kind = kind_of(path, [pair.partition("=")[0] for pair in query.split("&") if pair], stores)
        if path.startswith(("/state", "/-/ledger/all", "/-/ledger/fleet")):
            assert kind is not None, address
        if kind == SMALL:
            small.add(path)
    assert small == {
        "/", "/-/ledger/all/live.json", "/-/ledger/fleet/live.json", "/state", "/state/-/card",
        "/state/-/conversation/talk", "/state/-/home",
        "/state/-/live.json", "/state/-/session/talk", "/state/-/work/talk", "/state/messages",
        "/state/recent_sessions", "/state/recent_sessions.json", "/state/sessions", "/state/sessions/talk",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "names", "kind"),
    [
        ("/", (), SMALL), ("/", ("figures",), PAGE), ("/-/databases.json", (), None), ("/other/table", (), None),
        ("/state", (), SMALL), ("/state", ("sql",), PAGE), ("/state.json", ("sql",), PAGE), ("/state.db", (), None),
        ("/state.csv", ("sql",), STREAM), ("/state/-/query", ("sql",), PAGE), ("/state/-/query.csv", ("sql",), STREAM),
        ("/state/messages", ("_next", "_size"), SMALL), ("/state/messages", ("_facet",), PAGE),
        ("/state/messages/7.json", ("_shape",), SMALL), ("/state/messages.csv", (), STREAM),
        ("/state/ledger_usage", (), PAGE), ("/state/recent_sessions.json", ("limit",), SMALL),
        ("/state/-/session/a~2Fb", (), SMALL), ("/state/-/session/a", ("why",), PAGE),
        ("/state/-/export", (), PAGE), ("/state/-/export/all.html", (), STREAM), ("/-/ledger/all/cost", (), TOGETHER),
        ("/state/cost_per_day", (), PAGE), ("/state/-/of-tomorrow", (), PAGE),
    ],
)  # fmt: skip
def test_what_an_address_asks_for_tells_whether_it_is_heavy_work(
    store: Path, path: str, names: tuple[str, ...], kind: str | None
) -> None:
    assert kind_of(path, names, _stores(store)) == kind
