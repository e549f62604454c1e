"""Lakes and warehouses for tests: real pushes, real engines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra lake")
pytest.importorskip("duckdb", reason="needs the extra lake")
pytest.importorskip("sqlglot", reason="needs the extra lake")

from state_ledger.lake.manifest import Options
from state_ledger.lake.push import push
from state_ledger.lake.reading import Lake
from state_ledger.settings import Settings
from state_ledger.warehouse import Warehouse, loading
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.duck import DuckDB
from tests import postgres
from tests.conftest import EXAMPLES_DIVISOR, STRESS

ALL_OF_IT = Options(with_messages=True, redacted=False)
"""Nothing is left out, so that answers can be held against those of the stores themselves."""

ENGINES = ("duckdb", "clickhouse", "postgresql")
MOST_ENGINES = ENGINES if STRESS else ENGINES[:2]
"""Those on which is tried what does not differ much between servers."""


def lake_of(folder: Path, stores: Mapping[tuple[str, str], Path], settings: Settings) -> Path:
    """A lake to which these stores, by host and profile, were pushed."""
    for (host, profile), path in stores.items():
        push(path, folder, host=host, profile=profile, options=ALL_OF_IT, settings=settings)
    return folder


_databases = itertools.count(1)


def engine(name: str) -> Dialect:
    """An empty database of an engine; skips where the engine is not installed, or where less is tried."""
    if name == "duckdb":
        return DuckDB()
    if EXAMPLES_DIVISOR > 1:
        pytest.skip("one engine is enough where less is tried")
    if name == "postgresql":
        address = postgres.running().database()
        from state_ledger.warehouse.postgres import PostgreSQL

        return PostgreSQL(address)
    pytest.importorskip("chdb", reason="ClickHouse is tested with chdb, which is not installed")
    pytest.importorskip("clickhouse_connect", reason="needs the extra clickhouse")
    from state_ledger.warehouse.clickhouse import ClickHouse

    # A process has one engine, in which each caller gets a database of its own.
    database = f"fleet{next(_databases)}"
    _chdb().command(f"CREATE DATABASE {database}")
    return ClickHouse(f"chdb://memory?database={database}")


@lru_cache(maxsize=1)
def _chdb() -> Any:
    """A client that stays: with the last one the engine ends, and what is in it."""
    import clickhouse_connect

    return clickhouse_connect.get_client(dsn="chdb://memory")


def loaded(dialect: Dialect, lake: Path, settings: Settings) -> Warehouse:
    """A warehouse that holds a lake."""
    loading.prepare(dialect)
    loading.load(dialect, Lake.open(lake), zone=settings.zone_name)
    return Warehouse(dialect, settings)


def same_rows(told: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]]) -> bool:
    """Whether rows agree in order and to the letter; sums of floats, which depend on their order, to nine digits."""
    return len(told) == len(expected) and all(map(_same_row, told, expected))


def _same_row(told: Sequence[Any], expected: Sequence[Any]) -> bool:
    return len(told) == len(expected) and all(map(_same, told, expected))


def _same(told: Any, expected: Any) -> bool:
    if isinstance(told, (int, float)) and isinstance(expected, (int, float)):
        return math.isclose(told, expected, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(told, str) and isinstance(expected, str) and "," in expected:
        # SQLite lists the texts of a group in the order in which it met them.
        return sorted(told.split(",")) == sorted(expected.split(","))
    return type(told) is type(expected) and bool(told == expected)
