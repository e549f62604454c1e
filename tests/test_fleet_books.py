"""Several stores in a warehouse: copies count once, ids that clash are told apart, families reach across stores,
as they do where the files themselves are read together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from state_ledger import questions
from state_ledger.settings import Settings
from state_ledger.shelf import Member, Reading, Shelf
from state_ledger.shelf.catalogue import catalogue
from state_ledger.sqlite import sqlite3
from tests import books, fleet
from tests.books import call, message, session
from tests.conftest import SHARED_STORES

UTC = Settings(zone="UTC")
NOON = 1780315200.0


def _usage(session_id: str, dollars: float, **columns: Any) -> dict[str, Any]:
    return call(
        session_id, input_tokens=1000, cache_read_tokens=3000, cache_write_tokens=0, api_call_count=2,
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


@pytest.fixture(scope="module", params=fleet.ENGINES)
def warehouse(
    request: pytest.FixtureRequest, lake: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    dialect = fleet.engine(request.param, tmp_path_factory.mktemp("engine"))
    with closing(fleet.loaded(dialect, lake, UTC)) as found:
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
    with together(stores) as files:
        for name in catalogue():
            for parameters in ({}, {"since": "2026-06-01", "until": "2026-06-01", "source": "cli"}):
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
