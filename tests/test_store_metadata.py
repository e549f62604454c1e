"""The shipped descriptions: complete for every store known, with units, and laid under the user's own."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import store_metadata
from state_ledger.assets import folder
from state_ledger.schema import TABLES
from state_ledger.shape import Shape
from state_ledger.sqlite import sqlite3

from .conftest import SHARED_STORES

EVERY_STORE = sorted(path.name for path in SHARED_STORES.glob("*.db")) if SHARED_STORES.is_dir() else []


@pytest.mark.parametrize("name", EVERY_STORE)
def test_every_table_and_column_of_every_known_store_has_a_description(name: str) -> None:
    connection = sqlite3.connect(f"{(SHARED_STORES / name).as_uri()}?mode=ro&immutable=1", uri=True)
    shape = Shape.read(connection)
    hidden = store_metadata.hidden_names(shape)
    columns = {
        table: [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        for table in shape.tables
        if table not in hidden
    }
    connection.close()
    told = store_metadata.of_store(shape, columns)["tables"]
    assert set(columns) == {table for table in told if not told[table].get("hidden")}
    assert {table: set(live) for table, live in columns.items()} == {
        table: set(told[table]["columns"]) for table in columns
    }


def test_every_column_of_the_declared_schema_has_a_description() -> None:
    template = store_metadata.shipped()["databases"]["state"]["tables"]
    for name, columns in TABLES.items():
        assert {column.name for column in columns} <= set(template[name]["columns"]), name


def test_counts_times_and_amounts_name_their_unit() -> None:
    for table, metadata in store_metadata.shipped()["databases"]["state"]["tables"].items():
        for column, text in metadata.get("columns", {}).items():
            if column.endswith("_usd"):
                assert "(US dollars)" in text, (table, column)
            elif column.endswith("_tokens") or column == "token_count":
                assert "(tokens)" in text, (table, column)
            elif column.endswith("_count") or column.endswith("_streak"):
                assert "(count)" in text or "(tokens)" in text, (table, column)
            elif column.endswith(("_at", "_seen", "timestamp")) and column != "owner_started_at":
                assert "(epoch seconds, UTC)" in text, (table, column)


def test_the_shipped_file_is_plain_yaml_that_datasette_reads() -> None:
    text = folder("metadata.yaml").read_text(encoding="utf-8")
    assert set(yaml.safe_load(text)) <= {"title", "description", "source", "plugins", "databases"}


VALUES = st.recursive(
    st.booleans() | st.integers(0, 3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
    max_leaves=8,
)
METADATA = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def leaves(metadata: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not isinstance(metadata, dict):
        return {path: metadata}
    return {at: leaf for key, value in metadata.items() for at, leaf in leaves(value, (*path, key)).items()}


class TestAdditions:
    @given(METADATA, METADATA)
    def test_nothing_given_is_changed_and_every_other_leaf_comes(self, given_: Any, ours: Any) -> None:
        added, have, offered = (leaves(each) for each in (store_metadata.additions(given_, ours), given_, ours))
        blocked = {at for at in offered for end in have if at[: len(end)] == end or end[: len(at)] == at}
        assert added == {at: leaf for at, leaf in offered.items() if at not in blocked}

    def test_a_given_value_wins_and_the_rest_is_added(self) -> None:
        ours = {"a": 1, "inner": {"x": 1, "y": 2}}
        assert store_metadata.additions({"a": 9, "inner": {"x": 9}}, ours) == {"inner": {"y": 2}}

    def test_a_given_false_wins_too(self) -> None:
        assert store_metadata.additions({"hidden": False}, {"hidden": True}) == {}

    def test_ours_yields_to_a_value_that_means_the_same_thing(self) -> None:
        ours = {"sort_desc": "id", "source": "ours"}
        assert store_metadata.additions({"sort": "x", "source_url": "https://example.org"}, ours) == {}


class TestWithout:
    @given(METADATA, METADATA)
    def test_it_leaves_exactly_the_leaves_that_differ(self, given_: Any, ours: Any) -> None:
        have, same = leaves(given_), leaves(ours)
        left = leaves(store_metadata.without(given_, ours))
        assert left == {at: leaf for at, leaf in have.items() if at not in same or same[at] != leaf}

    def test_what_says_the_same_goes_and_what_differs_stays(self) -> None:
        ours = {"a": 1, "inner": {"x": 1, "y": {"z": 2}}}
        given = {"a": 1, "inner": {"x": 5, "y": {"z": 2}}, "mine": {}}
        assert store_metadata.without(given, ours) == {"inner": {"x": 5}, "mine": {}}

    def test_a_whole_copy_leaves_nothing(self) -> None:
        assert store_metadata.without(store_metadata.copy(store_metadata.shipped()), store_metadata.shipped()) == {}
