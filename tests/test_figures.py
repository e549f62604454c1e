"""How figures are written: enough digits, words for what is not known."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.pages import figures


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "unknown"), (0.0, "$0.00"), (1234.555, "$1,234.56"), (3.81, "$3.81"), (0.0004, "$0.00040"),
        (0.01, "$0.01"), (0.00999, "$0.01"), (0.0099, "$0.0099"), (1e-9, "$0.0000000010"), (-1.5, "-$1.50"),
        (float("nan"), "unknown"),
    ],
)  # fmt: skip
def test_money_is_written_with_digits_enough(amount: float | None, text: str) -> None:
    assert figures.money(amount) == text


@given(st.floats(min_value=1e-11, max_value=1e9))
def test_money_that_is_not_zero_never_reads_as_zero(amount: float) -> None:
    assert re.search("[1-9]", figures.money(amount))


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "no data"), (0, "0"), (999, "999"), (1000, "1k"), (1234, "1.23k"), (999_999, "1M"),
     (12_345_678, "12.3M"), (3.2e9, "3.2B")],
)  # fmt: skip
def test_large_numbers_have_three_digits_and_a_letter(number: float | None, text: str) -> None:
    assert figures.short(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "no data"), (0, "0"), (1204, "1,204"), (956.6, "957"), (2.0, "2"), (0.4, "0.4"), (0.031, "0.031")],
)  # fmt: skip
def test_counts_keep_decimals_only_where_they_matter(number: float | None, text: str) -> None:
    assert figures.count(number) == text


def test_a_ratio_without_data_is_not_zero_percent() -> None:
    assert figures.ratio(None) == "no data"
    assert figures.ratio(0.0) == "0.0 %"
    assert figures.ratio(0.98613) == "98.6 %"


def test_a_moment_that_can_only_be_milliseconds_is_no_data() -> None:
    assert figures.moment(1767225600, "Asia/Seoul") == "2026-01-01 09:00"
    assert figures.moment(1767225600000, "UTC") == "no data"


def test_sizes_have_three_digits_and_never_an_exponent() -> None:
    assert [figures.size(number) for number in (0, 999, 1 << 10, 1023 << 10, 1536 << 20, 1 << 40)] == [
        "0 bytes", "999 bytes", "1 kB", "1023 kB", "1.5 GB", "1 TB",
    ]  # fmt: skip
