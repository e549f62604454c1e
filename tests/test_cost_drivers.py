"""Why something was expensive: figures worked out by hand, medians, loops, and the pages that say it."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.pages.asking import Ask
from state_ledger.pages.cost_drivers import KINDS, read_drivers
from state_ledger.pages.links import Links
from state_ledger.plugins import compat
from state_ledger.settings import Settings
from tests import books
from tests.page_checks import check

NOON = datetime(2026, 6, 1, 12, tzinfo=timezone.utc).timestamp()
DAY = 86400.0
AT = Links("/state")


def calls_json(*arguments: str, tool: str = "terminal") -> str:
    return json.dumps(
        [{"id": f"c{n}", "function": {"name": tool, "arguments": each}} for n, each in enumerate(arguments)]
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five sessions of one source and model, of which `big` cost a hundred dollars and has a delegate and a sequel."""
    sessions = [books.session(name, model="m", started_at=NOON + day * DAY, title=name)
                for day, name in enumerate(("a", "b", "c", "d"))]  # fmt: skip
    sessions += [
        books.session("big", model="m", started_at=NOON + 4 * DAY, end_reason="compression", title="The big one"),
        books.session("on", model="m", source="desk", started_at=NOON + 5 * DAY, parent_session_id="big"),
        books.session("help", model="s", source="subagent", started_at=NOON + 4 * DAY, parent_session_id="big",
                      model_config='{"_delegate_from": "big"}'),
        books.session("odd", model="rare", started_at=NOON + 9 * DAY),
    ]  # fmt: skip

    def used(name: str, cost: float, calls: int, prompt: int, cached: int, **more: Any) -> books.Row:
        return books.call(name, more.pop("model", "m"), estimated_cost_usd=cost, api_call_count=calls,
                          input_tokens=prompt - cached, cache_read_tokens=cached, cost_status="estimated",
                          cost_source="list", **more)  # fmt: skip

    usage = [
        used("a", 1.0, 10, 1000, 500), used("b", 2.0, 10, 1000, 600), used("c", 3.0, 20, 4000, 3200),
        used("d", 4.0, 20, 6000, 5400), used("big", 98.0, 200, 400_000, 100_000),
        used("big", 2.0, 4, 8000, 0, task="compression"), used("on", 7.0, 5, 50_000, 0),
        used("help", 9.0, 3, 30_000, 0, model="s"),
        books.call("odd", "rare", api_call_count=2, input_tokens=50, cost_status="unknown"),
    ]  # fmt: skip
    at = NOON + 4 * DAY
    messages = [
        books.message("big", at, content="0123456789"),
        books.message("big", at + 1, "assistant", "abcd", tool_calls=calls_json("{}")),
        books.message("big", at + 2, "tool", "x" * 86, tool_name="terminal"),
        books.message("big", at + 3, "assistant", "", tool_calls=calls_json("{}", "{}", "{}", '{"a":1}')),
        books.message("big", at + 4, "assistant", "é", tool_calls=calls_json("{}", "{}")),
        books.message("big", at + 5, "user", "sent otherwise", api_content="so"),
        books.message("big", at + 6, "user", "never mind", active=0, compacted=0),
        books.message("on", NOON + 5 * DAY), books.message("help", at + 1),
        *(books.message(name, NOON + day * DAY) for day, name in enumerate(("a", "b", "c", "d"))),
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("drivers") / "state.db"
    return books.write(path, sessions=sessions, usage=usage, messages=messages)


def drivers(store: Path, **asked: str) -> dict[str, dict[str, Any]]:
    with closing(books.open_books(store)) as connection:
        return {row["driver"]: row for row in questions.ask(connection, "cost_drivers", asked).records()}


def told(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_a_session_against_the_median_of_its_source_and_model(store: Path) -> None:
    found = drivers(store, session="big")
    # Costs 1, 2, 3, 4, 100; calls 10, 10, 20, 20, 200; prompts a call 100, 100, 200, 300, 2000.
    assert told(found["cost"], "value", "typical", "compared", "certainty") == (100.0, 3.0, 5, "known")
    assert told(found["calls"], "value", "typical") == (200, 20.0)
    assert told(found["prompt_per_call"], "value", "typical", "part_of") == (2000.0, 200.0, 400_000)
    # Ratios 0.25, 0.5, 0.6, 0.8, 0.9.
    assert told(found["cache_read_ratio"], "value", "typical") == (0.25, 0.6)


def test_helpers_delegates_tools_and_what_was_sent_otherwise(store: Path) -> None:
    found = drivers(store, session="big")
    assert told(found["helper_calls"], "value", "part_of", "count", "name") == (2.0, 100.0, 4, "compression")
    assert told(found["delegates"], "value", "part_of", "count", "session_id") == (9.0, None, 1, "help")
    # 10 + 4 + 86 + 0 + 2 + 14 bytes; what was taken back is not among them.
    assert told(found["tool_output"], "value", "part_of", "count", "name") == (86, 116, 1, "terminal")
    assert told(found["sent_differently"], "value", "part_of") == (1, 6)


def test_the_context_grows_by_what_came_before_each_reply(store: Path) -> None:
    # Before the three replies stand 10, then 10 + 4 + 86, then the same again.
    growth = drivers(store, session="big")["context_growth"]
    assert told(growth, "value", "part_of", "count", "certainty") == (210, 116, 3, "estimate")


def test_a_loop_is_one_tool_with_the_same_arguments(store: Path) -> None:
    loop = drivers(store, session="big")["loop"]
    assert told(loop, "value", "name", "session_id") == (6, "terminal", "big")
    assert "loop" not in drivers(store, session="big", min_repeats="7")


def test_a_conversation_has_its_segments_and_work_its_delegates(store: Path) -> None:
    conversation, work = drivers(store, conversation="on"), drivers(store, work="help")
    assert told(conversation["cost"], "value", "unit_id") == (107.0, "big")
    assert told(work["cost"], "value", "unit_id") == (116.0, "big")
    assert told(work["delegates"], "value", "part_of", "count") == (9.0, 116.0, 1)
    assert told(conversation["delegates"], "value", "part_of") == (9.0, None)
    assert told(work["largest_session"], "value", "part_of", "session_id") == (100.0, 116.0, "big")


def test_a_day_against_the_days_before_it(store: Path) -> None:
    found = drivers(store, day="2026-06-05", tz="UTC")
    # The delegate worked on the day of the big one: 100 + 9; the days before cost 1, 2, 3 and 4.
    assert told(found["cost"], "value", "typical", "compared", "certainty") == (109.0, 3.0, 5, "estimate")
    assert told(found["delegates"], "value", "part_of", "session_id") == (9.0, 109.0, "help")
    assert "context_growth" not in found
    # Noon in UTC is the midnight with which the next day begins in Auckland.
    assert drivers(store, day="2026-06-06", tz="Pacific/Auckland")["cost"]["value"] == 109.0


def test_too_few_to_compare_with_give_no_median(store: Path) -> None:
    cost = drivers(store, session="on")["cost"]
    assert told(cost, "value", "typical", "compared") == (7.0, None, 1)
    assert drivers(store, session="big", min_compared="6")["cost"]["typical"] is None
    unknown = drivers(store, session="odd")["cost"]
    assert told(unknown, "value", "count") == (None, 2)


def test_without_a_subject_the_session_that_cost_most_is_explained(store: Path) -> None:
    assert drivers(store) == drivers(store, session="big")
    assert drivers(store, session="not here") == {}


def test_runaways_are_three_times_their_median_and_say_what_they_repeated(store: Path) -> None:
    with closing(books.open_books(store)) as connection:
        rows = questions.ask(connection, "runaway_sessions", {"since": "2026-01-01", "tz": "UTC"}).records()
        none = questions.ask(connection, "runaway_sessions", {"since": "2026-01-01", "times": "40"}).records()
        days = questions.ask(connection, "expensive_days", {"since": "2026-01-01", "tz": "UTC"}).records()
    assert [told(row, "session_id", "times_calls", "compared", "repeated_tool", "repeats") for row in rows] == [
        ("big", 10.0, 5, "terminal", 6)
    ]
    assert rows[0]["times_cost"] == pytest.approx(100 / 3) and none == []
    # Days cost 1, 2, 3, 4, 109 and 7; that of the unknown session cost nothing that is known.
    assert told(days[0], "day", "cost_usd", "median_cost_usd", "session_id", "session_cost_usd") == (
        "2026-06-05", 109.0, 3.5, "big", 100.0)  # fmt: skip
    assert len(days) == 7 and sum(day["cost_usd"] or 0 for day in days) == 126.0


@settings(max_examples=25)
@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=9))
def test_medians_are_those_of_statistics(tmp_path_factory: pytest.TempPathFactory, cents: list[int]) -> None:
    path = books.write(
        tmp_path_factory.mktemp("medians") / "state.db",
        sessions=[books.session(str(n), model="m") for n in range(len(cents))],
        usage=[books.call(str(n), estimated_cost_usd=value / 100, api_call_count=value, input_tokens=10**7)
               for n, value in enumerate(cents)],
    )  # fmt: skip
    found = drivers(path, session="0", min_compared="1")
    assert found["cost"]["typical"] == pytest.approx(statistics.median(cents) / 100)
    assert found["calls"]["typical"] == statistics.median(cents)
    assert (drivers(path, session="0")["calls"]["typical"] is None) == (len(cents) < 5)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(("{}", '{"x": 1}', ""))), max_size=40))
def test_loops_are_the_calls_that_are_counted(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, str]]
) -> None:
    messages = [books.message("s", NOON + n, "assistant", str(n), tool_calls=calls_json(arguments, tool=tool))
                for n, (tool, arguments) in enumerate(made)]  # fmt: skip
    path = books.write(tmp_path_factory.mktemp("loops") / "state.db", sessions=[books.session("s")],
                       messages=messages)  # fmt: skip
    with closing(books.open_books(path)) as connection:
        rows = questions.ask(connection, "cost_drivers", {"session": "s"}).records()
    expected = sorted((count for count in Counter(made).values() if count >= 5), reverse=True)[:3]
    assert [row["value"] for row in rows if row["driver"] == "loop"] == expected


def test_every_driver_is_one_sentence_with_a_number_and_a_link(store: Path) -> None:
    subjects = [("session", "big"), ("session", "odd"), ("conversation", "on"), ("work", "big"), ("day", "2026-06-05")]
    kinds = set()
    with closing(books.open_books(store)) as connection:
        for kind, subject in subjects:
            for driver in read_drivers(Ask(connection, Settings(zone="UTC")), AT, kind, subject).drivers:
                assert any(letter.isdigit() for letter in driver.sentence), driver
                assert driver.sentence[0].isupper() or driver.kind == "loop" or driver.sentence[0] in "$0123456789"
                assert driver.sentence.endswith(".") and "None" not in driver.sentence, driver
                assert driver.href.startswith("/state/") and driver.label
                kinds.add(driver.kind)
    assert kinds == {
        "cost", "largest_session", "calls", "prompt_per_call", "context_growth", "cache_read_ratio",
        "sent_differently", "helper_calls", "delegates", "tool_output", "loop",
    }  # fmt: skip


class Links_(HTMLParser):
    """The addresses in the list of drivers."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html[html.index('<ul class="drivers">') : html.index("</ul>", html.index('<ul class="drivers">'))])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]


async def test_pages_explain_themselves_when_asked(store: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(store)
    pages = ["/state/-/session/big", "/state/-/conversation/big", "/state/-/work/big",
             "/state/-/cost?since=2026-06-05&until=2026-06-05&tz=UTC"]  # fmt: skip
    followed: set[str] = set()
    for address in pages:
        plain = (await datasette.client.get(address)).text
        assert "why=1" in plain and "drivers" not in plain
        answer = await datasette.client.get(f"{address}{'&' if '?' in address else '?'}why=1")
        assert answer.status_code == 200
        assert "Why it cost this much" in check(answer.text).text
        followed.update(Links_(answer.text).found)
    for href in sorted(followed):
        assert (await datasette.client.get(href.partition("#")[0])).status_code == 200, href
    several = (await datasette.client.get("/state/-/cost?since=2026-06-05&until=2026-06-06&why=1")).text
    filtered = (await datasette.client.get("/state/-/cost?since=2026-06-05&until=2026-06-05&source=cli&why=1")).text
    assert "Why it cost this much" not in several + filtered


async def test_json_says_the_same(store: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(store)
    body = (await datasette.client.get("/state/-/why.json?session=big")).json()
    assert body["ok"] is True and body["id"] == "big"
    assert (await datasette.client.get(body["question"])).status_code == 200
    cost = body["drivers"][0]
    assert told(cost, "driver", "value", "typical", "compared", "unit") == ("cost", 100.0, 3.0, 5, "dollars")
    assert cost["sentence"] == "The session cost $100.00, 33 × the median of $3.00 (5 cli sessions with m)."


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("session=big&work=big", 400), ("day=yesterday", 400), ("day=2026-06-05&tz=Mars", 400),
     ("day=2026-06-05&day_rule=x", 400), ("session=%00", 400), ("session=nobody", 404), ("day=1970-01-01", 404),
     ("day=0001-01-01", 404), ("day=9999-12-31", 404), ("conversation=%F0%9F%98%80", 404)],
)  # fmt: skip
async def test_no_parameter_is_an_error_of_ours(
    store: Path, make_datasette: Callable[..., Any], query: str, status: int
) -> None:
    datasette = await make_datasette(store)
    answer = await datasette.client.get(f"/state/-/why.json?{query}")
    assert answer.status_code == status, answer.text
    assert answer.json()["ok"] is False


async def test_nobody_is_told_of_a_store_they_may_not_see(store: Path, make_datasette: Callable[..., Any]) -> None:
    deny = {"databases": {"state": {"allow": False}}}
    datasette = await make_datasette(store, **{"config" if compat.IS_1 else "metadata": deny})
    for kind in KINDS:
        answer = await datasette.client.get(f"/state/-/why.json?{kind}=big")
        assert answer.status_code in (403, 404) and "drivers" not in answer.text
