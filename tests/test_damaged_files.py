"""What a damaged file shows: the right data or a sentence that names it; never a traceback, nor less than there is.

Some 40 kinds of damage at seeded places; `STATE_LEDGER_STRESS=1` makes them more than 300, and shows all of them to
every reader.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from state_ledger.cli import main
from state_ledger.companion.building import refresh
from state_ledger.companion.identity import companion_path
from state_ledger.session_db import SessionDB
from tests import damage
from tests.conftest import STRESS

ROWS = ("messages", "sessions", "session_model_usage", "idx_messages_session", "sqlite_autoindex_sessions_1")
"""Whose pages are hit besides any byte: chance alone mostly hits the full-text indexes, which are the most."""

BYTES, PAGES, VALUES, LOGS, COMPANIONS = (180, 80, 80, 18, 18) if STRESS else (16, 12, 8, 3, 3)

QUERIES = ("cost_per_model", "recent_sessions", "lineage_problems", "cost_per_day", "ledger_problems",
           "highest_token_sessions", "storage_sizes", "open_idle_sessions", "tool_calls", "search")  # fmt: skip

FORMATS = ("json", "ndjson", "html", "md", "csv")

PAGES_OF_THE_APP = (
    "/", "/{store}", "/{store}/-/cost?group=day", "/{store}/-/search?q=harbour", "/{store}/-/session/s0",
    "/{store}/-/work/s0?inactive=1", "/{store}/-/ops", "/-/ledger/health.json", "/{store}/-/export",
    "/{store}/-/export/all.jsonl", "/{store}/messages", "/{store}/sessions.json?_facet=source",
    "/{store}/cost_per_model.json", "/{store}/messages/3", "/{store}/-/export/question/recent_sessions.csv",
)  # fmt: skip


class Damaged(NamedTuple):
    """A kind of damage and its number, as in the id of a test."""

    kind: str
    number: int

    def do(self, path: Path) -> str:
        if self.kind == "value":
            return damage.misplace(path, self.number)
        return damage.strike(path, self.number, only=ROWS if self.kind == "page" else ())


CASES = [
    *(Damaged("byte", number) for number in range(BYTES)),
    *(Damaged("page", number) for number in range(PAGES)),
    *(Damaged("value", number) for number in range(VALUES)),
]
named = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.number}")


class Undamaged(NamedTuple):
    """The store, and what its messages and sessions are."""

    path: Path
    messages: set[int]
    sessions: set[str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Undamaged:
    path = damage.make_full(tmp_path_factory.mktemp("whole") / "state.db")
    answer, lines = exported(path, path.parent)
    assert answer.exit_code == 0
    return Undamaged(path, ids(lines, "message"), ids(lines, "session"))


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


def run(*arguments: object) -> Result:
    """A verb, which ends with an exit code, and where that is not 0 with a sentence."""
    answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), repr(answer.exception)
    if answer.exit_code:
        assert "state.db" in answer.stdout + answer.stderr, (arguments, answer.stderr)
    return answer


def exported(path: Path, folder: Path) -> tuple[Result, list[dict[str, Any]]]:
    target = folder / "all.jsonl"
    answer = run("export", path, "--all", "--taken-back", "--output", target, "--force")
    assert (answer.exit_code == 0) == target.exists()
    return answer, [json.loads(line) for line in target.read_text("utf-8").splitlines()] if target.exists() else []


def ids(lines: list[dict[str, Any]], kind: str) -> set[Any]:
    return {line["id"] for line in lines if line["type"] == kind}


def spoiled(whole: Undamaged, case: Damaged, folder: Path) -> tuple[Path, str]:
    path = Path(shutil.copy(whole.path, folder / "state.db"))
    return path, case.do(path)


@named
def test_the_command_line(whole: Undamaged, tmp_path: Path, case: Damaged) -> None:
    path, said = spoiled(whole, case, tmp_path)
    before = path.read_bytes()
    well = run("check", path).exit_code == 0
    answer, lines = exported(path, tmp_path)
    if answer.exit_code == 0:
        messages = ids(lines, "message")
        # A row that has got another number is still there.
        assert len(messages) >= len(whole.messages) and (case.kind == "value" or messages >= whole.messages), said
        assert len(ids(lines, "session")) >= len(whole.sessions), said
    made = run("backup", path, "--to", tmp_path / "backups", "--json")
    if made.exit_code == 0:
        # It has the same bytes in its tables, and so the same damage, if there is some.
        found = json.loads(made.stdout)["contents"]
        assert found["messages"] == len(whole.messages) and found["sessions"] == len(whole.sessions), said
    else:
        assert not well, said
    for form in FORMATS if STRESS else (FORMATS[case.number % len(FORMATS)],):
        told = run("export", path, "--all", "--taken-back", "--format", form, "--output", tmp_path / f"x.{form}")
        if told.exit_code == 0 and form == "csv":
            with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
                assert len(list(csv.reader(file))) == 1 + len(whole.messages), said
        assert told.exit_code == answer.exit_code, (said, form)
    for query in QUERIES if STRESS else (QUERIES[case.number % len(QUERIES)],):
        answer = run("query", query, path, "--json", *(("--param", "q=harbour") if query == "search" else ()))
        if answer.exit_code == 0 and well and case.kind != "value":
            assert json.loads(answer.stdout)["rows"] == answers(whole.path, query), (said, query)
    for verb in ("status", "sizes", "plan") if STRESS else (("status", "sizes", "plan")[case.number % 3],):
        run(verb, path)
    assert path.read_bytes() == before


def answers(path: Path, query: str, known: dict[str, Any] = {}) -> Any:  # noqa: B006 (kept on purpose)
    """What the undamaged store answers."""
    if query not in known:
        answer = run("query", query, path, "--json", *(("--param", "q=harbour") if query == "search" else ()))
        known[query] = json.loads(answer.stdout)["rows"]
    return known[query]


@pytest.mark.parametrize("case", CASES if STRESS else CASES[3::9], ids=lambda case: f"{case.kind}-{case.number}")
async def test_the_app(whole: Undamaged, tmp_path: Path, case: Damaged, make_datasette: Callable[..., Any]) -> None:
    """A page of data or one that says what is wrong, and where; or no start, with a sentence."""
    from state_ledger.plugins.store_database import StoreRefused

    path, said = spoiled(whole, case, tmp_path)
    before = path.read_bytes()
    try:
        datasette = await make_datasette(path)
    except StoreRefused as refusal:
        assert "state.db" in refusal.message
        return
    (store,) = datasette._state_ledger.stores or (path.stem,)
    for page in PAGES_OF_THE_APP:
        try:
            answer = await datasette.client.get(page.format(store=store))
        except AssertionError:
            assert "/-/export/" in page  # its transfer is broken off, which no client takes for the whole
            continue
        assert answer.status_code in (200, 302, 400, 404, 503), (said, page, answer.text)
        assert "Traceback" not in answer.text, (said, page)
        if answer.status_code == 503 and "health" not in page:
            assert "state.db" in answer.text or "state-ledger check" in answer.text, (said, page, answer.text)
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", range(LOGS))
def test_a_damaged_log_is_read_as_far_as_it_is_whole(whole: Undamaged, tmp_path: Path, number: int) -> None:
    """As after a crash: SQLite stops at the first frame that is not what its sum says, and tells nobody."""
    path, log = tmp_path / "state.db", tmp_path / "state.db-wal"
    live = Path(shutil.copy(whole.path, tmp_path / "live.db"))
    with SessionDB(live) as db:
        for turn in range(20):
            db.append_message("s1b", "user", f"said last {turn}")
        shutil.copy(live, path)
        shutil.copy(f"{live}-wal", log)
    damage.strike(log, number)
    before = path.read_bytes(), log.read_bytes()
    answer, lines = exported(path, tmp_path)
    run("check", path)
    run("backup", path, "--to", tmp_path / "backups")
    if answer.exit_code == 0:
        last = [line["content"] for line in lines if str(line.get("content")).startswith("said last")]
        assert ids(lines, "message") >= whole.messages and last == [f"said last {turn}" for turn in range(len(last))]
    assert path.read_bytes() == before[0] and log.read_bytes()[: len(before[1])] == before[1]


@pytest.mark.parametrize("number", range(COMPANIONS))
def test_a_damaged_companion_is_no_trouble(whole: Undamaged, tmp_path: Path, number: int) -> None:
    path = Path(shutil.copy(whole.path, tmp_path / "state.db"))
    refresh(path)
    damage.strike(companion_path(path), number * 5)
    for verb in (("search", "데이터", path), ("query", "cost_per_day", path), ("index", path, "--status")):
        assert run(*verb).exit_code in (0, 1)
    assert run("index", path, "--rebuild").exit_code == 0
    found = json.loads(run("search", "데이터", path, "--json").stdout)["stores"][0]
    assert found["hits"] and not found["notices"]
