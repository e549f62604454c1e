"""An export holds everything that was asked for, or says that it does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import SessionDB, portability
from state_ledger.connection import open_for_reading
from state_ledger.portability.export import Export, ExportBroken
from state_ledger.portability.file_names import file_name
from state_ledger.portability.formats import FORMATS, csv_rows, html_page, markdown_text
from state_ledger.portability.scope import NothingToExport, Scope
from state_ledger.portability.source import Source
from state_ledger.sqlite import sqlite3
from tests import prepared
from tests.conftest import STRESS, drop_triggers, names_in
from tests.exported import CASE_16, CASE_20, cells, exported, exported_bytes, lines, write


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return prepared.run(*prepared.COMMAND, *arguments, timeout=120, cwd=cwd, text=False)


def beside(folder: Path) -> list[str]:
    """What is in a folder beside a store and its log."""
    return [name for name in names_in(folder) if name not in ("state.db", "state.db-wal", "state.db-shm")]


@pytest.fixture
def long_store(tmp_path: Path) -> Path:
    """Case 19: 1,504 messages in one session, and two more sessions."""
    return write(
        tmp_path / "state.db",
        """INSERT INTO sessions(id,source,started_at) VALUES('s1','cli',1),('s2','telegram',2),('s3','cli',3);
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM n WHERE n < 1504)
        INSERT INTO messages(session_id,role,content,timestamp) SELECT 's1','user','text '||n,n FROM n;
        INSERT INTO messages(session_id,role,content,timestamp) VALUES('s2','user','=1+1',1),('s3','user','x',1);""",
    )


@pytest.mark.parametrize("form", [name for name in FORMATS if name != "parquet"])
def test_every_message_is_in_the_file_the_last_one_too(long_store: Path, form: str) -> None:
    text = exported(long_store, form, Scope("session", "s1"))
    assert [f"text {number}" in text for number in (1, 750, 1000, 1001, 1504)] == [True] * 5
    if form == "csv":
        rows = cells(text)
        assert [row["id"] for row in rows] == [str(number) for number in range(1, 1505)]
    if form == "ndjson":
        assert [json.loads(line)["id"] for line in text.splitlines()] == list(range(1, 1505))
    if form == "json":
        assert [message["id"] for message in json.loads(text)["messages"]] == list(range(1, 1505))
    if form in ("md", "html"):
        assert "Complete: 1,504 messages of 1 sessions" in text


def test_the_first_line_says_what_should_follow_and_the_last_that_it_did(long_store: Path) -> None:
    found = lines(exported(long_store, "jsonl"))
    header, trailer = found[0], found[-1]
    counts = {"sessions": 3, "messages": 1506, "usage_rows": 0}
    assert (header["type"], header["counts"], header["schema_version"]) == ("header", counts, 23)
    assert header["scope"] == {"kind": "all", "value": ""} and header["tool"].startswith("state-ledger ")
    assert "content" in header["columns"]["messages"]
    assert (trailer["type"], trailer["complete"], trailer["counts"]) == ("trailer", True, counts)
    assert [line["type"] for line in found].count("message") == 1506
    message = next(line for line in found if line["type"] == "message")
    assert set(message) == {"type", *header["columns"]["messages"], "state"}


def test_messages_deleted_while_the_file_is_written_are_missed(long_store: Path) -> None:
    for form in FORMATS:
        if form == "parquet":
            continue
        connection = open_for_reading(long_store)
        made = Export.open(Source(connection), Scope("session", "s1"))
        pieces = FORMATS[form].write(made)
        text = [next(pieces)]
        writer = sqlite3.connect(long_store)
        writer.execute("DELETE FROM messages WHERE id = (SELECT max(id) FROM messages WHERE session_id = 's1')")
        writer.commit()
        writer.close()
        if form in ("csv", "json", "ndjson"):
            with pytest.raises(ExportBroken, match=r"1 of 1,\d{3} messages were deleted"):
                list(pieces)
        else:
            text += pieces
            end = b"".join(text).decode()[-400:]
            assert '"complete": false' in end if form == "jsonl" else "INCOMPLETE: 1," in end
        connection.close()


def test_no_read_transaction_lasts_from_one_piece_to_the_next(long_store: Path) -> None:
    """Bug log 14: a stream that is read slowly must not keep the log from being emptied."""
    writer = sqlite3.connect(long_store, isolation_level=None)
    writer.execute("PRAGMA journal_mode = wal").fetchone()
    writer.execute("INSERT INTO messages(session_id,role,content,timestamp) VALUES('s3','user','y',2)")
    connection = open_for_reading(long_store)
    pieces = FORMATS["jsonl"].write(Export.open(Source(connection), Scope("all")))
    for _ in range(4):
        next(pieces)
        assert not connection.in_transaction
        writer.execute("INSERT INTO messages(session_id,role,content,timestamp) VALUES('s3','user','z',2)")
        assert tuple(writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()) == (0, 0, 0)
    connection.close()
    writer.close()


def test_structured_content_is_parts_in_jsonl_and_text_in_rows(tmp_path: Path) -> None:
    """Case 16."""
    path = write(tmp_path / "state.db", CASE_16)
    first, second, third, fourth = lines(exported(path, "jsonl"), "message")
    assert [part["type"] for part in first["content"]] == ["text", "image_url", "text"]
    assert first["content"][2]["text"] == "桂林旅游"
    assert second["content"] == "plain harbour text"
    assert "not valid JSON" in third["problem"]
    assert fourth["content"] == "json:[1]"
    for form in ("csv", "ndjson"):
        text = exported_bytes(path, form)
        assert b"\x00" not in text and b"base64" not in text
    texts = [row["content"] for row in cells(exported(path, "csv"))]
    assert texts == [
        "harbour photo\n\n[image: image/png, 3 bytes]\n\n桂林旅游", "plain harbour text", "[broken", "json:[1]",
    ]  # fmt: skip
    for form in ("html", "md"):
        text = exported(path, form)
        assert "harbour photo" in text and "AAAA" not in text and "\x00" not in text


def test_each_message_is_there_once_with_its_state(tmp_path: Path) -> None:
    """Accounting rule 15: what compaction stored twice is one message; what was taken back is left out."""
    path = write(
        tmp_path / "state.db",
        """INSERT INTO sessions(id,source,started_at) VALUES('s','cli',1);
        INSERT INTO messages(session_id,role,content,timestamp,active,compacted) VALUES
         ('s','user','kept',1,0,1),('s','user','gone',2,0,1),('s','user','back',3,0,0),('s','user','kept',1,1,0),
         ('s','user','same time',1,1,0);""",
    )
    found = [(line["id"], line["content"], line["state"]) for line in lines(exported(path, "jsonl"), "message")]
    assert found == [(1, "kept", "live"), (2, "gone", "compacted"), (5, "same time", "live")]
    flags = [(line["active"], line["compacted"]) for line in lines(exported(path, "jsonl"), "message")]
    assert flags == [(1, 0), (0, 1), (1, 0)]
    assert lines(exported(path, "jsonl"))[0]["left_out"] == {"taken_back": 1, "copies": 1}
    all_of_it = lines(exported(path, "jsonl", taken_back=True), "message")
    assert [line["state"] for line in all_of_it] == ["live", "compacted", "taken back", "live"]
    assert [row["state"] for row in cells(exported(path, "csv"))] == ["live", "compacted", "live"]
    assert "Summarised away later" in exported(path, "md")
    assert "1 messages that were taken back" in exported(path, "html")


def test_text_that_is_not_utf8_is_replaced_and_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "state.db",
        """INSERT INTO sessions(id,source,started_at) VALUES('s','cli',1);
        INSERT INTO messages(session_id,role,content,timestamp) VALUES
        ('s','user','first',1),('s','user',CAST(x'63616665E921' AS TEXT),2),('s','user',x'4142',3),
        ('s','user','last',4);""",
    )
    found = lines(exported(path, "jsonl"))
    assert [line["content"] for line in found if line["type"] == "message"] == ["first", "cafe�!", "AB", "last"]
    assert found[-1]["not_utf8"] == 1 and found[-1]["complete"]
    assert [row["content"] for row in cells(exported(path, "csv"))] == ["first", "cafe�!", "AB", "last"]


def test_cells_that_a_spreadsheet_would_run_are_text_when_that_is_asked_for(long_store: Path) -> None:
    plain = exported(long_store, "csv", Scope("source", "telegram"))
    assert cells(plain)[0]["content"] == "=1+1"
    safe = exported(long_store, "csv", Scope("source", "telegram"), spreadsheet_safe=True)
    assert safe.startswith("\ufeff") and cells(safe)[0]["content"] == "'=1+1"
    assert csv_rows.lines([["=a", "+a", "-a", "@a", "\ta", -5, 0.5, None, "a=b"]], safe=True) == (
        "'=a,'+a,'-a,'@a,'\ta,-5,0.5,,a=b\r\n"
    )


def test_a_conversation_and_a_piece_of_work_hold_their_sessions(tmp_path: Path) -> None:
    path = write(
        tmp_path / "state.db",
        """INSERT INTO sessions(id,source,started_at,ended_at,end_reason,parent_session_id) VALUES
         ('one','cli',1,2,'compression',NULL),('two','cli',2,NULL,NULL,'one'),
         ('helper','subagent',1,NULL,NULL,'one'),('else','cli',9,NULL,NULL,NULL);
        INSERT INTO messages(session_id,role,content,timestamp) SELECT id,'user','m '||id,started_at FROM sessions;""",
    )

    def sessions(kind: str, of: str) -> list[str]:
        return [line["id"] for line in lines(exported(path, "jsonl", Scope(kind, of)), "session")]

    assert sessions("session", "one") == ["one"]
    for member in ("one", "two"):
        assert sessions("conversation", member) == ["one", "two"]
    for member in ("one", "two", "helper"):
        assert sessions("work", member) == ["one", "two", "helper"]
    assert sessions("source", "cli") == ["one", "two", "else"]
    assert len(json.loads(exported(path, "json", Scope("work", "one")))) == 3
    for kind, value in (("session", "nope"), ("work", "nope"), ("conversation", ""), ("source", "nope")):
        with pytest.raises(NothingToExport):
            exported(path, "jsonl", Scope(kind, value))


def test_messages_of_a_session_that_is_gone_are_still_exported(tmp_path: Path) -> None:
    path = write(
        tmp_path / "state.db",
        "INSERT INTO messages(session_id,role,content,timestamp) VALUES('lost','user','still here',1)",
    )
    found = lines(exported(path, "jsonl"))
    assert found[1]["id"] == "lost" and "not the session" in found[1]["problem"]
    assert found[2]["content"] == "still here" and found[-1]["complete"]


@pytest.mark.parametrize("name", ["small-1.db", "small-23.db", "schema-23.db"])
def test_stores_of_every_schema_are_exported_whole(shared_store, name: str) -> None:  # type: ignore[no-untyped-def]
    path = shared_store(name)
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    stored = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    header, *_, trailer = lines(exported(path, "jsonl", taken_back=True))
    assert trailer["complete"]
    assert header["counts"]["messages"] + header["left_out"]["copies"] == stored
    for form in ("csv", "json", "ndjson", "md", "html"):
        assert exported(path, form)


def test_json_has_the_shape_of_export_session(demo_store: Path) -> None:
    with SessionDB(demo_store, read_only=True) as db:
        for session_id in [row["id"] for row in db.search_sessions(limit=12)]:
            ours = json.loads(exported(demo_store, "json", Scope("session", session_id)))
            theirs = json.loads(json.dumps(db.export_session(session_id)))
            # A message that compaction stored anew has its first id here, its last one there.
            besides = ("id", "state", "problem")
            messages = [{k: v for k, v in m.items() if k not in besides} for m in ours["messages"] if m["active"]]
            live = [{k: v for k, v in m.items() if k not in besides} for m in theirs["messages"]]
            assert sorted(messages, key=str) == sorted(live, key=str)
            assert {**ours, "messages": None} == {**theirs, "messages": None}


def test_html_is_one_file_that_forbids_itself_everything(tmp_path: Path) -> None:
    """Case 20."""
    text = exported(write(tmp_path / "state.db", CASE_20), "html")
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    for tag in ("<script", "<img", "<svg", "<a ", "<link", "<iframe", 'javascript:alert(4)"', " onerror=alert(3)>"):
        assert tag not in text.replace("&lt;script", ""), tag
    assert "kite &amp; co" in text and "&amp;amp;" not in text
    assert "&lt;img src=x onerror=alert(7)&gt;" in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text


MARKDOWN = [
    "<script>alert(1)</script>",
    "a <img src=x onerror=alert(1)>",
    "[go](javascript:alert(1))",
    r"[go\](javascript:alert(1))",
    r"\![p](https://tracker.example/p.png)",
    "[go](java&#115;cript:alert(1))",
    "[go]( javascript:alert(1))",
    "[go](\njavascript:alert(1))",
    "![p](https://tracker.example/p.png)",
    "[![p](https://tracker.example/p.png)](https://example.org)",
    "[a]: javascript:alert(1)\n\n[a]",
    "[a][b]\n\n[b]: data:text/html,x",
    "<javascript:alert(1)>",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "> ```\n> swallowed\n\n<b>out</b>",
    "- ```js\n  <i>in</i>",
    "```\n</code></pre><script>alert(1)</script>",
    "~~~\n```\n<script>alert(1)</script>\n~~~\n<script>alert(2)</script>",
]


@pytest.mark.parametrize("hostile", MARKDOWN)
def test_markdown_is_harmless_wherever_it_is_rendered(hostile: str) -> None:
    import bleach
    import markdown

    html = markdown.markdown(markdown_text.text(hostile), extensions=["fenced_code", "tables"])
    for harm in ("<script", "<img", 'href="data', 'href="java', 'href="vb', "<i>", "<b>"):
        assert harm not in html, html
    allowed = {"p", "code", "pre", "blockquote", "a", "h1", "ul", "li"}
    assert bleach.clean(html, tags=allowed, attributes=["class", "href"]).replace("&#39;", "'") == html


def test_markdown_keeps_links_code_and_lists() -> None:
    kept = "# T\n\n- [docs](https://example.org/a?b=1)\n- x < y & z\n\n```python\nif a < b and c[0]():\n    pass\n```\n"
    assert markdown_text.text(kept) == kept
    nested = markdown_text.text("````md\n```\ninner\n```\n````")
    assert nested == "````md\n```\ninner\n```\n````\n"


@given(st.text())
def test_no_text_breaks_out_of_html_or_markdown(text: str) -> None:
    ours = {"div", "/div", "pre", "/pre", "code", "/code", "strong", "/strong", "b", "/b", "span", "/span"}
    for piece in html_page.text(text).split("<")[1:]:
        assert re.split(r"[ >]", piece)[0] in ours
    assert isinstance(markdown_text.text(text), str)


@given(st.text(), st.text())
def test_names_of_files_are_safe(kind: str, value: str) -> None:
    name = file_name("state", kind, value, ending="csv")
    assert name.isascii() and name.endswith(".csv") and len(name) < 100
    assert not set(name) & set('/\\:*?"<>|%\0 ') and not name.startswith((".", "-"))
    assert os.path.basename(name) == name  # noqa: PTH119


def test_names_of_files_tell_sessions_apart() -> None:
    assert file_name("state", "session", "20260601_ab12cd", ending="md") == "state-session-20260601_ab12cd.md"
    assert file_name("s", "a/b", ending="md") != file_name("s", "a:b", ending="md")
    assert file_name("CON", ending="md") != "CON.md"


def test_the_command_writes_a_file_that_is_whole(long_store: Path, tmp_path: Path) -> None:
    done = run("export", long_store, "--session", "s1", "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == b""
    assert b"1,504 messages of 1 sessions, complete." in done.stderr
    assert len(cells((tmp_path / "state-session-s1.csv").read_text("utf-8"))) == 1504
    again = run("export", long_store, "--session", "s1", "--format", "csv", cwd=tmp_path)
    assert again.returncode != 0 and b"--force" in again.stderr
    assert run("export", long_store, "--session", "s1", "--format", "csv", "--force", cwd=tmp_path).returncode == 0
    assert not [name for name in names_in(tmp_path) if name.endswith(".part")]


def test_a_dash_means_standard_output_and_no_file(long_store: Path, tmp_path: Path) -> None:
    """Bug log 105."""
    done = run("export", long_store, "--session", "s2", "--output", "-", cwd=tmp_path)
    assert [line["type"] for line in lines(done.stdout.decode())] == ["header", "session", "message", "trailer"]
    assert beside(tmp_path) == []


@pytest.mark.parametrize(
    "arguments",
    [["--session", "nope"], ["--source", "nope"], ["--work", "x/y"], ["--question", "nope"], [],
     ["--all", "--session", "s1"],
     ["--question", "cost_per_day", "--format", "html"], ["--question", "cost_per_day", "--param", "since=yesterday"],
     ["--session", "s1", "--zone", "Mars/Base"], ["--question", "cost_per_day", "--format", "csv"]],
    ids=" ".join,
)  # fmt: skip
def test_nothing_to_export_is_an_error_with_nothing_on_standard_output(
    long_store: Path, tmp_path: Path, arguments: list[str]
) -> None:
    """Bug log 102."""
    done = run("export", long_store, *arguments, "--output", "-", cwd=tmp_path)
    assert done.returncode != 0 and done.stdout == b"" and len(done.stderr.splitlines()) < 6
    assert b"Traceback" not in done.stderr


def test_reading_changes_nothing_of_the_store(long_store: Path, tmp_path: Path) -> None:
    before = long_store.read_bytes()
    for form in ("jsonl", "csv", "html"):
        run("export", long_store, "--all", "--format", form, "--output", "-", cwd=tmp_path)
    assert long_store.read_bytes() == before and beside(tmp_path) == []


def test_shared_formats_are_redacted_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    secret = "sk-" + "proj-" + "Qm7Vb2Xk9LpR4tYw8ZsD1fGh"
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli", system_prompt=f"key {secret}")
        db.append_message("s", "user", f"use {secret} and /home/ada/x")
        calls = [{"function": {"name": "f", "arguments": json.dumps({"key": secret})}}]
        db.append_message("s", "assistant", [{"type": "text", "text": f"ok {secret}"}], tool_calls=calls)

    def text_of(form: str, *options: str) -> tuple[str, bytes]:
        done = run("export", path, "--all", "--format", form, "--output", "-", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(), done.stderr

    for form in ("html", "md"):
        text, said = text_of(form)
        assert secret not in text and "[redacted: openai key]" in text
        assert b"Replaced: 3 openai keys." in said
        assert secret in text_of(form, "--no-redact")[0]
    for form in ("jsonl", "json", "csv", "ndjson"):
        assert secret in text_of(form)[0]
        text, said = text_of(form, "--redact", "--redact-homes")
        assert secret not in text and "/home/[redacted: home path]/x" in text
        assert b"openai keys" in said
    trailer = lines(text_of("jsonl", "--redact")[0])[-1]
    assert trailer["redacted"] == {"openai key": 4}


def test_the_questions_of_a_store_are_exported_with_every_row(demo_store: Path, tmp_path: Path) -> None:
    full = run("export", demo_store, "--question", "cost_sessions", "--format", "csv", "--output", "-", cwd=tmp_path)
    assert full.returncode == 0 and b"complete" in full.stderr
    rows = cells(full.stdout.decode())
    assert len(rows) > 100
    cut = run("export", demo_store, "--question", "cost_sessions", "--param", "limit=5", "--format", "json",
              "--output", "-", cwd=tmp_path)  # fmt: skip
    body = json.loads(cut.stdout)
    assert (len(body["rows"]), body["truncated"], body["row_count"]) == (5, True, 5)
    assert b"cut at the limit" in cut.stderr
    assert body["rows"][0] == {name: body["rows"][0][name] for name in body["columns"]}


def test_parquet_holds_the_same_rows(demo_store: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    target = tmp_path / "all.parquet"
    target.write_bytes(exported_bytes(demo_store, "parquet"))
    table = parquet.read_table(target).to_pylist()
    rows = [json.loads(line) for line in exported(demo_store, "ndjson").splitlines()]
    assert table == rows


def test_without_pyarrow_a_sentence_says_what_to_install(long_store: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from state_ledger.cli import main; main(['export', sys.argv[1], '--all', '--format', 'parquet'])"
    )
    done = subprocess.run([sys.executable, "-c", code, long_store], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0 and "pip install 'state-ledger[parquet]'" in done.stderr
    assert beside(tmp_path) == []


def test_a_search_is_exported_with_all_its_hits(long_store: Path, tmp_path: Path) -> None:
    done = run("export", long_store, "--query", "text", "--format", "csv", "--output", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(cells(done.stdout.decode())) == 1504
    done = run("export", long_store, "--query", "1504", "--output", "-", cwd=tmp_path)
    found = lines(done.stdout.decode())
    assert [line["content"] for line in found if line["type"] == "message"] == ["text 1504"]
    assert found[-1]["complete"] and found[0]["scope"] == {"kind": "search", "value": "1504"}
    for query in ("nowhere", "", "!!!"):
        done = run("export", long_store, "--query", query, "--output", "-", cwd=tmp_path)
        assert done.returncode != 0 and done.stdout == b"" and b"nothing to export" in done.stderr, query


MEASURE = """
import resource, sys
from pathlib import Path
from state_ledger.cli import main
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
small, large, form = sys.argv[1:]
main(["export", small, "--all", "--format", form, "--output", "/dev/null", "--force"], standalone_mode=False)
idle = peak()
main(["export", large, "--all", "--format", form, "--output", "/dev/null", "--force"], standalone_mode=False)
print(peak() - idle)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell how much memory was used")
def test_memory_stays_flat_however_many_messages(tmp_path: Path) -> None:
    """Bug log 108."""
    small, large = tmp_path / "small.db", tmp_path / "large.db"
    many = 300_000 if STRESS else 75_000
    for path, number in ((small, 1000), (large, many)):
        SessionDB(path).close()
        connection = sqlite3.connect(path)
        drop_triggers(connection)
        connection.execute("INSERT INTO sessions(id,source,started_at) VALUES('s','cli',1)")
        connection.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM n WHERE n < ?)"
            " INSERT INTO messages(session_id,role,content,timestamp)"
            " SELECT 's','user',substr(hex(randomblob(50)),1,90)||n,n/3 FROM n",
            (number,),
        )
        connection.commit()
        connection.close()
    for form in ("jsonl", "csv"):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, small, large, form], capture_output=True, text=True, timeout=300, check=True
        )
        assert int(done.stdout.split()[-1]) < many // 3, f"{form}: {done.stdout} kB"  # a third of a kB for each


def test_iterating_all_sessions_is_still_what_it_was(demo_store: Path) -> None:
    with SessionDB(demo_store, read_only=True) as db:
        assert len(db.export_all()) == len(list(portability.iterate_sessions(db._writer)))
