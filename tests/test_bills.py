"""A provider's bill beside the books: read to the last line or refused with the line, compared, explained."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger.bills import Bill, BillError, read_file, read_text
from state_ledger.bills.bill import NO_MODEL
from state_ledger.bills.comparison import same_models
from state_ledger.bills.values import Meaningless, amount, day
from state_ledger.cli import main
from tests import books

JUNE = 1780315200.0  # 2026-06-01 12:00 UTC
DAY = 86400.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def call(session: str, model: str, dollars: float, **columns: Any) -> books.Row:
        return books.call(session, model, input_tokens=100_000, api_call_count=1, estimated_cost_usd=dollars,
                          billing_provider="openrouter", **columns)  # fmt: skip

    return books.write(
        tmp_path_factory.mktemp("bills") / "state.db",
        sessions=[
            books.session("one", title="Dear one"), books.session("two"), books.session("next", started_at=JUNE + DAY)
        ],
        usage=[
            call("one", "x/Model-A-20260101", 3.0), call("two", "model-a", 1.0), call("two", "model-b", 0.5),
            call("next", "model-a", 2.0), call("next", "local", 0.0),
            call("next", "model-a", 9.0, task="title") | {"billing_provider": "elsewhere"},
        ],
    )  # fmt: skip


def bill(text: str, zone: str = "UTC") -> Bill:
    return read_text(io.StringIO(text, newline=""), zone)


def reconcile(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["reconcile", *map(str, arguments)])


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str, name: str = "bill.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


class TestReading:
    @pytest.mark.parametrize(
        "text",
        [
            "date,model,amount\n2026-06-01,m,1.5\n2026-06-01,m,0.25\n2026-06-02,,-1\n",
            "\ufeffDate;Model;Cost (USD)\r\n2026-06-01;M;1.5\r\n2026/06/01;x/m;$0.25\r\n20260602;;(1)\r\n",
            "\n\nmodel\tusage_date\tSpend\tother\nm\t2026-06-01\t1,000.50\tx\nm\t2026-06-01\t-998.75\t\n"
            "\t2026-06-02T23:59:59Z\t-1.00 USD\t\n",
            'day|line item|amount|currency\n2026-06-01|"m"|1.5|USD\n2026-06-01 10:00:00|m|2.5e-1|usd\n'
            "1780444799|\"\"|-1|\n",
            '[{"date":"2026-06-01","model":"m","amount":1.5},{"date":"2026-06-01","model":"m","amount":"0.25"},'
            '{"date":"2026-06-02","model":null,"amount":-1}]',
            '{"ok": true, "lines": [\n {"Day":"2026-06-01","Model":"m","Cost":1.75},\n'
            ' {"Day":"2026-06-02","Model":"","Cost":-1.0}]}',
            '{"date":"2026-06-01","model":"m","amount":1.75}\n\n{"timestamp":1780444799,"model":"","cost":-1}\n',
        ],
        ids=["comma", "semicolon", "tab", "bar", "list", "document", "objects"],
    )
    def test_every_form_of_the_same_bill_says_the_same(self, text: str) -> None:
        read = bill(text)
        assert read.amounts == {("2026-06-01", "m"): Decimal("1.75"), ("2026-06-02", NO_MODEL): Decimal(-1)}
        assert read.total == Decimal("0.75") and read.credits <= -1

    def test_quoted_newlines_do_not_shift_the_line_of_an_error(self) -> None:
        with pytest.raises(BillError, match=r"line 5: 'x' is no amount"):
            bill('date,model,amount,note\n2026-06-01,m,1,"two\nlines\nthree"\n2026-06-01,m,x,\n')

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("", "it is empty"),
            (" \n\n", "it is empty"),
            ("date,model,amount\n", "there is no line on it"),
            ("date,model\n2026-06-01,m\n", "line 1: there is no column for amount"),
            ("date,model,amount,cost\n2026-06-01,m,1,1\n", "line 1: the columns 'amount' and 'cost' could both be"),
            ("date,model,amount\n2026-06-01,m\n", "line 2: there are 2 values under 3 columns"),
            ("date,model,amount\n2026-06-01,m,1,5\n", "line 2: there are 4 values under 3 columns"),
            ("date;model;amount\n2026-06-01;m;1,5\n", "line 2: '1,5' could be a decimal comma or thousands"),
            ("date;model;amount\n2026-06-01;m;1,234\n", "line 2: '1,234' could be a decimal comma or thousands"),
            ("date;model;amount\n2026-06-01;m;1.234,56\n", "could be a decimal comma"),
            ("date,model,amount\n2026-06-01,m,€1.00\n", "line 2: '€1.00' is no amount in US dollars"),
            ("date,model,amount\n2026-06-01,m,1.00 EUR\n", "is no amount in US dollars"),
            ("date,model,amount,currency\n2026-06-01,m,1,EUR\n", "line 2: the currency is EUR"),
            ("date,model,amount\n2026-06-01,m,\n", "line 2: the amount is empty"),
            ("date,model,amount\n2026-06-01,m,nan\n", "is no amount"),
            ("date,model,amount\n2026-06-01,m,inf\n", "is no amount"),
            ("date,model,amount\n2026-06-01,m,1e300\n", "more than any bill"),
            ("date,model,amount\n03/04/2026,m,1\n", "line 2: '03/04/2026' could be day or month first"),
            ("date,model,amount\n2026-02-30,m,1\n", "line 2: '2026-02-30' is no day"),
            ("date,model,amount\nTotal,,9\n", "line 2: 'Total' is no date"),
            ('date,model,amount\n2026-06-01,"m,1\n', "this is not CSV"),
            ('[{"date":"2026-06-01","model":"m","amount":true}]', "entry 1: the amount is missing"),
            ('[{"date":"2026-06-01","model":"m","amount":1}, 7]', "entry 2: this entry is no object"),
            ('[{"date":"2026-06-01","model":"m"}]', "entry 1: there is no column for amount"),
            ('\n[{"date":\n', "line 3: this is not JSON"),
            ('{"a": [], "b": []}', "an object with one list"),
            ('{"date":"2026-06-01","model":"m","amount":1}\n{"date"\n', "line 2: this is not JSON"),
            ("[" * 100_000, "nested too deeply"),
        ],
        ids=lambda text: repr(text[:22]),
    )
    def test_what_cannot_be_meant_is_refused_with_its_line(self, text: str, says: str) -> None:
        with pytest.raises(BillError) as raised:
            bill(text)
        assert says in str(raised.value) and str(raised.value).endswith(".")

    def test_a_file_that_is_no_text_or_not_there_is_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "bill.csv").write_bytes("date,model,amount\n".encode("utf-16"))
        for name, says in (("bill.csv", "not UTF-8"), ("none.csv", "cannot be read")):
            with pytest.raises(BillError, match=says):
                read_file(tmp_path / name, "UTC")

    def test_a_moment_falls_on_the_day_of_the_zone(self) -> None:
        assert day("2026-06-01T23:30:00Z", "Europe/Berlin") == "2026-06-02"
        assert day("2026-06-01T23:30:00+02:00", "UTC") == "2026-06-01"
        assert day("2026-06-01 23:30:00.1234567", "Asia/Seoul") == "2026-06-02"
        assert day("2026-06-01", "Asia/Seoul") == "2026-06-01"

    def test_a_big_bill_is_read_in_the_memory_of_its_sums(self) -> None:
        def lines() -> Iterator[str]:
            yield "date,model,amount\n"
            for number in range(3_000):
                yield f"2026-06-{number % 28 + 1:02},model-{number % 5},0.01\n"

        class Stream(io.TextIOBase):
            def __init__(self) -> None:
                self.lines = lines()

            def __next__(self) -> str:
                return next(self.lines)

        tracemalloc.start()
        read = read_text(Stream(), "UTC")  # type: ignore[arg-type]
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (read.lines, read.total, len(read.amounts)) == (3_000, Decimal(30), 140)
        assert most < 250_000  # the lines alone would be 300,000

    @given(
        st.lists(
            st.tuples(st.dates(), st.sampled_from(["a", "b", ""]), st.decimals(-(10**6), 10**6, places=9)), min_size=1
        )
    )
    @settings(max_examples=30)
    def test_the_sums_are_those_of_the_lines_to_the_last_digit(self, lines: list[tuple[Any, str, Decimal]]) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["date", "model", "amount"])
        writer.writerows((when.isoformat(), model, f"{dollars:f}") for when, model, dollars in lines)
        text.seek(0)
        assert read_text(text, "UTC").total == sum(dollars for _when, _model, dollars in lines)

    @given(st.text(max_size=30))
    @settings(max_examples=50)
    def test_any_text_is_an_amount_or_refused(self, text: str) -> None:
        try:
            assert abs(amount(text)) <= 10**12
        except Meaningless as error:
            assert str(error)


class TestComparing:
    AGREES = "date,model,amount\n2026-06-01,model-a,4\n2026-06-01,model-b,.5\n2026-06-02,model-a,2\n"

    def test_a_bill_that_agrees_ends_with_0(self, store: Path, written: Any) -> None:
        ended = reconcile(store, written(self.AGREES), "--tz", "UTC", "--provider", "openrouter")
        assert ended.exit_code == 0, ended.output
        assert "Billed $6.50, in the books $6.50, difference $0.00." in ended.output
        assert "No day and model differs by a cent." in ended.output

    def test_differences_are_named_with_the_sessions_behind_them(self, store: Path, written: Any) -> None:
        text = self.AGREES.replace("model-a,4", "model-a,5") + "2026-06-02,new-one,0.75\n2026-06-02,,-0.10\n"
        ended = reconcile(store, written(text), "--tz", "UTC", "--provider", "openrouter")
        assert ended.exit_code == 1
        for part in (
            "2026-06-01 model-a: $5.00, $4.00, $1.00",
            "session one: $3.00",
            "session two: $1.00",
            "2026-06-02 new-one: $0.75, none, $0.75 (the books have no usage of this model on this day)",
            "2026-06-02 (no model): -$0.10, none, -$0.10 (the bill names no model: fees, credits or taxes)",
            "On the bill without any usage in the books: 2",
            "Credits on the bill: -$0.10.",
        ):
            assert part in ended.output, part

    def test_another_providers_usage_is_left_out_on_both_levels(self, store: Path, written: Any) -> None:
        path = written("date,model,amount\n2026-06-02,model-a,9\n")
        ended = reconcile(store, path, "--tz", "UTC", "--provider", "elsewhere")
        assert ended.exit_code == 0, ended.output
        whole = reconcile(store, path, "--tz", "UTC", "--json")
        row = next(row for row in json.loads(whole.output)["rows"] if row["model"] == "model-a")
        assert (row["booked_usd"], row["difference_usd"]) == (11.0, -2.0)
        assert [each["session_id"] for each in row["explained_by"]] == ["next"]

    def test_a_bills_own_spelling_of_a_model_is_recognised(self) -> None:
        booked = {"claude-sonnet-4-5", "gpt-4.5", "gpt-5.4", "o3-mini"}
        billed = {"claude-4.5-sonnet", "claude sonnet 4.5", "gpt-5-4", "o4-mini", "gpt-4", NO_MODEL}
        assert same_models(billed, booked) == {
            "claude-4.5-sonnet": "claude-sonnet-4-5", "claude sonnet 4.5": "claude-sonnet-4-5", "gpt-5-4": "gpt-5.4",
        }  # fmt: skip
        assert same_models({"a b"}, {"a-b", "b-a"}) == {}

    def test_other_spellings_and_kinds_of_use_add_up(self, store: Path, written: Any) -> None:
        text = 'date,model,amount\n2026-06-01,"A Model, input",1\n2026-06-01,"x/model-a-20260101, output",3\n'
        ended = reconcile(store, written(text), "--tz", "UTC")
        assert "model-a: $4.00, $4.00, $0.00 (billed as A Model, x/model-a-20260101)" in ended.output

    def test_json_has_every_row_of_either_side_and_they_add_up(self, store: Path, written: Any) -> None:
        said = json.loads(reconcile(store, written(self.AGREES), "--tz", "UTC", "--json").output)
        assert {(row["day"], row["model"]) for row in said["rows"]} == {
            ("2026-06-01", "model-a"), ("2026-06-01", "model-b"), ("2026-06-02", "model-a"), ("2026-06-02", "local"),
        }  # fmt: skip
        for side in ("billed_usd", "booked_usd", "difference_usd"):
            assert sum(row[side] or 0 for row in said["rows"]) == pytest.approx(said["total"][side])
            assert sum(row[side] or 0 for row in said["models"]) == pytest.approx(said["total"][side])
        assert said["parameters"]["day_rule"] == "activity" and said["bill"]["lines"] == 3

    def test_the_zone_and_the_day_rule_place_usage(self, store: Path, written: Any) -> None:
        # 12:00 UTC is the next day in Kiribati.
        path = written("date,model,amount\n2026-06-02,model-b,0.5\n")
        ended = reconcile(store, path, "--tz", "Pacific/Kiritimati", "--json")
        row = next(row for row in json.loads(ended.output)["rows"] if row["model"] == "model-b")
        assert row["difference_usd"] == 0

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (["none.db", "{bill}"], 1, "none.db"),
            (["{store}", "none.csv"], 1, "none.csv: it cannot be read"),
            (["{store}", "{bill}", "--tz", "Nope"], 2, "no time zone named 'Nope'"),
            (["{store}", "{bill}", "--day-rule", "nope"], 2, "nope"),
        ],
        ids=["store", "bill", "zone", "rule"],
    )
    def test_what_cannot_be_used_is_a_sentence(
        self, store: Path, written: Any, arguments: list[str], code: int, says: str
    ) -> None:
        path = written(self.AGREES)
        ended = reconcile(*(part.format(store=store, bill=path) for part in arguments))
        assert ended.exit_code == code and says in ended.stderr and not ended.stdout

    def test_nothing_is_written_beside_bill_or_store(self, store: Path, written: Any) -> None:
        path = written(self.AGREES)

        def files() -> list[tuple[Path, bytes]]:
            return [(file, file.read_bytes()) for place in (store, path) for file in sorted(place.parent.iterdir())]

        before = files()
        reconcile(store, path, "--tz", "UTC")
        assert files() == before
