"""Days on an engine, told by offsets that our own functions know: those of SQLite's function, for every zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger.ledger import days, functions
from state_ledger.sqlite import sqlite3
from state_ledger.warehouse import zones
from state_ledger.warehouse.own import day_of
from tests import fleet
from tests.conftest import STRESS

ODD = ("Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Monrovia", "America/Caracas", "Pacific/Apia",
       "Africa/Casablanca", "Asia/Pyongyang", "America/Sao_Paulo", "Antarctica/Troll", "UTC")  # fmt: skip
"""Offsets that are no whole hours, changes at midnight, days that were left out, changes in pairs."""

INSTANTS = st.one_of(
    st.floats(1, 4e9, allow_nan=False), st.integers(1, 4 * 10**9), st.floats(-1e12, 1e12, allow_nan=False), st.none()
)


@pytest.fixture(scope="module", params=fleet.MOST_ENGINES)
def dialect(request: pytest.FixtureRequest) -> Iterator[Any]:
    with closing(fleet.engine(request.param)) as found:
        yield found


@lru_cache(maxsize=1)
def _sqlite() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    functions.register(connection, "UTC")
    return connection


@settings(max_examples=200 if STRESS else 15)
@given(
    zone=st.one_of(st.sampled_from(ODD), st.sampled_from(sorted(available_timezones()))),
    instants=st.lists(INSTANTS, min_size=1, max_size=40),
)
def test_a_day_is_the_one_that_sqlite_tells(dialect: Any, zone: str, instants: list[float | int | None]) -> None:
    spans = zones.spans_of(instants)
    from sqlglot import exp

    column = exp.column("instant", table="told")
    rows = dialect.unnested({"number": ("numbers", "integer"), "instant": ("instants", "real")}).subquery("told")
    select = exp.select(exp.column("number", table="told"), exp.alias_(day_of(dialect, column, zone, spans), "day"))
    values = {
        "numbers": list(range(len(instants))),
        "instants": [None if each is None else float(each) for each in instants],
    }
    _, told = dialect.run(dialect.text(select.from_(rows)), values)
    expected = [
        _sqlite().execute("SELECT local_day(?, ?)", (None if each is None else float(each), zone)).fetchone()[0]
        for each in instants
    ]
    assert [day for _, day in sorted(told)] == expected


def test_offsets_are_those_of_every_quarter_of_an_hour() -> None:
    """Looked at twice a day, no change is passed over, in whatever zone and year; all zones under stress."""
    chosen = sorted(available_timezones()) if STRESS else ODD[:3]
    for zone in chosen:
        for year in range(1970, 2040) if STRESS else (1972, 2011, 2026):
            first = int(days.day_start(f"{year}-01-01", "UTC"))
            known = zones.offsets((first // zones.SPAN, first // zones.SPAN + 1), zone)
            at = 0
            for instant in range(max(first, known[0][0]), first + 365 * 86_400, 900):
                while at + 1 < len(known) and known[at + 1][0] <= instant:
                    at += 1
                assert zones.offset(instant, zone) == known[at][1], (zone, instant)


def test_an_instant_outside_of_the_calendar_has_no_day(dialect: Any, tmp_path: Path) -> None:
    from sqlglot import exp

    for instant in (-1e17, 1e17):
        told = day_of(dialect, exp.Literal.number(repr(instant)), "UTC", (0,))
        assert dialect.run(dialect.text(exp.select(exp.alias_(told, "day"))))[1] == [(None,)]
