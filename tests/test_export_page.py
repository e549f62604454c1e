"""Exports in the browser: complete, streamed, cut off where they cannot be whole, and never for strangers."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from state_ledger import SessionDB, questions
from state_ledger.portability import question_file
from state_ledger.sqlite import sqlite3
from tests.conftest import STRESS, drop_triggers, free_port, wait_for
from tests.exported import CASE_20, cells, lines, write
from tests.page_checks import check

SECRET = "sk-" + "proj-" + "Zt8Wq3Lm6Xc1Vb9Nf4Kd7Rg2"


@pytest.fixture
def long_store(tmp_path: Path) -> Path:
    return write(
        tmp_path / "state.db",
        """INSERT INTO sessions(id,source,started_at) VALUES('s1','cli',1),('s 2/ü%','telegram',2);
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM n WHERE n < 1504)
        INSERT INTO messages(session_id,role,content,timestamp) SELECT 's1','user','text '||n,n FROM n;
        INSERT INTO messages(session_id,role,content,timestamp) VALUES('s 2/ü%','user','=1+1 桂林',1);""",
    )


async def get(datasette: Any, path: str, status: int = 200) -> Any:
    answer = await datasette.client.get(path)
    assert answer.status_code == status, answer.text[:300]
    return answer


async def test_a_session_is_complete_in_every_format(make_datasette: Callable[..., Any], long_store: Path) -> None:
    """Case 19."""
    datasette = await make_datasette(long_store)
    for form in ("jsonl", "json", "md", "html", "csv", "ndjson"):
        answer = await get(datasette, f"/state/-/export/session.{form}?id=s1")
        assert answer.headers["x-state-ledger-rows"] == "1504"
        assert answer.headers["x-state-ledger-complete"] == "yes"
        assert answer.headers["content-disposition"] == f'attachment; filename="state-session-s1.{form}"'
        assert "text 1504" in answer.text
    csv = await get(datasette, "/state/-/export/session.csv?id=s1")
    assert [row["id"] for row in cells(csv.text)] == [str(number) for number in range(1, 1505)]
    whole = lines((await get(datasette, "/state/-/export/all.jsonl")).text)
    assert whole[-1]["complete"] and whole[-1]["counts"]["messages"] == 1505


async def test_any_session_id_has_an_address(make_datasette: Callable[..., Any], long_store: Path) -> None:
    datasette = await make_datasette(long_store)
    page = await get(datasette, "/state/-/export?session=" + quote("s 2/ü%", safe=""))
    check(page.text)
    assert "session s 2/ü%" in page.text
    assert "/state/-/export/session.jsonl?id=s+2%2F%C3%BC%25" in page.text
    answer = await get(datasette, "/state/-/export/session.csv?safe=yes&id=" + quote("s 2/ü%", safe=""))
    assert cells(answer.text)[0]["content"] == "'=1+1 桂林"
    assert 'filename="state-session-s-2' in answer.headers["content-disposition"]


async def test_a_search_can_be_taken_along(make_datasette: Callable[..., Any], long_store: Path) -> None:
    datasette = await make_datasette(long_store)
    check((await get(datasette, "/state/-/export?search=1504")).text)
    answer = await get(datasette, "/state/-/export/search.csv?id=1504")
    assert [row["content"] for row in cells(answer.text)] == ["text 1504"]
    assert len(cells((await get(datasette, "/state/-/export/search.csv?id=桂林")).text)) == 1
    await get(datasette, "/state/-/export/search.csv?id=nowhere", 404)


async def test_what_is_not_there_is_said(make_datasette: Callable[..., Any], long_store: Path) -> None:
    datasette = await make_datasette(long_store)
    for path in ("session.jsonl?id=nope", "source.csv?id=nope", "session.csv", "session.exe?id=s1", "question/nope.csv",
                 "question/cost_per_day.html"):  # fmt: skip
        answer = await get(datasette, f"/state/-/export/{path}", 404)
        assert answer.headers["content-type"].startswith("text/plain") and answer.text.endswith(".\n")
    assert "no session has the id" in (await get(datasette, "/state/-/export?session=nope", 404)).text
    await get(datasette, "/state/-/export/question/cost_per_day.csv?since=yesterday", 400)
    await get(datasette, "/nowhere/-/export", 404)


async def test_the_page_has_a_switch_for_secrets(make_datasette: Callable[..., Any], tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", f"use {SECRET}")
    datasette = await make_datasette(tmp_path / "state.db")
    page = (await get(datasette, "/state/-/export?session=s")).text
    assert 'aria-current="true">Replace secrets' in page and "all.jsonl" not in page
    assert SECRET not in (await get(datasette, "/state/-/export/session.html?id=s")).text
    assert SECRET in (await get(datasette, "/state/-/export/session.html?id=s&redact=no")).text
    assert SECRET in (await get(datasette, "/state/-/export/session.jsonl?id=s")).text
    assert SECRET not in (await get(datasette, "/state/-/export/session.jsonl?id=s&redact=yes")).text
    off = (await get(datasette, "/state/-/export?session=s&redact=no")).text
    assert 'aria-current="true">Leave them in' in off and "session.html?id=s&amp;redact=no" in off


async def test_an_instance_that_redacts_shows_no_secret_anywhere(
    make_datasette: Callable[..., Any], tmp_path: Path
) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli", system_prompt=f"key {SECRET}")
        db.set_session_title("s", f"about {SECRET}")
        db.append_message("s", "user", f"use {SECRET}")
    datasette = await make_datasette(
        tmp_path / "state.db", metadata={"plugins": {"state-ledger": {"redact": True}}}
    )
    paths = ["/", "/state", "/state/messages", "/state/messages/1", "/state/messages.json?_shape=array",
             "/state/messages.csv?_stream=on", "/state/sessions", "/state/sessions/s", "/state/recent_sessions",
             "/state/recent_sessions.json?_shape=objects", "/state/recent_sessions.csv",
             "/state/-/export?session=s"]  # fmt: skip
    paths += [f"/state/-/export/all.{form}?redact=no" for form in ("jsonl", "json", "md", "html", "csv", "ndjson")]
    for path in paths:
        answer = await get(datasette, path)
        assert SECRET not in answer.text, path
    assert "[redacted: openai key]" in (await get(datasette, "/state/messages/1")).text
    assert (await datasette.client.get("/state.db")).status_code in (403, 404)
    own = await datasette.client.get("/state?sql=select+hex(content)+from+messages", follow_redirects=True)
    assert SECRET.encode().hex().upper() not in own.text


async def test_csv_of_a_question_has_every_row(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    whole = await get(datasette, "/demo/cost_sessions.csv")
    listed = await get(datasette, "/demo/cost_sessions.json?_shape=objects&limit=10000")
    rows = cells(whole.text)
    assert len(rows) == len(listed.json()["rows"]) == int(whole.headers["x-state-ledger-rows"]) > 100
    assert whole.headers["x-state-ledger-complete"] == "yes"
    few = await get(datasette, "/demo/cost_sessions.csv?limit=7")
    assert (len(cells(few.text)), few.headers["x-state-ledger-complete"]) == (7, "no")


async def test_an_answer_without_rows_is_a_file_of_its_columns(
    make_datasette: Callable[..., Any], long_store: Path
) -> None:
    datasette = await make_datasette(long_store)
    answer = await get(datasette, "/state/cost_per_day.csv")
    assert answer.headers["x-state-ledger-rows"] == "0" and answer.text.startswith("day,")
    body = (await get(datasette, "/state/-/export/question/cost_per_day.json")).json()
    assert (body["rows"], body["truncated"], body["row_count"]) == ([], False, 0)
    assert (await get(datasette, "/state/-/export/question/cost_per_day.ndjson")).text == ""


async def test_more_rows_than_datasette_gives_are_all_there(make_datasette: Callable[..., Any], tmp_path: Path) -> None:
    """Case 19: 1,000 is where Datasette's own CSV of a query ends."""
    path = write(
        tmp_path / "state.db",
        """WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM n WHERE n < 1504)
        INSERT INTO sessions(id,source,started_at,model,input_tokens) SELECT 's'||n,'cli',1e9+n,'m',5 FROM n;""",
    )
    datasette = await make_datasette(path)
    for address in ("/state/cost_sessions.csv", "/state/-/export/question/cost_sessions.csv"):
        answer = await get(datasette, address)
        assert len(cells(answer.text)) == 1504, address
    body = (await get(datasette, "/state/-/export/question/cost_sessions.json")).json()
    assert (len(body["rows"]), body["truncated"], body["row_count"]) == (1504, False, 1504)
    lined = await get(datasette, "/state/-/export/question/cost_sessions.ndjson")
    assert len([json.loads(line) for line in lined.text.splitlines()]) == 1504


async def test_a_question_that_fails_on_the_way_gives_no_file(
    make_datasette: Callable[..., Any], demo_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug log 123 and 135: an error is an error, not a short file."""
    datasette = await make_datasette(demo_store, metadata={"plugins": {"state-ledger": {"query_time_limit_ms": 50}}})
    monkeypatch.setattr(question_file, "TIME_FACTOR", 0)
    answer = await get(datasette, "/demo/cost_per_day.csv", 503)
    assert answer.headers["content-type"].startswith("text/plain") and "did not answer" in answer.text


@pytest.fixture
def big_store(tmp_path: Path) -> Path:
    """A store whose export does not fit into the buffers between server and client."""
    path = tmp_path / "state.db"
    SessionDB(path).close()
    with closing(sqlite3.connect(path)) as connection:
        drop_triggers(connection)
        connection.executescript(
            """INSERT INTO sessions(id,source,started_at) VALUES('s1','cli',1);
            WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM n WHERE n < 2000)
            INSERT INTO messages(session_id,role,content,timestamp)
            SELECT 's1','user',hex(randomblob(4000)),n FROM n;"""
        )
    return path


def open_export(address: str, form: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", f"/state/-/export/session.{form}?id=s1")
    return connection, connection.getresponse()


@pytest.mark.parametrize("form", ["csv", "json", "ndjson"])
def test_a_transfer_that_cannot_be_whole_breaks(served: Callable[..., str], big_store: Path, form: str) -> None:
    """Bug log 123: over a real connection, the reader can tell a cut file from a whole one."""
    address = served([big_store])
    connection, answer = open_export(address, form)
    assert answer.status == 200 and answer.headers["X-State-Ledger-Rows"] == "2000"
    answer.read(1000)
    writer = sqlite3.connect(big_store)
    writer.execute("DELETE FROM messages WHERE id > 1990")
    writer.commit()
    writer.close()
    with pytest.raises(http.client.IncompleteRead):
        while answer.read(1 << 20):
            pass
    connection.close()


def test_a_slow_reader_keeps_no_transaction_and_one_that_leaves_is_noticed(
    served: Callable[..., str], big_store: Path
) -> None:
    """Bug log 14."""
    writer = sqlite3.connect(big_store, isolation_level=None)
    writer.execute("PRAGMA journal_mode = wal").fetchone()
    address = served([big_store])
    connection, answer = open_export(address, "jsonl")
    answer.read(1000)
    for _ in range(3):
        writer.execute("INSERT INTO messages(session_id,role,content,timestamp) VALUES('s1','user','later',9e9)")
        outcomes = [writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] for _ in range(50)]
        assert 0 in outcomes
    text = answer.read().decode()
    assert '"complete": true' in text[-300:] and "later" not in text
    connection.close()
    connection, answer = open_export(address, "jsonl")
    answer.read(1000)
    connection.close()
    assert wait_for_answer(address)
    writer.close()


def wait_for_answer(address: str) -> bool:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.request("GET", "/-/versions.json")
    return connection.getresponse().status == 200


async def test_each_question_can_be_used_in_a_notebook(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    page = (await get(datasette, "/demo/cost_per_model?since=2026-01-01&tz=UTC")).text
    assert "Use it in a notebook" in page
    assert "http://localhost/demo/-/export/question/cost_per_model.csv?since=2026-01-01&amp;tz=UTC" in page
    assert "import pandas as pd" in page
    for name in questions.load():
        assert "Use it in a notebook" in (await get(datasette, f"/demo/{name}")).text


async def test_the_sum_of_the_rows_is_the_total_of_the_page(
    make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    from tests.page_checks import exact_amount

    datasette = await make_datasette(demo_store)
    rows = cells((await get(datasette, "/demo/cost_per_model.csv")).text)
    total = exact_amount((await get(datasette, "/demo/-/cost?period=all")).text)
    assert sum(float(row["cost_usd"] or 0) for row in rows) == pytest.approx(total, rel=1e-9)


async def test_head_tells_the_rows_without_them(make_datasette: Callable[..., Any], long_store: Path) -> None:
    datasette = await make_datasette(long_store)
    answer = await datasette.client.request("HEAD", "/state/-/export/session.csv?id=s1")
    assert (answer.status_code, answer.headers["x-state-ledger-rows"], answer.text) == (200, "1504", "")


MEMORY = """
import sys
print([line.split()[1] for line in open(f"/proc/{sys.argv[1]}/status") if line.startswith("VmHWM")][0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell how much memory was used")
def test_the_server_stays_small_however_many_messages(tmp_path: Path) -> None:
    """Bug log 108."""
    path = tmp_path / "state.db"
    SessionDB(path).close()
    connection = sqlite3.connect(path)
    drop_triggers(connection)
    connection.execute("INSERT INTO sessions(id,source,started_at) VALUES('s1','cli',1),('s2','cli',1)")
    connection.execute(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM n WHERE n < ?)"
        " INSERT INTO messages(session_id,role,content,timestamp)"
        " SELECT CASE WHEN n < 1000 THEN 's2' ELSE 's1' END,'user',substr(hex(randomblob(50)),1,90)||n,n/3 FROM n",
        (many := 300_000 if STRESS else 75_000,),
    )
    connection.commit()
    connection.close()
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "datasette", "serve", str(path), "--port", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def peak() -> int:
        return int(subprocess.check_output([sys.executable, "-c", MEMORY, str(process.pid)]))

    def drain(session: str, form: str) -> None:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        client.request("GET", f"/state/-/export/session.{form}?id={session}")
        answer = client.getresponse()
        assert answer.status == 200
        while answer.read(1 << 20):
            pass
        client.close()

    try:
        wait_for(f"http://127.0.0.1:{port}", process)
        drain("s2", "jsonl")
        idle = peak()
        drain("s1", "jsonl")
        drain("s1", "csv")
        assert peak() - idle < many // 3, f"{peak() - idle} kB above idle"  # a third of a kB for each
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.mark.browser
def test_a_hostile_export_does_nothing_in_a_browser(tmp_path: Path) -> None:
    """Case 20, in a real Chromium: the HTML export, and the Markdown export rendered without any guard."""
    import markdown

    from tests.exported import exported
    from tests.test_browser import CHROMIUM, FLAGS

    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    path = write(tmp_path / "state.db", CASE_20)
    pages = {
        "export.html": exported(path, "html"),
        "rendered.html": markdown.markdown(exported(path, "md"), extensions=["fenced_code", "tables"]),
    }
    with playwright.sync_playwright() as runner:
        chromium = runner.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        seen: list[str] = []
        for name, text in pages.items():
            file = tmp_path / name
            file.write_text(text, "utf-8")
            page = chromium.new_page()
            page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
            page.on("request", lambda request: seen.append(request.url) if "tracker" in request.url else None)
            page.goto(file.as_uri())
            page.wait_for_timeout(200)
            assert seen == []
            assert page.locator("script, img, svg, iframe, a[href^='javascript'], [onerror], [onload]").count() == 0
            assert "kite & co" in page.inner_text("body") and "kite <img src=x" in page.inner_text("body")
            page.close()
        chromium.close()
