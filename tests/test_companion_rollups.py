"""The rollup of a companion: it gives what the views give, or it is not asked."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from state_ledger import questions
from state_ledger.companion.building import refresh
from state_ledger.companion.file import CompanionFile
from state_ledger.companion.identity import companion_path
from state_ledger.connection import open_for_reading
from state_ledger.ledger.apportion import ALL_TIME, DAY_RULES, SPREAD, WHOLE
from state_ledger.questions import engines
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection, sqlite3
from tests.companions import change, opened
from tests.test_conservation import STORES, _write

ROLLED_UP = sorted(name for name, question in questions.load().items() if engines.reads_only_rolled_up(question.sql))
ASKED: tuple[dict[str, str], ...] = (
    {},
    {"since": "2000-01-01"},
    {"day_rule": "started", "tz": "Asia/Kolkata", "since": "2025-12-05", "until": "2026-01-20"},
    {"day_rule": "last_seen", "tz": "America/St_Johns", "until": "2026-02-01"},
    {"day_rule": "activity", "tz": "Europe/Berlin", "since": "2026-01-03", "until": "2026-01-03"},
    {"source": "cli", "since": "2025-01-01"},
    {"limit": "3"},
)


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield Path(os.environ["XDG_CACHE_HOME"])
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


def settle(path: Path) -> None:
    """Lets the files of a store look as if they had been written a while ago."""
    for suffix in ("", "-wal", "-journal"):
        if Path(f"{path}{suffix}").exists():
            os.utime(f"{path}{suffix}", (time.time() - 100, time.time() - 100))


@pytest.fixture
def store(demo_store: Path, tmp_path: Path) -> Path:
    path = tmp_path / "state.db"
    shutil.copyfile(demo_store, path)
    settle(path)
    return path


def ask(path: Path, name: str, parameters: dict[str, str] | None = None, **options: Any) -> questions.Result:
    with closing(open_for_reading(path)) as connection:
        return questions.ask(connection, name, parameters, **options)


def alike(one: Any, other: Any) -> bool:
    """Equal, but for the rounding of a sum that was made in another order."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other or math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def names_asked(name: str, parameters: dict[str, str]) -> dict[str, str]:
    """Those of the parameters that a question has."""
    known = {parameter.name for parameter in questions.load()[name].parameters}
    return {key: value for key, value in parameters.items() if key in known}


def test_the_questions_of_cost_and_cache_are_rolled_up() -> None:
    assert {"cost_per_day", "cost_per_day_and_model", "cost_per_model", "cache_ratio_per_day"} <= set(ROLLED_UP)
    assert not engines.reads_only_rolled_up("SELECT * FROM ledger_time JOIN ledger_sessions USING (session_id)")
    assert not engines.reads_only_rolled_up("WITH x AS (SELECT * FROM main.sessions) SELECT * FROM ledger_time, x")
    assert not engines.reads_only_rolled_up("SELECT (SELECT count(*) FROM messages) FROM ledger_time")
    assert not engines.reads_only_rolled_up("SELECT 1")
    assert not engines.reads_only_rolled_up("SELECT * FROM ledger_time, sessions")


@pytest.fixture(scope="module")
def asked_twice(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Every rolled-up question under every set of parameters: answered by the store, then by its companion."""
    path = tmp_path_factory.mktemp("demo") / "state.db"
    shutil.copyfile(demo_store, path)
    settle(path)
    calls = {name: [names_asked(name, parameters) for parameters in ASKED] for name in ROLLED_UP}
    by_store = {name: [ask(path, name, parameters) for parameters in sets] for name, sets in calls.items()}
    assert refresh(path).usage_rows
    by_companion = {name: [ask(path, name, parameters) for parameters in sets] for name, sets in calls.items()}
    return {name: list(zip(by_store[name], by_companion[name], strict=True)) for name in calls}


@pytest.mark.parametrize("name", ROLLED_UP)
def test_the_companion_answers_as_the_store_does(asked_twice: dict[str, list[Any]], name: str) -> None:
    assert any(store.rows for store, _ in asked_twice[name])
    for store, companion in asked_twice[name]:
        assert (store.engine, companion.engine) == ("store", "companion")
        assert (store.columns, store.parameters, store.truncated) == (
            companion.columns, companion.parameters, companion.truncated,
        )  # fmt: skip
        assert len(store.rows) == len(companion.rows)
        for one, other in zip(store.rows, companion.rows, strict=True):
            assert all(map(alike, one, other)), (one, other)


def rows_of(connection: Connection) -> list[tuple[Any, ...]]:
    """All of `ledger_time` but for the bounds of sessions, in an order of its own."""
    listed = ", ".join([*WHOLE, "day_rule", "bucket", "share", *SPREAD])
    rows = [tuple(row) for row in connection.execute(f"SELECT {listed} FROM ledger_time")]
    return sorted(rows, key=repr)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(store=STORES)
def test_the_rows_are_those_of_the_view_whatever_is_in_the_store(store: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = _write(folder, store)
        settle(path)
        refresh(path)
        with closing(open_for_reading(path)) as connection, opened(path) as companion:
            rollup = companion.rollup(path, connection, "UTC")
            assert rollup is not None
            assert rows_of(rollup) == rows_of(connection)
            for rule in (*DAY_RULES, ALL_TIME):
                for name in SPREAD:
                    sql = f"SELECT total({name}) FROM ledger_time WHERE day_rule = ?"
                    sums = [each.execute(sql, (rule,)).fetchone()[0] for each in (connection, rollup)]
                    assert alike(*sums)
            columns = "session_id, conversation_id, work_id, tip_session_id, segment, depth, kind, trouble"
            places = [
                sorted((tuple(row) for row in each.execute(f"SELECT {columns} FROM {table}")), key=repr)
                for each, table in ((connection, "ledger_lineage"), (rollup, "session_place"))
            ]
            assert places[0] == places[1]


# -- freshness -----------------------------------------------------------------------------------


def test_after_a_write_the_store_answers_until_the_rollup_was_made_anew(store: Path) -> None:
    refresh(store)
    assert ask(store, "cost_per_model").engine == "companion"
    before = ask(store, "cost_per_model").rows
    change(store, "UPDATE session_model_usage SET estimated_cost_usd = estimated_cost_usd + 1, actual_cost_usd = 0")
    after = ask(store, "cost_per_model")
    assert (after.engine, after.rows != before) == ("store", True)
    assert refresh(store).usage_rows is None  # written a moment ago
    settle(store)
    assert ask(store, "cost_per_model").engine == "store"
    assert refresh(store).usage_rows
    again = ask(store, "cost_per_model")
    assert again.engine == "companion"
    assert all(all(map(alike, one, other)) for one, other in zip(after.rows, again.rows, strict=True))


def test_a_write_that_is_only_in_the_log_counts(store: Path) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL").fetchone()
        writer.execute("UPDATE sessions SET title = 'x' WHERE rowid = 1")
        settle(store)
        refresh(store)
        assert ask(store, "cost_per_day").engine == "companion"
        writer.execute("UPDATE sessions SET title = 'y' WHERE rowid = 1")
        assert ask(store, "cost_per_day").engine == "store"


def test_a_store_that_was_written_a_moment_ago_gets_no_rollup(store: Path) -> None:
    change(store, "UPDATE sessions SET title = 'now' WHERE rowid = 1")
    assert refresh(store).usage_rows is None
    assert ask(store, "cost_per_day").engine == "store"


def test_other_views_are_not_stood_in_for(store: Path) -> None:
    refresh(store)
    for options in ({"settings": Settings(max_cost_per_1000_tokens=0.5)}, {"profile": "work"}):
        with closing(open_for_reading(store, **options)) as connection:
            assert questions.ask(connection, "cost_per_profile").engine == "store"
    chosen = Settings(max_cost_per_1000_tokens=0.5)
    refresh(store, settings=chosen)
    with closing(open_for_reading(store, settings=chosen)) as connection:
        assert questions.ask(connection, "cost_per_profile", settings=chosen).engine == "companion"


def test_a_damaged_rollup_is_passed_over(store: Path) -> None:
    expected = ask(store, "cost_per_day").rows
    refresh(store)
    with closing(CompanionFile.open_or_make(companion_path(store))) as file, file.transaction():
        file.connection.execute("DROP TABLE placed")
    answer = ask(store, "cost_per_day")
    assert (answer.engine, answer.rows) == ("store", expected)
    companion_path(store).write_bytes(b"nothing")
    assert ask(store, "cost_per_day").rows == expected


def test_names_that_are_not_utf_8_are_not_rolled_up(store: Path) -> None:
    change(store, "UPDATE session_model_usage SET model = CAST(x'ff41' AS TEXT) WHERE rowid = 1")
    settle(store)
    assert refresh(store).usage_rows is None
    assert ask(store, "cost_per_model").engine == "store"


def test_time_runs_out_on_the_companion_as_on_the_store(store: Path) -> None:
    refresh(store)
    with closing(open_for_reading(store)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            questions.ask(connection, "cost_per_day", {"since": "2000-01-01"}, watch=lambda: 1)
        assert questions.ask(connection, "cost_per_day").engine == "companion"
