"""Sweeping, archiving, deleting by name: what is shown, what is done, and the way back."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from state_ledger import questions
from state_ledger.cli import main, output
from state_ledger.connection import open_for_reading
from state_ledger.retention import named, sweeping
from state_ledger.retention.sweeping import SWEPT
from state_ledger.search import search_messages
from state_ledger.session_db import SessionDB
from state_ledger.writing.writer import Writer
from tests import aged
from tests.aged import NOW, add, ago, assert_clean, ended, lock, sessions


@pytest.fixture
def household(writer: Writer) -> Writer:
    """One session of every kind a clean-up has to tell apart."""
    writer.connection.execute("PRAGMA synchronous = OFF")
    aged.household(writer)
    return writer


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in (*arguments,)])


def do(*arguments: object) -> Any:
    """Runs a verb that writes without asking; its answer."""
    done = run(*arguments, "--yes", "--no-backup", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def is_open(writer: Writer) -> set[str]:
    return {row[0] for row in writer.rows("SELECT id FROM sessions WHERE ended_at IS NULL")}


# -- sweeping ------------------------------------------------------------------------------------------


def test_idle_open_sessions_end_at_their_last_activity_and_can_then_be_pruned(household: Writer) -> None:
    assert do("sweep", household.path, "--idle-days", 90)["swept"] == ["left_open"]
    row = household.row("SELECT ended_at, end_reason FROM sessions WHERE id = 'left_open'")
    assert row is not None and tuple(row) == (pytest.approx(ago(395)), SWEPT)
    assert is_open(household) == {"sequel"}
    pruned = do("prune", household.path, "--older-than", 90)
    assert "left_open" in pruned["done"]["deleted"]


@pytest.mark.parametrize("reopening", ["verb", "contract"])
def test_a_sweep_can_be_taken_back(household: Writer, reopening: str) -> None:
    before = [tuple(row) for row in household.rows("SELECT * FROM sessions ORDER BY id")]
    do("sweep", household.path, "--idle-days", 90)
    if reopening == "verb":
        assert do("sweep", household.path, "--reopen") == {"reopen": ["left_open"], "reopened": 1}
    else:
        with SessionDB(household.path) as db:
            db.reopen_session("left_open")
    assert [tuple(row) for row in household.rows("SELECT * FROM sessions ORDER BY id")] == before


def test_no_figure_moves_to_another_day(writer: Writer) -> None:
    add(writer, "open", started_at=ago(200), input_tokens=900, estimated_cost_usd=1.5)
    asked = {"tz": "UTC", "day_rule": "last_seen"}

    def days() -> list[dict[str, Any]]:
        with closing(open_for_reading(writer.path)) as connection:
            return questions.ask(connection, "cost_per_day", asked).records()

    before = days()
    assert do("sweep", writer.path, "--idle-days", 30)["swept"] == ["open"]
    assert days() == before


def test_a_source_and_the_idle_days_choose(household: Writer) -> None:
    assert do("sweep", household.path, "--idle-days", 90, "--source", "cli")["sweep"] == []
    assert do("sweep", household.path, "--idle-days", 396)["sweep"] == []
    shown = run("sweep", household.path, "--idle-days", 90, "--source", "telegram", "--dry-run").stdout
    assert shown.startswith("1 open session idle for more than 90 days would be ended (reason: swept).")
    assert f"To do this: state-ledger sweep {household.path} --idle-days 90 --source telegram" in shown
    assert "left_open" in is_open(household)


@pytest.mark.parametrize(
    ("options", "says"),
    [(["--source", "nowhere"], "no session that the filters select is open."),
     (["--source", "cli"], "1 open session, none idle for more than 90 days.")],
    ids=["none open", "none idle"],
)  # fmt: skip
def test_where_nothing_would_be_ended_the_first_line_says_why(
    household: Writer, options: list[str], says: str
) -> None:
    shown = run("sweep", household.path, "--idle-days", 90, *options)
    assert shown.exit_code == 0 and shown.stdout.splitlines()[0] == f"Nothing would be ended: {says}"


def test_what_is_used_or_ended_since_the_plan_is_left(writer: Writer) -> None:
    for id in ("used", "ended", "locked", "idle"):
        add(writer, id, "word")
    with closing(open_for_reading(writer.path)) as connection:
        plan = sweeping.plan_sweep(connection, 90, now=NOW)
    assert len(plan.sweep) == 4
    add(writer, "other", "new")
    writer.connection.execute("UPDATE messages SET session_id = 'used', timestamp = ? WHERE content = 'new'", (ago(1),))
    writer.connection.execute("UPDATE sessions SET ended_at = 5, end_reason = 'exit' WHERE id = 'ended'")
    lock(writer, "locked")
    assert sweeping.sweep(writer, plan, 90, now=NOW) == ["idle"]
    assert writer.value("SELECT end_reason FROM sessions WHERE id = 'ended'") == "exit"


def test_a_sweep_never_changes_what_continues_a_conversation(writer: Writer) -> None:
    add(writer, "first", "one", **ended(300, "compression"))
    add(writer, "live", "two", parent_session_id="first", started_at=ago(299), at=ago(200))
    add(writer, "fork", "three", parent_session_id="first", started_at=ago(299), at=ago(100), **ended(100))
    kinds = "SELECT session_id, kind FROM ledger_session_facts ORDER BY 1"

    def read() -> list[tuple[str, str]]:
        with closing(open_for_reading(writer.path)) as connection:
            return [tuple(row) for row in connection.execute(kinds)]

    before = read()
    assert ("live", "continuation") in before and ("fork", "other") in before
    said = do("sweep", writer.path, "--idle-days", 90)
    assert said["sweep"] == [] and [idle["kept"] for idle in said["stay_open"]] == ["rival"]
    assert read() == before
    writer.connection.execute("UPDATE messages SET timestamp = ? WHERE session_id = 'fork'", (ago(250),))
    assert do("sweep", writer.path, "--idle-days", 90)["swept"] == ["live"]
    assert read() == before


def test_only_what_was_swept_is_reopened(household: Writer) -> None:
    do("sweep", household.path, "--idle-days", 90)
    refused = run("sweep", household.path, "--reopen", "finished", "--yes", "--no-backup")
    assert refused.exit_code == 1 and "Not ended by a sweep: finished. Nothing was done." in refused.stderr
    assert do("sweep", household.path, "--reopen", "left_open")["reopened"] == 1
    assert is_open(household) == {"left_open", "sequel"}


@pytest.mark.parametrize(
    "options", [[], ["some-session"], ["--reopen", "--idle-days", "3"]], ids=["no age", "a session", "both"]
)
def test_a_sweep_that_cannot_be_meant(writer: Writer, options: list[str]) -> None:
    assert run("sweep", writer.path, *options).exit_code == output.USAGE


# -- archiving -----------------------------------------------------------------------------------------


def archived(writer: Writer) -> set[str]:
    return {row[0] for row in writer.rows("SELECT id FROM sessions WHERE archived")}


def test_archiving_takes_whole_conversations_and_back(household: Writer) -> None:
    assert do("archive", household.path, "sequel")["rows_changed"] == 2
    assert archived(household) == {"segment", "sequel"}
    assert do("archive", household.path, "segment", "--undo")["rows_changed"] == 2
    assert archived(household) == set()


def test_archiving_by_filters_is_of_what_a_prune_would_take(household: Writer) -> None:
    shown = run("archive", household.path, "--older-than", 90, "--dry-run").stdout
    assert shown.startswith("2 sessions would be archived") and archived(household) == set()
    assert set(do("archive", household.path, "--older-than", 90)["sessions"]) == {"finished", "silent"}
    assert archived(household) == {"finished", "silent"}
    assert do("archive", household.path, "--older-than", 90)["sessions"] == []
    assert do("archive", household.path, "--undo", "--source", "cli")["rows_changed"] == 2
    assert archived(household) == set()


@pytest.mark.parametrize(
    "options",
    [[], ["a", "--older-than", "3"], ["--archived", "--older-than", "3"]],
    ids=["nothing", "both", "archived"],
)
def test_an_archive_that_cannot_be_meant(writer: Writer, options: list[str]) -> None:
    assert run("archive", writer.path, *options).exit_code == output.USAGE


def test_a_session_that_is_not_there_stops_all(household: Writer) -> None:
    for verb in ("archive", "delete"):
        done = run(verb, household.path, "finished", "no such", "--yes", "--no-backup")
        assert done.exit_code == 1 and "There is no session no such. Nothing was done." in done.stderr
    assert archived(household) == set() and len(sessions(household)) == 8


# -- deleting by name --------------------------------------------------------------------------------------


@pytest.fixture
def chain(writer: Writer) -> Writer:
    """Three segments of one conversation, the middle one with an errand, and a session beside it (case 13)."""
    add(writer, "K", "quince", started_at=1, ended_at=2, end_reason="compression")
    add(writer, "L", "papaya", started_at=2, ended_at=3, end_reason="compression", parent_session_id="K")
    add(writer, "M", "mango", started_at=3, ended_at=4, end_reason="exit", parent_session_id="L")
    add(writer, "N", "medlar", started_at=9)
    marked = json.dumps({"_delegate_from": "L"})
    add(writer, "errand", "lemon", started_at=3, parent_session_id="L", model_config=marked)
    writer.connection.execute("INSERT INTO session_model_usage(session_id, model, input_tokens) VALUES ('L', 'm', 5)")
    return writer


def test_a_session_goes_with_its_delegates_and_the_rest_stays_whole(chain: Writer) -> None:
    shown = run("delete", chain.path, "L", "--dry-run").stdout
    assert shown.startswith("1 named session and 1 delegate with 2 messages would be deleted.")
    assert "1 other child session would stay and become a root." in shown
    said = do("delete", chain.path, "L")
    assert said["rows_removed"] == {"messages": 2, "session_model_usage": 1, "sessions": 2}
    assert sessions(chain) == {"K": None, "M": None, "N": None}
    assert [row[0] for row in chain.rows("SELECT content FROM messages ORDER BY id")] == ["quince", "mango", "medlar"]
    assert search_messages(chain, "papaya") == []
    assert_clean(chain)


def test_everything_at_once(chain: Writer) -> None:
    done = run("delete", chain.path, "K", "L", "M", "N", "K", "--yes", "--no-backup")
    assert "5 sessions deleted; rows removed: 5 of messages, 1 of session_model_usage, 5 of sessions." in done.stdout
    assert sessions(chain) == {}
    assert_clean(chain)


def test_if_other_sessions_would_go_than_were_shown_nothing_does(chain: Writer) -> None:
    with closing(open_for_reading(chain.path)) as connection:
        plan = named.plan_delete(connection, ["L"])
    add(chain, "late", model_config=json.dumps({"_delegate_from": "L"}), parent_session_id="L")
    with pytest.raises(named.DeletionRefused, match="other sessions would go"):
        named.delete(chain, plan)
    assert len(sessions(chain)) == 6


def test_what_is_being_compressed_is_not_deleted(chain: Writer, path: Path) -> None:
    lock(chain, "errand")
    done = run("delete", path, "L", "--yes", "--no-backup")
    assert done.exit_code == 1 and "errand is being compressed at the moment. Nothing was deleted" in done.stderr
    assert len(sessions(chain)) == 5
