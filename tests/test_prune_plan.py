"""The plan of a clean-up: what would go, what stays and why, what it weighs, and that it only reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger import ledger, questions
from state_ledger.cli import main
from state_ledger.connection import open_for_reading
from state_ledger.retention import choice, pruning
from state_ledger.retention.plan import AGE_CLASSES, Criteria, Plan, age_class, make_plan
from state_ledger.writing.writer import Writer
from tests import aged
from tests.aged import DAY, NOW, add, ago, assert_clean, ended, lock, sessions


@pytest.fixture
def household(writer: Writer) -> Writer:
    """One session of every kind a clean-up has to tell apart."""
    writer.connection.execute("PRAGMA synchronous = OFF")
    aged.household(writer)
    return writer


def planned(writer: Writer, days: float | None = None, **options: Any) -> Plan:
    """A plan made on a connection that can only read, as an app would."""
    criteria = Criteria(days, options.pop("source", None), options, options.pop("compat", False), now=NOW)
    with closing(open_for_reading(writer.path)) as connection:
        return make_plan(connection, criteria)


def stays(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {left.reason: left.ids for left in plan.left}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


# -- what goes and what stays --------------------------------------------------------------------------


def test_everything_that_the_filters_select_goes_or_has_a_reason_to_stay(household: Writer) -> None:
    plan = planned(household, 90)
    assert plan.delete == ("silent", "finished") or plan.delete == ("finished", "silent")
    assert stays(plan) == {
        "never_ended": ("left_open",),
        "pinned": ("keepsake",),
        "in_use": ("segment",),
        "too_recent": ("used_lately", "sequel", "nightly"),
    }
    assert plan.matching == plan.sessions == 8
    assert plan.detached == ()


def test_the_documented_behaviour_takes_the_beginning_of_a_living_conversation(household: Writer) -> None:
    plan = planned(household, 90, compat=True)
    assert set(plan.delete) == {"finished", "silent", "segment"}
    assert "in_use" not in stays(plan) and plan.detached == ("sequel",)


def test_an_explicit_source_has_no_hidden_age(household: Writer) -> None:
    plan = planned(household, source="cron")
    assert plan.delete == ("nightly",) and plan.left == ()
    shown = run("plan", household.path, "--source", "cron", "--json")
    assert json.loads(shown.stdout)["delete"] == ["nightly"]
    assert json.loads(shown.stdout)["commands"]["prune"].endswith(" --source cron")


def test_without_any_filter_the_age_is_ninety_days_and_the_command_says_so(household: Writer) -> None:
    shown = json.loads(run("plan", household.path, "--json").stdout)
    assert set(shown["delete"]) == {"finished", "silent"}
    assert shown["commands"]["prune"].endswith("--older-than 90")


def test_what_is_being_compressed_stays_until_the_lock_runs_out(household: Writer) -> None:
    lock(household, "finished")
    assert stays(planned(household, 90))["locked"] == ("finished",)
    household.connection.execute("UPDATE compression_locks SET expires_at = ?", (NOW - 1,))
    assert "finished" in planned(household, 90).delete


@pytest.mark.parametrize("mark", ["pinned", "locked"])
def test_what_continues_in_a_pinned_or_locked_segment_is_in_use(writer: Writer, mark: str) -> None:
    add(writer, "first", "one", **ended(150, "compression"))
    pinned = int(mark == "pinned")
    add(writer, "last", "two", parent_session_id="first", started_at=ago(150), pinned=pinned, **ended(140))
    if mark == "locked":
        lock(writer, "last")
    assert stays(planned(writer, 90)) == {mark: ("last",), "in_use": ("first",)}


def test_a_session_whose_time_cannot_be_read_is_not_called_old(writer: Writer) -> None:
    add(writer, "odd", started_at=float("inf"), **ended(1))
    assert stays(planned(writer, 90)) == {"no_time": ("odd",)}
    assert planned(writer, source="cli").delete == ("odd",)


def test_archived_ones_go_unless_they_are_to_stay(writer: Writer) -> None:
    add(writer, "shelved", archived=1, **ended(199))
    add(writer, "plain", **ended(199))
    assert set(planned(writer, 90).delete) == {"shelved", "plain"}
    assert stays(planned(writer, 90, archived=False)) == {"archived": ("shelved",)}
    assert planned(writer, 90, archived=True).delete == ("shelved",)


def test_pinned_ones_go_only_when_they_are_asked_for(household: Writer) -> None:
    assert planned(household, 90, pinned=True).delete == ("keepsake",)
    assert stays(planned(household, 90, pinned=False))["pinned"] == ("keepsake",)


@pytest.fixture
def varied(writer: Writer) -> Writer:
    """Sessions that differ in kind, profile, cost and size."""
    add(writer, "top", "x" * 5000, started_at=ago(300), profile_name="work", **ended(300))
    marked = json.dumps({"_delegate_from": "top"})
    add(writer, "errand", "y", parent_session_id="top", model_config=marked, started_at=ago(299), **ended(299))
    add(writer, "dear", "z", started_at=ago(298), estimated_cost_usd=0.5, **ended(298))
    writer.connection.execute(
        "INSERT INTO session_model_usage(session_id, model, task, api_call_count, input_tokens, output_tokens,"
        " estimated_cost_usd, cost_status, cost_source)"
        " VALUES ('errand', 'm', 'vision', 1, 9000, 900, 2.0, 'estimated', 'provider_models_api')"
    )
    return writer


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("kind", "delegate", {"errand"}), ("kind", "root", {"top", "dear"}), ("profile", "work", {"top"}),
        ("profile", "default", {"errand", "dear"}), ("min_bytes", 5000, {"top"}),
        ("max_bytes", 4999, {"errand", "dear"}), ("min_cost", 1, {"errand"}), ("max_cost", 1, {"top", "dear"}),
    ],
    ids=lambda given: str(given) if isinstance(given, (str, int)) else "",
)  # fmt: skip
def test_filters_that_the_semantic_layer_knows(varied: Writer, name: str, value: Any, expected: set[str]) -> None:
    assert set(planned(varied, **{name: value}).delete) == expected


def test_an_unknown_filter_is_refused(writer: Writer) -> None:
    with pytest.raises(TypeError, match="kinds"):
        planned(writer, kinds="root")


# -- what it weighs ------------------------------------------------------------------------------------


def test_groups_add_up_to_the_whole(demo_store: Path) -> None:
    with closing(open_for_reading(demo_store)) as connection:
        (now,) = connection.execute("SELECT max(timestamp) FROM messages").fetchone()
        plan = make_plan(connection, Criteria(10, now=now))
        (text,) = connection.execute(
            "SELECT sum(text_bytes) FROM ledger_message_sizes WHERE session_id IN (SELECT value FROM json_each(?))",
            (json.dumps(plan.delete),),
        ).fetchone()
    assert len(plan.delete) > 50 and plan.total.text_bytes == text
    for groups in (plan.by_source, plan.by_age):
        for name in ("sessions", "messages", "text_bytes", "usage_rows"):
            assert sum(getattr(group.weight, name) for group in groups) == getattr(plan.total, name)
        indexed = sum(group.weight.estimated["messages_fts"] for group in groups)
        assert indexed == pytest.approx(plan.total.estimated["messages_fts"], abs=len(groups))
    assert 0 < plan.pages_freed <= plan.pages.total
    assert plan.total.sessions == len(plan.delete)


@pytest.mark.parametrize("days", [0, 3, 10, 30, 90])
def test_the_canned_query_is_the_same_plan(demo_store: Path, days: int) -> None:
    with closing(open_for_reading(demo_store)) as connection:
        (now,) = connection.execute("SELECT CAST(max(timestamp) AS INTEGER) FROM messages").fetchone()
        agree(connection, days, now)


def test_the_canned_query_knows_every_reason(household: Writer) -> None:
    lock(household, "silent")
    add(household, "odd", started_at=float("inf"), **ended(1))
    with closing(open_for_reading(household.path)) as connection:
        outcomes = agree(connection, 90, int(NOW))
    assert outcomes == {"would be deleted", *choice.REASONS.values()} - {choice.REASONS["archived"]}


def agree(connection: Any, days: int, now: int) -> set[str]:
    """Asserts that the canned query and the plan say the same; returns the outcomes."""
    answer = questions.ask(connection, "prune_plan", {"older_than_days": str(days), "now": str(now)})
    said = {(row["source"], row["outcome"]): row for row in answer.records()}
    plan = make_plan(connection, Criteria(days or None, now=float(now)))
    meant = {(group.name, "would be deleted"): group.weight.sessions for group in plan.by_source}
    for left in plan.left:
        meant |= {(source, choice.REASONS[left.reason]): number for source, number in left.by_source.items()}
    assert {key: row["sessions"] for key, row in said.items()} == meant
    for group in plan.by_source:
        row = said[group.name, "would be deleted"]
        weight = (group.weight.messages, group.weight.text_bytes, group.weight.usage_rows)
        assert (row["messages"], row["text_bytes"], row["usage_rows"]) == weight
    return {outcome for _, outcome in said}


def test_age_classes_are_those_of_the_canned_query(writer: Writer) -> None:
    for number, days in enumerate((0.5, *(limit + 0.5 for limit in AGE_CLASSES))):
        add(writer, f"s{number}", "word", started_at=ago(days + 100), at=ago(days), **ended(days))
    with closing(open_for_reading(writer.path)) as connection:
        answer = questions.ask(connection, "sessions_by_age", {"now": str(int(NOW))}).records()
    assert [row["idle_for"] for row in answer] == [age_class(days * DAY) for days in (0, *AGE_CLASSES)]
    assert all((row["sessions"], row["messages"], row["text_bytes"]) == (1, 1, 4) for row in answer)
    assert age_class(None) == "unknown"


# -- what a person is told -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--source", "nowhere"], "none of the 8 sessions is one that the filters select."),
        (["--older-than", "9000"], "of 8 sessions that the filters select, 8 active too recently."),
        (["--source", "telegram"], "of 1 session that the filters select, 1 never ended."),
        (["--title", "no such"], "none of the 8 sessions"),
    ],
    ids=["nothing matches", "too recent", "never ended", "no such title"],
)
def test_where_nothing_would_go_the_first_line_says_why(household: Writer, options: list[str], says: str) -> None:
    first = run("plan", household.path, *options).stdout.splitlines()[0]
    assert first.startswith("Nothing would be deleted: ") and says in first


def test_an_empty_store_says_so(writer: Writer) -> None:
    assert run("plan", writer.path).stdout.startswith("Nothing would be deleted: the store has no sessions.")


def test_the_plan_names_what_never_ended_how_to_list_it_and_how_to_end_it(household: Writer) -> None:
    text = run("plan", household.path, "--older-than", 90).stdout
    assert text.startswith("2 sessions with 1 message would be deleted; ")
    assert "- 1 never ended (telegram 1; the longest idle since " in text
    path = household.path
    assert f"to end them: state-ledger sweep {path} --idle-days 90\n" in text
    assert f"to list them: state-ledger plan {path} --older-than 90 --stay never_ended\n" in text
    assert f"To do this: state-ledger prune {path} --older-than 90\n" in text
    assert "Free pages: " in text and "Deleting does not shrink the file; VACUUM does." in text
    assert run("plan", path, "--older-than", 90, "--stay", "never_ended").stdout == "left_open\n"
    assert set(run("plan", path, "--older-than", 90, "--ids").stdout.split()) == {"finished", "silent"}


def test_the_command_that_is_said_means_the_same_filters(household: Writer) -> None:
    options = ["--older-than", "1.5", "--source", "a b", "--min-size", "20k", "--started-after", "2026-01-31",
               "--not-archived", "--pinned", "--compat", "--kind", "root"]  # fmt: skip
    command = json.loads(run("plan", household.path, *options, "--json").stdout)["commands"]["prune"]
    for words in ("--older-than 1.5", "--source 'a b'", "--min-size 20k", "--started-after 2026-01-31",
                  "--not-archived", "--pinned", "--compat", "--kind root"):  # fmt: skip
        assert words in command


@pytest.mark.parametrize(
    "options",
    [["--min-size", "lots"], ["--started-before", "yesterday"], ["--older-than", "-1"], ["--kind", "uncle"],
     ["--older-than", "9", "--active-before", "2026-01-01"], ["--older-than", "nan"], ["--older-than", "inf"],
     ["--max-cost", "nan"], ["--min-messages", "9" * 30]],
    ids=["size", "day", "age", "kind", "two ages", "no age", "endless age", "no amount", "huge number"],
)  # fmt: skip
def test_an_option_that_cannot_be_meant_is_an_error(writer: Writer, options: list[str]) -> None:
    assert run("plan", writer.path, *options).exit_code == 2


def test_a_day_takes_the_place_of_the_age(household: Writer) -> None:
    import time

    day = time.strftime("%Y-%m-%d", time.localtime(ago(120)))
    shown = json.loads(run("plan", household.path, "--active-before", day, "--json").stdout)
    assert set(shown["delete"]) == {"finished", "silent"}
    assert f"--active-before {day}" in shown["commands"]["prune"]
    assert "--idle-days 12" in shown["commands"]["sweep"]


# -- it only reads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small-1.db", "small-9.db", "small-16.db", "small-25.db", "small-30-handmade.db"])
def test_stores_of_every_schema_are_planned_and_left_as_they_are(
    shared_store: Callable[[str], Path], name: str
) -> None:
    path = shared_store(name)
    before = path.read_bytes()
    shown = run("plan", path, "--older-than", 0, "--json")
    assert shown.exit_code == 0, shown.output
    plan = json.loads(shown.stdout)
    assert plan["delete"] and plan["total"]["messages"] > 0
    assert path.read_bytes() == before


# -- the law ---------------------------------------------------------------------------------------------

SOURCES = ("cli", "cron")
REASONS_OF_ENDS = (None, "compression", "exit", "branched")


@st.composite
def populations(draw: Any) -> list[dict[str, Any]]:
    """Sessions with parents among them, ends, ages, marks."""
    made = []
    for number in range(draw(st.integers(1, 9))):
        reason = draw(st.sampled_from(REASONS_OF_ENDS))
        idle = draw(st.sampled_from((0.5, 20.0, 100.0, 400.0)))
        parent = draw(st.integers(-1, number - 1)) if number else -1
        made.append(
            {
                "id": f"s{number}",
                "source": draw(st.sampled_from(SOURCES)),
                "parent_session_id": None if parent < 0 else f"s{parent}",
                "started_at": ago(500 - number),
                "at": ago(idle),
                "ended_at": None if reason is None else ago(idle),
                "end_reason": reason,
                "pinned": draw(st.sampled_from((0, 0, 0, 1))),
                "archived": draw(st.sampled_from((0, 0, 1))),
                "texts": draw(st.integers(0, 3)),
                "locked": draw(st.sampled_from((False,) * 5 + (True,))),
            }
        )
    return made


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    """A store that each example fills anew."""
    writer = Writer(tmp_path_factory.mktemp("law") / "state.db")
    writer.connection.execute("PRAGMA synchronous = OFF")
    yield writer
    writer.close()


def fill(writer: Writer, population: list[dict[str, Any]]) -> None:
    def work(connection: Any) -> None:
        for table in ("messages", "session_model_usage", "compression_locks"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("UPDATE sessions SET parent_session_id = NULL")
        connection.execute("DELETE FROM sessions")
        for row in population:
            columns = {name: value for name, value in row.items() if name not in ("id", "at", "texts", "locked")}
            add(writer, row["id"], *["word"] * row["texts"], at=row["at"], **columns)
            if row["locked"]:
                lock(writer, row["id"])

    writer.write(work)


@settings(max_examples=40)
@given(
    population=populations(),
    days=st.sampled_from((None, 1.0, 50.0, 200.0)),
    source=st.sampled_from((None, "cli")),
    filters=st.sampled_from(({}, {"archived": False}, {"archived": True}, {"pinned": True}, {"kind": "root"})),
    compat=st.booleans(),
)
def test_a_plan_divides_what_is_selected_and_a_prune_does_exactly_it(
    scratch: Writer,
    population: list[dict[str, Any]],
    days: float | None,
    source: str | None,
    filters: dict[str, Any],
    compat: bool,
) -> None:
    fill(scratch, population)
    ledger.install(scratch.connection)
    plan = make_plan(scratch.connection, Criteria(days, source, filters, compat, now=NOW), sizes=dict)
    selected = {row["id"] for row in population if source in (None, row["source"])}
    if "kind" in filters:
        selected &= {row["id"] for row in population if row["parent_session_id"] is None}
    for mark in ("archived", "pinned"):
        if filters.get(mark) is True:
            selected &= {row["id"] for row in population if row[mark]}
    answered = Counter([*plan.delete, *(id for left in plan.left for id in left.ids)])
    assert answered == Counter(selected)
    by_id = {row["id"]: row for row in population}
    for id in plan.delete:
        row = by_id[id]
        assert row["ended_at"] is not None and not row["locked"]
        last = row["at"] if row["texts"] else row["started_at"]
        assert days is None or last < NOW - days * DAY
        assert not row["pinned"] or "pinned" in filters

    before = set(sessions(scratch))
    done = pruning.prune(scratch, plan)
    assert before - set(sessions(scratch)) == set(plan.delete) == set(done.deleted)
    assert done.left == {}
    assert done.rows["sessions"] == len(plan.delete)
    assert done.rows["messages"] == sum(by_id[id]["texts"] for id in plan.delete)
    assert_clean(scratch)
