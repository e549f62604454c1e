"""The tables of a warehouse: those of the lake, with the store and the file that each row comes from, and what is
known of stores, files and of sessions that stand in several stores.

Everything that is decided anew with every load (which files count, which copies, which families) carries the
number of a generation. A reader keeps to one generation; a load makes the next one beside it, and the row in
`generation` that makes it the newest is written last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from state_ledger.lake import tables
from state_ledger.lake.tables import Kind
from state_ledger.warehouse import rollups

FORMAT = 2
"""Raised when these tables change: a database of another format is made anew."""

OF_FILE: tuple[tuple[str, Kind], ...] = (("file", "integer"), ("place", "integer"), ("store", "text"), ("host", "text"))
"""What stands beside the columns of the lake: the number of the file, of the store, and the names of store and host."""

COUNTED = frozenset({"message_times", "message_sizes"})
"""Tables in which a row stands for as many rows of the view as `number` says."""

SEARCHED = ("messages", "message_copies")
"""Tables whose texts are searched."""

FOLDED: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "session_facts": {"folded_title": ("folded_name", "title"), "folded_id": ("folded_name", "session_id")},
    "usage_rows": {"canonical_model": ("canonical_model", "model")},
}
"""Columns that are worked out when rows are loaded: by table and name, one of our functions and its argument."""


class Native(NamedTuple):
    """A table as it is made in an engine. order: the columns by which its rows are best kept."""

    name: str
    columns: tuple[tuple[str, Kind], ...]
    order: tuple[str, ...] = ()


def _columns_of(table: str) -> tuple[tuple[str, Kind], ...]:
    return tuple((c.name, c.kind) for each in tables.tables() if each.name == table for c in each.columns)


GENERATION = "fleet_generation"
"""The table whose rows say which generations there are."""

SIDE = (
    Native("fleet_warehouse", (("format", "integer"),)),
    Native(GENERATION, (("generation", "integer"), ("made_at", "real"), ("longest", "integer"))),
    # One store as it is shown: its newest manifest, and whether the texts of its messages are there.
    Native(
        "fleet_stores",
        (("generation", "integer"), *OF_FILE[1:], ("profile", "text"), ("manifest", "text"), ("pushed_at", "real"),
         ("texts", "integer")),
    ),
    # Files whose rows are in the database as a whole, and those that a generation shows.
    Native(
        "fleet_loaded",
        (("file", "integer"), ("place", "integer"), ("lake_table", "text"), ("path", "text"), ("rows", "integer")),
    ),
    Native("fleet_visible", (("generation", "integer"), ("file", "integer"))),
    Native("fleet_spans", (("span", "integer"),)),
    # Sessions that stand in several stores: copies that do not count, names of those that are not the same.
    Native("fleet_uncounted", (("generation", "integer"), ("place", "integer"), ("session_id", "text"))),
    Native(
        "fleet_renamed",
        (("generation", "integer"), ("place", "integer"), ("session_id", "text"), ("name", "text")),
    ),
    Native(
        "fleet_copies",
        (("generation", "integer"), ("place", "integer"), ("place_of_copy", "integer"), ("session_id", "text"),
         ("store", "text"), ("host", "text"), ("copy_in", "text"), ("messages", "real"), ("messages_of_copy", "real"),
         ("last_active", "real"), ("last_active_of_copy", "real"), ("processed_tokens", "real"),
         ("processed_tokens_of_copy", "real"), ("cost_usd", "real"), ("cost_usd_of_copy", "real")),
    ),
    # Lineage of the stores whose sessions are related to those of others; families of more than one session.
    Native("fleet_related", (("generation", "integer"), ("place", "integer"))),
    Native(
        "fleet_kinship",
        (("generation", "integer"), *OF_FILE[1:],
         *_columns_of("lineage")),
    ),
    Native("fleet_family", (("generation", "integer"), ("session_id", "text"), ("family", "integer"))),
    # Sums by day: the version of each store that a generation shows, and the rows of all versions.
    Native(
        "fleet_rollups",
        (("generation", "integer"), ("place", "integer"), ("version", "integer"), ("zone", "text")),
    ),
    Native("fleet_rolled", rollups.COLUMNS, ("way", "day_rule", "bucket")),
)  # fmt: skip
"""The tables that are not of the lake."""

GENERATIONAL = tuple(each.name for each in SIDE if each.columns[0][0] == "generation" and each.name != GENERATION)

_ORDERS: Mapping[str, tuple[str, ...]] = {
    "time": ("day_rule", "bucket"),
    "messages": ("session_id", "id"),
    "message_copies": ("session_id", "id"),
    "message_times": ("session_id", "bucket"),
    "tool_calls": ("session_id",),
}


def held(table: str) -> str:
    """The name of the table that holds the rows of a table of the lake."""
    return f"held_{table}"


def tables_of_lake() -> tuple[Native, ...]:
    """The tables of the lake as they are made in an engine."""
    return tuple(
        Native(
            held(each.name),
            (
                *((column.name, column.kind) for column in each.columns),
                *((name, "text") for name in FOLDED.get(each.name, ())),
                *OF_FILE,
            ),
            _ORDERS.get(each.name, ("session_id",) if each.session else ()),
        )
        for each in tables.tables()
    )


def number_of(*names: str) -> int:
    """A whole number that stands for names, the same everywhere: 63 bits of a hash."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> 1
