"""The search page: hits by conversation, filters in the address, paging, JSON, the box on every page."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import SessionDB
from state_ledger.pages import search as search_model
from state_ledger.pages.search_address import Asked
from state_ledger.plugins import compat
from state_ledger.plugins.stores import registry
from state_ledger.search import marks
from state_ledger.settings import Settings
from tests.page_checks import Page, check
from tests.test_cells import dangers

START = 1780315200.0
"""2026-06-01 12:00 UTC."""


@pytest.fixture(scope="module")
def harbours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three conversations, one of them of two sessions, with 33 messages that say harbour."""
    path = tmp_path_factory.mktemp("harbours") / "state.db"
    with SessionDB(path) as db:
        for session, source, model in (
            ("plan", "cli", "acme/m-1"), ("plan-2", "cli", "acme/m-1"),
            ("chat", "telegram", "m-2"), ("job", "cron", None),
        ):  # fmt: skip
            parent = "plan" if session == "plan-2" else None
            db.create_session(session, source, model=model, parent_session_id=parent)
            if session == "plan":
                db.append_message("plan", "user", "Where is the harbour?", timestamp=START)
                db.append_message("plan", "assistant", "The harbour is in the north & west.", timestamp=START + 1)
                db.end_session("plan", "compression")
        db.append_message("plan-2", "user", "And the old harbour?", timestamp=START + 86400)
        db.append_message("plan-2", "tool", "harbour log", tool_name="read_file", timestamp=START + 86401)
        db.append_message("chat", "user", "Harbour photos, please", timestamp=START + 2 * 86400)
        for number in range(28):
            db.append_message("job", "assistant", f"harbour report {number}", timestamp=START + 3 * 86400 + number)
        db.append_message("chat", "assistant", "Nothing of the kind", timestamp=START + 4 * 86400)
        db.set_session_title("plan-2", "Harbour plan")
    return path


@pytest.fixture
async def client(harbours: Path, make_datasette: Callable[..., Any]) -> Any:
    return (await make_datasette(harbours)).client


def ids(html: str) -> list[int]:
    """The messages that a page links, in order."""
    return [int(number) for number in re.findall(r'class="hit-link" href="[^"]*[?]message=(\d+)#m\1"', html)]


async def read(client: Any, address: str, status: int = 200) -> Page:
    answer = await client.get(address)
    assert answer.status_code == status, answer.text[:500]
    return check(answer.text)


async def test_hits_are_grouped_by_conversation_with_title_source_model_and_time(client: Any) -> None:
    answer = await client.get("/state/-/search?q=harbour&exclude_source=cron&tz=UTC")
    page = check(answer.text)
    assert ids(answer.text) == [5, 4, 3, 2, 1]
    assert answer.text.count('class="panel conversation"') == 2  # plan and what continues it are one
    for said in ("Harbour plan", "4 hits", "acme/m-1", "telegram", "2026-06-01 12:00", "5 messages", "read_file"):
        assert said in page.text, said
    assert "Harbour photos, please" in page.text  # the conversation without a title has the words it began with
    assert re.findall("<mark>(.*?)</mark>", answer.text) == ["Harbour", *["harbour"] * 4]
    assert "north &amp; west" in answer.text


async def test_each_hit_shows_the_messages_around_it(client: Any) -> None:
    html = (await client.get("/state/-/search?q=north")).text
    assert re.findall(r'class="around">.*?</span> ?<span class="who">(\w+)</span> ([^<]+)</p>', html) == [
        ("user", "Where is the harbour?")
    ]
    html = (await client.get('/state/-/search?q="old harbour"')).text
    assert re.findall(r'class="who">(\w+)</span> ([^<]+)</p>', html) == [("tool", "harbour log")]


async def test_every_hit_leads_to_its_message(client: Any) -> None:
    html = (await client.get("/state/-/search?q=photos")).text
    (href,) = re.findall(r'class="hit-link" href="([^"]*)"', html)
    assert "Harbour photos, please" in (await client.get(href)).text


async def test_pages_hold_every_hit_once(client: Any) -> None:
    for sort, wanted in (("newest", sorted(range(1, 34), reverse=True)), ("oldest", list(range(1, 34)))):
        seen: list[int] = []
        further = [f"/state/-/search?q=harbour&sort={sort}"]
        while further:
            html = (await client.get(unescape(further[0]))).text
            check(html)
            seen += ids(html)
            further = re.findall(r'<p class="further"><a class="hit-link" href="([^"]*)"', html)
        assert sorted(seen, reverse=sort == "newest") == wanted and len(set(seen)) == len(seen)


async def test_each_chosen_filter_is_a_chip_that_takes_it_out_alone(client: Any) -> None:
    everything = "source=cli&source=telegram&exclude_source=cron&role=user&model=m-2&since=2026-06-01&until=2026-06-30"
    page = await read(client, f"/state/-/search?q=harbour&{everything}&sort=oldest&before=1")
    chips = [a["href"] for tag, a in page.tags if tag == "a" and a.get("class") == "chip on"]
    days = ("2026-06-01", "2026-06-30")
    whole = Asked("harbour", ("cli", "telegram"), ("cron",), ("user",), ("m-2",), *days, sort="oldest")
    left = [parse_qs(urlsplit(href).query) for href in chips]
    without = [
        whole.without("source", "cli"), whole.without("source", "telegram"), whole.without("exclude_source", "cron"),
        whole.without("role", "user"), whole.without("model", "m-2"), whole.but(since=""), whole.but(until=""),
    ]  # fmt: skip
    assert left == [{n: list(v) if isinstance(v, tuple) else [v] for n, v in each.items()} for each in without]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("source=cli,telegram", [5, 4, 3, 2, 1]),
        ("source=cli&source=telegram", [5, 4, 3, 2, 1]),
        ("source=nowhere", []),
        ("exclude_source=cron&role=user", [5, 3, 1]),
        ("source=cli&hide_tools=1", [3, 2, 1]),
        ("source=cli&role=tool&hide_tools=1", [4]),
        ("model=m-2", [5]),
        ("since=2026-06-02&until=2026-06-03&tz=UTC", [5, 4, 3]),
        ("until=2026-06-01&tz=UTC", [2, 1]),
        ("until=2026-06-01&tz=Pacific/Kiritimati", []),
        ("exclude_source=cron&before=4", [3, 2, 1]),
        ("exclude_source=cron&limit=2", [5, 4]),
    ],
)
async def test_filters_hold_on_the_page_in_its_json_and_in_the_canned_query(
    client: Any, filters: str, found: list[int]
) -> None:
    html = (await client.get(f"/state/-/search?q=harbour&{filters}")).text
    page = check(html)
    assert sorted(ids(html), reverse=True) == found
    (json_form,) = page.hrefs("/-/search.json?")
    assert [hit["id"] for hit in (await client.get(json_form)).json()["hits"]] == found
    (canned,) = page.hrefs("/state/search?")
    rows = (await client.get(canned.replace("/search?", "/search.json?") + "&_shape=objects")).json()["rows"]
    assert [row["id"] for row in rows] == found


async def test_offered_filters_leave_something_and_take_something_away(client: Any) -> None:
    page = await read(client, "/state/-/search?q=harbour&exclude_source=cron")
    chips = [a["href"] for tag, a in page.tags if tag == "a" and a.get("class") == "chip"]
    offers = [href for href in chips if "hide_tools" not in href]
    assert len(offers) == 7  # two sources, three roles, two models
    for href in offers:
        assert 0 < len(ids((await client.get(href)).text)) < 5


async def test_the_json_says_what_the_page_says(client: Any) -> None:
    answer = await client.get("/state/-/search.json?q=harbour&exclude_source=cron&limit=2&tz=UTC")
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    body = answer.json()
    assert set(body) == {
        "ok", "q", "parameters", "route", "complete", "next_before", "notices", "hint", "sessions", "hits",
    }  # fmt: skip
    assert body["ok"] is True and body["q"] == "harbour" and body["complete"] is True
    assert body["parameters"] == {"q": "harbour", "exclude_source": ["cron"], "tz": "UTC", "limit": 2}
    first = body["hits"][0]
    assert first["snippet"] == ">>>Harbour<<< photos, please" and first["matches"] == [[0, 13]]
    assert (first["id"], first["session_id"], first["role"], first["source"]) == (5, "chat", "user", "telegram")
    assert first["url"].startswith("/state/-/session/") and first["url"].endswith("?message=5#m5")
    assert first["context"][0] == {"role": "user", "content": "Harbour photos, please"}
    assert body["hits"][1]["conversation_id"] == "plan"
    further = f"/state/-/search.json?q=harbour&exclude_source=cron&before={body['next_before']}"
    after = (await client.get(further)).json()
    assert [hit["id"] for hit in after["hits"]] == [3, 2, 1] and after["next_before"] is None


async def test_the_count_is_capped_and_asked_for_by_itself(
    client: Any, tmp_path: Path, make_datasette: Callable[..., Any]
) -> None:
    count = (await client.get("/state/-/search-count.json?q=harbour&before=3&limit=1")).json()
    assert count == {"ok": True, "number": 33, "more": False, "text": "33 messages"}
    path = tmp_path / "many.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"kite {n}"} for n in range(1001)])
    many = (await make_datasette(path)).client
    count = (await many.get("/many/-/search-count.json?q=kite")).json()
    assert (count["number"], count["more"], count["text"]) == (1000, True, "more than 1,000 messages")
    assert (await many.get("/many/-/search-count.json?q=kite+1000")).json()["text"] == "1 message"


async def test_a_count_that_is_not_ready_is_left_to_a_second_request(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_model, "_quick_count", lambda *_: None)
    page = await read(client, "/state/-/search?q=harbour&limit=5")
    (later,) = [a["data-count"] for _, a in page.tags if "data-count" in a]
    assert "5 shown" in page.text and (await client.get(later)).json()["number"] == 33


async def test_sessions_by_name_stand_above_the_hits(client: Any) -> None:
    html = (await client.get("/state/-/search?q=HARBOUR+PLAN")).text
    assert html.index("By title or id") and "plan-2" in html
    assert "By title or id" not in (await client.get("/state/-/search?q=harbour+plan&role=user")).text
    body = (await client.get("/state/-/search.json?q=harbour-plan")).json()
    assert [row["session_id"] for row in body["sessions"]] == ["plan-2"]


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("since=xx", "write a day as YYYY-MM-DD"),
        ("tz=Nope", "There is no time zone named"),
        ("sort=colour", "choose one of newest, oldest, best"),
        ("before=x", "write a whole number"),
        ("limit=0", "the smallest value is 1"),
        ("since=2026-11-02&until=2026-11-01", "it is after the last day"),
        ("role=a%00b", "NUL"),
    ],
)
async def test_a_bad_filter_is_explained_and_what_was_typed_stays(client: Any, parameter: str, said: str) -> None:
    for form in ("search", "search.json", "search-count.json"):
        answer = await client.get(f"/state/-/{form}?q=harbour&{parameter}")
        assert answer.status_code == 400 and said in answer.text, form
    page = check((await client.get(f"/state/-/search?q=harbour&source=cli&{parameter}")).text)
    (box,) = [a for a in page.all("input") if a.get("id") == "finder"]
    assert box["value"] == "harbour"
    assert ("source", "cli") in [(a.get("name"), a.get("value")) for a in page.all("input")]


@pytest.mark.parametrize(
    "q", ["", "+", "*", "%22", "%22abc", "AND", "(", ")(", "%00", "a%00b", "NOT", "%FF%FE", "-" * 10_000]
)
async def test_what_cannot_be_looked_for_is_a_page_all_the_same(client: Any, q: str) -> None:
    await read(client, f"/state/-/search?q={q}")
    body = (await client.get(f"/state/-/search.json?q={q}")).json()
    assert body["ok"] and (body["hits"] or body["hint"] or body["route"])


@given(st.text(max_size=60), st.sampled_from(["newest", "oldest", "best"]))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_text_is_an_error(client: Any, q: str, sort: str) -> None:
    typed = quote(q.encode("utf-8", "replace"))
    answer = await client.get(f"/state/-/search?q={typed}&sort={sort}")
    assert answer.status_code == 200
    check(answer.text)
    assert (await client.get(f"/state/-/search.json?q={typed}&sort={sort}")).json()["ok"]
    assert (await client.get(f"/state/search.json?_shape=objects&q={typed}&sort={sort}")).json()["ok"]


async def test_text_of_a_store_stays_text_in_the_json(tmp_path: Path, make_datasette: Callable[..., Any]) -> None:
    text = 'kite </script><img src=x onerror=alert(1)> "quoted" \\ >>>fake<<< \u2028 \x07 '
    text += f"{marks.START}x{marks.END}"
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli", model='"><script>alert(1)</script>')
        db.append_message("s", "user", text)
        db.set_session_title("s", "<svg onload=alert(1)>")
    client = (await make_datasette(path)).client
    answer = await client.get("/state/-/search.json?q=kite")
    (hit,) = answer.json()["hits"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert hit["matches"] == [[0, 10]] and hit["title"] == "<svg onload=alert(1)>"
    assert marks.START not in hit["snippet"] and "</script><img src=x onerror=alert(1)>" in hit["snippet"]
    html = (await client.get("/state/-/search?q=kite")).text
    nonces = set(re.findall(r'<script nonce="([^"]+)"', html))
    assert not dangers(html, nonces.pop()) and re.findall("<mark>(.*?)</mark>", html) == ["kite"]


async def test_the_box_is_on_every_page_of_a_store_and_leads_to_its_search(
    harbours: Path, demo_store: Path, make_datasette: Callable[..., Any]
) -> None:
    client = (await make_datasette([harbours, demo_store], settings={"base_url": "/books/"})).client
    for path in ("/state", "/state/-/cost", "/state/-/search", "/state/-/tables"):
        html = (await client.get(path, follow_redirects=True)).text
        (form,) = re.findall(r'<form class="(?:finder|ledger-search)"[^>]*>', html)
        assert 'action="/books/state/-/search"' in form and 'method="get"' in form
        assert re.search(r'<input[^>]*type="search"[^>]*name="q"', html)
    index = check((await client.get("/")).text)
    assert [a["action"] for a in index.all("form")] == ["/books/-/find"] and len(index.all("option")) == 3
    answer = await client.get("/-/find?q=old+harbour%26&store=state")
    assert answer.status_code == 302 and answer.headers["location"] == "/books/state/-/search?q=old+harbour%26"
    assert (await client.get("/-/find?q=x")).status_code == 302
    assert (await client.get("/-/find?q=x&store=none")).status_code == 404
    html = (await client.get("/state/-/search?q=photos")).text
    assert all(href.startswith(("/books/", "#")) for href in check(html).hrefs())


async def test_the_box_keeps_the_filters(client: Any) -> None:
    page = await read(client, "/state/-/search?q=harbour&source=cli&sort=oldest&hide_tools=1&before=2")
    finder = page.tags[[a.get("class") for _, a in page.tags].index("finder") :]
    hidden = [(a["name"], a["value"]) for tag, a in finder if tag == "input" and a.get("type") == "hidden"]
    assert hidden[:3] == [("source", "cli"), ("sort", "oldest"), ("hide_tools", "1")]


async def test_nothing_is_told_to_who_may_not_see_the_store(
    harbours: Path, demo_store: Path, make_datasette: Callable[..., Any]
) -> None:
    rules = {"databases": {"state": {"allow": False}}}
    datasette = await make_datasette([harbours, demo_store], **{"config" if compat.IS_1 else "metadata": rules})
    for path in ("search", "search.json", "search-count.json"):
        answer = await datasette.client.get(f"/state/-/{path}?q=harbour")
        assert answer.status_code == 403 and "photos" not in answer.text
        assert (await datasette.client.get(f"/none/-/{path}?q=harbour")).status_code == 404
    assert (await datasette.client.get("/-/find?q=harbour&store=state")).status_code == 404
    assert (await datasette.client.get("/-/find?q=harbour")).headers["location"] == "/demo/-/search?q=harbour"
    assert "state" not in [word.strip() for word in Page((await datasette.client.get("/")).text).words]


async def test_the_script_is_a_file_of_ours_and_the_policy_allows_nothing_else(client: Any) -> None:
    answer = await client.get("/state/-/search?q=harbour")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    sources = re.findall(r'<script[^>]* src="([^"]+)"', answer.text)
    assert len(sources) == 2
    for source in sources:
        script = await client.get(source)
        assert script.headers["content-type"] == "text/javascript; charset=utf-8" and "innerHTML" not in script.text


@pytest.mark.parametrize("name", ["small-1", "small-7", "small-11", "small-22", "small-25", "small-30-handmade"])
async def test_stores_of_every_age_are_searched(
    name: str, shared_store: Callable[[str], Path], make_datasette: Callable[..., Any]
) -> None:
    client = (await make_datasette(shared_store(f"{name}.db"))).client
    rows = (await client.get(f"/{name}/messages.json?_shape=array&_size=1&role=user")).json()
    word = max(re.findall(r"\w+", str(rows[0]["content"])), key=len)
    html = (await client.get(f"/{name}/-/search?q={quote(word)}&limit=200")).text
    check(html)
    assert rows[0]["id"] in ids(html)


async def test_an_unfinished_search_says_so_and_goes_on(
    harbours: Path, make_datasette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = search_model.search.find

    goes_on = True

    def interrupted(*arguments: Any, **options: Any) -> Any:
        answer = find(*arguments, **options)
        after = answer.hits[1].id if goes_on else None
        return type(answer)(answer.hits[:2], "scan", False, after, ("Only a part was read.",), None)

    monkeypatch.setattr(search_model.search, "find", interrupted)
    client = (await make_datasette(harbours)).client
    page = await read(client, "/state/-/search?q=harbour")
    assert "Go on searching" in page.text and "Only a part was read." in page.text
    (go_on,) = page.hrefs("before=")
    body = (await client.get("/state/-/search.json?q=harbour")).json()
    assert not body["complete"] and f"before={body['next_before']}" in go_on
    assert body["notices"] == ["Only a part was read."]
    goes_on = False
    page = await read(client, "/state/-/search?q=harbour")
    (longer,) = page.hrefs("longer=1")[-1:]
    assert "Look for longer" in page.text and "Look for longer" not in (await read(client, longer)).text


async def test_a_store_that_cannot_be_read_is_a_sentence(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from state_ledger.sqlite import sqlite3

    def broken(*_: Any, **__: Any) -> Any:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(search_model.search, "find", broken)
    page = await read(client, "/state/-/search?q=harbour", status=503)
    assert "cannot be answered on this file: database disk image is malformed" in page.text
    answer = await client.get("/state/-/search.json?q=harbour")
    assert answer.status_code == 503 and answer.json()["ok"] is False


async def test_a_page_has_its_time_and_can_be_given_more(
    harbours: Path, make_datasette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    datasette = await make_datasette(harbours)
    budgets: list[float] = []
    find = search_model.search.find

    def noted(*arguments: Any, **options: Any) -> Any:
        budgets.append(options["budget_s"])
        return find(*arguments, **options)

    monkeypatch.setattr(search_model.search, "find", noted)
    await datasette.client.get("/state/-/search?q=harbour")
    await datasette.client.get("/state/-/search?q=harbour&longer=1")
    registry(datasette).settings = Settings(query_time_limit_ms=50)
    await datasette.client.get("/state/-/search?q=harbour")
    assert budgets == [1.5, 5.0, 0.05]


async def test_a_search_without_end_is_ended(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(connection: Any, *_: Any, **__: Any) -> Any:
        connection.execute("WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n")

    for name in ("find", "count"):
        monkeypatch.setattr(search_model.search, name, lambda *given, **options: endless(*given).fetchone())
    monkeypatch.setattr(search_model, "COUNT_S", 0.05)
    monkeypatch.setattr(search_model.questions, "in_time", _brief(search_model.questions.in_time))
    page = await read(client, "/state/-/search?q=harbour", status=503)
    assert "did not end in its time" in page.text
    answer = await client.get("/state/-/search-count.json?q=harbour")
    assert answer.status_code == 503 and "within" in answer.json()["error"]
    monkeypatch.undo()
    assert ids((await client.get("/state/-/search?q=photos")).text), "the connection is as it was"


def _brief(in_time: Any) -> Any:
    return lambda connection, name, limit_ms: in_time(connection, name, 50)
