"""Lists of sessions: what a picker shows, in which order, and how many there are."""

from __future__ import annotations

from typing import Any

import pytest

from state_ledger.schema import declared_columns
from state_ledger.session_db import SessionDB
from state_ledger.sessions.previews import preview
from tests.session_rows import add


def say(db: SessionDB, session_id: str, content: Any, timestamp: float, role: str = "user") -> None:
    db._conn.execute(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)",
        (session_id, role, content, timestamp),
    )


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


def conversation(db: SessionDB) -> None:
    """root → tip, each with a message."""
    add(db, "root", started_at=10, ended_at=20, end_reason="compression", title="Plan", cwd="/old", message_count=4)
    add(db, "tip", "root", started_at=20, title="Plan #2", model="m", cwd="/new", message_count=2, system_prompt="p")
    say(db, "root", "first words", 15)
    say(db, "tip", "later words", 25)


def test_roots_and_branches_are_listed_and_the_rest_is_not(db: SessionDB) -> None:
    conversation(db)
    add(db, "branch", "root", started_at=5, model_config='{"_branched_from": "root"}')
    add(db, "branch2", "branch", started_at=6, model_config='{"_branched_from": "root"}')  # goes on from branch
    db._conn.execute("UPDATE sessions SET ended_at = 5.5, end_reason = 'compression' WHERE id = 'branch'")
    add(db, "left", started_at=3, ended_at=3.5, end_reason="branched")
    add(db, "after", "left", started_at=4)
    add(db, "before", "left", started_at=3.2)
    add(db, "delegate", "root", model_config='{"_delegate_from": "root"}')
    add(db, "lost delegate", model_config='{"_delegate_from": "__orphaned__"}')
    add(db, "hidden", archived=1)
    add(db, "orphan", "gone", started_at=2)
    add(db, "broken", started_at=1, model_config="{not json")
    assert ids(db.list_sessions_rich()) == ["tip", "branch2", "after", "left", "orphan", "broken"]
    assert db.session_count(exclude_children=True) == 6
    assert len(db.list_sessions_rich(include_children=True, limit=-1)) == db.session_count() == 11
    assert ids(db.list_sessions_rich(archived_only=True)) == ["hidden"]
    assert db.session_count(archived_only=True) == 1 and db.session_count(include_archived=True) == 12


def test_a_compressed_root_is_shown_as_its_tip(db: SessionDB) -> None:
    conversation(db)
    (row,) = db.list_sessions_rich()
    assert row["_lineage_root_id"] == "root" and row["started_at"] == 10
    shown = ("id", "end_reason", "ended_at", "message_count", "title", "model", "cwd", "system_prompt")
    assert tuple(row[name] for name in shown) == ("tip", None, None, 2, "Plan #2", "m", "/new", "p")
    assert (row["preview"], row["last_active"]) == ("later words", 25)
    (plain,) = db.list_sessions_rich(project_compression_tips=False)
    assert (plain["id"], plain["preview"], plain["last_active"]) == ("root", "first words", 15)
    assert "_lineage_root_id" not in plain


def test_rows_have_every_column_and_compact_ones_no_prompt(db: SessionDB) -> None:
    add(db, "a", system_prompt="p")
    (row,) = db.list_sessions_rich()
    assert set(row) == {*declared_columns("sessions"), "preview", "last_active"}
    (compact,) = db.list_sessions_rich(compact_rows=True)
    assert set(row) - set(compact) == {"system_prompt"}
    assert (row["preview"], row["last_active"]) == ("", 100.0)


@pytest.mark.parametrize(
    ("prefix", "found"),
    [("/w", ["a", "b", "c"]), ("/w/", ["a", "b", "c"]), ("/w/x", ["b"]), ("/%", []), ("/", ["a", "b", "c", "d"])],
)
def test_a_folder_is_itself_and_what_is_below(db: SessionDB, prefix: str, found: list[str]) -> None:
    for place, cwd in enumerate(["/w", "/w/x", "/w\\y", "/wide", None]):
        add(db, "abcde"[place], cwd=cwd)
    assert sorted(ids(db.list_sessions_rich(cwd_prefix=prefix))) == found
    assert db.session_count(cwd_prefix=prefix) == len(found)


def test_filters_are_joined(db: SessionDB) -> None:
    for place, source in enumerate(["cli", "cli", "cron", "tui"]):
        add(db, f"s{place}", source=source, message_count=place, started_at=place)
    assert ids(db.list_sessions_rich(source="cli")) == ["s1", "s0"]
    assert ids(db.list_sessions_rich(exclude_sources=["cli", "tui"])) == ["s2"]
    assert ids(db.list_sessions_rich(exclude_sources=[])) == ["s3", "s2", "s1", "s0"]
    assert ids(db.list_sessions_rich(source="cli", min_message_count=1)) == ["s1"]
    assert db.session_count(source="cli", min_message_count=1, exclude_sources=["cron"]) == 1
    assert ids(db.list_sessions_rich(limit=2, offset=1)) == ["s2", "s1"]
    assert db.list_sessions_rich(limit=0) == []


def test_many_sessions_of_one_source_are_listed_alike(db: SessionDB) -> None:
    db._conn.execute("BEGIN")
    db._conn.executemany(
        "INSERT INTO sessions (id, source, started_at) VALUES (?, ?, ?)",
        ((f"s{n:04}", "cli" if n % 3 else "tui", n) for n in range(2000)),
    )
    db._conn.execute("COMMIT")
    expected = [f"s{n:04}" for n in range(1999, -1, -1) if n % 3]
    assert len(expected) > 1000
    assert ids(db.list_sessions_rich(source="cli", limit=-1)) == expected
    assert ids(db.list_sessions_rich(source="cli", limit=3, offset=2)) == expected[2:5]
    assert ids(db.list_sessions_rich(source="cli", limit=700, order_by_last_active=True)) == expected[:700]
    assert db.session_count(source="cli") == len(expected)


def test_last_activity_anywhere_in_the_conversation_orders(db: SessionDB) -> None:
    conversation(db)
    add(db, "quiet", started_at=30)
    add(db, "busy", started_at=1)
    say(db, "busy", "x", 40, role="assistant")
    add(db, "between", started_at=2)
    say(db, "between", "x", 22)
    order = ["busy", "quiet", "tip", "between"]
    assert ids(db.list_sessions_rich(order_by_last_active=True)) == order
    assert ids(db.list_sessions_rich(order_by_last_active=True, limit=2, offset=1)) == order[1:3]
    assert ids(db.list_sessions_rich(order_by_last_active=True, limit=-1)) == order
    assert ids(db.list_sessions_rich()) == ["quiet", "tip", "between", "busy"]
    say(db, "root", "late", 50)
    assert ids(db.list_sessions_rich(order_by_last_active=True))[0] == "tip"


def test_equal_activity_is_ordered_by_start_and_id(db: SessionDB) -> None:
    for session_id, start in (("a", 1), ("b", 2), ("c", 2)):
        add(db, session_id, started_at=start)
        say(db, session_id, "x", 9)
    assert ids(db.list_sessions_rich(order_by_last_active=True)) == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("an94", ["x-1"]), ("AN 94", ["x-1"]), ("a.n-9", ["x-1"]), ("-9", ["x-1"]), ("x1", ["x-1"]),
        ("plan", ["tip"]), ("plan #2", ["tip"]), ("ROOT", ["tip"]), ("ÜBER", ["y"]), ("nobody", []), ("%", []),
    ],
)  # fmt: skip
def test_a_name_is_found_along_the_conversation_and_without_its_separators(
    db: SessionDB, query: str, found: list[str]
) -> None:
    conversation(db)
    add(db, "x-1", title="Fix AN-94")
    add(db, "y", title="über")
    assert ids(db.list_sessions_rich(order_by_last_active=True, search_query=query)) == found
    assert len(db.list_sessions_rich(search_query=query)) == 3  # only with that order


def test_an_id_and_a_name_are_both_asked_of_one_conversation(db: SessionDB) -> None:
    conversation(db)
    add(db, "other", title="Plan b")
    assert ids(db.list_sessions_rich(order_by_last_active=True, search_query="plan", id_query="ROO")) == ["tip"]
    assert ids(db.list_sessions_rich(order_by_last_active=True, search_query="plan", id_query="oth")) == ["other"]
    assert db.list_sessions_rich(order_by_last_active=True, search_query="plan b", id_query="root") == []


def test_sessions_by_id_come_exact_then_beginning_then_within(db: SessionDB) -> None:
    add(db, "ab", started_at=1)
    add(db, "abc", started_at=2)
    add(db, "xab", started_at=3)
    add(db, "first", started_at=4, ended_at=5, end_reason="compression")
    add(db, "zAB", "first", started_at=5)
    add(db, "abd", started_at=6, archived=1)
    found = db.search_sessions_by_id("AB")
    assert ids(found) == ["ab", "abd", "abc", "zAB", "xab"]
    assert found[3]["_lineage_root_id"] == "first" and "preview" in found[0]
    assert ids(db.search_sessions_by_id("AB", limit=2, include_archived=False)) == ["ab", "abc"]
    assert db.search_sessions_by_id(" ") == []


def test_searching_sessions_lists_all_by_activity(db: SessionDB) -> None:
    conversation(db)
    add(db, "hidden", source="tui", started_at=22, archived=1)
    add(db, "child", "tip", source="tool", started_at=1)
    rows = db.search_sessions()
    assert [(row["id"], row["last_active"]) for row in rows] == [
        ("tip", 25),
        ("hidden", 22),
        ("root", 15),
        ("child", 1),
    ]
    assert set(rows[0]) == {*declared_columns("sessions"), "last_active"}
    assert ids(db.search_sessions(source="tui")) == ["hidden"]
    assert ids(db.search_sessions(limit=2, offset=1)) == ["hidden", "root"]


def test_runs_of_a_job_are_listed_newest_first(db: SessionDB) -> None:
    for place, session_id in enumerate(["cron_a_1", "cron_a_2", "cron_ab_1", "cronxa_3"]):
        add(db, session_id, source="cron", started_at=place)
    add(db, "cron_a_9", source="cli")
    assert ids(db.list_cron_job_runs("a")) == ["cron_a_2", "cron_a_1"]
    assert ids(db.list_cron_job_runs("a", limit=1, offset=1)) == ["cron_a_1"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("hello", "hello"),
        ("\n hello\r\nworld ", "hello  world"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
        ("日" * 80, "日" * 60 + "..."),
        (None, ""),
        ('\x00json:[{"type": "text", "text": "part"}]', "part"),
        ("\x00json:{broken", "{broken"),
        (b"caf\xe9", "caf�"),
    ],
)
def test_a_preview_is_one_short_line(db: SessionDB, content: Any, shown: str) -> None:
    assert preview(content) == shown
    add(db, "a")
    say(db, "a", content, 1)
    assert db.list_sessions_rich()[0]["preview"] == shown


def test_the_preview_is_the_earliest_user_message_with_content(db: SessionDB) -> None:
    add(db, "a")
    say(db, "a", "later", 9)
    say(db, "a", "answer", 1, role="assistant")
    say(db, "a", "", 2)
    say(db, "a", "first", 3)
    say(db, "a", "same time", 3)
    assert db.list_sessions_rich()[0]["preview"] == "first"


def test_a_first_page_reads_as_many_rows_as_it_shows(db: SessionDB) -> None:
    db._conn.execute("BEGIN")
    db._conn.executemany(
        "INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', ?)", ((f"s{n}", n) for n in range(20_000))
    )
    db._conn.execute("COMMIT")
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    db._conn.set_progress_handler(count, 100)
    try:
        assert len(db.list_sessions_rich(limit=20)) == 20
        assert len(db.list_sessions_rich(limit=20, source="cli")) == 20
    finally:
        db._conn.set_progress_handler(None, 0)
    assert steps * 100 < 20_000  # instructions of SQLite's machine: fewer than one for each session
