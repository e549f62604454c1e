"""Messages as Markdown, moments as local time, and text of strangers that stays text."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger.markdown import too_costly
from state_ledger.plugins import cells
from state_ledger.plugins.cells import is_row_path, markdown, moment, plain
from state_ledger.sqlite import sqlite3

PAYLOADS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img/src='x'/onerror=alert(1)//",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='&lt;script&gt;alert(1)&lt;/script&gt;'></iframe>",
    "<object data=javascript:alert(1)></object><embed src=javascript:alert(1)>",
    "<body onload=alert(1)><details open ontoggle=alert(1)>",
    "<a href=javascript:alert(1)>go</a>",
    "<a href=\"java\tscript:alert(1)\" onclick=alert(2)>go</a>",
    "<a href='&#106;avascript:alert(1)'>go</a>",
    "<b onmouseover=alert(1) style='background:url(//evil.example/x)'>bold</b>",
    "<style>@import '//evil.example/x.css';</style>",
    "<link rel=stylesheet href=//evil.example/x.css><meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/><form action=//evil.example><input name=q><button>go</button></form>",
    "<video><source onerror=alert(1)></video><audio src=x onerror=alert(1)>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</td></table><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre></code><img src=x onerror=alert(1)>",
    "[go](javascript:alert(1))",
    "[go](JaVaScRiPt:alert(1))",
    "[go](java\nscript:alert(1))",
    "[go](&#x6A;avascript:alert(1))",
    "[go](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[go](vbscript:msgbox(1))",
    "[go](file:///etc/passwd)",
    "[go](//evil.example)",
    "[go](/-/logout)",
    "[go](https://ok.example/\"onmouseover=\"alert(1))",
    "[go](https://ok.example 'x\" onmouseover=\"alert(1)')",
    "![p](https://tracker.example/p.png)",
    "![p](javascript:alert(1))",
    "![\" onerror=\"alert(1)](x)",
    "[![p](https://tracker.example/p.png)](javascript:alert(1))",
    "[go][1]\n\n[1]: javascript:alert(1)",
    "![p][1]\n\n[1]: https://tracker.example/p.png \"t\"",
    "<javascript:alert(1)>",
    "<https://ok.example/<script>alert(1)</script>>",
    "https://ok.example/\"><script>alert(1)</script>",
    "```\"onmouseover=alert(1)\n<script>alert(1)</script>\n```",
    "```html\"><script>alert(1)</script>\n</code></pre><img src=x onerror=alert(1)>\n```",
    "``` { .x onclick=alert(1) }\nx\n```",
    "`<img src=x onerror=alert(1)>`",
    "    <script>alert(1)</script>",
    "|a|b|\n|:-|-|\n|<img src=x onerror=alert(1)>|[x](javascript:alert(1))|",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(1)&#62;",
    "\x02klzzwxh:0000\x03<img src=x onerror=alert(1)>\x02amp\x03",
    "<scr\x00ipt>alert(1)</script>",
    "<img\x0csrc=x\x0conerror=alert(1)>",
    "\u202e<script>alert(1)</script>\u202c",
    "\x00json:[{\"type\": \"text\", \"text\": \"<img src=x onerror=alert(1)> [x](javascript:alert(2))\"}]",
    "\x00json:[{\"type\": \"image_url\", \"image_url\": {\"url\": \"https://tracker.example/p.png\"}}]",
    "\x00json:<script>alert(1)</script>",
    "{{ 7*7 }}{% include 'x' %}<script>alert(1)</script>",
]  # fmt: skip


class Elements(HTMLParser):
    """What a page consists of: elements with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def dangers(html: str, nonce: str = "") -> list[str]:
    """Elements and attributes that could run, load or lead somewhere. Scripts with the nonce are the page's."""
    found = []
    for tag, attributes in Elements(html).found:
        if tag == "script" and not (nonce and attributes.get("nonce") == nonce):
            found.append(f"script {attributes}")
        if tag in {"img", "iframe", "object", "embed", "video", "audio", "base", "math"}:
            found.append(f"{tag} {attributes}")
        for name, value in attributes.items():
            if name.startswith("on") and (tag, value) != ("button", "openColumnChooser()"):
                found.append(f"{tag} {name}={value}")
            if name in {"href", "src", "action", "xlink:href", "formaction", "srcdoc"}:
                scheme = "".join(value.split()).lower().partition(":")[0]
                if ":" in value and scheme in {"javascript", "data", "vbscript", "file"}:
                    found.append(f"{tag} {name}={value}")
    return found


def render(text: str) -> str:
    return str(markdown(text, max_brackets=200))


def links(html: str) -> list[str]:
    return [attributes["href"] for tag, attributes in Elements(html).found if tag == "a" and "href" in attributes]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_rendered_text_holds_nothing_that_runs_or_loads(payload: str) -> None:
    html = render(payload)
    assert dangers(html) == []
    for tag, attributes in Elements(html).found:
        assert set(attributes) <= ({"href", "rel"} if tag == "a" else {"class", "style"} if tag == "div" else set())
    assert all(link.startswith(("http://", "https://", "mailto:")) for link in links(html))


@given(st.lists(st.sampled_from(PAYLOADS) | st.text(max_size=8), max_size=5).map("".join))
@settings(max_examples=60, deadline=None)
def test_no_mixture_of_payloads_does_either(text: str) -> None:
    assert dangers(render(text)) == []
    assert dangers(str(plain(text))) == []


def test_markdown_is_rendered_with_tables_and_fenced_code() -> None:
    html = render("# Title\n\n*soft* **loud** kite & co\n\n|a|b|\n|-|-|\n|1|2|\n\n```python\nx < 1\n```")
    for part in ("<h1>Title</h1>", "<em>soft</em>", "<strong>loud</strong>", "kite &amp; co", "<td>1</td>"):
        assert part in html
    assert "<pre><small>python</small><code>x &lt; 1\n</code></pre>" in html


@pytest.mark.parametrize("target", ["https://ok.example/a?b=1&c=2", "http://ok.example", "mailto:a@ok.example"])
def test_links_to_the_web_stay_and_tell_nothing(target: str) -> None:
    html = render(f"[go]({target})")
    assert links(html) == [target]
    assert 'rel="nofollow noopener noreferrer"' in html


@pytest.mark.parametrize("word", ["main.py", "README.md", "see setup.sh now", "config.rs"])
def test_file_names_do_not_become_links(word: str) -> None:
    assert links(render(word)) == []


def test_an_image_is_named_in_words() -> None:
    assert "[image: a kite]" in render("![a kite](https://tracker.example/p.png)")


def test_strange_tags_are_shown_as_they_were_typed() -> None:
    assert "&lt;script&gt;alert(5)&lt;/script&gt;" in render("x <script>alert(5)</script>")


@pytest.mark.parametrize(
    "text",
    ["[" * 20000, "![" * 10000, "(" * 20000, "<a " * 6666, "``a`" * 5000, "=\n" * 10000, "\n|-" * 6666,
     "---\n" * 5000, "[a](" * 5000, "<![CDATA[" * 2222, ">" * 20000, "***a" * 5000, "_a*" * 6666, "_a__*" * 4000,
     "*_a_" * 5000, "a*" * 10000, "a __b" * 4000],
)  # fmt: skip
def test_text_that_would_take_long_is_shown_as_it_is(text: str) -> None:
    started = time.perf_counter()
    html = render(text)
    assert time.perf_counter() - started < 1
    assert html == str(plain(text))


@pytest.mark.parametrize(
    "text",
    ["*" * 20000, "_" * 20000, "***a" * 1000 + "_a" * 1500, "**loud** _soft_ words " * 400, "> " * 5 + "x" * 19000,
     "- a\n" * 1400, "word " * 4000],
)  # fmt: skip
def test_text_with_harmless_marks_is_rendered_soon(text: str) -> None:
    assert not too_costly(text, 200)
    started = time.perf_counter()
    render(text)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("value", "zone", "utc", "local"),
    [
        (1767225600, "UTC", "2026-01-01T00:00:00.000Z", "2026-01-01 00:00:00 +00:00"),
        (1767225600.25, "Europe/Berlin", "2026-01-01T00:00:00.250Z", "2026-01-01 01:00:00 +01:00"),
        (1782864000, "America/New_York", "2026-07-01T00:00:00.000Z", "2026-06-30 20:00:00 -04:00"),
    ],
)
def test_a_moment_is_shown_in_the_zone(value: float, zone: str, utc: str, local: str) -> None:
    assert str(moment(value, zone)) == f'<time datetime="{utc}" title="{value}">{local}</time>'


@pytest.mark.parametrize("value", [1767225600123, 1767225600123.0])
def test_a_moment_that_is_stored_in_milliseconds_says_so(value: float) -> None:
    assert str(moment(value, "UTC")) == (
        f'<time datetime="2026-01-01T00:00:00.123Z" title="{value} (stored in milliseconds)">'
        "2026-01-01 00:00:00 +00:00</time>"
    )


@pytest.mark.parametrize("value", [0, 1, -5, 1e300, float("inf"), float("nan"), 5_000_000_000, 946_684_799])
def test_what_cannot_be_a_moment_is_left_alone(value: float) -> None:
    assert moment(value, "UTC") is None


@given(st.floats() | st.integers())
def test_no_number_breaks_a_moment(value: float) -> None:
    moment(value, "Asia/Kathmandu")


@pytest.mark.parametrize(
    ("path", "base", "row"),
    [("/db/messages/1", "/", True), ("/db/messages", "/", False), ("/db/messages/1.json", "/", True),
     ("/books/db/messages/1", "/books/", True), ("/books/db/messages", "/books/", False), ("/db/-/home", "/", False),
     ("/db/a~2Fb/1", "/", True)],
)  # fmt: skip
def test_the_page_of_a_row_is_told_by_its_address(path: str, base: str, row: bool) -> None:
    assert is_row_path({"path": path, "raw_path": path.encode()}, base) is row


@pytest.fixture
def hostile_store(small_store: Any) -> Path:
    path: Path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE sessions ADD COLUMN title TEXT")
        for number, text in enumerate(PAYLOADS):
            connection.execute(
                "INSERT INTO sessions (id, source, model, title, started_at) VALUES (?, ?, ?, ?, 1767225600)",
                (f"s{number}", text, text, text),
            )
            connection.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, 1767225600)",
                (f"s{number}", text, text),
            )
    connection.close()
    return path


async def page_dangers(datasette: Any, path: str) -> list[str]:
    answer = await datasette.client.get(path, follow_redirects=True)
    assert answer.status_code == 200, path
    nonce = answer.headers["content-security-policy"].partition("'nonce-")[2].partition("'")[0]
    # The stock pages' own data and icons: scripts carry the nonce, there is no image among them.
    return dangers(answer.text, nonce)


async def test_no_payload_survives_on_a_stock_page(make_datasette: Any, hostile_store: Path) -> None:
    datasette = await make_datasette(hostile_store)
    sql = quote("select content, title, sources.source, model from messages join sessions sources on sources.id = "
                "session_id limit 500")  # fmt: skip
    paths = ["/state/messages?_size=max", "/state/sessions?_size=max", f"/state?sql={sql}",
             "/state/sessions?_facet=title&_facet=source&_facet=model&_size=max",
             "/state/messages?_facet=role&_labels=on"]  # fmt: skip
    for path in paths:
        assert await page_dangers(datasette, path) == [], path


async def test_no_payload_survives_on_the_page_of_a_row(make_datasette: Any, hostile_store: Path) -> None:
    datasette = await make_datasette(hostile_store)
    for number in range(2, len(PAYLOADS) + 2, 3):
        assert await page_dangers(datasette, f"/state/messages/{number}") == []
        assert await page_dangers(datasette, f"/state/sessions/s{number - 2}") == []


@pytest.fixture
def long_store(small_store: Any) -> Path:
    path: Path = small_store()
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'tool', ?, 1767225600)",
            [("word *soft* `code` " * 5556,) for _ in range(100)],
        )
    connection.close()
    return path


async def test_a_page_of_long_messages_stays_small(make_datasette: Any, long_store: Path) -> None:
    datasette = await make_datasette(long_store)
    answer = await datasette.client.get("/state/messages?_size=100&_sort_desc=id")
    assert len(answer.content) < 1_000_000
    assert answer.text.count("Cut at 2,000 of 105,564 characters") == 100
    assert '<a href="/state/messages/101">whole message</a>' in answer.text


async def test_a_row_page_shows_more_and_says_where_it_stops(make_datasette: Any, long_store: Path) -> None:
    datasette = await make_datasette(long_store)
    text = (await datasette.client.get("/state/messages/101")).text
    assert "Cut at 20,000 of 105,564 characters" in text
    assert '<a href="/state/messages/101.json">whole text as JSON</a>' in text
    assert 'datetime="2026-01-01T00:00:00.000Z"' in text
    assert len((await datasette.client.get("/state/messages/101.json?_shape=objects")).text) > 100_000


async def test_a_page_of_hostile_messages_answers_in_time(make_datasette: Any, small_store: Any) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'tool', ?, 1767225600)",
            [(text * 2000,) for text in ("(", "<a [", "=\n", "``a`", "|-\n", "[") for _ in range(16)],
        )
    connection.close()
    datasette = await make_datasette(path)
    started = time.perf_counter()
    answer = await datasette.client.get("/state/messages?_size=100")
    assert answer.status_code == 200
    assert time.perf_counter() - started < 6


async def test_structured_content_is_decoded(make_datasette: Any, small_store: Any) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE messages SET content = ?", ('\x00json:[{"type": "text", "text": "a *soft* word"}]',)
        )
    connection.close()
    datasette = await make_datasette(path)
    assert "a <em>soft</em> word" in (await datasette.client.get("/state/messages")).text


@pytest.mark.parametrize(
    ("stored", "shown", "noted"),
    [
        ("X'" + "caf\u00e9 *soft*".encode().hex() + "'", "caf\u00e9 <em>soft</em>", False),
        ("X'" + b"caf\xe9 *soft*".hex() + "'", "caf\ufffd <em>soft</em>", True),
        ("X'" + b'\x00json:[{"type": "text", "text": "a *soft* word"}]'.hex() + "'", "a <em>soft</em> word", False),
        ("X'" + b"<script>\xff</script>".hex() + "'", "&lt;script&gt;\ufffd&lt;/script&gt;", True),
        ("CAST(X'" + b"caf\xe9 *soft*".hex() + "' AS TEXT)", "caf\ufffd <em>soft</em>", False),
    ],
    ids=["text", "no text", "parts", "markup", "text that is not UTF-8"],
)  # fmt: skip
async def test_a_message_stored_as_bytes_is_shown_as_text(
    make_datasette: Any, small_store: Any, stored: str, shown: str, noted: bool
) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE messages SET content = {stored}")
    connection.close()
    datasette = await make_datasette(path)
    for page in ("/state/messages", "/state/messages/1"):
        text = (await datasette.client.get(page)).text
        assert shown in text
        assert "Binary" not in text and ".blob" not in text
        assert ("not valid UTF-8" in text) is noted


async def test_bytes_in_other_columns_stay_a_download(make_datasette: Any, small_store: Any) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE messages SET role = X'ff00'")
    connection.close()
    assert ".blob" in (await (await make_datasette(path)).client.get("/state/messages")).text


async def test_a_page_of_long_messages_leaves_time_to_other_visitors(
    make_datasette: Any, small_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'tool', ?, 1767225600)",
            [(f"{number} **a** _b_ `c` " * 10,) for number in range(20)],
        )
    connection.close()
    datasette = await make_datasette(path)
    events: list[str] = []
    rendered = cells.markdown

    def noted(text: str, *, max_brackets: int) -> Any:
        events.append("message")
        return rendered(text, max_brackets=max_brackets)

    async def other_visitor() -> None:
        while True:
            events.append("visitor")
            await asyncio.sleep(0)

    monkeypatch.setattr(cells, "markdown", noted)
    monkeypatch.setattr(cells, "PAGE_BUDGET_S", math.inf)  # a busy machine must not run out of it
    visiting = asyncio.create_task(other_visitor())
    answer = await datasette.client.get("/state/messages?_size=100")
    visiting.cancel()
    assert answer.text.count("<strong>a</strong>") >= 200
    messages = [at for at, event in enumerate(events) if event == "message"]
    assert len(messages) >= 20
    assert all("visitor" in events[one:next_one] for one, next_one in itertools.pairwise(messages))


async def test_a_page_spends_no_more_than_its_budget_on_markdown(
    make_datasette: Any, small_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'tool', ?, 1767225600)",
            [("a *soft* word",) for _ in range(20)],
        )
    connection.close()
    datasette = await make_datasette(path)
    eighths = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(eighths) / 8)
    monkeypatch.setattr(cells, "time", clock)  # each message takes an eighth of a second
    text = (await datasette.client.get("/state/messages")).text
    assert text.count("ledger-markdown") == 4
    assert text.count("ledger-plain") == 17


async def test_other_databases_and_other_columns_are_left_alone(make_datasette: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE messages (content TEXT, timestamp REAL); INSERT INTO messages VALUES ('a *b*', 1767225600)"
        )
    connection.close()
    datasette = await make_datasette(path)
    text = (await datasette.client.get("/other/messages")).text
    assert "a *b*" in text
    assert "<time" not in text


async def test_the_columns_shown_as_markdown_can_be_set(make_datasette: Any, small_store: Any) -> None:
    chosen = {"markdown_columns": {"sessions": ["model"]}}
    path = small_store()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE sessions SET model = '*m*'")
        connection.execute("UPDATE messages SET content = '*c*'")
    connection.close()
    datasette = await make_datasette(path, metadata={"plugins": {"state-ledger": chosen}})
    assert "<em>m</em>" in (await datasette.client.get("/state/sessions")).text
    assert "<em>c</em>" not in (await datasette.client.get("/state/messages")).text
