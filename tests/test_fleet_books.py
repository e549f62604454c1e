"""Several stores in a warehouse: copies count once, ids that clash are told apart, families reach across stores,
as they do where the files themselves are read together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import fleet  # isort: skip  (skips where the extra is missing)

from state_ledger import questions
from state_ledger.lake.push import push
from state_ledger.lake.reading import Lake
from state_ledger.settings import Settings
from state_ledger.shelf import Member, Reading, Shelf
from state_ledger.shelf.catalogue import catalogue
from state_ledger.sqlite import sqlite3
from state_ledger.warehouse import loading, native
from tests import books
from tests.books import call, message, session
from tests.conftest import SHARED_STORES, STRESS

UTC = Settings(zone="UTC")
NOON = 1780315200.0


def _usage(session_id: str, dollars: float, **columns: Any) -> dict[str, Any]:
    return call(
        session_id, input_tokens=10**6, cache_read_tokens=3 * 10**6, cache_write_tokens=0, api_call_count=2,
        estimated_cost_usd=dollars, cost_status="estimated", cost_source="provider", last_seen=NOON, **columns,
    )  # fmt: skip


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Stores on two hosts that share sessions: equal copies, one that grew, ids that clash, parents elsewhere."""
    folder = tmp_path_factory.mktemp("hosts")
    found: dict[tuple[str, str], Path] = {}

    def store(host: str, profile: str, **rows: Any) -> Path:
        path = folder / host / "profiles" / profile / "state.db"
        path.parent.mkdir(parents=True)
        found[host, profile] = books.write(path, **rows)
        return path

    first = store(
        "alpha", "home",
        sessions=[
            session("root", started_at=NOON, ended_at=NOON + 50, end_reason="compression", title="Harbour"),
            session("next", started_at=NOON + 60, parent_session_id="root", title="Harbour, on"),
            session("clash", started_at=NOON + 5, title="One of two"),
            session("copied", started_at=NOON + 7, title="A copy"),
            session("cron_tide_20260601_120000", started_at=NOON + 9, source="cron"),
        ],
        usage=[_usage("root", 1.0), _usage("next", 2.0), _usage("clash", 4.0), _usage("copied", 8.0),
               _usage("gone", 16.0), _usage("cron_tide_20260601_120000", 0.5)],
        messages=[message("root", NOON + 1), message("root", NOON + 40), message("next", NOON + 61),
                  message("copied", NOON + 8)],
    )  # fmt: skip
    store(
        "alpha", "work",
        sessions=[
            session("clash", started_at=NOON + 500, title="Two of two"),
            session("child", started_at=NOON + 70, parent_session_id="next", source="subagent", title="Asked"),
            session("after", started_at=NOON + 80, parent_session_id="clash", title="After a clash"),
            session("loop-a", started_at=NOON + 90, parent_session_id="loop-b"),
            session("loop-b", started_at=NOON + 91, parent_session_id="loop-a"),
        ],
        usage=[_usage("clash", 32.0), _usage("child", 64.0), _usage("after", 128.0), _usage("loop-a", 0.25),
               _usage("gone", 16.0)],
        messages=[message("clash", NOON + 501), message("child", NOON + 71), message("child", NOON + 72)],
    )  # fmt: skip
    copy = folder / "beta" / "profiles" / "home" / "state.db"
    copy.parent.mkdir(parents=True)
    shutil.copyfile(first, copy)
    with closing(sqlite3.connect(copy)) as grown, grown:
        grown.execute("INSERT INTO messages (session_id, role, timestamp) VALUES ('copied', 'user', ?)", (NOON + 99,))
        grown.execute("UPDATE session_model_usage SET estimated_cost_usd = 9.0 WHERE session_id = 'copied'")
        late = "INSERT INTO sessions (id, source, started_at, parent_session_id) VALUES ('late', 'cli', ?, 'next')"
        grown.execute(late, (NOON + 200,))
    found["beta", "home"] = copy
    for name in ("small-1.db", "schema-11.db", "small-23.db", "schema-25.db", "small-30-handmade.db"):
        if (SHARED_STORES / name).is_file():
            path = folder / "gamma" / "profiles" / name.removesuffix(".db") / "state.db"
            path.parent.mkdir(parents=True)
            shutil.copyfile(SHARED_STORES / name, path)
            found["gamma", name.removesuffix(".db")] = path
    return found


@pytest.fixture(scope="module")
def lake(stores: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fleet.lake_of(tmp_path_factory.mktemp("lake"), stores, UTC)


@pytest.fixture(scope="module", params=fleet.MOST_ENGINES)
def warehouse(request: pytest.FixtureRequest, lake: Path) -> Iterator[Any]:
    with closing(fleet.loaded(fleet.engine(request.param), lake, UTC)) as found:
        yield found


@contextmanager
def together(stores: dict[tuple[str, str], Path], only: tuple[str, ...] = ()) -> Iterator[Reading]:
    """The same stores, read together as files, under the names that they have in a lake."""
    members = [Member(f"{host}/{profile}", path, profile) for (host, profile), path in stores.items()]
    with closing(Shelf(UTC)) as shelf, shelf.reading(members, only=only) as reading:
        assert not reading.notices
        yield reading


def test_every_question_over_all_stores_is_answered_as_from_the_files(
    stores: dict[tuple[str, str], Path], warehouse: Any
) -> None:
    wrong = []
    period = {"since": "2026-06-01", "until": "2026-06-01", "source": "cli"}
    with together(stores) as files:
        for name in catalogue():
            for parameters in ({}, period) if STRESS else ({},):
                asked = {key: value for key, value in parameters.items() if key in _names(name)} | _fixed(name)
                expected = files.ask(name, asked)
                told = questions.ask(warehouse, name, asked, settings=UTC)
                if not fleet.same_rows(*(_without_places(each) for each in (told, expected))):
                    wrong.append((name, asked, _without_places(told), _without_places(expected)))
    assert not wrong, wrong[0]


def _names(question: str) -> set[str]:
    return {parameter.name for parameter in catalogue()[question].parameters}


def _fixed(question: str) -> dict[str, str]:
    return {"now": "1796022000"} if "now" in _names(question) else {}


def _without_places(result: questions.Result) -> list[tuple[Any, ...]]:
    width = len(result.columns)
    for last in ("host", "store"):
        width -= result.columns[width - 1] == last
    rows = [row[:width] for row in result.rows]
    if result.question.name == "session_messages":  # which a file answers for itself, by the id that it has there
        return [(row[0], row[1].rpartition(":")[2], *row[2:]) for row in rows]
    return rows


def test_answers_are_narrowed_to_stores_while_copies_are_settled_among_all(
    stores: dict[tuple[str, str], Path], warehouse: Any
) -> None:
    chosen = ("alpha/home", "beta/home")
    with together(stores, only=chosen) as files:
        for name in ("cost_per_model", "cost_per_store", "duplicate_sessions", "top_work", "stores"):
            expected = files.ask(name, {})
            for narrowed in (warehouse.narrowed(stores=chosen), warehouse.narrowed(profiles=["home"])):
                told = questions.ask(narrowed, name, {}, settings=UTC)
                assert fleet.same_rows(_without_places(told), _without_places(expected)), name
    whole = questions.ask(warehouse, "cost_per_store", {}, settings=UTC).records()
    each = [
        row for host in ("alpha", "beta", "gamma")
        for row in questions.ask(warehouse.narrowed(hosts=[host]), "cost_per_store", {}, settings=UTC).records()
    ]  # fmt: skip
    assert sum(row["cost_usd"] or 0 for row in each) == pytest.approx(sum(row["cost_usd"] or 0 for row in whole))
    nobody = warehouse.narrowed(hosts=["nobody"])
    assert questions.ask(nobody, "cost_per_model", {}, settings=UTC).rows == []
    assert questions.ask(nobody, "stores", {}, settings=UTC).rows == []


def test_sessions_that_share_an_id_are_told_apart_and_say_where_they_are(warehouse: Any) -> None:
    rows = questions.ask(warehouse, "cost_sessions", {"limit": "1000"}, settings=UTC).records()
    where = {row["session_id"]: (row["store"], row["host"], row["cost_usd"]) for row in rows}
    assert where["alpha/home:clash"] == ("alpha/home", "alpha", 4.0)
    assert where["alpha/work:clash"] == ("alpha/work", "alpha", 32.0)
    assert where["copied"] == ("beta/home", "beta", 9.0), "the copy with more messages"
    assert where["root"] == ("alpha/home", "alpha", 1.0), "of equal copies the first"
    family = questions.ask(warehouse, "lineage_work", {"session": "child"}, settings=UTC).records()
    assert [row["session_id"] for row in family] == ["root", "next", "child"], "a delegate on another store"


def test_rows_about_a_file_are_those_of_all_files_each_with_its_store(
    stores: dict[tuple[str, str], Path], warehouse: Any
) -> None:
    for name in ("locks", "orphans", "delegations", "routing", "storage_sizes"):
        told = questions.ask(warehouse, name, {"limit": "1000"}, settings=UTC)
        assert told.columns[-2:] == ["store", "host"]
        expected = []
        for (host, profile), path in stores.items():
            with closing(books.open_books(path)) as alone:
                result = questions.ask(alone, name, {"limit": "1000"}, settings=UTC)
            expected += [(*row, f"{host}/{profile}", host) for row in result.rows]
        apart = [result.columns.index(each) for each in ("session_id", "title", "share", "last_active")
                 if each in result.columns]  # fmt: skip
        kept = [
            sorted((tuple(cell for at, cell in enumerate(row) if at not in apart) for row in rows), key=repr)
            for rows in (told.rows, expected)
        ]
        assert fleet.same_rows(*kept), name


def test_a_load_takes_only_what_changed_and_shows_it_at_once(
    stores: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    """A reader of the generation before sees nothing of a new one until it reads that; what is gone is gone."""
    url, copy = tmp_path / "lake", tmp_path / "state.db"
    shutil.copyfile(stores["alpha", "work"], copy)
    fleet.lake_of(url, {("here", "one"): copy, ("here", "two"): stores["alpha", "home"]}, UTC)
    for name in fleet.MOST_ENGINES:
        with closing(fleet.engine(name)) as dialect:
            before = fleet.loaded(dialect, url, UTC)
            assert loading.load(dialect, Lake.open(url)) == loading.Loaded(), "nothing has changed"
            cost = questions.ask(before, "cost_per_store", {}, settings=UTC).records()
            with closing(sqlite3.connect(copy)) as changed, changed:
                changed.execute("UPDATE session_model_usage SET estimated_cost_usd = estimated_cost_usd + 1")
            fleet.lake_of(url, {("here", "one"): copy}, UTC)
            done = loading.load(dialect, Lake.open(url))
            assert done.stores == 1 and 0 < done.files < 19
            after = questions.ask(fleet.loaded(dialect, url, UTC), "cost_per_store", {}, settings=UTC).records()
            by_store = [{row["store"]: row["cost_usd"] for row in rows} for rows in (cost, after)]
            assert by_store[1]["here/one"] == by_store[0]["here/one"] + 5
            assert by_store[1]["here/two"] == by_store[0]["here/two"]
            for table in native.tables_of_lake():
                files = f'SELECT count(*) AS n FROM "{table.name}" WHERE file NOT IN (SELECT file FROM fleet_loaded)'
                assert dialect.run(files)[1] == [(0,)], "rows that nobody shows"


def test_what_was_said_is_asked_of_a_store_that_was_pushed_with_it(
    stores: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    push(stores["alpha", "home"], tmp_path / "lake", host="here", profile="one", settings=UTC)
    with closing(fleet.loaded(fleet.engine("duckdb"), tmp_path / "lake", UTC)) as warehouse:
        with pytest.raises(questions.EngineError, match="lake push --with-messages"):
            questions.ask(warehouse, "session_messages", {}, settings=UTC)
        assert questions.ask(warehouse, "messages_per_day", {"since": "2026-01-01"}, settings=UTC).rows
