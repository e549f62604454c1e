"""Questions of money: figures worked out by hand, what is incomplete, and sums that hold in every grouping."""

from __future__ import annotations

import tempfile
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.settings import Settings
from tests import books

MILLION = 1_000_000
JUNE = 1780315200.0  # 2026-06-01 12:00 UTC
DAY = 86400.0
BY = ("model", "day", "month", "source", "provider", "profile")

TABLE = """\
- {model: one, provider: p, until: 2026-06-02, input: 2, output: 10, cache_read: 0.2, cache_write: 2.5}
- {model: one, provider: p, input: 4, output: 20, cache_read: 0.4, cache_write: 5}
- {model: half, input: 3, output: 15}
- {model: other, provider: q, input: 1, output: 2, cache_read: 0.5, cache_write: 1}
- {model: plan, input: 1, output: 1, cache_read: 0.1}
"""
TOKENS = {"input_tokens": MILLION, "output_tokens": 100_000, "cache_read_tokens": 2 * MILLION,
          "cache_write_tokens": 400_000}  # fmt: skip
"""At the first prices of `one`: 2 + 1 + 0.4 + 1 = 4.40 dollars; at the later ones 8.80."""

ESTIMATED = {"cost_status": "estimated", "cost_source": "provider_models_api"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    path = tmp_path_factory.mktemp("prices") / "mine.yaml"
    path.write_text(TABLE, encoding="utf-8")
    return Settings(zone="UTC", day_rule="started", prices=str(path))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def call(session: str, model: str, **columns: Any) -> books.Row:
        return books.call(session, model, billing_provider="p", **{**TOKENS, **ESTIMATED, **columns})

    return books.write(
        tmp_path_factory.mktemp("money") / "state.db",
        sessions=[
            books.session("early", source="cli"),
            books.session("late", source="cron", started_at=JUNE + 5 * DAY),
            books.session("wrong", source="cli"),
        ],
        usage=[
            call("early", "P/One", estimated_cost_usd=4.4, api_call_count=3, last_seen=JUNE),
            call("late", "one-20260101", estimated_cost_usd=5.0, api_call_count=2, last_seen=JUNE + 5 * DAY),
            call("late", "half", estimated_cost_usd=1.0, last_seen=JUNE + 5 * DAY),
            call("early", "plan", cost_status="included", cost_source="none", billing_mode="subscription_included",
                 cache_write_tokens=0, estimated_cost_usd=0.0, api_call_count=7, last_seen=JUNE),
            call("early", "nobody-knows", estimated_cost_usd=0.0, cost_status="unknown", cost_source="none"),
            # 4.40 dollars at list prices, written down 1,000 and 1,000,000 times too high.
            call("wrong", "one", task="title", estimated_cost_usd=4400.0, last_seen=JUNE),
            call("wrong", "one", task="vision", estimated_cost_usd=4_400_000.0, last_seen=JUNE),
            call("wrong", "one", task="web", estimated_cost_usd=0.0044, last_seen=JUNE),
        ],
    )  # fmt: skip


def ask(store: Path, table: Settings, name: str, **parameters: str) -> list[dict[str, Any]]:
    connection = books.open_books(store, settings=table)
    try:
        return questions.ask(connection, name, parameters, settings=table).records()
    finally:
        connection.close()


def named(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)


class TestRepriced:
    def test_at_prices_of_the_day_and_of_today(self, store: Path, table: Settings) -> None:
        def of(source: str, prices: str) -> float:
            return named(ask(store, table, "repriced", source=source, prices=prices), "one")["repriced_usd"]

        assert of("cron", "day") == of("cron", "now") == pytest.approx(8.80)
        # The set-aside row is in no sum: early and the row a thousandth too low.
        assert of("cli", "day") == pytest.approx(2 * 4.40)
        assert of("cli", "now") == pytest.approx(2 * 8.80)

    def test_beside_the_stored_cost_and_only_where_both_are_whole(self, store: Path, table: Settings) -> None:
        rows = ask(store, table, "repriced", prices="day", source="cron")
        one, half = named(rows, "one"), named(rows, "half")
        assert (one["cost_usd"], one["compared_cost_usd"]) == (5.0, 5.0)
        assert one["difference_usd"] == pytest.approx(3.80)
        assert half["cost_usd"] == 1.0 and half["repriced_usd"] == pytest.approx(3 + 1.5)
        assert half["incomplete_tokens"] == 2_400_000
        assert half["incomplete_buckets"] == "cache_read cache_write"
        assert half["difference_usd"] is None and half["compared_cost_usd"] is None

    def test_what_has_no_price_is_counted_and_in_no_amount(self, store: Path, table: Settings) -> None:
        row = named(ask(store, table, "repriced"), "nobody-knows")
        assert row["repriced_usd"] is None and row["unpriced_tokens"] == 3_500_000
        assert (row["price_match"], row["price_source"], row["priced_as"]) == ("none", None, None)

    def test_a_row_names_its_price(self, store: Path, table: Settings) -> None:
        row = named(ask(store, table, "repriced", prices="day", source="cron"), "one")
        assert row["priced_as"] == "p one" and row["price_match"] == "alias"
        assert row["price_source"] == "mine.yaml, line 2" and row["price_date"]

    def test_as_if_on_another_model(self, store: Path, table: Settings) -> None:
        rows = ask(store, table, "repriced", as_model="other", as_provider="q", source="cron", by="source")
        # Two rows of 1 + 0.2 + 1 + 0.4 = 2.60 dollars.
        assert [row["repriced_usd"] for row in rows] == [pytest.approx(5.20)]
        assert rows[0]["difference_usd"] == pytest.approx(5.20 - 6.0)
        assert rows[0]["priced_as"] == "q other (exact, mine.yaml, line 4)"

    def test_as_if_on_a_model_without_a_price(self, store: Path, table: Settings) -> None:
        rows = ask(store, table, "repriced", as_model="nobody-knows")
        assert all(row["repriced_usd"] is None and row["unpriced_tokens"] for row in rows)

    @pytest.mark.parametrize("prices", ["now", "day"])
    def test_every_grouping_has_the_same_total_and_the_ledgers_tokens(
        self, store: Path, table: Settings, prices: str
    ) -> None:
        sums = set()
        for by in BY:
            rows = ask(store, table, "repriced", by=by, prices=prices)
            columns = ("repriced_usd", "difference_usd", "cost_usd", "input_tokens", "unpriced_tokens",
                       "incomplete_tokens")  # fmt: skip
            sums.add(tuple(round(fsum(row[c] or 0 for row in rows), 6) for c in columns))
        assert len(sums) == 1
        ledger = ask(store, table, "cost_per_model")
        assert next(iter(sums))[2:4] == (
            round(fsum(row["cost_usd"] or 0 for row in ledger), 6), sum(row["input_tokens"] for row in ledger),
        )  # fmt: skip


class TestCacheSavings:
    def test_reads_saved_and_writes_cost(self, store: Path, table: Settings) -> None:
        row = named(ask(store, table, "cache_savings", source="cron"), "one")
        assert row["saved_by_reads_usd"] == pytest.approx(2 * (4 - 0.4))
        assert row["spent_on_writes_usd"] == pytest.approx(0.4 * (5 - 4))
        assert row["saved_usd"] == pytest.approx(7.2 - 0.4)
        assert row["uncached_prompt_usd"] == pytest.approx(3.4 * 4)
        assert row["cache_read_ratio"] == pytest.approx(2 / 3.4)

    def test_without_a_price_there_is_no_figure(self, store: Path, table: Settings) -> None:
        rows = ask(store, table, "cache_savings")
        for name in ("half", "nobody-knows"):
            row = named(rows, name)
            assert row["saved_usd"] is None and row["saved_by_reads_usd"] is None, name
            assert row["unpriced_tokens"] == 2_400_000

    def test_the_cached_prompt_costs_the_uncached_one_less_what_was_saved(self, store: Path, table: Settings) -> None:
        saved = named(ask(store, table, "cache_savings", source="cron"), "one")
        listed = named(ask(store, table, "repriced", prices="day", source="cron"), "one")
        output = 0.1 * 20
        assert saved["uncached_prompt_usd"] - saved["saved_usd"] == pytest.approx(listed["repriced_usd"] - output)


class TestSubscriptionValue:
    def test_is_the_list_price_of_included_calls_alone(self, store: Path, table: Settings) -> None:
        rows = ask(store, table, "subscription_value")
        assert [row["name"] for row in rows] == ["plan"]
        assert rows[0]["list_price_usd"] == pytest.approx(1 + 0.1 + 0.2) and rows[0]["included_calls"] == 7
        assert rows[0]["incomplete_tokens"] == 0  # no writes, so their missing price is missed by nobody
        month = ask(store, table, "subscription_value", by="month")
        assert [(row["name"], row["list_price_usd"]) for row in month] == [("2026-06", pytest.approx(1.3))]


class TestPlausibility:
    def test_names_a_factor_of_a_thousand_and_of_a_million(self, store: Path, table: Settings) -> None:
        found = {row["task"]: row for row in ask(store, table, "cost_plausibility") if row["session_id"] == "wrong"}
        assert found["title"]["finding"].startswith("about 1,000 times the list price")
        assert found["vision"]["finding"].startswith("about 1,000,000 times the list price")
        assert found["web"]["finding"] == "about a thousandth of the list price"
        assert found["title"]["ratio"] == pytest.approx(1000)
        assert found["vision"]["list_price_usd"] == pytest.approx(4.4)

    def test_says_what_is_in_no_sum(self, store: Path, table: Settings) -> None:
        found = {row["task"]: row["in_sums"] for row in ask(store, table, "cost_plausibility")}
        assert found["vision"] == 0 and found["web"] == 1
        assert ask(store, table, "ledger_problems")

    def test_bounds_are_the_readers(self, store: Path, table: Settings) -> None:
        rows = ask(store, table, "cost_plausibility", times="5000", from_cents="1000")
        assert {row["task"] for row in rows} == {"title", "vision"}  # a factor by name is one at any bound


class TestModelPrices:
    def test_models_without_a_price_come_first(self, store: Path, table: Settings) -> None:
        rows = ask(store, table, "model_prices", day="2026-06-01")
        assert (rows[0]["model"], rows[0]["price_match"]) == ("nobody-knows", "none")
        assert {row["input_price"] for row in rows if row["model"] == "P/One"} == {2.0}
        assert next(row for row in rows if row["model"] == "half")["missing_buckets"] == "cache_read cache_write"
        later = ask(store, table, "model_prices", day="2026-06-03")
        assert {row["input_price"] for row in later if row["model"] == "P/One"} == {4.0}


class TestView:
    def test_a_join_neither_drops_nor_doubles_usage(self, store: Path, table: Settings) -> None:
        connection = books.open_books(store, settings=table)
        joined = connection.execute(
            "SELECT count(*), count(p.model) FROM ledger_usage AS u LEFT JOIN ledger_prices AS p ON p.model = u.model"
            " AND p.billing_provider = u.billing_provider AND p.billing_base_url = u.billing_base_url"
            " AND u.last_seen >= p.from_epoch AND u.last_seen < p.until_epoch"
        ).fetchone()
        assert joined == connection.execute("SELECT count(*), count(*) FROM ledger_usage").fetchone()

    def test_names_that_are_not_utf8_are_priced_as_unknown_and_kept(self, tmp_path: Path) -> None:
        path = books.write(
            tmp_path / "state.db", sessions=[books.session("s")], usage=[books.call("s", "m", input_tokens=5)]
        )
        from state_ledger.sqlite import sqlite3

        with sqlite3.connect(path) as raw:
            raw.execute("UPDATE session_model_usage SET model = CAST(x'6dff00' AS TEXT)")
        connection = books.open_books(path)
        for name in ("repriced", "cache_savings", "cost_plausibility", "model_prices"):
            questions.ask(connection, name)
        assert questions.ask(connection, "repriced").records()[0]["unpriced_tokens"] == 5


counts = st.integers(0, 10**7)
amounts = st.integers(0, 5000).map(lambda thousandths: thousandths / 1000)


@given(
    prices=st.lists(st.tuples(amounts, amounts, amounts, amounts), min_size=1, max_size=3),
    calls=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), counts, counts, counts, counts), min_size=1, max_size=8
    ),
)
@settings(max_examples=25)
def test_prices_that_are_the_stored_ones_give_the_stored_cost(
    prices: list[tuple[float, ...]], calls: list[tuple[int, ...]]
) -> None:
    names = ("input", "output", "cache_read", "cache_write")
    usage, sessions = [], {}
    for number, (model, source, *tokens) in enumerate(calls):
        price = prices[model % len(prices)]
        cost = fsum(count * dollars for count, dollars in zip(tokens, price, strict=True)) / 1e6
        sessions[f"s{number}"] = books.session(f"s{number}", source=f"source{source}", started_at=JUNE + number * DAY)
        usage.append(books.call(
            f"s{number}", f"m{model % len(prices)}", estimated_cost_usd=cost, **ESTIMATED,
            **{f"{name}_tokens": count for name, count in zip(names, tokens, strict=True)},
        ))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "mine.yaml")
        rows = [
            f"- {{model: m{n}, " + ", ".join(f"{name}: {d}" for name, d in zip(names, price, strict=True)) + "}"
            for n, price in enumerate(prices)
        ]
        table.write_text("\n".join(rows), encoding="utf-8")
        chosen = Settings(zone="UTC", prices=str(table), max_cost_per_1000_tokens=1000.0)
        path = books.write(Path(folder, "state.db"), sessions=sessions.values(), usage=usage)
        connection = books.open_books(path, settings=chosen)
        stored = fsum(row["estimated_cost_usd"] for row in usage)
        for by in ("model", "day", "source"):
            for at in ("now", "day"):
                answer = questions.ask(connection, "repriced", {"by": by, "prices": at}, settings=chosen).records()
                assert fsum(row["repriced_usd"] for row in answer) == pytest.approx(stored, abs=1e-9)
                assert fsum(row["difference_usd"] or 0 for row in answer) == pytest.approx(0, abs=1e-9)
        assert not questions.ask(connection, "cost_plausibility", settings=chosen).rows
        connection.close()
