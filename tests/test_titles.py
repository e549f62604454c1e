"""Titles: cleaned, unique, moving along a conversation, numbered."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger.session_db import SessionDB
from state_ledger.titles import MAX_TITLE_LENGTH, sanitize_title


@pytest.mark.parametrize(
    ("given_title", "kept"),
    [
        (None, None),
        ("", None),
        (" \t\n", None),
        ("  plan  of\n\nattack ", "plan of attack"),
        ("a\x00b\x1bc\x7f", "abc"),
        ("\u200bplan\u202e\ufeff \ufffc", "plan"),
        ("\u2066\u2069", None),
        ("x\ud83d", "x\ufffd"),
        ("日本語 é", "日本語 é"),
        ("x" * 100 + " \u200b", "x" * 100),
    ],
)
def test_a_title_is_cleaned(given_title: str | None, kept: str | None) -> None:
    assert sanitize_title(given_title) == kept


def test_a_title_too_long_after_cleaning_is_refused(db: SessionDB) -> None:
    with pytest.raises(ValueError, match=r"^Title too long \(101 chars, max 100\)$"):
        sanitize_title("x" * 101)
    db.create_session("a", "cli")
    with pytest.raises(ValueError, match="Title too long"):
        db.set_session_title("a", "x" * 101)


@given(st.text(st.characters() | st.sampled_from("\x00\x0b\u200b\u2028\ufeff\ud800 \t\n"), max_size=130))
def test_cleaning_twice_is_cleaning_once_and_what_is_kept_can_be_stored(title: str) -> None:
    try:
        kept = sanitize_title(title)
    except ValueError:
        assert len(title) > MAX_TITLE_LENGTH
        return
    assert sanitize_title(kept) == kept
    if kept is not None:
        assert kept == kept.strip() and 0 < len(kept) <= MAX_TITLE_LENGTH
        assert kept.encode() and "\n" not in kept and "\0" not in kept


def test_a_title_belongs_to_one_session(db: SessionDB) -> None:
    for session_id in "ab":
        db.create_session(session_id, "cli")
    assert db.set_session_title("a", " Plan ") is True
    assert db.get_session_title("a") == "Plan"
    assert db.set_session_title("a", "Plan") is True
    with pytest.raises(ValueError, match=r"^Title 'Plan' is already in use by session a$"):
        db.set_session_title("b", "Plan")
    assert db.set_session_title("b", "plan") is True  # another case is another title
    assert db.set_session_title("nobody", "x") is False
    row = db.get_session_by_title("Plan")
    assert row is not None and row["id"] == "a"
    assert db.get_session_by_title("PLAN") is None


def test_an_empty_title_takes_the_name_away(db: SessionDB) -> None:
    for session_id in "ab":
        db.create_session(session_id, "cli")
    db.set_session_title("a", "Plan")
    assert db.set_session_title("a", " ") is True
    assert db.get_session_title("a") is None
    assert db.set_session_title("b", "Plan") is True


def continued(db: SessionDB, *ids: str) -> None:
    """A conversation: each session ended by compression and continued by the next."""
    for place, session_id in enumerate(ids):
        db.create_session(session_id, "cli", parent_session_id=ids[place - 1] if place else None)
        if session_id != ids[-1]:
            db.end_session(session_id, "compression")


def test_a_continuation_takes_the_title_of_an_earlier_segment(db: SessionDB) -> None:
    continued(db, "p1", "p2", "p3")
    db.set_session_title("p1", "plan")
    db.set_session_title("p3", "plan #2")
    assert db.set_session_title("p3", "plan") is True
    assert [db.get_session_title(id) for id in ("p1", "p2", "p3")] == [None, None, "plan"]
    with pytest.raises(ValueError, match="already in use by session p3"):
        db.set_session_title("p1", "plan")  # it does not move back


def test_a_branch_or_a_delegate_does_not_take_the_title_of_its_parent(db: SessionDB) -> None:
    db.create_session("p", "cli")
    db.set_session_title("p", "plan")
    db.end_session("p", "compression")
    db.create_session("b", "cli", parent_session_id="p", model_config={"_branched_from": "p"})
    db.create_session("d", "cli", parent_session_id="p", model_config={"_delegate_from": "p"})
    for session_id in "bd":
        with pytest.raises(ValueError, match="already in use by session p"):
            db.set_session_title(session_id, "plan")


def test_the_second_automatic_title_is_numbered(db: SessionDB) -> None:
    for session_id in "abcd":
        db.create_session(session_id, "cli")
    assert [db.set_auto_title_if_empty(id, "Debug") for id in "abc"] == [True, True, True]
    assert [db.get_session_title(id) for id in "abc"] == ["Debug", "Debug #2", "Debug #3"]
    assert db.set_auto_title_if_empty("d", "Debug #2") is True
    assert db.get_session_title("d") == "Debug #4"
    assert db.set_auto_title_if_empty("a", "Other") is False
    assert db.get_session_title("a") == "Debug"
    assert db.set_auto_title_if_empty("nobody", "Other") is False
    assert db.set_auto_title_if_empty("a", " ") is False


def test_a_numbered_automatic_title_keeps_within_the_length(db: SessionDB) -> None:
    for number in range(12):
        db.create_session(f"s{number}", "cli")
        assert db.set_auto_title_if_empty(f"s{number}", "x" * 99 + "y") is True
    titles = [db.get_session_title(f"s{number}") for number in range(12)]
    assert len(set(titles)) == 12 and all(title and len(title) <= 100 for title in titles)


def test_an_automatic_title_moves_along_a_conversation(db: SessionDB) -> None:
    continued(db, "p1", "p2")
    db.set_session_title("p1", "plan")
    assert db.set_auto_title_if_empty("p2", "plan") is True
    assert [db.get_session_title(id) for id in ("p1", "p2")] == [None, "plan"]


def test_handles_that_name_at_the_same_time_name_every_session_once(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        for number in range(40):
            db.create_session(f"s{number}", "cli")
        done: list[bool] = []

        def name(first: int) -> None:
            with SessionDB(path) as other:
                done.extend(other.set_auto_title_if_empty(f"s{n}", "Debug") for n in range(first, 40, 4))

        threads = [threading.Thread(target=name, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert done == [True] * 40
        assert {db.get_session_title(f"s{n}") for n in range(40)} == {"Debug", *(f"Debug #{n}" for n in range(2, 41))}


@pytest.mark.parametrize(
    ("taken", "base", "following"),
    [
        ([], "plan", "plan"),
        ([], "plan #7", "plan"),
        (["plan"], "plan", "plan #2"),
        (["plan", "plan #2", "plan #9"], "plan #2", "plan #10"),
        (["plan #4"], "plan", "plan #5"),
        (["plan #x"], "plan", "plan #2"),
        (["Plan", "PLAN #8"], "plan", "plan"),
        (["100%", "100x #5"], "100%", "100% #2"),
        (["a_b", "axb #7"], "a_b", "a_b #2"),
        (["#3"], "#3", "#3 #2"),
        (["x #999999999999999999999999"], "x", "x #2"),
    ],
)
def test_the_next_title_in_a_lineage(db: SessionDB, taken: list[str], base: str, following: str) -> None:
    for place, title in enumerate(taken):
        db.create_session(f"s{place}", "cli")
        db.set_session_title(f"s{place}", title)
    assert db.get_next_title_in_lineage(base) == following


def test_a_title_leads_to_the_newest_of_its_lineage(db: SessionDB) -> None:
    for place, title in enumerate(["plan", "plan #3", "plan #2", "planner", "100% #1"]):
        db.create_session(f"s{place}", "cli")
        db.set_session_title(f"s{place}", title)
        db._conn.execute("UPDATE sessions SET started_at = ? WHERE id = ?", (place, f"s{place}"))
    asked = {
        "plan": "s2",
        "plan #3": "s1",
        "planner": "s3",
        "100%": "s4",
        "10_%": None,
        "plan\0": None,
        "x" * 60_000: None,
    }
    assert {title: db.resolve_session_by_title(title) for title in asked} == asked


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["plan", "plan #2", "plan #02", "Plan", "plan #", "p%", "p_ #2", "x" * 100]), max_size=8)
)
def test_automatic_titles_never_clash_and_are_never_blank(db: SessionDB, titles: list[str]) -> None:
    db._conn.execute("DELETE FROM sessions")
    for place, title in enumerate(titles):
        db.create_session(f"s{place}", "cli")
        assert db.set_auto_title_if_empty(f"s{place}", title) is True
    stored = [db.get_session_title(f"s{place}") for place in range(len(titles))]
    assert None not in stored and len(set(stored)) == len(titles)
