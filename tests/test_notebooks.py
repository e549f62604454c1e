"""The snippets of docs/notebooks.md do what the page says, and agree with the pages."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from state_ledger.pages import notebook
from state_ledger.questions import load
from tests.conftest import fetch
from tests.exported import exported_bytes
from tests.page_checks import exact_amount

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "notebooks.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
OVER_URL = [code for code in SNIPPETS if "total" in code]


def need(code: str) -> None:
    """Skips where a library of the snippet is not installed."""
    for name in ("pandas", "polars", "duckdb", "pyarrow"):
        wanted = name in code or (name == "pyarrow" and "parquet" in code)
        if wanted and importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; it comes with the extra notebooks")


def test_the_page_has_a_snippet_for_each_library() -> None:
    assert len(OVER_URL) == 4
    for word in ("pandas", "polars", "duckdb", "json.load"):
        assert any(word in code for code in OVER_URL)


@pytest.mark.parametrize("code", OVER_URL, ids=["pandas", "polars", "duckdb", "plain"])
def test_the_sum_in_a_notebook_is_the_total_of_the_page(
    code: str, served: Callable[..., str], demo_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(code)
    monkeypatch.chdir(tmp_path)
    address = f"{served([demo_store])}/demo"
    names = {"URL": address}
    exec(code, names)
    _, page = fetch(f"{address}/-/cost?period=all")
    assert names["total"] == pytest.approx(exact_amount(page), rel=1e-9)


@pytest.mark.parametrize("library", ["pandas", "polars", "DuckDB"])
def test_the_three_lines_on_a_question_run(
    library: str, served: Callable[..., str], demo_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"{served([demo_store])}/demo/-/export/question/cost_per_day"
    snippets = notebook.snippets(load()["cost_per_day"], f"{address}.csv?tz=UTC", f"{address}.parquet?tz=UTC")
    code = dict(snippets)[library]
    need(code)
    assert len(code.splitlines()) == 3
    lines = code.splitlines()
    names: dict[str, object] = {}
    exec("\n".join([*lines[:2], f"answer = {lines[2]}"]), names)
    assert "nan" not in str(names["answer"]).lower()


def test_messages_in_parquet_are_counted_by_role(
    demo_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [code] = [code for code in SNIPPETS if "messages.parquet" in code]
    need(code)
    monkeypatch.chdir(tmp_path)
    Path("messages.parquet").write_bytes(exported_bytes(demo_store, "parquet"))
    names: dict[str, list[tuple[str, int]]] = {}
    exec(code, names)
    assert dict(names["by_role"])["user"] > 100
    assert os.listdir(tmp_path) == ["messages.parquet"]  # noqa: PTH208
