"""What stock pages say of a store: the shipped `metadata.yaml`, cut to what a store really has.

Metadata here is what Datasette's documentation calls so: nested mappings of plain values, with
descriptions and the configuration of tables side by side.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

import yaml

from state_ledger.assets import YAML_LOADER, folder
from state_ledger.shape import Shape

TEMPLATE = "state"
"""The database of `metadata.yaml` that stands for every store."""

FULL_TEXT_PARTS = ("data", "idx", "docsize", "config", "content")
"""Endings of the tables that an FTS5 index keeps beside itself."""

TOGETHER = (
    frozenset({"source", "source_url"}),
    frozenset({"sort", "sort_desc", "sortable_columns"}),
)
"""Keys that mean something only together: of these ours yield as soon as one of them is given."""

_INDEX_SOURCE = re.compile(r"messages_fts\w*_src")
_BOOKKEEPING = re.compile(r"sqlite_\w+|fts_v22_trash_\w+")
"""SQLite's own tables, and what a conversion of the full-text index leaves to be deleted."""


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Any]:
    """The shipped metadata without `plugins`, which are settings. Not to be changed by the caller."""
    read: dict[str, Any] = yaml.load(folder("metadata.yaml").read_text(encoding="utf-8"), Loader=YAML_LOADER)
    return {key: value for key, value in read.items() if key != "plugins"}


def of_instance() -> dict[str, str]:
    """Title, description and source of an instance that serves stores."""
    return {key: value for key, value in shipped().items() if key != "databases"}


def described_tables(shape: Shape) -> list[str]:
    """The live tables whose columns have descriptions."""
    return [name for name, table in _template()["tables"].items() if "columns" in table and shape.has(name)]


def of_store(shape: Shape, columns: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """The metadata of one store: `description` and `tables`.

    shape: what it has; columns: the live column names of its `described_tables`.
    """
    tables: dict[str, Any] = {}
    for name, table in _template()["tables"].items():
        if not shape.has(name) and name not in shape.virtual:
            continue
        tables[name] = {key: value for key, value in table.items() if key != "columns"}
        live = columns.get(name, ())
        described = {column: text for column, text in table.get("columns", {}).items() if column in live}
        if described:
            tables[name]["columns"] = described
    for name in hidden_names(shape):
        tables.setdefault(name, {})["hidden"] = True
    return {"description": _template()["description"], "tables": tables}


def hidden_names(shape: Shape) -> set[str]:
    """Tables and views that hold no data of their own: indexes, their parts and sources, bookkeeping."""
    indexes = {name for name, sql in shape.virtual.items() if re.search(r"\busing\s+fts\d", sql, re.I)}
    parts = {f"{index}_{part}" for index in indexes for part in FULL_TEXT_PARTS}
    named = {name for name, table in _template()["tables"].items() if table.get("hidden")}
    return indexes | {
        name
        for name in shape.tables
        if name in parts or name in named or _INDEX_SOURCE.fullmatch(name) or _BOOKKEEPING.fullmatch(name)
    }


def additions(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """What of ours is to be added to what is given, which wins key by key."""
    added: dict[str, Any] = {}
    for key, value in ours.items():
        if isinstance(value, Mapping):
            inner = given.get(key)
            if inner is None or isinstance(inner, Mapping):
                added[key] = additions(inner or {}, value)
        elif not any(other in given for other in _with(key)):
            added[key] = value
    return added


def without(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """What is given less what says the same as ours; mappings that are left empty go too."""
    left: dict[str, Any] = {}
    for key, value in given.items():
        mine = ours.get(key)
        if isinstance(value, Mapping) and isinstance(mine, Mapping):
            value = without(value, mine)
            if value:
                left[key] = value
        elif key not in ours or value != mine:
            left[key] = value
    return left


def copy(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A copy whose mappings may be changed."""
    return {key: copy(value) if isinstance(value, Mapping) else value for key, value in metadata.items()}


def _template() -> Mapping[str, Any]:
    template: Mapping[str, Any] = shipped()["databases"][TEMPLATE]
    return template


def _with(key: str) -> Iterator[str]:
    yield key
    for group in TOGETHER:
        if key in group:
            yield from group
