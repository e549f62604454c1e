"""Deleting sessions: what goes along, what stays as a root, and that nothing refers to what is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from state_ledger.retention import deletion
from state_ledger.search import search_messages
from state_ledger.writing.writer import Writer
from tests.aged import add, ago, assert_clean, ended, sessions


@pytest.fixture
def chain(writer: Writer) -> Writer:
    """Three segments of one conversation and a session beside it."""
    add(writer, "K", "quince", started_at=1, ended_at=2, end_reason="compression")
    add(writer, "L", "papaya", started_at=2, ended_at=3, end_reason="compression", parent_session_id="K")
    add(writer, "M", "mango", started_at=3, ended_at=4, end_reason="exit", parent_session_id="L")
    add(writer, "N", "medlar", started_at=9)
    writer.connection.execute("INSERT INTO session_model_usage(session_id, model, input_tokens) VALUES ('L', 'm', 5)")
    return writer


@pytest.mark.parametrize("keys", ["ON", "OFF"])
def test_deleting_from_the_middle_leaves_the_rest_whole(chain: Writer, keys: str) -> None:
    chain.connection.execute(f"PRAGMA foreign_keys = {keys}")
    assert deletion.delete_session(chain, "L") is True
    assert sessions(chain) == {"K": None, "M": None, "N": None}
    assert [row[0] for row in chain.rows("SELECT content FROM messages ORDER BY id")] == ["quince", "mango", "medlar"]
    assert chain.value("SELECT count(*) FROM session_model_usage") == 0
    assert search_messages(chain, "papaya") == []
    assert_clean(chain)


def test_deleting_everything_at_once(chain: Writer) -> None:
    assert deletion.delete_sessions(chain, ["K", "L", "M", "N", "K", "unknown"]) == 4
    for table in ("sessions", "messages", "session_model_usage"):
        assert chain.value(f"SELECT count(*) FROM {table}") == 0
    assert_clean(chain)


def test_an_unknown_session_is_not_deleted(chain: Writer) -> None:
    assert deletion.delete_session(chain, "unknown") is False
    assert deletion.get_session_delete_targets(chain, "unknown") == []
    assert deletion.delete_sessions(chain, []) == 0
    assert len(sessions(chain)) == 4


@pytest.fixture
def family(writer: Writer) -> Writer:
    """A session with errands run for it, at two depths, and children of other kinds."""

    def mark(**marks: str) -> str:
        return json.dumps(marks)

    add(writer, "boss", "b")
    add(writer, "run-2", "r2", parent_session_id="boss", model_config=mark(_delegate_from="boss"))
    add(writer, "run-1", "r1", parent_session_id="boss", model_config=mark(_delegate_from="boss"))
    add(writer, "deep", "d", parent_session_id="run-1", model_config=mark(_delegate_from="run-1"))
    add(writer, "deeper", "e", parent_session_id="deep", model_config=mark(_delegate_from="run-1"))
    add(writer, "fork", "f", parent_session_id="boss", model_config=mark(_branched_from="boss"))
    forked = mark(_branched_from="run-1", _delegate_from="boss")
    add(writer, "fork-of-run", "g", parent_session_id="run-1", model_config=forked)
    add(writer, "broken", "h", parent_session_id="boss", model_config="{not json")
    add(writer, "stranger", "i", model_config=mark(_delegate_from="__orphaned__"))
    return writer


def test_delegates_go_along_and_other_children_stay_as_roots(family: Writer) -> None:
    targets = ["boss", "deep", "deeper", "run-1", "run-2"]
    assert deletion.get_session_delete_targets(family, "boss") == targets
    assert deletion.delete_session(family, "boss", expected_delete_ids=["boss"]) is False
    assert len(sessions(family)) == 9
    assert deletion.delete_session(family, "boss", expected_delete_ids=reversed(targets)) is True
    assert sessions(family) == {"broken": None, "fork": None, "fork-of-run": None, "stranger": None}
    assert_clean(family)


def test_only_named_sessions_are_counted(family: Writer) -> None:
    assert deletion.delete_sessions(family, ["boss", "run-1", "fork"]) == 3
    assert set(sessions(family)) == {"broken", "fork-of-run", "stranger"}


def test_delegates_that_point_at_each_other_end(writer: Writer) -> None:
    add(writer, "a", model_config=json.dumps({"_delegate_from": "b"}))
    add(writer, "b", model_config=json.dumps({"_delegate_from": "a"}))
    assert deletion.get_session_delete_targets(writer, "a") == ["a", "b"]


def test_thousands_are_deleted_in_one_go(writer: Writer) -> None:
    for number in range(1300):
        add(writer, f"s{number}", "x")
    assert deletion.delete_sessions(writer, [f"s{number}" for number in range(1299)]) == 1299
    assert sessions(writer) == {"s1299": None}
    assert_clean(writer)


def test_a_failure_half_way_deletes_nothing(chain: Writer, tmp_path: Path) -> None:
    chain.connection.execute(
        "CREATE TRIGGER refuse BEFORE DELETE ON sessions WHEN old.id = 'M' BEGIN SELECT raise(ABORT, 'no'); END"
    )
    (tmp_path / "K.json").write_text("{}")
    with pytest.raises(Exception, match="no"):
        deletion.delete_sessions(chain, ["K", "L", "M"], tmp_path)
    assert len(sessions(chain)) == 4
    assert chain.value("SELECT count(*) FROM messages") == 4
    assert (tmp_path / "K.json").exists()


def test_rows_of_other_tables_that_refer_to_a_session_go_too(chain: Writer) -> None:
    chain.connection.execute(
        "CREATE TABLE telegram_dm_topic_bindings (chat_id TEXT, thread_id TEXT, session_id TEXT"
        " REFERENCES sessions(id), PRIMARY KEY (chat_id, thread_id))"
    )
    chain.connection.execute("INSERT INTO telegram_dm_topic_bindings VALUES ('1', '2', 'M'), ('1', '3', 'N')")
    assert deletion.delete_session(chain, "M") is True
    assert [row[0] for row in chain.rows("SELECT session_id FROM telegram_dm_topic_bindings")] == ["N"]


def test_transcript_files_go_with_their_session_only(writer: Writer, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    names = ["a.json", "a.jsonl", "request_dump_a_1_2.json", "request_dump_a_b_1.json", "a_b.json", "ab.json", "a.txt"]
    for name in names:
        (folder / name).write_text("x")
    (tmp_path / "outside.json").write_text("x")
    for id in ("a", "a_b", "../outside"):
        add(writer, id)
    assert deletion.delete_sessions(writer, ["a", "../outside"], folder) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "a_b.json", "ab.json", "request_dump_a_b_1.json"]
    assert (tmp_path / "outside.json").exists()


def test_a_missing_folder_of_transcripts_is_no_error(writer: Writer, tmp_path: Path) -> None:
    add(writer, "a")
    assert deletion.delete_session(writer, "a", tmp_path / "absent") is True


def test_empty_sessions(writer: Writer) -> None:
    add(writer, "empty", **ended(1))
    add(writer, "open")
    add(writer, "shelved", archived=1, **ended(1))
    add(writer, "talked", "hello", **ended(1))
    add(writer, "miscounted", "hello", message_count=0, **ended(1))
    assert deletion.count_empty_sessions(writer) == 1
    assert deletion.delete_empty_sessions(writer) == 1
    assert set(sessions(writer)) == {"open", "shelved", "talked", "miscounted"}


def test_a_session_is_deleted_if_empty_only_when_nothing_is_lost(writer: Writer) -> None:
    add(writer, "empty")
    add(writer, "talked", "hello", message_count=0)
    add(writer, "titled", title="a name")
    add(writer, "parent")
    add(writer, "child", parent_session_id="parent")
    for id in ("talked", "titled", "parent", "unknown"):
        assert deletion.delete_session_if_empty(writer, id) is False
    assert deletion.delete_session_if_empty(writer, "empty") is True
    assert set(sessions(writer)) == {"talked", "titled", "parent", "child"}


def test_ghosts_of_terminals_are_deleted(writer: Writer) -> None:
    for id, texts, columns in (
        ("ghost", (), {}),
        ("with_child", (), {}),
        ("spoken", ("hello",), {}),
        ("titled", (), {"title": "Kept"}),
        ("young", (), {"started_at": ago(0.5)}),
        ("open", (), {"ended_at": None, "end_reason": None}),
        ("of_the_command_line", (), {"source": "cli"}),
        ("miscounted", ("hello",), {"message_count": 0}),
    ):  # fmt: skip
        add(writer, id, *texts, **{"source": "tui", **ended(0.1), **columns})
    add(writer, "child", "hello", parent_session_id="with_child")
    assert deletion.prune_empty_ghost_sessions(writer) == 2
    assert "ghost" not in sessions(writer) and sessions(writer)["child"] is None
    assert len(sessions(writer)) == 7
    assert deletion.prune_empty_ghost_sessions(writer) == 0
    assert_clean(writer)
