"""What is in a lake, store by store, and how fresh it is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state_ledger.lake.manifest import StoreState
from state_ledger.lake.parquet import GONE
from state_ledger.lake.reading import Lake


@dataclass(frozen=True)
class StoreStatus:
    """One store. hours: since its last push. stale: whether that is longer than it should be. gone: sessions that the
    store does not have any more; kept_sessions: those of them whose rows are here. manifests: states that are kept.
    sizes: bytes by table.
    """

    host: str
    profile: str
    pushed_at: float
    hours: float
    stale: bool
    sessions: int
    gone: int
    kept_sessions: int
    cost_usd: float
    rows: int
    files: int
    bytes: int
    with_messages: bool
    redacted: bool
    left_out: Sequence[str]
    deleted: str
    program: str
    manifests: int
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class Status:
    """A lake. stores: by host and profile. notices: sentences on what cannot be read."""

    url: str
    hosts: int
    sessions: int
    cost_usd: float
    bytes: int
    stores: Sequence[StoreStatus]
    notices: Sequence[str]


def status(lake: Lake, stale_hours: float) -> Status:
    """The state of a lake, from its manifests alone. Raises LakeError."""
    now = time.time()
    states = lake.stores()
    kept = lake.manifests()
    stores = [_of(state, now, stale_hours, len(kept.get((state.host, state.profile), ()))) for state in states]
    return Status(
        lake.url,
        len({each.host for each in stores}),
        sum(each.sessions for each in stores),
        sum(each.cost_usd for each in stores),
        sum(each.bytes for each in stores),
        stores,
        lake.notices,
    )


def _of(state: StoreState, now: float, stale_hours: float, manifests: int) -> StoreStatus:
    sizes: dict[str, int] = {}
    for file in state.files:
        sizes[file.table] = sizes.get(file.table, 0) + file.bytes
    hours = max(now - state.pushed_at, 0.0) / 3600
    return StoreStatus(
        state.host, state.profile, state.pushed_at, hours, hours > stale_hours, state.totals.sessions,
        sum(file.rows for file in state.of(GONE.name)), state.kept.sessions, state.totals.cost_usd,
        sum(file.rows for file in state.files), len(state.files), state.bytes, state.with_messages, state.redacted,
        state.left_out, state.options.deleted, state.program, manifests, sizes,
    )  # fmt: skip
