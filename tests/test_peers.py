"""The figures that the comparison with other tools rests on."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import every_call_once, peers
from state_ledger import questions
from state_ledger.connection import open_for_reading
from state_ledger.settings import Settings


def _ours(path: Path) -> float:
    settings = Settings()
    with closing(open_for_reading(path, settings=settings)) as connection:
        rows = questions.ask(connection, "cost_per_model", {"limit": "1000"}, settings=settings).records()
    return sum(row["cost_usd"] or 0 for row in rows)


def test_the_known_store_costs_what_was_added_up_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    every_call_once.make_known(path)
    assert sum(dollars for _what, dollars in every_call_once.PARTS.values()) == pytest.approx(21.10)
    assert every_call_once.total(path) == pytest.approx(every_call_once.KNOWN_TOTAL, abs=1e-9)
    assert _ours(path) == pytest.approx(every_call_once.KNOWN_TOTAL, abs=1e-9)


def test_the_independent_sql_agrees_on_a_store_with_every_trouble(demo_store: Path) -> None:
    assert _ours(demo_store) == pytest.approx(every_call_once.total(demo_store), abs=0.005)


def test_the_command_prints_what_the_comparison_reads_from_it(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    every_call_once.make_known(path)
    command = [sys.executable, "-c", "from state_ledger.cli import main; main()", *peers.OURS, str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert peers.sum_of_ours(json.loads(printed)) == pytest.approx(every_call_once.KNOWN_TOTAL, abs=1e-9)
