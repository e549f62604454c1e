"""What was exported comes back: the same messages, flags, calls, lineage, titles and totals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import SessionDB, portability
from state_ledger.connection import open_for_reading
from state_ledger.portability.importing import Summary, import_files
from state_ledger.portability.scope import Scope
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests import prepared
from tests.conftest import names_in
from tests.exported import CASE_16, exported, lines, strict_json, write

TOTALS = """SELECT sum(api_call_count), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
 sum(cache_write_tokens), sum(reasoning_tokens), round(sum(cost_usd), 9), round(sum(actual_usd), 9),
 round(sum(estimated_usd), 9), sum(included_calls), sum(unknown_calls), sum(unknown_tokens) FROM ledger_usage"""


def put(target: Path | Writer, *texts: str) -> Summary:
    """Imports texts of exports into a store."""
    path = target if isinstance(target, Path) else target.path
    files = []
    for number, text in enumerate(texts):
        file = path.with_name(f"{path.stem}-{number}.jsonl")
        file.write_text(text, "utf-8")
        files.append(file)
    if isinstance(target, Writer):
        return import_files(target, files)
    writer = Writer(path)
    try:
        return import_files(writer, files)
    finally:
        writer.close()


def totals(path: Path) -> tuple[Any, ...]:
    connection = open_for_reading(path)
    try:
        return tuple(connection.execute(TOTALS).fetchone())
    finally:
        connection.close()


def comparable(text: str) -> list[Any]:
    """What the round trip keeps of a JSON Lines export, ids of messages apart."""
    kept: list[Any] = []
    for line in lines(text):
        if line["type"] == "message":
            kept.append(("message", {name: value for name, value in line.items() if name != "id"}))
        elif line["type"] == "usage":
            kept.append(("usage", line))
        elif line["type"] == "session":
            wanted = ("id", "title", "parent_session_id", "source", "model", "model_config", "end_reason", "archived")
            kept.append(("session", {name: line[name] for name in wanted}))
    return kept


def indexes_are_sound(path: Path) -> None:
    """Bug log 148."""
    connection = sqlite3.connect(path)
    for index in ("messages_fts", "messages_fts_trigram"):
        connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', 1)")
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NO_JSON = TEXT | st.sampled_from(["NaN", "[Infinity]", '{"a": [1, -Infinity]}'])
STORED = TEXT | JSON.map(lambda value: "\x00json:" + json.dumps(value)) | NO_JSON.map(lambda text: "\x00json:" + text)
ODD_JSON = JSON.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1))
MAYBE_JSON = st.none() | NO_JSON | JSON.map(json.dumps) | ODD_JSON
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool", "system"]),
        "content": st.none() | STORED,
        "timestamp": st.floats(0, 4e9),
        "tool_calls": MAYBE_JSON,
        "tool_name": st.none() | TEXT,
        "reasoning": st.none() | TEXT,
        "reasoning_details": MAYBE_JSON,
        "api_content": st.none() | TEXT,
        "display_metadata": MAYBE_JSON,
        "token_count": st.none() | st.integers(0, 10**6),
        "observed": st.sampled_from([0, 1]),
        "flags": st.sampled_from([(1, 0), (0, 1), (0, 0)]),
    }
)
USAGE = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["a", "b/c", "模型"]),
        "task": st.sampled_from(["", "title", "vision"]),
        "api_call_count": st.integers(0, 9),
        "input_tokens": st.integers(0, 10**9),
        "cache_read_tokens": st.integers(0, 10**9),
        "estimated_cost_usd": st.floats(0, 3),
        "cost_status": st.sampled_from([None, "estimated", "unknown", "included", "actual"]),
    }
)
SESSION = st.fixed_dictionaries(
    {
        "title": st.none() | TEXT.filter(bool),
        "source": st.sampled_from(["cli", "telegram", "subagent"]),
        "end_reason": st.sampled_from([None, "compression", "branched"]),
        "model_config": st.none() | JSON.map(json.dumps) | TEXT.filter(bool),
        "input_tokens": st.integers(0, 10**9),
        "estimated_cost_usd": st.none() | st.floats(0, 3),
        "archived": st.sampled_from([0, 1]),
        "parent": st.none() | st.integers(0, 3),
        "messages": st.lists(MESSAGE, max_size=3),
        "usage": st.lists(USAGE, max_size=3, unique_by=lambda row: (row["model"], row["task"])),
    }
)


def fill(path: Path, given_sessions: list[dict[str, Any]]) -> None:
    """Stores sessions as another program may have, their parents among the earlier ones."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    for table in ("messages", "session_model_usage", "sessions"):
        connection.execute(f"DELETE FROM {table}")
    titles: set[str] = set()
    for number, session in enumerate(given_sessions):
        parent = session["parent"]
        title = session["title"] if session["title"] not in titles else None
        titles.add(title or "")
        insert(connection, "sessions", {
            "id": f"s/{number}", "started_at": number + 1.5,
            "parent_session_id": f"s/{parent}" if parent is not None and parent < number else None,
            **{name: session[name] for name in ("source", "end_reason", "model_config", "input_tokens",
                                                "estimated_cost_usd", "archived")},
            "title": title,
        })  # fmt: skip
        for message in session["messages"]:
            active, compacted = message["flags"]
            row = {name: value for name, value in message.items() if name != "flags"}
            row |= {"session_id": f"s/{number}", "active": active, "compacted": compacted}
            insert(connection, "messages", row)
        for row in session["usage"]:
            insert(connection, "session_model_usage", {"session_id": f"s/{number}", **row})
    connection.commit()
    connection.close()


def insert(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks})", list(row.values()))


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Path, Writer]]:
    """The path of one store, and another one that is open to write; neither waits for the disk."""
    SessionDB(tmp_path / "one.db").close()
    writer = Writer(tmp_path / "two.db")
    writer.connection.execute("PRAGMA synchronous = OFF")
    yield tmp_path / "one.db", writer
    writer.close()


EXAMPLES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=30)


@EXAMPLES
@given(st.lists(SESSION, max_size=3))
def test_export_import_export_is_the_same(stores: tuple[Path, Writer], given_sessions: list[dict[str, Any]]) -> None:
    one, writer = stores
    two = writer.path
    fill(one, given_sessions)
    fill(two, [])
    if not given_sessions:
        return
    first = exported(one, "jsonl", taken_back=True)
    summary = put(writer, first)
    assert summary.troubles == [] and summary.detached == 0 and summary.renamed == []
    assert summary.imported == len(given_sessions)
    assert differences(comparable(first), comparable(exported(two, "jsonl", taken_back=True))) == []
    assert totals(two) == totals(one)
    assert stored_bytes(two) == stored_bytes(one)
    before = exported(two, "jsonl", taken_back=True).splitlines()[1:]
    again = put(writer, first)
    assert (again.imported, again.skipped) == (0, len(given_sessions))
    assert exported(two, "jsonl", taken_back=True).splitlines()[1:] == before


def stored_bytes(path: Path) -> list[Any]:
    """Contents as they are stored, each logical message once."""
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT DISTINCT session_id, timestamp, role, CAST(content AS BLOB), min(id) FROM messages"
        " GROUP BY 1, 2, 3, 4 ORDER BY session_id, min(id)"
    ).fetchall()
    connection.close()
    return [row[:4] for row in rows]


@EXAMPLES
@given(st.lists(SESSION, min_size=1, max_size=2))
def test_json_comes_back_through_the_storage_core_too(
    stores: tuple[Path, Writer], given_sessions: list[dict[str, Any]]
) -> None:
    one, writer = stores
    two = writer.path
    for session in given_sessions:
        session["model_config"] = None
    fill(one, given_sessions)
    fill(two, [])
    answer = portability.import_sessions(writer, as_list(strict_json(exported(one, "json", taken_back=True))))
    assert answer["ok"], answer
    first, second = (comparable(exported(path, "jsonl", taken_back=True)) for path in (one, two))
    assert differences(first, second) == []
    assert totals(two) == totals(one)


def differences(first: list[Any], second: list[Any]) -> list[Any]:
    """What the records of two exports disagree on."""
    if len(first) != len(second):
        return [len(first), len(second)]
    return [
        (name, one.get(name), two.get(name))
        for (_, one), (_, two) in zip(first, second, strict=True)
        for name in {*one, *two}
        if one.get(name) != two.get(name)
    ]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_a_whole_store_travels(demo_store: Path, tmp_path: Path, form: str) -> None:
    """Bug log 104 and 148."""
    target = tmp_path / "back.db"
    summary = put(target, exported(demo_store, form, taken_back=True))
    first = lines(exported(demo_store, "jsonl", taken_back=True))
    assert summary.troubles == [] and summary.imported == first[0]["counts"]["sessions"]
    back = lines(exported(target, "jsonl", taken_back=True))
    assert first[0]["counts"] == back[0]["counts"]
    assert totals(target) == totals(demo_store)
    indexes_are_sound(target)


@pytest.mark.parametrize("name", ["small-1.db", "small-23.db", "schema-23.db"])
def test_stores_of_the_real_program_travel(shared_store: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    path = shared_store(name)
    summary = put(tmp_path / "back.db", exported(path, "jsonl"))
    assert summary.troubles == []
    assert totals(tmp_path / "back.db") == totals(path)


def test_parts_are_stored_in_the_same_bytes_again(tmp_path: Path) -> None:
    """Case 16."""
    path = write(tmp_path / "state.db", CASE_16)
    put(tmp_path / "back.db", exported(path, "jsonl"))
    assert stored_bytes(tmp_path / "back.db") == stored_bytes(path)


def test_a_title_that_is_taken_gets_the_next_number(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "one.db") as db:
        db.create_session("a", "cli")
        db.set_session_title("a", "Plan")
    with SessionDB(tmp_path / "two.db") as db:
        db.create_session("b", "cli")
        db.set_session_title("b", "Plan")
    summary = put(tmp_path / "two.db", exported(tmp_path / "one.db", "jsonl"))
    assert summary.renamed == [("a", "Plan", "Plan #2")]
    assert lines(exported(tmp_path / "two.db", "jsonl", Scope("session", "a")), "session")[0]["title"] == "Plan #2"


def test_orphans_and_circles_are_detached_and_counted(tmp_path: Path) -> None:
    def session(name: str, parent: str | None) -> str:
        return json.dumps({"id": name, "source": "cli", "started_at": 1, "parent_session_id": parent, "messages": []})

    text = "\n".join(
        [session("child", "late"), session("lost", "nowhere"), session("x", "y"), session("y", "x"),
         session("self", "self"), session("late", None)]
    )  # fmt: skip
    summary = put(tmp_path / "back.db", text)
    assert (summary.imported, summary.detached, summary.troubles) == (6, 3, [])
    links = {row["id"]: row["parent_session_id"] for row in lines(exported(tmp_path / "back.db", "jsonl"), "session")}
    assert (links["child"], links["lost"], links["self"], links["late"]) == ("late", None, None, None)
    assert sorted([links["x"] or "", links["y"] or ""]) in (["", "x"], ["", "y"])


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    """The lines of an export of three sessions of two messages."""
    with SessionDB(tmp_path / "source.db") as db:
        for name in ("a", "b", "c"):
            db.create_session(name, "cli")
            db.append_message(name, "user", f"{name}1")
            db.append_message(name, "user", f"{name}2")
    return exported(tmp_path / "source.db", "jsonl").splitlines()


@pytest.mark.parametrize(
    ("place", "line", "word"),
    [
        (5, '{"type": "message", "session', "not JSON"),
        (5, "[1]", "no header, session"),
        (5, '{"type": "message", "session_id": "a", "role": "user"}', "does not belong"),
        (5, '{"type": "message", "session_id": "b", "role": 5}', "role"),
        (5, '{"type": "message", "session_id": "b", "role": "user", "tool_name": []}', "tool_name"),
        (5, "\udcff\udcfe", "not JSON"),
        (5, None, "should have 2"),
    ],
)
def test_a_bad_line_is_named_and_nothing_of_its_session_is_stored(
    tmp_path: Path, three: list[str], place: int, line: str | None, word: str
) -> None:
    if line is None:
        del three[place]
    else:
        three[place] = line
    file = tmp_path / "bad.jsonl"
    file.write_bytes("\n".join(three).encode("utf-8", "surrogateescape"))
    done = prepared.run(*prepared.COMMAND, "import", file, tmp_path / "back.db")
    assert done.returncode == 1
    assert f"{file}, line {place + (0 if line is None else 1)}: " in done.stderr and word in done.stderr
    assert "2 sessions with 4 messages were imported." in done.stdout
    with SessionDB(tmp_path / "back.db") as db:
        assert db.get_session("b") is None and db.message_count() == 4


def test_a_file_that_was_cut_off_says_so(tmp_path: Path, three: list[str]) -> None:
    for end in range(1, len(three)):
        summary = put(tmp_path / f"back-{end}.db", "\n".join(three[:end]))
        assert any("cut off" in str(trouble) for trouble in summary.troubles)
        assert summary.imported == max(0, end - 1) // 3
    last = json.loads(three[-1])
    summary = put(tmp_path / "incomplete.db", "\n".join([*three[:-1], json.dumps({**last, "complete": False})]))
    assert "not complete" in str(summary.troubles[0])
    summary = put(tmp_path / "fewer.db", "\n".join([three[0], *three[4:]]))
    assert "should hold" in str(summary.troubles[0]) and summary.imported == 2


@pytest.mark.parametrize(
    "text", ["", "  \n", "not json", "[", "5", "[5]", '{"id": 5.5}', '[{"id": "a", "messages": 3}]', "{}", "null"]
)
def test_what_is_no_export_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    summary = put(tmp_path / "back.db", text)
    assert summary.imported == 0 and len(summary.troubles) == 1
    assert "Traceback" not in str(summary.troubles[0]) and str(summary.troubles[0]).endswith((".", "list."))


def test_exports_of_hermes_are_taken_in_each_of_their_shapes(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "source.db") as db:
        db.create_session("a", "cli")
        db.append_message("a", "user", [{"type": "text", "text": "parts"}])
        db.end_session("a", "compression")
        db.create_session("b", "cli", parent_session_id="a")
        db.append_message("b", "user", "after")
        db.update_token_counts("b", input_tokens=5, model="m", api_call_count=1)
        shapes = {
            "a line each": "\n".join(json.dumps(session) for session in db.export_all()),
            "a list": json.dumps(db.export_all(), indent=2),
            "a conversation": json.dumps(db.export_session_lineage("b"), indent=2),
        }
    for name, text in shapes.items():
        target = tmp_path / f"{name}.db"
        summary = put(target, text)
        assert (summary.imported, summary.messages, summary.troubles) == (2, 2, []), name
        assert totals(target) == totals(tmp_path / "source.db")
        links = {row["id"]: row["parent_session_id"] for row in lines(exported(target, "jsonl"), "session")}
        assert links == {"a": None, "b": "a"}


def test_the_command_makes_the_store_and_tells_what_it_did(tmp_path: Path, three: list[str]) -> None:
    file = tmp_path / "three.jsonl"
    file.write_text("\n".join(three), "utf-8")
    done = prepared.run(*prepared.COMMAND, "import", file, file, tmp_path / "n.db")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 sessions with 6 messages were imported.\n3 sessions were there already.\n"
    missing = prepared.run(*prepared.COMMAND, "import", "none", tmp_path / "m.db")
    assert missing.returncode != 0 and "m.db" not in names_in(tmp_path)
