"""Lakes of many stores: one that was pushed, again and again under other names, with sessions of other names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.compute as compute

from state_ledger.lake import manifest, parquet
from state_ledger.lake.manifest import DataFile, StoreState
from state_ledger.lake.place import place_of
from state_ledger.lake.push import push
from state_ledger.lake.reading import Lake

PROFILES_A_HOST = 5

SESSIONS = ("session_id", "parent_session_id", "link_session_id", "conversation_id", "work_id", "tip_session_id",
            "continues_session_id")  # fmt: skip
"""Columns that name a session."""

LEFT_OUT = frozenset({"messages", "message_rows", "tool_calls"})
"""Rows for each message, which no page of a fleet reads: copies go without, so that a hundred of them have room."""


def make(url: Path, store: Path, copies: int) -> Lake:
    """A lake of `copies` stores; the first is the store itself. What is there already is kept."""
    if not url.exists():
        push(store, url, host="host-000", profile="p0")
    lake = Lake.open(str(url))
    have = {(state.host, state.profile) for state in lake.stores()}
    (first,) = (state for state in lake.stores() if (state.host, state.profile) == ("host-000", "p0"))
    for copy in range(1, copies):
        named = (f"host-{copy // PROFILES_A_HOST:03}", f"p{copy % PROFILES_A_HOST}")
        if named not in have:
            _copy(lake, url, first, copy, named)
    return Lake.open(str(url))


def _copy(lake: Lake, url: Path, first: StoreState, copy: int, named: tuple[str, str]) -> None:
    place = place_of(str(url))
    files = tuple(_files(lake, url, first, copy, named))
    state = replace(first, host=named[0], profile=named[1], store_id=f"{first.store_id}-{copy}", files=files)
    name, content = manifest.write(state)
    place.write(name.path, content)


def _files(lake: Lake, url: Path, first: StoreState, copy: int, named: tuple[str, str]) -> Iterator[DataFile]:
    place = place_of(str(url))
    for file in first.files:
        table = parquet.table_named(file.table)
        if table is None or file.table in LEFT_OUT:
            continue
        rows = lake.table(file)
        for column in SESSIONS:
            if column in rows.column_names:
                at = rows.column_names.index(column)
                renamed = compute.binary_join_element_wise(rows.column(column), pyarrow.scalar(str(copy)), "~")
                rows = rows.set_column(at, column, renamed)
        with parquet.Writing(place, table, named, file.month, None) as writing:
            writing.add(rows)
            made = writing.finish()
        if made is not None:
            yield made
