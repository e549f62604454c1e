"""The books of a lake in a file of the cache: made, kept up to date, thrown away when it is no good, waited for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests import fleet  # isort: skip  (skips where the extra is missing)

from state_ledger import questions
from state_ledger.lake.reading import Lake
from state_ledger.questions import EngineError, OutOfTime
from state_ledger.settings import Settings
from state_ledger.sqlite import sqlite3
from state_ledger.warehouse import Followed, following, loading, native
from state_ledger.warehouse.duck import DuckDB
from state_ledger.warehouse.following import path_for
from tests import books
from tests.books import call, session

UTC = Settings(zone="UTC")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rows = {"input_tokens": 1000, "api_call_count": 1, "estimated_cost_usd": 1.0, "cost_status": "estimated",
            "cost_source": "provider"}  # fmt: skip
    return books.write(tmp_path / "state.db", sessions=[session("one")], usage=[call("one", **rows)])


@pytest.fixture
def lake(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fleet.lake_of(tmp_path / "lake", {("here", "one"): store}, UTC)


@pytest.fixture
def followed(lake: Path) -> Iterator[Callable[[], Followed]]:
    made: list[Followed] = []

    def make() -> Followed:
        made.append(Followed(str(lake), UTC, look_every_s=0))
        return made[-1]

    yield make
    for each in made:
        each.close()


def cost(of: Followed) -> float:
    with of.books() as warehouse:
        return sum(row["cost_usd"] for row in questions.ask(warehouse, "cost_per_store", {}, settings=UTC).records())


def spend(store: Path, lake: Path, dollars: float) -> None:
    with closing(sqlite3.connect(store)) as changed, changed:
        changed.execute("UPDATE session_model_usage SET estimated_cost_usd = ?", (dollars,))
    fleet.lake_of(lake, {("here", "one"): store}, UTC)


def test_the_file_is_this_users_alone_and_follows_the_lake(
    store: Path, lake: Path, followed: Callable[[], Followed]
) -> None:
    first, second = followed(), followed()
    assert cost(first) == 1.0 == cost(second)
    path = path_for(str(lake))
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    second.close()
    spend(store, lake, 2.0)
    assert cost(first) == 2.0 and not first.notices


@pytest.mark.parametrize("what", ["damaged", "empty", "of another version", "of another program"])
def test_a_file_that_is_no_good_is_made_anew(
    lake: Path, followed: Callable[[], Followed], what: str
) -> None:
    before = followed()
    assert cost(before) == 1.0
    before.close()
    path = path_for(str(lake))
    if what == "damaged":
        path.write_bytes(b"no database" + path.read_bytes()[11:])
    elif what == "empty":
        path.write_bytes(b"")
    else:
        with closing(DuckDB(path)) as database:
            if what == "of another version":
                database.run(f"UPDATE fleet_warehouse SET format = {native.FORMAT + 1}")
            else:
                database.run("DROP TABLE fleet_warehouse")
    assert cost(followed()) == 1.0


def test_while_another_process_keeps_the_file_answers_are_those_of_before_and_say_so(
    store: Path, lake: Path, followed: Callable[[], Followed], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = followed()
    assert cost(ours) == 1.0
    spend(store, lake, 2.0)
    holding = "import duckdb, sys; kept = duckdb.connect(sys.argv[1], read_only=True); print(1, flush=True); input()"
    monkeypatch.setattr(following, "SHORT_PATIENCE_S", 0.1)
    command = [sys.executable, "-c", holding, str(path_for(str(lake)))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline()
        assert cost(ours) == 1.0
        assert "before the last push" in ours.notices[-1]
        other.communicate("\n")
    assert cost(ours) == 2.0 and not ours.notices


def test_a_lake_that_cannot_be_read_any_more_is_shown_as_it_was(
    lake: Path, followed: Callable[[], Followed]
) -> None:
    ours = followed()
    assert cost(ours) == 1.0
    lake.rename(lake.with_name("moved"))
    assert cost(ours) == 1.0 and "as of the last time" in ours.notices[0]
    with pytest.raises(questions.StateLedgerError, match="There is no lake"), followed().books():
        pass


def test_a_load_that_ended_early_is_gone_on_with(lake: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.lake_of(lake, {("here", "two"): store}, UTC)
    for name in fleet.MOST_ENGINES:
        with closing(fleet.engine(name)) as dialect:
            loading.prepare(dialect)
            publish = loading._publish

            def fail(*_: Any) -> None:
                raise EngineError("the server went away")

            monkeypatch.setattr(loading, "_publish", fail)
            with pytest.raises(EngineError):
                loading.load(dialect, Lake.open(lake))
            monkeypatch.setattr(loading, "_publish", publish)
            assert loading.newest(dialect) == 0, "nothing shows"
            assert loading.load(dialect, Lake.open(lake)).files == 0, "all files were there"
            told = questions.ask(fleet.loaded(dialect, lake, UTC), "stores", {}, settings=UTC)
            assert [row[0] for row in told.rows] == ["here/one", "here/two"]


def test_two_loads_into_one_server_do_not_meet() -> None:
    with closing(fleet.engine("clickhouse")) as dialect:
        with dialect.alone(), pytest.raises(EngineError, match="Another program loads"), dialect.alone():
            pass
        with dialect.alone():
            pass


@pytest.mark.parametrize("name", fleet.MOST_ENGINES)
def test_a_question_that_takes_too_long_is_ended(name: str, lake: Path) -> None:
    """The engine itself counts the numbers of a very long list, which no question asks for."""
    long = {
        "duckdb": "SELECT count(*) FROM range(1000000000000) AS t(n) WHERE n % 7 = 3",
        "clickhouse": "SELECT count(*) FROM numbers(1000000000000) WHERE number % 7 = 3",
    }
    with closing(fleet.loaded(fleet.engine(name), lake, UTC)) as warehouse:
        run = warehouse.dialect.run
        def slowly(sql: str, values: Any = None, limit_ms: int | None = None) -> Any:
            return run(long[name], None, limit_ms)

        warehouse.dialect.run = slowly
        with pytest.raises(OutOfTime, match=r"cost_per_model did not answer within 0\.2 seconds"):
            questions.ask(warehouse, "cost_per_model", {}, settings=UTC, limit_ms=200)
