"""The named questions: their files, their typed parameters, their answers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.errors import ParameterError
from state_ledger.questions.parameters import COMMON, compile_sql, names_in, tokens
from state_ledger.settings import Settings
from tests import books

PROMISED = {
    "cost": "cost_per_model cost_per_day cost_per_source cost_per_task cost_per_profile cost_per_cron_job"
    " top_conversations top_work unpriced_usage estimated_vs_actual ledger_audit",
    "cache": "cache_ratio_per_model cache_ratio_per_day cache_ratio_per_source cache_worst_sessions",
    "lineage": "lineage_ancestors lineage_descendants lineage_conversation lineage_work longest_conversations"
    " lineage_problems",
    "search": "search search_sessions",
    "activity": "recent_sessions token_statistics highest_token_sessions sessions_per_source"
    " sessions_active_between sessions_started_between tool_calls messages_per_day",
}
FORBIDDEN = ("from sessions", "join sessions", "from messages", "join messages", "session_model_usage")


@pytest.mark.parametrize(("group", "names"), PROMISED.items())
def test_the_promised_questions_are_there(group: str, names: str) -> None:
    assert {n for n, q in questions.load().items() if q.group == group} >= set(names.split())


@pytest.mark.parametrize("question", questions.load().values(), ids=lambda q: q.name)
def test_a_question_says_what_it_is_and_reads_only_the_semantic_layer(question: questions.Question) -> None:
    assert question.title and question.description.endswith(".")
    assert not any(word in question.sql.lower() for word in FORBIDDEN)
    for parameter in question.parameters:
        if parameter.name in COMMON:
            assert parameter.kind == COMMON[parameter.name].kind
        assert parameter.label and not parameter.name.startswith("_") and parameter.name != "sql"


@pytest.mark.parametrize("name", sorted(questions.load()))
def test_a_question_answers_without_parameters_with_the_columns_it_declares(demo_store: Path, name: str) -> None:
    # A search for nothing finds nothing.
    result = questions.ask(books.open_books(demo_store), name, {"q": "error"} if name == "search" else {})
    assert result.columns == list(result.question.columns)
    assert result.rows


def test_money_and_tokens_keep_the_stores_names() -> None:
    for name in ("cost_per_model", "cost_per_day", "cost_per_source", "cost_per_task", "top_work"):
        columns = set(questions.load()[name].columns)
        assert columns >= {
            "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
            "api_call_count", "cost_usd", "actual_usd", "estimated_usd", "included_calls", "unknown_calls",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("cost_per_day", {"tz": "Nope/Where"}, "Nope/Where"),
        ("cost_per_day", {"since": "yesterday"}, "YYYY-MM-DD"),
        ("cost_per_day", {"since": "2026-02-30"}, "YYYY-MM-DD"),
        ("cost_per_day", {"since": "20260203"}, "YYYY-MM-DD"),
        ("cost_per_day", {"day_rule": "whenever"}, "activity, started, last_seen"),
        ("cost_per_model", {"limit": "-1"}, "smallest value is 1"),
        ("cost_per_model", {"limit": "many"}, "whole number"),
        ("cost_per_model", {"limit": "1e3"}, "whole number"),
        ("cost_per_model", {"limit": "99999999"}, "largest value is 10000"),
        ("cost_per_model", {"source": "a\x00b"}, "NUL"),
    ],
)
def test_a_value_that_cannot_be_meant_is_named(tmp_path: Path, name: str, parameters: Any, says: str) -> None:
    connection = books.open_books(books.write(tmp_path / "state.db"))
    with pytest.raises(ParameterError, match=says.replace(".", r"\.")) as caught:
        questions.ask(connection, name, parameters)
    assert caught.value.name in parameters


def test_an_unknown_question_is_named_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(questions.UnknownQuestion, match="cost_per_model"):
        questions.ask(books.open_books(books.write(tmp_path / "state.db")), "cost_per_moon")


def test_more_rows_than_the_limit_are_told(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", sessions=[books.session(str(n)) for n in range(5)])
    connection = books.open_books(path)
    for limit, rows, truncated in (("4", 4, True), ("5", 5, False), ("10000", 5, False)):
        result = questions.ask(connection, "recent_sessions", {"limit": limit})
        assert (len(result.rows), result.truncated) == (rows, truncated)


def test_defaults_come_from_the_settings(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", sessions=[books.session("s", started_at=1780340400, input_tokens=1)])
    seoul = Settings(zone="Asia/Seoul", day_rule="started")
    result = questions.ask(books.open_books(path, settings=seoul), "cost_per_day", settings=seoul)
    assert result.records()[0]["day"] == "2026-06-02"  # 2026-06-01 19:00 UTC
    assert (result.parameters["tz"], result.parameters["day_rule"]) == ("Asia/Seoul", "started")


def test_a_question_has_an_end(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", sessions=[books.session(str(n), input_tokens=1) for n in range(3000)])
    with pytest.raises(questions.OutOfTime, match="query_time_limit_ms"):
        questions.ask_in_time(books.open_books(path), "ledger_audit", settings=Settings(query_time_limit_ms=1))


@given(
    st.dictionaries(st.sampled_from(sorted(COMMON)), st.text(max_size=30)), st.sampled_from(sorted(questions.load()))
)
def test_no_text_in_a_parameter_does_more_than_be_refused(values: dict[str, str], name: str) -> None:
    question = questions.load()[name]
    try:
        checked = question.check(values, Settings())
    except ParameterError as error:
        assert str(error).endswith(".")
    else:
        assert set(checked) == {parameter.name for parameter in question.parameters}


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT :a, ':b', \":c\", :a -- :d\n, /* :e */ :f", ["a", "f"]),
        ("SELECT strftime('%H:%M', :at)", ["at"]),
        ("SELECT x FROM t WHERE c <> '-- :todo' AND id = :id", ["id"]),
        ("SELECT 1::text, :one", ["one"]),
    ],
)
def test_only_parameters_are_taken_for_parameters(sql: str, names: list[str]) -> None:
    assert names_in(sql) == names
    assert "".join(text for _, text in tokens(sql)) == sql


@given(st.text(max_size=200))
def test_cutting_sql_loses_nothing(sql: str) -> None:
    assert "".join(text for _, text in tokens(sql)) == sql


def test_the_compiled_sql_needs_nothing_but_its_own_names(tmp_path: Path) -> None:
    connection = books.open_books(books.write(tmp_path / "state.db"))
    for question in questions.load().values():
        empty = {parameter.name: "" for parameter in question.parameters}
        connection.execute(question.compiled(Settings()), empty).fetchall()
        connection.execute(question.compiled(Settings()), dict.fromkeys(empty)).fetchall()
    assert "coalesce(nullif(:limit, ''), '7')" in compile_sql("LIMIT :limit", {"limit": _limit("7")})


def _limit(default: str) -> Any:
    from dataclasses import replace

    return replace(COMMON["limit"], default=default)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT 1", "front matter"),
        ("-- ---\n-- title: x\n-- columns: [day]\n-- ---\nSELECT 1", "description"),
        ("-- ---\n-- title: x\n-- description: y.\n-- columns: [day]\n-- ---\nSELECT :a", "different parameters"),
        ("-- ---\n-- title: [\n-- ---\nSELECT 1", "front matter"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "wrong.sql"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(questions.MalformedQuestion, match=says) as caught:
        questions.read(path)
    assert "wrong.sql" in str(caught.value)


async def test_a_file_that_cannot_be_used_is_told_of_and_leaves_the_other_questions(
    tmp_path: Path, small_store: Any, make_datasette: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = questions.assets.folder
    shutil.copytree(shipped("canned_queries"), tmp_path / "canned_queries")
    (tmp_path / "canned_queries" / "cost" / "mine.sql").write_bytes(b"-- ---\n-- title: \xff\n-- ---\nSELECT 1")

    def folder(name: str) -> Path:
        return tmp_path / name if name == "canned_queries" else shipped(name)

    def forget() -> None:
        for kept in (questions._all, questions.load, questions.of_stores, questions.named):
            kept.cache_clear()

    monkeypatch.setattr(questions.assets, "folder", folder)
    forget()
    try:
        datasette = await make_datasette(small_store())
        home = await datasette.client.get("/state", follow_redirects=True)
        assert home.status_code == 200
        assert "A canned query cannot be used" in home.text and "mine.sql" in home.text
        assert (await datasette.client.get("/state/cost_per_day.json?_shape=objects")).status_code == 200
        assert questions.malformed() and "mine" not in questions.load()
        with pytest.raises(questions.MalformedQuestion, match=r"mine\.sql"):
            questions.named("mine")
    finally:
        monkeypatch.undo()
        forget()
    assert not questions.malformed(), "a shipped canned query cannot be used"


def test_cron_jobs_sum_their_runs(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("cron_daily_report_20260601_080000", source="cron", input_tokens=1, estimated_cost_usd=0.001),
            books.session("cron_daily_report_20260602_080000", source="cron", input_tokens=1, estimated_cost_usd=0.002),
            books.session("child", source="subagent", parent_session_id="cron_daily_report_20260602_080000",
                          input_tokens=1, estimated_cost_usd=0.004),
            books.session("cron_odd", source="cron", input_tokens=1), books.session("chronic", input_tokens=1),
        ],
    )  # fmt: skip
    rows = {r["cron_job"]: r for r in questions.ask(books.open_books(path), "cost_per_cron_job").records()}
    assert set(rows) == {"daily_report", "odd"}
    assert (rows["daily_report"]["runs"], rows["daily_report"]["sessions"]) == (2, 3)
    assert rows["daily_report"]["cost_usd"] == pytest.approx(0.007)


def test_the_sessions_behind_a_bar_sum_to_it(demo_store: Path) -> None:
    connection = books.open_books(demo_store)
    for row in questions.ask(connection, "cost_per_day_and_model", {"tz": "Asia/Seoul", "limit": "12"}).records():
        same = {"since": row["day"], "until": row["day"], "tz": "Asia/Seoul", "model": row["model"], "limit": "10000"}
        behind = questions.ask(connection, "cost_sessions", same).records()
        assert sum(r["cost_usd"] or 0 for r in behind) == pytest.approx(row["cost_usd"] or 0, rel=1e-9)
