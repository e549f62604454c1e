"""`state-ledger query`, `search` and `profiles` give what the core gives, in a terminal and to programs."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from state_ledger import questions
from state_ledger.cli import VERBS, main, output
from state_ledger.session_db import SessionDB
from tests import books


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture(scope="module")
def demo(demo_store: Path) -> Path:
    return demo_store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with two stores of one session each."""
    folder = tmp_path / "hermes"
    monkeypatch.setenv("HERMES_HOME", str(folder))
    for path, text in ((folder, "moored at the pier"), (folder / "profiles" / "work", "the pier is closed")):
        path.mkdir(parents=True)
        with SessionDB(path / "state.db") as db:
            db.create_session("s", "cli", model="a-model")
            db.append_message("s", "user", text)
            db.update_token_counts("s", 700, 80, model="a-model", estimated_cost_usd=0.25)
    return folder


# query


def test_every_canned_query_answers_with_the_rows_of_the_core(demo: Path) -> None:
    connection = books.open_books(demo)
    given = {"search": {"q": "the"}, "search_sessions": {"q": ""}}
    with_rows = 0
    for name, question in questions.load().items():
        taken = {parameter.name for parameter in question.parameters}
        # Both are asked as of one moment: days without activity grow while a slow machine goes from one to the other.
        common = {"limit": "7", "now": "1796000000"}
        wanted = given.get(name, {}) | {key: value for key, value in common.items() if key in taken}
        params = [word for pair in wanted.items() for word in ("--param", "=".join(pair))]
        done = run("query", name, demo, *params, "--json")
        assert done.exit_code == output.DONE, f"{name}: {done.output}"
        body, expected = json.loads(done.stdout), questions.ask(connection, name, wanted)
        assert body["columns"] == expected.columns and body["truncated"] is expected.truncated, name
        assert body["rows"] == expected.records(), name
        with_rows += bool(body["rows"])
        assert body["units"] == expected.question.head({}, [])["units"]
    assert with_rows > 0.7 * len(questions.load())


def test_csv_has_the_same_rows_and_says_elsewhere_that_there_are_more(demo: Path) -> None:
    done = run("query", "recent_sessions", demo, "--param", "limit=3", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    expected = questions.ask(books.open_books(demo), "recent_sessions", {"limit": "3"}).records()
    assert [row["session_id"] for row in rows] == [row["session_id"] for row in expected]
    assert [float(row["cost_usd"] or 0) for row in rows] == [row["cost_usd"] or 0 for row in expected]
    assert "There are more than 3 rows" in done.stderr


def test_a_table_has_a_line_for_each_row_with_numbers_to_the_right(demo: Path) -> None:
    lines = run("query", "cost_per_model", demo).stdout.splitlines()
    expected = questions.ask(books.open_books(demo), "cost_per_model")
    assert lines[0].split()[:2] == expected.columns[:2] and len(lines) == len(expected.rows) + 2
    at = lines[0].index("api_call_count") + len("api_call_count")
    assert [line[:at].split()[-1] for line in lines[2:]] == [f"{row['api_call_count']:,}" for row in expected.records()]


def test_the_list_names_each_query_and_describes_one() -> None:
    listed = run("query", "--list").stdout
    assert all(f" {name} " in listed for name in questions.load())
    one = run("query", "--list", "cost_per_day").stdout
    assert "What each calendar day cost" in one and "activity, started, last_seen" in one
    described = json.loads(run("query", "--list", "--json").stdout)
    assert {each["name"] for each in described} == set(questions.load())
    assert (
        next(each for each in described if each["name"] == "cost_per_day")["columns"]["cost_usd"]["unit"] == "dollars"
    )


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nonsense"], 1, "no canned query named nonsense"),
        (["cost_per_day", "--param", "colour=red"], 2, "has no parameter colour; it has day_rule"),
        (["cost_per_day", "--param", "since"], 2, "write NAME=VALUE"),
        (["cost_per_day", "--param", "since=soon"], 1, "YYYY-MM-DD"),
        ([], 2, "Name a canned query"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence(demo: Path, words: list[str], code: int, says: str) -> None:
    named = [*words[:1], str(demo), *words[1:]] if words else []
    done = run("query", *named)
    assert done.exit_code == code and says in done.stderr and done.stdout == ""


def test_of_several_stores_one_has_to_be_named(home: Path) -> None:
    done = run("query", "cost_per_model")
    assert done.exit_code == output.USAGE and str(home / "profiles" / "work" / "state.db") in done.stderr
    shutil.rmtree(home / "profiles")
    assert json.loads(run("query", "cost_per_model", "--json").stdout)["rows"][0]["cost_usd"] == 0.25


# search


def test_a_search_goes_through_all_stores_of_the_user(home: Path) -> None:
    done = run("search", "pier")
    assert "moored at the >>>pier<<<" in done.stdout and "the >>>pier<<< is closed" in done.stdout
    assert done.stderr.count("1 hit in ") == 2 and "found by the index of words" in done.stderr
    found = json.loads(run("search", "pier NOT closed", "--json").stdout)
    assert [len(each["hits"]) for each in found["stores"]] == [1, 0]
    first = found["stores"][0]
    assert (first["route"], first["complete"]) == ("index", True) and first["store"].startswith(str(home))
    (hit,) = first["hits"]
    assert [hit["snippet"][begin:end] for begin, end in hit["matches"]] == [">>>pier<<<"]


def test_a_search_is_filtered_ordered_and_goes_on(demo: Path) -> None:
    def ids(*options: str | Path) -> list[int]:
        (store,) = json.loads(run("search", "the", demo, "--json", "--limit", "5", *options).stdout)["stores"]
        assert len(store["hits"]) == 5
        if "--role" in options:
            assert {hit["role"] for hit in store["hits"]} == {"tool"}
        if "--source" in options:
            assert {hit["source"] for hit in store["hits"]} == {"telegram"}
        return [hit["id"] for hit in store["hits"]]

    newest, oldest = ids(), ids("--sort", "oldest")
    assert newest == sorted(newest, reverse=True) and oldest == sorted(oldest) and oldest[0] < newest[-1]
    following = ids("--before", str(newest[-1]))
    assert following[0] < newest[-1]
    assert ids("--sort", "best") != newest
    ids("--role", "tool", "--source", "telegram")
    more = run("search", "the", demo, "--limit", "5")
    assert f"There is more: --before {newest[-1]}" in more.stderr


def test_a_search_says_what_it_made_of_a_query_and_that_nothing_was_found(home: Path) -> None:
    store = home / "state.db"
    none = run("search", "nowhere", store)
    assert (none.exit_code, none.stdout) == (output.DONE, "") and none.stderr.startswith("Nothing found")
    hint = json.loads(run("search", '"pier', store, "--json").stdout)["stores"][0]["hint"]
    assert hint and hint in run("search", '"pier', store).stderr
    assert run("search", "pier", "--before", "3").exit_code == output.USAGE


# profiles


def test_profiles_lists_what_is_in_each_store(home: Path) -> None:
    listed = json.loads(run("profiles", "--json").stdout)
    assert [(each["profile"], each["name"], each["problem"]) for each in listed] == [
        ("default", "state", None), ("work", "work", None),
    ]  # fmt: skip
    for each in listed:
        assert (each["contents"]["schema"], each["contents"]["sessions"], each["contents"]["messages"]) == (23, 1, 1)
        assert each["contents"]["cost_usd"] == 0.25 and each["bytes"] >= Path(each["path"]).stat().st_size
        assert each["last_active"] > 1_700_000_000
    table = run("profiles").stdout.splitlines()
    assert table[0].split()[:4] == ["profile", "schema", "sessions", "messages"]
    assert [line.split()[:5] for line in table[2:]] == [
        ["default", "23", "1", "1", "$0.25"], ["work", "23", "1", "1", "$0.25"],
    ]  # fmt: skip


@pytest.mark.parametrize("spoil", [lambda p: p.write_bytes(b"zz" * 999), lambda p: os.truncate(p, 5000)])
def test_one_broken_store_never_hides_the_others(home: Path, spoil: Any) -> None:
    spoil(home / "state.db")
    done = run("profiles")
    assert done.exit_code == output.NOT_WELL and "work     23" in done.stdout
    assert f"default: {home / 'state.db'} " in done.stderr
    listed = json.loads(run("profiles", "--json").stdout)
    assert [bool(each["problem"]) for each in listed] == [True, False]
    searched = run("search", "pier")
    assert searched.exit_code == output.NOT_WELL and "the >>>pier<<< is closed" in searched.stdout
    assert searched.stderr.startswith("Left out: ")


def test_without_any_store_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    for words in (["profiles"], ["search", "x"], ["query", "cost_per_day"]):
        done = run(*words)
        assert done.exit_code == output.NOT_WELL and "No store of your own was found" in done.stderr


# all verbs


def test_every_verb_explains_itself_with_examples() -> None:
    for name in VERBS:
        text = run(name, "--help").stdout
        assert f"\n    state-ledger {name} " in text.partition("Examples:")[2] or f"state-ledger {name}\n" in text, name


def test_a_question_about_cost_imports_nothing_that_serves_writes_or_searches(demo_store: Path) -> None:
    code = (
        "import sys\nfrom state_ledger.cli import main\n"
        f"main(['query', 'cost_per_model', {str(demo_store)!r}], standalone_mode=False)\n"
        "heavy = ['datasette', 'sqlite_utils', 'asyncio', 'importlib.metadata', 'genai_prices',\n"
        "         'state_ledger.search.answering', 'state_ledger.portability', 'state_ledger.writing']\n"
        "sys.exit(', '.join(sorted(set(heavy) & set(sys.modules))) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
