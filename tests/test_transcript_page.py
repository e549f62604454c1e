"""The transcript pages: what a reader sees, and that every address leads where it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from state_ledger.pages.links import Links, message_link, tilde
from state_ledger.sqlite import sqlite3
from tests import books
from tests.conftest import EXAMPLES_DIVISOR
from tests.page_checks import Page, check, exact_amount
from tests.test_transcript_messages import family_rows, said

MakeDatasette = Callable[..., Any]
T = 1_790_000_000.0
AT = Links("/state")

STRANGE_IDS = [
    "a/b", "a.b", "a:b", "a%b", "a%2Fb", "a b", "a+b", "a~b", "a?b=c&d#e", "会话/一", "세션 1", "..", ".", "-", "_x",
    "ü", "api:desk/2026.ee3e", "cron_x_20260101_000000", "a.json", "\u202e", "\U0001f600", "'\"<&>", "a\\b", "a\nb",
    "~2F",
]  # fmt: skip


async def page_of(datasette: Any, path: str, status: int = 200) -> Page:
    answer = await datasette.client.get(path)
    assert answer.status_code == status, (path, answer.status_code, answer.text[-500:])
    return check(answer.text)


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., Path]:
    return lambda **rows: books.write(tmp_path / "state.db", **rows)


@pytest.mark.parametrize("session", STRANGE_IDS)
async def test_sessions_of_any_id_are_reached_by_every_link(
    make_datasette: MakeDatasette, store: Callable[..., Path], session: str
) -> None:
    child = session + " child"
    path = store(
        sessions=[books.session(session, started_at=T, title="strange"),
                  books.session(child, started_at=T + 5, source="subagent", parent_session_id=session)],
        usage=[books.call(session, estimated_cost_usd=1.0, input_tokens=5000, first_seen=T, last_seen=T),
               books.call(child, estimated_cost_usd=1.0, input_tokens=5000, first_seen=T, last_seen=T)],
        messages=[said(session, 1, at=T), said(child, 2, at=T + 6)],
    )  # fmt: skip
    datasette = await make_datasette(path)
    links: set[str] = set()
    for kind in ("session", "conversation", "work"):
        page = await page_of(datasette, AT.transcript(kind, session))
        assert page.all("article")[0]["id"] == "m1"
        links |= set(page.hrefs("/-/")) - set(page.hrefs("/-/tables"))
    for href in links:
        answer = await datasette.client.get(href)
        assert answer.status_code == 200, href
    cost = await page_of(datasette, AT.cost({"period": "all", "group": "work"}))
    assert AT.work(session) in cost.hrefs()
    listed = await datasette.client.get(AT.query("recent_sessions"))
    for name in (session, child):
        assert f'href="{AT.session(name)}"' in listed.text
    assert '<article class="message user live target" id="m2">' in (
        await datasette.client.get(message_link(AT, 2, child))
    ).text


def test_names_in_paths_are_written_as_datasette_writes_them() -> None:
    from datasette.utils import tilde_decode, tilde_encode

    for name in STRANGE_IDS:
        assert tilde(name) == tilde_encode(name)
        assert tilde_decode(tilde(name)) == name


async def test_an_id_with_percent_signs_leads_to_the_address_written_our_way(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    datasette = await make_datasette(store(sessions=[books.session("会话/1")], messages=[said("会话/1", 1)]))
    answer = await datasette.client.get("/state/-/session/%E4%BC%9A%E8%AF%9D%2F1")
    assert (answer.status_code, answer.headers["location"]) == (302, AT.session("会话/1"))


async def test_a_session_that_is_not_there_is_named(make_datasette: MakeDatasette, demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    page = await page_of(datasette, "/demo/-/session/no~2Fsuch", 404)
    assert "This store has no session named 'no/such'." in page.text
    assert (await datasette.client.get("/nowhere/-/session/x")).status_code == 404


@pytest.mark.parametrize(
    ("query", "problem"),
    [("after=x", "after"), ("message=0", "message"), ("size=501", "size"), ("size=-1", "size"), ("tz=Mars", "tz"),
     ("before=99999999999999999999", "before"), ("sent=²", "sent")],
)  # fmt: skip
async def test_a_value_that_cannot_be_meant_is_named_and_the_page_stands(
    make_datasette: MakeDatasette, demo_store: Path, query: str, problem: str
) -> None:
    datasette = await make_datasette(demo_store)
    session = first_session(demo_store)
    page = await page_of(datasette, f"/demo/-/session/{tilde(session)}?{query}", 400)
    assert problem in page.text and page.all("article")


def first_session(path: Path) -> str:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        sql = "SELECT session_id FROM messages GROUP BY 1 ORDER BY count(*) DESC"
        return str(connection.execute(sql).fetchone()[0])


async def test_every_session_conversation_and_work_of_the_demo_has_a_sound_page(
    make_datasette: MakeDatasette, demo_store: Path
) -> None:
    datasette = await make_datasette(demo_store)
    with sqlite3.connect(f"file:{demo_store}?mode=ro", uri=True) as connection:
        sessions = [row[0] for row in connection.execute("SELECT id FROM sessions ORDER BY id")]
    for number, session in enumerate(sessions[:: min(EXAMPLES_DIVISOR, 4)]):
        kind = ("session", "conversation", "work")[number % 3]
        await page_of(datasette, Links("/demo").transcript(kind, session, {"size": "200", "inactive": "1"}))


@pytest.mark.parametrize("kind", ["session", "conversation", "work"])
async def test_the_head_agrees_with_the_ledger(make_datasette: MakeDatasette, demo_store: Path, kind: str) -> None:
    datasette = await make_datasette(demo_store)
    view = {"session": "ledger_sessions", "conversation": "ledger_conversations", "work": "ledger_work"}[kind]
    key = f"{kind}_id"
    sql = f"select {key} as id, cost_usd from {view} where cost_usd > 0 order by cost_usd desc limit 4"
    rows = (await datasette.execute("demo", sql)).rows
    for row in rows:
        answer = await datasette.client.get(Links("/demo").transcript(kind, row["id"]))
        assert exact_amount(answer.text) == pytest.approx(row["cost_usd"], abs=1e-9)


async def test_roles_times_tokens_and_model_are_told(make_datasette: MakeDatasette, store: Callable[..., Path]) -> None:
    datasette = await make_datasette(
        store(
            sessions=[books.session("s", model="a-model", started_at=T, ended_at=T + 60, end_reason="cli_close",
                                    title="The harbour", cwd="/work/here")],
            messages=[said("s", 1, at=T), said("s", 2, "assistant", at=T + 3, token_count=77), said("s", 3, "system"),
                      said("s", 4, "narrator")],
        )
    )  # fmt: skip
    page = await page_of(datasette, AT.session("s", {"tz": "Asia/Tokyo"}))
    assert [a["class"].split()[1] for a in page.all("article")] == ["user", "assistant", "system", "other"]
    for text in ("User", "Assistant", "System", "narrator", "a-model", "77 tokens", "≈ 1 tokens", "cli_close",
                 "The harbour", "/work/here", "23:13:20", "times in Asia/Tokyo", "21 September 2026"):  # fmt: skip
        assert text in page.text, text


async def test_calls_are_folded_json_with_their_results_under_them(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    calls = [{"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "a.py", "limit": 3}'}},
             {"id": "c2", "function": {"name": "terminal", "arguments": "not json"}}]  # fmt: skip
    datasette = await make_datasette(
        store(
            sessions=[books.session("s")],
            messages=[
                said("s", 1, "assistant", "look", tool_calls=json.dumps(calls), reasoning="I <think> so"),
                said("s", 2, "tool", "short", tool_call_id="c2"),
                said("s", 3, "tool", "line\n" * 80, tool_call_id="c1"),
                said("s", 4, "tool", "of another page", tool_call_id="c9", tool_name="patch"),
                said("s", 5, "assistant", "", tool_calls='[{"id": "c1", "func'),
            ],
        )
    )  # fmt: skip
    answer = await datasette.client.get(AT.session("s"))
    html = answer.text
    page = check(html)
    assert [a["id"] for a in page.all("article")] == ["m1", "m4", "m5"], "results of calls are inside their calls"
    order = [html.index(text) for text in ("read_file</code>", 'id="m3"', "terminal</code>", 'id="m2"', 'id="m4"')]
    assert order == sorted(order)
    assert '<pre class="json">{\n  &quot;path&quot;: &quot;a.py&quot;,\n  &quot;limit&quot;: 3\n}</pre>' in html
    assert '<details class="call"><summary>' in html and '<details class="reasoning"><summary>' in html
    assert "I &lt;think&gt; so" in html and "<code>short</code>" in html and "<code>patch</code>" in html
    assert "not a JSON list of calls" in page.text and "[{&quot;id&quot;: &quot;c1&quot;, &quot;func" in html


async def test_compacted_messages_are_marked_and_fold_and_taken_back_ones_come_when_asked_for(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    path = store(
        sessions=[books.session("s")],
        messages=[said("s", 1, active=0, compacted=1), said("s", 2, active=0, compacted=1), said("s", 3),
                  said("s", 4, active=0, text="undone")],
    )  # fmt: skip
    datasette = await make_datasette(path)
    html = (await datasette.client.get(AT.session("s"))).text
    assert html.count('<details class="compacted" open>') == 1 and "2 messages on this page summarised away" in html
    assert html.index('id="m2"') < html.index("</details>", html.index('id="m2"')) < html.index('id="m3"')
    assert "undone" not in html
    [shown] = check(html).hrefs("inactive=1")
    page = await page_of(datasette, shown)
    assert "undone" in page.text and "taken back" in page.text
    page = await page_of(datasette, AT.session("s", {"message": "4"}))
    assert "Message 4 was taken back and is not shown." in page.text
    [href] = page.hrefs("inactive=1&message=4")
    assert "m4" in [a["id"] for a in (await page_of(datasette, href.partition("#")[0])).all("article")]


async def test_what_was_sent_is_counted_and_shown_as_a_difference(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    datasette = await make_datasette(
        store(
            sessions=[books.session("s")],
            messages=[
                said("s", 1), said("s", 3), said("s", 4),
                said("s", 2, text="the kite flies", api_content="<memory>x</memory> the kite sinks"),
            ],
        )
    )  # fmt: skip
    page = await page_of(datasette, AT.session("s"))
    assert "3 of 4 messages (75.0 %)" in page.text and "the first that differs is message 2" in page.text
    assert "memory" not in page.text, "only on request"
    [href] = {link for link in page.hrefs("sent=2")}
    html = (await datasette.client.get(href.partition("#")[0])).text
    assert "<ins>&lt;memory&gt;x&lt;/memory&gt; </ins>the kite <del>flies</del><ins>sinks</ins>" in html
    assert href.endswith("#m2") and "target" in html


async def test_the_share_is_not_counted_for_a_long_session_unless_asked_for(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    rows = [said("s", n, api_content="x" if n == 900 else None) for n in range(1, 1200)]
    datasette = await make_datasette(store(sessions=[books.session("s")], messages=rows))
    page = await page_of(datasette, AT.session("s"))
    assert "not counted for so many messages" in page.text
    assert "1,198 of 1,199 messages" in (await page_of(datasette, page.hrefs("verbatim=1")[0])).text


async def test_images_are_placeholders_and_nothing_of_them_is_in_the_page(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    """Case 16: three parts, no NUL, no JSON, no data URI."""
    parts = [
        {"type": "text", "text": "harbour **photo**"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 500}},
        {"type": "image_url", "image_url": {"url": "https://tracker.example/p.png"}},
        {"type": "text", "text": "桂林旅游"},
    ]
    content = "\x00json:" + json.dumps(parts)
    datasette = await make_datasette(store(sessions=[books.session("s")], messages=[said("s", 1, text=content)]))
    html = (await datasette.client.get(AT.session("s"))).text
    check(html)
    assert "harbour <strong>photo</strong>" in html and "桂林旅游" in html
    assert "[image: image/png, 1,500 bytes]" in html and "[image: https://tracker.example/p.png]" in html
    assert "QUJDQUJD" not in html and "\x00" not in html and "tracker.example/p.png\"" not in html
    assert "&quot;type&quot;" not in html


async def test_case_20_text_stays_text_and_is_escaped_once(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    datasette = await make_datasette(
        store(
            sessions=[books.session("s", title="<svg onload=alert(1)>", model='m"><img src=x onerror=alert(2)>')],
            messages=[
                said("s", 1, text="kite <img src=x onerror=alert(3)> and >>>fake<<< marks"),
                said("s", 2, "assistant", "# T\n\n[go](javascript:alert(4)) <script>alert(5)</script> "
                     "![p](https://tracker.example/p.png) kite & co"),
                said("s", 3, "assistant", "", tool_name="<img src=x onerror=alert(6)>", tool_calls=json.dumps(
                    [{"id": "c1", "function": {"name": "<img src=x onerror=alert(7)>", "arguments": '{"q":"kite"}'}}])),
            ],
        )
    )  # fmt: skip
    page = await page_of(datasette, AT.session("s"))
    for text in ("kite & co", ">>>fake<<< marks", "<svg onload=alert(1)>", "onerror=alert(7)>", "[image: p]"):
        assert text in page.text, text
    assert not page.hrefs("javascript") and not page.hrefs("tracker")


async def test_a_block_of_code_says_its_language_and_headings_fit_into_the_page(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    text = "# One\n\n## Two\n\n```python\nx < 1\n```\n\n```\nplain\n```"
    datasette = await make_datasette(store(sessions=[books.session("s")], messages=[said("s", 1, text=text)]))
    html = (await datasette.client.get(AT.session("s"))).text
    assert "<pre><small>python</small><code>x &lt; 1\n</code></pre>" in html
    assert "<pre><code>plain\n</code></pre>" in html
    assert "<h5>One</h5>" in html and "<h6>Two</h6>" in html


async def test_joints_tell_how_segments_and_branches_hang_together(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    datasette = await make_datasette(store(**family_rows()))
    text = (await page_of(datasette, AT.conversation("r2"))).text
    assert "The conversation begins: r1" in text and "Segment 2: r2 goes on from r1 (compression)" in text
    assert "b branched off from r2" in (await page_of(datasette, AT.session("b"))).text
    assert "d1 was delegated by r1 (compression)" in (await page_of(datasette, AT.session("d1"))).text


async def test_the_lineage_is_a_list_and_a_drawing_in_which_each_session_is_a_link(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    datasette = await make_datasette(store(**family_rows()))
    html = (await datasette.client.get(AT.work("r1"))).text
    page = check(html)
    tree = html[html.index('class="tree"') : html.index("Take it along")]
    assert page.all("circle").__len__() == 6
    for name in ("r1", "r2", "d1", "d1b", "d2", "b"):
        assert tree.count(f'href="{AT.session(name)}"') == 2, "once drawn, once listed"
    names = re.findall(r'title="(\w+)">\w+</a><span class="sub"><b>([^<]*)</b> · ([^<]*)<', tree)
    assert [name for name, *_ in names] == ["r1", "d1", "d2", "d1b", "r2", "b"]
    assert names[0][1:] == ("$0.12", "began here · 4 messages")
    assert [re.sub(" ·.*", "", said) for *_, said in names[1:]] == [
        "delegate", "delegate", "segment 2", "segment 2", "branched off",
    ]  # fmt: skip
    assert tree.count("<ul>") == 1 + 2 + 1, "delegates and branches are lists inside what they hang on"


async def test_the_link_to_copy_holds_everything(make_datasette: MakeDatasette, demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    session = first_session(demo_store)
    asked = "tz=Asia/Seoul&size=20&inactive=1&page=last"
    page = await page_of(datasette, f"/demo/-/session/{tilde(session)}?{asked}")
    [href] = [link["href"] for link in page.all("a") if link.get("class") == "copy"]
    assert dict(parse_qsl(urlsplit(href).query)) == dict(parse_qsl(asked))
    again = await page_of(datasette, href)
    assert [a["id"] for a in again.all("article")] == [a["id"] for a in page.all("article")]
    cost = await page_of(datasette, "/demo/-/cost?source=cli")
    [href] = [link["href"] for link in cost.all("a") if link.get("class") == "copy"]
    given = dict(parse_qsl(urlsplit(href).query))
    assert {"since", "until", "tz", "day_rule", "source", "group"} <= set(given)


async def test_following_newer_reads_the_whole_session(make_datasette: MakeDatasette, demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    session = first_session(demo_store)
    sql = "select id from ledger_messages where session_id = :s and state <> 'taken back' order by id"
    expected = [f"m{row['id']}" for row in (await datasette.execute("demo", sql, {"s": session})).rows]
    seen: list[str] = []
    href = Links("/demo").session(session, {"size": "15"})
    while href:
        answer = await datasette.client.get(href)
        check(answer.text)
        seen += re.findall(r'id="(m\d+)"', answer.text)
        onward = re.search(r'<a href="([^"]*after=[^"]*)">Newer', answer.text)
        href = onward[1].replace("&amp;", "&") if onward else ""
    assert sorted(seen, key=lambda mark: int(mark[1:])) == expected
    assert len(seen) == len(expected)


async def test_a_message_that_is_elsewhere_is_a_link_away(
    make_datasette: MakeDatasette, store: Callable[..., Path]
) -> None:
    datasette = await make_datasette(store(**family_rows()))
    page = await page_of(datasette, AT.session("r1", {"message": "9"}))
    assert "Message 9 is not in this session." in page.text
    assert message_link(AT, 9, "r2") in page.hrefs()
    missing = (await page_of(datasette, AT.session("r1", {"message": "999"}))).text
    assert "This store has no message 999." in missing


@pytest.mark.parametrize("name", ["small-1", "small-5", "small-11", "small-16", "small-22", "small-23", "small-25",
                                  "small-30-handmade", "schema-23"])  # fmt: skip
async def test_stores_of_every_age_are_read(
    make_datasette: MakeDatasette, shared_store: Callable[[str], Path], name: str
) -> None:
    datasette = await make_datasette(shared_store(f"{name}.db"))
    rows = (await datasette.execute(name, "select session_id from ledger_session_facts limit 12")).rows
    assert rows
    for row in rows:
        for kind in ("session", "conversation", "work"):
            await page_of(datasette, Links(f"/{name}").transcript(kind, row["session_id"], {"inactive": "1"}))


async def test_whoever_may_not_see_the_store_reads_nothing(make_datasette: MakeDatasette, demo_store: Path) -> None:
    metadata = {"databases": {"demo": {"allow": {"id": "owner"}}}}
    from state_ledger.plugins import compat

    given = {"config": metadata} if compat.IS_1 else {"metadata": metadata}
    datasette = await make_datasette(demo_store, **given)
    answer = await datasette.client.get(Links("/demo").session(first_session(demo_store)))
    assert answer.status_code == 403 and "article" not in answer.text
