"""List prices: the user's table over the package, what a price says of itself, and the command that explains it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger.cli import main
from state_ledger.prices import BUCKETS, PriceBook
from state_ledger.prices.package import Package, is_local, spellings
from state_ledger.prices.table import PriceTableError, read
from tests import books

DAY = date(2026, 11, 1)

TABLE = """\
prices:
  - model: Anthropic/Claude-Sonnet-4-5   # another spelling of what a store names
    provider: anthropic
    from: 2026-01-01
    until: 2026-06-30
    input: 2.40
    output: 12
    note: contract
  - model: claude-sonnet-4-5
    provider: anthropic
    from: 2026-07-01
    input: 2
    output: 10
    cache_read: 0.2
    cache_write: 2.5
  - pattern: "llama*"
    input: 0
    output: 0
  - pattern: "*"
    provider: house
    input: 1
"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> PriceBook:
    path = tmp_path_factory.mktemp("prices") / "mine.yaml"
    path.write_text(TABLE, encoding="utf-8")
    return PriceBook(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "state.db"
    return books.write(
        path,
        sessions=[books.session("s")],
        usage=[
            books.call("s", "claude-sonnet-4-5-20250929", billing_provider="anthropic", input_tokens=10,
                       output_tokens=5),
            books.call("s", "llama3.2:3b", billing_provider="custom", input_tokens=7),
            books.call("s", "nobody-knows-1", billing_provider="custom", input_tokens=9),
        ],
    )  # fmt: skip


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["prices", *map(str, arguments)])


class TestOrder:
    def test_the_users_row_of_the_day_holds_before_the_package(self, book: PriceBook) -> None:
        price = book.price("claude-sonnet-4-5-20250929", "anthropic", on=date(2026, 6, 30))
        assert price is not None and (price.input, price.output, price.match) == (Decimal("2.40"), 12, "alias")
        assert (price.source, price.note) == ("mine.yaml, line 2", "contract")
        later = book.price("claude-sonnet-4-5", "anthropic", on=date(2026, 7, 1))
        assert later is not None and (later.input, later.match, later.source) == (2, "exact", "mine.yaml, line 9")

    def test_before_the_users_rows_the_package_holds(self, book: PriceBook) -> None:
        price = book.price("claude-sonnet-4-5", "anthropic", on=date(2025, 12, 31))
        assert price is not None and price.source.startswith("genai-prices ") and price.source_date

    def test_a_bucket_that_a_row_leaves_out_is_not_filled_from_the_package(self, book: PriceBook) -> None:
        price = book.price("claude-sonnet-4-5", "anthropic", on=date(2026, 2, 1))
        assert price is not None and price.input == Decimal("2.40") and price.cache_read is None

    def test_a_row_of_a_provider_is_for_no_other(self, book: PriceBook) -> None:
        price = book.price("anthropic/claude-sonnet-4-5", "openrouter", on=date(2026, 8, 1))
        assert price is not None and price.provider == "openrouter"

    def test_the_first_row_that_fits_holds(self, book: PriceBook) -> None:
        price = book.price("Llama3.2:3b", "house", on=DAY)
        assert price is not None and (price.input, price.match, price.model) == (0, "pattern", "llama*")
        other = book.price("anything", "house", on=DAY)
        assert other is not None and (other.input, other.output, other.match) == (1, None, "pattern")

    def test_spans_cover_all_of_time_once(self, book: PriceBook) -> None:
        spans = book.spans("claude-sonnet-4-5", "anthropic", "")
        assert spans[0].first is None and spans[-1].after is None
        assert all(one.after == other.first for one, other in pairwise(spans))
        assert [span.last for span in spans][-2:] == [date(2026, 6, 30), None]

    def test_a_price_of_zero_is_a_price(self, book: PriceBook) -> None:
        price = book.price("llama3.2:3b", "custom", "http://localhost:11434/v1", on=DAY)
        assert price is not None and price.input == 0 and price.cache_read is None

    @given(days=st.lists(st.dates(date(2020, 1, 1), date(2030, 1, 1)), min_size=1, max_size=5), on=st.dates())
    @settings(max_examples=40)
    def test_each_day_has_the_price_of_the_first_row_that_holds_on_it(
        self, days: list[date], on: date, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "law.yaml"
        spans = [(day, max(day, days[0])) for day in days]
        rows = [f"- {{model: zz-none, from: {a}, until: {b}, input: {n}}}" for n, (a, b) in enumerate(spans)]
        path.write_text("\n".join(rows), encoding="utf-8")
        price = PriceBook(path).price("zz-none", on=on)
        wanted = next((n for n, (first, last) in enumerate(spans) if first <= on <= last), None)
        assert (None if price is None else price.input) == wanted


class TestPackage:
    def test_a_models_own_name_is_exact_and_other_spellings_are_aliases(self) -> None:
        book = PriceBook()
        for model, provider, match, priced_as in (
            ("gpt-5.2", "openai", "exact", "openai gpt-5.2"),
            ("gpt-5.2-2025-12-11", "openai", "alias", "openai gpt-5.2"),
            ("openai/gpt-5.2-20251211", "", "alias", "openai gpt-5.2"),
            ("Anthropic/Claude-Sonnet-4-5", "openrouter", "alias", "openrouter anthropic/claude-sonnet-4.5"),
            ("gpt-5.2-codex", "openai-codex", "alias", "openai gpt-5.2"),
        ):
            price = book.price(model, provider, on=DAY)
            assert price is not None, model
            assert (price.match, price.priced_as) == (match, priced_as)

    def test_the_makers_price_for_an_unknown_provider_is_fuzzy(self) -> None:
        price = PriceBook().price("claude-sonnet-4-5", "some-reseller", on=DAY)
        assert price is not None and (price.match, price.provider) == ("fuzzy", "anthropic")

    def test_a_name_that_only_begins_alike_is_fuzzy(self) -> None:
        price = PriceBook().price("claude-sonnet-4-5-turbo-nonsense", "anthropic", on=DAY)
        assert price is not None and (price.match, price.model) == ("fuzzy", "claude-sonnet-4-5")

    @pytest.mark.parametrize("provider", ["custom", "ollama", ""])
    def test_a_model_on_a_machine_of_ones_own_has_no_list_price(self, provider: str) -> None:
        assert PriceBook().price("claude-sonnet-4-5", provider, "http://192.168.1.5:8000/v1", on=DAY) is None

    def test_an_address_tells_the_provider_where_the_name_does_not(self) -> None:
        price = PriceBook().price("gpt-5.2", "custom", "https://api.openai.com/v1", on=DAY)
        assert price is not None and price.priced_as == "openai gpt-5.2"

    def test_a_price_by_prompt_length_is_the_base_and_says_so(self) -> None:
        price = PriceBook().price("claude-sonnet-4-5", "anthropic", on=DAY)
        assert price is not None and price.input == 3
        assert "base tier" in price.note and "200,000" in price.note

    def test_a_price_with_hours_says_so(self) -> None:
        price = PriceBook().price("deepseek-chat", "deepseek", on=date(2026, 1, 1))
        assert price is not None and "hours" in price.note

    def test_a_new_price_holds_from_its_day(self) -> None:
        changing = [span for span in PriceBook().spans("deepseek/deepseek-chat", "openrouter", "") if span.first]
        assert changing, "the data have a model whose price changed"
        before, after = (
            PriceBook().price("deepseek/deepseek-chat", "openrouter", on=day)
            for day in (date.fromordinal(changing[0].first.toordinal() - 1), changing[0].first)
        )
        assert before != after == changing[0].price

    @pytest.mark.parametrize("model", ["", " ", "\x00", "a/" * 200, "(" * 50, "*", "müller", "🦙"])
    def test_names_that_are_none_have_no_price_and_break_nothing(self, model: str) -> None:
        assert PriceBook().price(model, "openrouter", "http://[", on=DAY) is None

    def test_own_machines(self) -> None:
        assert all(map(is_local, ["http://localhost:1/v1", "http://127.0.0.1", "10.0.0.8:80", "http://nas/v1"]))
        assert is_local("http://[::1]/")
        assert not any(map(is_local, ["", "https://api.openai.com/v1", "https://172.64.0.1/"]))

    def test_the_stored_spelling_is_tried_first(self) -> None:
        assert next(iter(spellings("a/b-4-5-20250101"))) == "a/b-4-5-20250101"
        assert "b-4.5" in list(spellings("a/b-4-5-20250101"))

    def test_without_the_package_only_the_users_table_is_asked(self, tmp_path: Path) -> None:
        table = tmp_path / "mine.yaml"
        table.write_text("- {model: gpt-5.2, input: 1}\n", encoding="utf-8")
        code = (
            "import sys; sys.modules['genai_prices'] = None\n"
            "from state_ledger.cli import main; main(sys.argv[1:])"
        )
        command = [sys.executable, "-c", code, "prices"]
        mine = subprocess.run([*command, "gpt-5.2", "--prices", str(table)], capture_output=True, text=True, timeout=60)
        assert mine.returncode == 0 and "mine.yaml, line 1" in mine.stdout, mine.stderr
        none = subprocess.run([*command, "gpt-5.2"], capture_output=True, text=True, timeout=60)
        assert none.returncode == 1 and "install genai-prices" in none.stdout and "Traceback" not in none.stderr

    def test_the_package_is_not_imported_before_a_price_is_asked(self, store: Path) -> None:
        code = (
            "import sys; from state_ledger.connection import open_for_reading; from pathlib import Path\n"
            "c = open_for_reading(Path(sys.argv[1])); c.execute('SELECT count(*) FROM ledger_usage').fetchone()\n"
            "assert 'genai_prices' not in sys.modules\n"
            "c.execute('SELECT count(*) FROM ledger_prices').fetchone(); assert 'genai_prices' in sys.modules"
        )
        done = subprocess.run([sys.executable, "-c", code, str(store)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def test_the_latest_change_that_has_come_dates_the_data(self) -> None:
        assert date(2025, 1, 1) <= date.fromisoformat(Package().dated) <= date.today()


class TestBadTables:
    @pytest.mark.parametrize(
        ("text", "line", "says"),
        [
            ("prices:\n  - {model: m, input: '2,40'}", 2, "input is '2,40'; write dollars"),
            ("- {model: m, input: -1}", 1, "from 0 to 1,000,000"),
            ("- {model: m, input: .inf}", 1, "as a number"),
            ("- {model: m, input: nan}", 1, "as a number"),
            ("- {model: m, input: true}", 1, "as a number"),
            ("- {model: m, input: 2000000}", 1, "from 0 to 1,000,000"),
            ("- {model: m, inputt: 1}", 1, "did you mean input?"),
            ("- {model: m, pattern: m*, input: 1}", 1, "either a model or a pattern"),
            ("- {input: 1}", 1, "either a model or a pattern"),
            ("- {model: m}", 1, "has no price"),
            ("- {model: m, input: null}", 1, "has no price"),
            ("- {model: 'm*', input: 1}", 1, "write it as pattern"),
            ("- {model: '', input: 1}", 1, "is empty"),
            ("- model: m\n  input: 1\n  from: 01.02.2026", 3, "as YYYY-MM-DD"),
            ("- model: m\n  input: 1\n  until: 2026-02-30", 3, "as YYYY-MM-DD"),
            ("- {model: m, input: 1, from: 2026-02-02, until: 2026-02-01}", 1, "is before"),
            ("- model: m\n  input: 1\n  input: 2", 3, "stands twice"),
            ("- model: m\n  input: [1]", 2, "a single value"),
            ("- just text", 1, "a row names a model"),
            ("price: []", 1, "'price' has no meaning here"),
            ("prices: yes", 1, "a list of rows"),
            ("- {model: m,\n input: 1\n", 3, "not YAML"),
        ],
        ids=lambda value: value[:24] if isinstance(value, str) else str(value),
    )
    def test_is_named_with_file_line_and_what_is_wrong(self, text: str, line: int, says: str, tmp_path: Path) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(PriceTableError) as raised:
            read(path)
        assert raised.value.line == line and says in str(raised.value)
        assert str(raised.value).startswith(f"{path}, line {line}: ")

    def test_a_file_that_is_not_there_or_no_text_is_a_sentence(self, tmp_path: Path) -> None:
        binary = tmp_path / "binary.yaml"
        binary.write_bytes(b"\xff\xfe\x00")
        unread = "cannot be read"
        for path, says in ((tmp_path / "none.yaml", unread), (binary, "not UTF-8"), (tmp_path, unread)):
            with pytest.raises(PriceTableError, match=says):
                read(path)

    @pytest.mark.parametrize("text", ["", "# nothing yet\n", "prices:\n", "prices: []\n", "\ufeffprices: []\n"])
    def test_an_empty_table_is_no_error(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        assert read(path) == ()

    @given(st.text(max_size=80))
    @settings(max_examples=50)
    def test_any_text_is_a_table_or_an_error_that_names_the_file(self, text: str) -> None:
        import tempfile

        with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
            file.flush()
            try:
                read(file.name)
            except PriceTableError as error:
                assert str(error).startswith(file.name)

    async def test_it_stops_the_start_of_the_pages(self, store: Path, tmp_path: Path, make_datasette: Any) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text("- {model: m, input: x}", encoding="utf-8")
        with pytest.raises(Exception, match=r"mine\.yaml, line 1: input is 'x'"):
            await make_datasette(store, metadata={"plugins": {"state-ledger": {"prices": str(path)}}})


class TestCommand:
    def test_explains_a_price(self) -> None:
        ended = run("gpt-5.2", "--on", "2026-11-01")
        assert ended.exit_code == 0
        for part in ("input       1.75", "cache write no price", "as openai gpt-5.2 (exact)", "from genai-prices "):
            assert part in ended.output

    def test_shows_the_price_over_time(self) -> None:
        ended = run("deepseek/deepseek-chat", "--provider", "openrouter")
        assert "Over time:" in ended.output and "until 20" in ended.output and "since 20" in ended.output

    def test_says_as_json_what_it_says_in_words(self, book: PriceBook) -> None:
        assert book.path is not None
        said = json.loads(run("claude-sonnet-4-5", "--provider", "anthropic", "--prices", book.path, "--json").output)
        assert said["price"]["input"] == 2 and said["price"]["source"] == "mine.yaml, line 9"
        assert said["prices"][0]["from"] is None and said["prices"][-1]["until"] is None
        assert set(BUCKETS) <= set(said["price"])

    def test_without_a_price_it_ends_with_1(self) -> None:
        ended = run("nobody-knows-1")
        assert ended.exit_code == 1 and "nobody-knows-1: no price" in ended.output

    def test_checks_every_model_of_a_store(self, store: Path, book: PriceBook) -> None:
        assert book.path is not None
        ended = run("--check", store, "--prices", book.path)
        assert ended.exit_code == 1
        assert "nobody-knows-1 by custom: no price (9 tokens)" in ended.output
        assert "claude-sonnet-4-5-20250929 by anthropic: 2 / 10 / 0.2 / 2.5" in ended.output
        assert "3 of 3 were used, 1 of them without a complete price." in ended.output
        said = json.loads(run("--check", store, "--prices", book.path, "--json").output)
        assert said["without_price"] == 1 and len(said["models"]) == 3

    def test_a_store_whose_models_all_have_prices_ends_with_0(self, store: Path, tmp_path: Path) -> None:
        table = tmp_path / "all.yaml"
        table.write_text('- {pattern: "*", input: 1, output: 1}\n', encoding="utf-8")
        assert run("--check", store, "--prices", table).exit_code == 0

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (("--check", "none.db"), 1, "none.db"),
            (("m", "--prices", "none.yaml"), 1, "none.yaml: the price table cannot be read"),
            ((), 2, "Name a model"),
            (("m", "--check", "x.db"), 2, "Name a model"),
        ],
        ids=str,
    )
    def test_what_cannot_be_used_is_a_sentence(self, arguments: tuple[str, ...], code: int, says: str) -> None:
        ended = run(*arguments)
        assert ended.exit_code == code and says in ended.stderr and not ended.stdout

    def test_a_name_cannot_steer_the_terminal(self) -> None:
        assert "\x1b" not in run("m\x1b[2J").output
