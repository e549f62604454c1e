"""Snippets: matches marked and nothing else, text of strangers stays text, long cells are cut (case 20)."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import schema
from state_ledger.search import marks
from state_ledger.sqlite import sqlite3
from tests.test_cells import PAYLOADS, dangers

CASE_20 = """
INSERT INTO sessions(id,source,started_at,title,model)
 VALUES('s1','cli',1,'<svg onload=alert(1)>','m"><img src=x onerror=alert(2)>');
INSERT INTO messages(session_id,role,content,timestamp) VALUES
 ('s1','user','kite <img src=x onerror=alert(3)> and >>>fake<<< marks',1),
 ('s1','assistant','# T

[go](javascript:alert(4)) <script>alert(5)</script> ![p](https://tracker.example/p.png) kite & co',2);
INSERT INTO messages(session_id,role,content,tool_name,tool_calls,timestamp) VALUES
 ('s1','assistant',NULL,'<img src=x onerror=alert(6)>',
  '[{"id":"c1","type":"function",'
  || '"function":{"name":"<img src=x onerror=alert(7)>","arguments":"{\\"q\\":\\"kite\\"}"}}]',3);
"""

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SNIPPETS = st.lists(st.tuples(TEXT.map(marks.free), TEXT.map(marks.free)), max_size=5).map(
    lambda pairs: "".join(f"{text}{marks.START}{match}{marks.END}" if match else text for text, match in pairs)
)
"""Snippets with any text, also such that looks like marks."""


@pytest.fixture
def kites(tmp_path: Path) -> Path:
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path)
    schema.create(connection)
    connection.executescript(CASE_20)
    connection.close()
    return path


@given(SNIPPETS)
def test_html_shows_the_text_and_marks_the_matches(snippet: str) -> None:
    shown = marks.html(snippet)
    assert unescape(re.sub("</?mark>", "", shown)) == marks.unmarked(snippet)
    assert not re.search("<(?!/?mark>)", shown)
    assert [unescape(match) for match in re.findall("<mark>(.*?)</mark>", shown, re.DOTALL)] == [
        text for text, match in marks.pieces(snippet) if match
    ]


@given(SNIPPETS)
def test_the_plain_form_and_its_places_say_what_was_marked(snippet: str) -> None:
    shown, spans = marks.plain(snippet), marks.places(snippet)
    assert marks.pieces(marks.marked(shown, spans)) == marks.pieces(snippet)
    assert all(shown[first:end].startswith(">>>") and shown[first:end].endswith("<<<") for first, end in spans)


@given(st.text(max_size=80), st.lists(st.lists(st.integers(-5, 90), max_size=3), max_size=5))
def test_places_that_do_not_fit_mark_nothing_wrong(shown: str, spans: list[list[int]]) -> None:
    snippet = marks.marked(shown, spans)
    assert marks.plain(snippet) == marks.free(shown)


@given(SNIPPETS, st.integers(0, 120))
def test_a_cut_snippet_is_the_beginning_with_its_marks(snippet: str, most: int) -> None:
    cut = marks.cut(snippet, most)
    assert marks.unmarked(cut) == marks.unmarked(snippet)[:most]
    assert cut.count(marks.START) == cut.count(marks.END)


@given(st.text(st.sampled_from("a<" + marks.START + marks.END)))
def test_marks_that_do_not_pair_still_give_whole_elements(snippet: str) -> None:
    shown = marks.html(snippet)
    assert re.fullmatch("(?:[^<]|<mark>[^<]*</mark>)*", shown)


def test_the_marks_of_a_text_are_taken_out_of_it() -> None:
    assert marks.free(f"a{marks.START}b{marks.END}c") == "a\ufffdb\ufffdc"
    assert marks.html(f"{marks.START}>>>x<<<{marks.END} >>>y<<<") == (
        "<mark>&gt;&gt;&gt;x&lt;&lt;&lt;</mark> &gt;&gt;&gt;y&lt;&lt;&lt;"
    )


async def test_the_canned_query_marks_the_word_and_not_what_looks_like_marks(kites: Path, make_datasette: Any) -> None:
    client = (await make_datasette(kites)).client
    html = (await client.get("/state/search?q=kite")).text
    cells = re.findall(r'<span class="ledger-snippet">(.*?)</span>', html, re.DOTALL)
    assert len(cells) == 3
    assert [re.findall("<mark>(.*?)</mark>", cell) for cell in cells] == [["kite"]] * 3
    assert any("&gt;&gt;&gt;fake&lt;&lt;&lt;" in cell for cell in cells)
    assert any("</mark> &amp; co" in cell for cell in cells) and "&amp;amp;" not in html
    nonce = re.search(r'<script nonce="([^"]+)"', html)
    assert not dangers(html, nonce[1] if nonce else "")


async def test_json_and_csv_have_plain_marks_and_their_places(kites: Path, make_datasette: Any) -> None:
    client = (await make_datasette(kites)).client
    rows = (await client.get("/state/search.json?_shape=objects&q=kite")).json()["rows"]
    assert [row["id"] for row in rows] == [3, 2, 1]
    told = list(csv.DictReader(io.StringIO((await client.get("/state/search.csv?q=kite")).text)))
    for row, line in zip(rows, told, strict=True):
        assert line["snippet"].replace("\r\n", "\n") == row["snippet"] and marks.START not in row["snippet"]
        ((first, end),) = json.loads(row["matches"])
        assert row["snippet"][first:end] == ">>>kite<<<"
    assert rows[2]["snippet"].endswith(">>>kite<<< <img src=x onerror=alert(3)> and >>>fake<<< marks")
    assert ">>>kite<<< & co" in rows[1]["snippet"]


async def test_text_of_strangers_stays_text(kites: Path, make_datasette: Any) -> None:
    connection = sqlite3.connect(kites)
    connection.executemany(
        "INSERT INTO messages(session_id, role, content, tool_name, timestamp) VALUES ('s1', 'user', ?, ?, 9)",
        [(f"kite {payload}", payload) for payload in PAYLOADS],
    )
    connection.commit()
    connection.close()
    client = (await make_datasette(kites)).client
    everything = ["/state/search?q=kite&limit=100", "/state/-/search?q=kite&limit=100"]
    for path in [*everything, *(f"/state/-/search?q={quote(payload)}" for payload in PAYLOADS)]:
        answer = await client.get(path)
        assert answer.status_code == 200
        nonces = set(re.findall(r'<script nonce="([^"]+)"', answer.text))
        assert len(nonces) == 1 and not dangers(answer.text, nonces.pop()), path


async def test_own_sql_can_mark_and_cannot_be_marked_by_text(kites: Path, make_datasette: Any) -> None:
    client = (await make_datasette(kites)).client
    sql = (
        "select snippet(messages_fts, -1, char(0xE000), char(0xE001), '...', 20) as snippet"
        " from messages_fts where messages_fts match 'kite' and rowid = 1"
    )
    html = (await client.get(f"/state?sql={quote(sql)}", follow_redirects=True)).text
    assert re.findall("<mark>(.*?)</mark>", html) == ["kite"]
    sql = "select content as snippet from messages"
    html = (await client.get(f"/state?sql={quote(sql)}", follow_redirects=True)).text
    assert "<mark>" not in html and "&gt;&gt;&gt;fake&lt;&lt;&lt;" in html


async def test_places_that_are_wrong_mark_nothing(kites: Path, make_datasette: Any) -> None:
    client = (await make_datasette(kites)).client
    for places in ("[[0,9]]", "[[-3,4]]", "[[0,99]]", '[["a",null]]', "[", "7", "null", "[[0]]", '{"a":1}'):
        sql = f"select 'x >>>y<<< z' as snippet, '{places}' as matches"
        html = (await client.get(f"/state?sql={quote(sql)}", follow_redirects=True)).text
        assert "<mark>" not in html and "x &gt;&gt;&gt;y&lt;&lt;&lt; z" in html, places


async def test_a_long_cell_is_cut_and_leads_to_the_message(kites: Path, make_datasette: Any) -> None:
    sql = "select 7 as id, 's1' as session_id, char(0xE000) || 'kite' || char(0xE001) || hex(zeroblob(500)) as snippet"
    for limit, shown in ((100, 96), (0, 1000)):
        client = (await make_datasette(kites, settings={"truncate_cells_html": limit})).client
        html = (await client.get(f"/state?sql={quote(sql)}", follow_redirects=True)).text
        assert f"<mark>kite</mark>{'0' * shown}</span>" in html
        assert ('<a href="/state/-/session/s1?message=7#m7">whole message</a>' in html) is bool(limit)
        assert ("Cut at 100 of 1,004 characters" in html) is bool(limit)


async def test_other_columns_tables_and_databases_are_left_alone(
    kites: Path, tmp_path: Path, make_datasette: Any
) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, snippet TEXT); INSERT INTO t VALUES (1, 'x');")
    connection.close()
    client = (await make_datasette([kites, other])).client
    others = ("/other/t", "/other?sql=select+snippet+from+t", "/state?sql=select+1+as+snippet", "/state/messages")
    for path in others:
        assert "ledger-snippet" not in (await client.get(path, follow_redirects=True)).text
