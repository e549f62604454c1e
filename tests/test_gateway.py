"""Gateway routing and delegations: saved, loaded, replaced, deleted; recorded, completed, listed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.session_db import SessionDB


def test_an_entry_is_kept_as_the_text_it_is(db: SessionDB) -> None:
    db.save_gateway_routing_entry("chat", '{"a":1}')
    db.save_gateway_routing_entry("chat", "not json")
    db.save_gateway_routing_entry("", "of no chat")
    assert db.load_gateway_routing_entries() == {"chat": "not json"}


def test_scopes_do_not_see_each_other(db: SessionDB) -> None:
    db.save_gateway_routing_entry("chat", "1")
    db.save_gateway_routing_entry("chat", "2", scope="other")
    db.replace_gateway_routing_entries({"new": "3"}, scope="other")
    assert db.load_gateway_routing_entries() == {"chat": "1"}
    assert db.load_gateway_routing_entries(scope="other") == {"new": "3"}
    db.delete_gateway_routing_entries(["new", "chat", "unknown"], scope="other")
    db.delete_gateway_routing_entries([])
    assert db.load_gateway_routing_entries(scope="other") == {}
    assert db.load_gateway_routing_entries() == {"chat": "1"}


@pytest.fixture(scope="module")
def shared_db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionDB]:
    with SessionDB(tmp_path_factory.mktemp("routing") / "state.db") as opened:
        yield opened


_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@given(st.dictionaries(_text.filter(bool), _text), st.dictionaries(_text.filter(bool), _text))
def test_replacing_leaves_exactly_what_was_given(
    shared_db: SessionDB, before: dict[str, str], after: dict[str, str]
) -> None:
    shared_db.replace_gateway_routing_entries(before)
    shared_db.replace_gateway_routing_entries(after)
    assert shared_db.load_gateway_routing_entries() == after


def test_a_delegation_runs_and_ends(db: SessionDB) -> None:
    db.record_async_delegation("d", "chat", task={"goal": "count"}, parent_session_id="p", dispatched_at=5.0)
    (running,) = db.list_async_delegations()
    assert (running["state"], running["delivery_state"], running["task"]) == ("running", "pending", {"goal": "count"})
    assert (running["dispatched_at"], running["owner_pid"], running["completed_at"]) == (5.0, os.getpid(), None)
    assert db.complete_async_delegation("d", event={"type": "end"}, result={"n": 3}, completed_at=9.0)
    assert not db.complete_async_delegation("unknown")
    (done,) = db.list_async_delegations(state="completed")
    assert (done["event"], done["result"], done["completed_at"]) == ({"type": "end"}, {"n": 3}, 9.0)
    assert done["event_json"] == '{"type": "end"}'
    assert db.list_async_delegations(state="running") == []


def test_a_delegation_begun_again_forgets_its_earlier_end(db: SessionDB) -> None:
    db.record_async_delegation("d", "chat")
    db.complete_async_delegation("d", state="error", result={"why": "?"})
    db.record_async_delegation("d", "chat")
    (row,) = db.list_async_delegations()
    assert (row["state"], row["result_json"], row["completed_at"]) == ("running", None, None)


def test_delegations_are_listed_by_origin_in_order(db: SessionDB) -> None:
    for number, origin in enumerate(["a", "b", "a"]):
        db.record_async_delegation(f"d{number}", origin, dispatched_at=float(10 - number))
    assert [row["delegation_id"] for row in db.list_async_delegations(origin_session="a")] == ["d2", "d0"]
    assert len(db.list_async_delegations(delivery_state="pending")) == 3


def test_what_is_no_json_stays_readable(db: SessionDB) -> None:
    db.record_async_delegation("d", "chat")
    db._execute_write(lambda connection: connection.execute("UPDATE async_delegations SET result_json = '{broken'"))
    (row,) = db.list_async_delegations()
    assert (row["result_json"], row["result"]) == ("{broken", None)


def test_a_note_is_text_and_can_be_replaced(db: SessionDB) -> None:
    assert db.get_meta("key") is None
    db.set_meta("key", "one")
    db.set_meta("key", "two")
    assert db.get_meta("key") == "two"
    with pytest.raises(KeyError):
        db._execute_write(lambda connection: (db.set_meta("key", "undone", cursor=connection.cursor()), {}["no"]))
    assert db.get_meta("key") == "two"


def test_the_size_is_that_of_the_pages(db: SessionDB) -> None:
    db.vacuum()
    assert db.logical_size_bytes() == db.db_path.stat().st_size
