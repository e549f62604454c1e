"""Rules 19 to 21: calendar days of a named zone, and which day a long session belongs to."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.ledger import days
from tests import books

JAN_1, JAN_3 = 1767229200, 1767402000


@pytest.fixture
def long_and_short(tmp_path: Path) -> Any:
    """Case 11: a session that lives for days, and one of a minute."""
    status = {"estimated_cost_usd": 4.0, "cost_status": "estimated"}
    brief = {"estimated_cost_usd": 0.1, "cost_status": "estimated"}
    moments = (JAN_1, JAN_1 + 60, JAN_3, JAN_3 + 60, 1767405000, 1767405060, 1767405500, 1767405560)
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("long", started_at=JAN_1, model="m", input_tokens=1000, output_tokens=100, **status),
            books.session("short", started_at=JAN_3, model="m", input_tokens=50, output_tokens=5, **brief),
        ],
        usage=[
            books.call("long", input_tokens=1000, output_tokens=100, first_seen=JAN_1, last_seen=1767405600, **status),
            books.call("short", input_tokens=50, output_tokens=5, first_seen=JAN_3, last_seen=JAN_3 + 60, **brief),
        ],
        messages=[books.message("long", at) for at in moments]
        + [books.message("short", JAN_3), books.message("short", JAN_3 + 60)],
    )
    return books.open_books(path)


def _per_day(connection: Any, **parameters: str) -> dict[str, tuple[float, float, float]]:
    rows = questions.ask(connection, "cost_per_day", {"tz": "UTC", **parameters}).records()
    return {r["day"]: (r["input_tokens"], r["output_tokens"], r["cost_usd"]) for r in rows}


def test_activity_spreads_a_long_session_over_its_days(long_and_short: Any) -> None:
    assert _per_day(long_and_short) == {
        "2026-01-01": pytest.approx((250, 25, 1.0)),
        "2026-01-03": pytest.approx((800, 80, 3.1)),
    }


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("started", {"2026-01-01": (1000, 100, 4.0), "2026-01-03": (50, 5, 0.1)}),
        ("last_seen", {"2026-01-03": (1050, 105, 4.1)}),
    ],
)
def test_the_other_day_rules_put_a_session_on_one_day(long_and_short: Any, rule: str, expected: Any) -> None:
    assert _per_day(long_and_short, day_rule=rule) == {day: pytest.approx(row) for day, row in expected.items()}


@pytest.mark.parametrize("rule", ["activity", "started", "last_seen"])
def test_the_days_sum_to_the_total(long_and_short: Any, rule: str) -> None:
    rows = _per_day(long_and_short, day_rule=rule).values()
    assert tuple(map(sum, zip(*rows, strict=True))) == pytest.approx((1050, 105, 4.1))


def test_active_and_started_are_different_questions(long_and_short: Any) -> None:
    day = {"since": "2026-01-03", "until": "2026-01-03", "tz": "UTC"}

    def ids(name: str, **period: str) -> set[str]:
        return {row["session_id"] for row in questions.ask(long_and_short, name, {**day, **period}).records()}

    assert ids("sessions_active_between") == {"long", "short"}
    assert ids("sessions_started_between") == {"short"}
    assert ids("sessions_active_between", since="2026-01-02", until="2026-01-02") == set()
    assert ids("sessions_active_between", since="2025-12-01", until="2026-01-02") == {"long"}


def test_a_period_keeps_sessions_that_began_before_it(long_and_short: Any) -> None:
    rows = questions.ask(long_and_short, "cost_per_model", {"since": "2026-01-02", "tz": "UTC"}).records()
    assert rows[0]["cost_usd"] == pytest.approx(3.1)


@pytest.mark.parametrize(
    ("zone", "local", "expected_hours"),
    [
        ("America/New_York", "2026-03-08", 23),  # clocks go forward
        ("America/New_York", "2026-11-01", 25),  # and back
        ("Asia/Seoul", "2026-03-08", 24),
        ("UTC", "2026-03-08", 24),
        ("Asia/Kathmandu", "2026-03-08", 24),  # +05:45
        ("America/Sao_Paulo", "2018-11-04", 23),  # midnight does not exist on this day
    ],
)
def test_days_are_as_long_as_the_clocks_say(zone: str, local: str, expected_hours: int) -> None:
    start, end = days.day_start(local, zone), days.day_end(local, zone)
    assert (end - start) / 3600 == expected_hours
    assert days.local_day(start, zone) == local
    assert days.local_day(start - 1, zone) < local
    assert days.local_day(end - 1, zone) == local


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Seoul", "Asia/Kathmandu"])
def test_a_message_falls_on_its_local_day_around_both_clock_changes(tmp_path: Path, zone: str) -> None:
    tz = ZoneInfo(zone)
    moments = [
        datetime(2026, month, day, hour, minute, tzinfo=tz).timestamp()
        for month, day in ((3, 7), (3, 8), (3, 9), (10, 31), (11, 1), (11, 2))
        for hour, minute in ((0, 0), (0, 14), (23, 45), (23, 59))
    ]
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session(str(n), started_at=at, input_tokens=1) for n, at in enumerate(moments)],
        messages=[books.message(str(n), at) for n, at in enumerate(moments)],
    )
    counted = _per_day_tokens(books.open_books(path), zone)
    assert counted == {
        day: 4 for day in ("2026-03-07", "2026-03-08", "2026-03-09", "2026-10-31", "2026-11-01", "2026-11-02")
    }  # fmt: skip


def _per_day_tokens(connection: Any, zone: str) -> dict[str, float]:
    return {
        row["day"]: row["input_tokens"] for row in questions.ask(connection, "cost_per_day", {"tz": zone}).records()
    }


@given(
    moment=st.floats(min_value=86400 * 400, max_value=4e9),
    zone=st.sampled_from(sorted(z for z in available_timezones() if "/" in z and not z.startswith("posix"))[::11]),
)
def test_a_bucket_never_straddles_two_days(moment: float, zone: str) -> None:
    """A quarter of an hour lies within one day, in every zone, since 1972."""
    bucket = int(moment // days.BUCKET_SECONDS) * days.BUCKET_SECONDS
    assert days.local_day(bucket, zone) == days.local_day(moment, zone)


@given(st.dates(min_value=datetime(1975, 1, 2).date(), max_value=datetime(2090, 1, 1).date()))
def test_days_follow_each_other_without_gap_or_overlap(day: Any) -> None:
    for zone in ("America/New_York", "Asia/Seoul", "Pacific/Auckland"):
        assert days.day_end(day.isoformat(), zone) == days.day_start((day + timedelta(days=1)).isoformat(), zone)


def test_milliseconds_are_placed_on_their_day_and_flagged(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("seconds", started_at=1767225600, input_tokens=1),
            books.session("milliseconds", started_at=1767225600000, input_tokens=2),
        ],
        messages=[books.message("milliseconds", 1767225600000), books.message("milliseconds", 1767312000)],
    )
    connection = books.open_books(path)
    assert _per_day_tokens(connection, "UTC") == {"2026-01-01": 2.0, "2026-01-02": 1.0}
    flagged = connection.execute("SELECT session_id FROM ledger_discrepancies WHERE kind = 'time in milliseconds'")
    assert flagged.fetchall() == [("milliseconds",)]
    newest = connection.execute("SELECT last_active FROM ledger_sessions WHERE session_id = 'milliseconds'")
    assert newest.fetchone() == (1767312000.0,)
    # Bounds in seconds and in milliseconds find the same rows.
    rows = questions.ask(
        connection, "cost_per_day", {"since": "2026-01-02", "until": "2026-01-02", "tz": "UTC"}
    ).records()
    assert [row["input_tokens"] for row in rows] == [1.0]


@pytest.mark.parametrize("moment", ["noon", -5, float("inf"), 0])
def test_a_time_that_cannot_be_read_keeps_its_row_without_a_day(tmp_path: Path, moment: Any) -> None:
    path = books.write(tmp_path / "state.db", sessions=[books.session("s", started_at=moment, input_tokens=5)])
    connection = books.open_books(path)
    assert _per_day_tokens(connection, "UTC") == {None: 5.0}
    kinds = {kind for (kind,) in connection.execute("SELECT kind FROM ledger_discrepancies")}
    assert "time that cannot be read" in kinds


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(days.UnknownZone, match="Mars/Olympus"):
        days.zone("Mars/Olympus")


@pytest.mark.parametrize("text", ["../../etc/passwd", "", " ", "Europe/", "\x00", "a" * 5000])
def test_no_text_makes_a_zone_do_more_than_fail(text: str) -> None:
    with pytest.raises(days.UnknownZone):
        days.zone(text)


def test_the_servers_zone_follows_tz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Seoul")
    assert days.server_zone() == "Asia/Seoul"
    monkeypatch.setenv("TZ", "nonsense")
    assert days.zone(days.server_zone())
