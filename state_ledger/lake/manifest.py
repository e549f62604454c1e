"""The manifest of one store in a lake: its complete state, whose appearance makes a push true.

A manifest names the data files that hold the rows of the store. The one that counts is that with the greatest
sequence; of several with the same, which two pushers at once make, the one whose store was read later. It is
called after the digest of its bytes, so that a damaged one is known and passed over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any

from state_ledger.lake.errors import LakeDamaged, LakeTooNew
from state_ledger.lake.names import ManifestName, data_path
from state_ledger.lake.tables import tables

FORMAT = 1
"""Of manifests and of the lake. Columns and tables may be added to it; a form that needs other readers is a new one."""


@dataclass(frozen=True)
class DataFile:
    """One file of rows. month: `2026-11`, `2024` for a year in one, `unknown`, or `all` for rows of the whole store.

    path: below the lake. sha256: of its bytes, hexadecimal.
    """

    table: str
    month: str
    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Totals:
    """The ledger of a store: what all its calls came to (accounting rule 8); dollars, tokens and numbers.

    cost_usd is the best known cost; actual_usd and estimated_usd are its parts; unknown_tokens are those without a
    price, in no dollar figure.
    """

    sessions: int = 0
    api_call_count: float = 0.0
    processed_tokens: float = 0.0
    cost_usd: float = 0.0
    actual_usd: float = 0.0
    estimated_usd: float = 0.0
    included_calls: float = 0.0
    unknown_calls: float = 0.0
    unknown_tokens: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, name) + getattr(other, name) for name in FIGURES))

    def __sub__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, name) - getattr(other, name) for name in FIGURES))


FIGURES = tuple(each.name for each in fields(Totals))
"""What the totals hold, in their order; all but the sessions are sums over `usage`."""


@dataclass(frozen=True)
class Period:
    """The sessions that began in a month, or in a year that is kept in one.

    digest: what tells whether they have changed since they were read; '' where they changed while they were.
    totals: over all rows that are here; kept: the part of it that the store does not have any more.
    """

    digest: str
    totals: Totals
    kept: Totals = Totals()


@dataclass(frozen=True)
class Options:
    """What may leave a host.

    with_messages: whether what was said does. redacted: whether secrets in texts are replaced. left_out: columns
    that are not told, wherever they stand. deleted: `tombstone` or `keep`, what becomes of sessions that the store
    does not have any more.
    """

    with_messages: bool = False
    redacted: bool = True
    left_out: tuple[str, ...] = ()
    deleted: str = "tombstone"


@dataclass(frozen=True)
class StoreState:
    """The state of one store in the lake.

    manifest_id: sequence and digest, unique. pushed_at: epoch seconds; read_at: when its reading began.
    rules: a digest of the rules by which the rows were made. store_id: tells one store from another in its place.
    program: the version that pushed. options: what may have left the host. periods: by month, or year.
    """

    host: str
    profile: str
    sequence: int
    pushed_at: float
    read_at: float
    rules: str
    store_id: str
    program: str
    options: Options
    periods: Mapping[str, Period]
    files: tuple[DataFile, ...]
    manifest_id: str = ""

    @property
    def totals(self) -> Totals:
        """Over all that is here."""
        return sum((self.periods[each].totals for each in sorted(self.periods)), Totals())

    @property
    def kept(self) -> Totals:
        """The part of the totals that the store does not have any more."""
        return sum((self.periods[each].kept for each in sorted(self.periods)), Totals())

    @property
    def name(self) -> str:
        """What the store is called in answers over the lake."""
        return f"{self.host}/{self.profile}"

    @property
    def with_messages(self) -> bool:
        """Whether what was said is in it."""
        return self.options.with_messages

    @property
    def redacted(self) -> bool:
        """Whether secrets in its texts were replaced."""
        return self.options.redacted

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are empty since the host does not tell them."""
        return self.options.left_out

    @property
    def bytes(self) -> int:
        """What its data files take."""
        return sum(file.bytes for file in self.files)

    def of(self, table: str, month: str | None = None) -> list[DataFile]:
        """The files of a table, of one month or of all."""
        return [file for file in self.files if file.table == table and month in (None, file.month)]


def write(state: StoreState) -> tuple[ManifestName, bytes]:
    """A manifest as bytes, and what it is called."""
    tables: dict[str, list[Any]] = {}
    for file in state.files:
        tables.setdefault(file.table, []).append([file.month, file.rows, file.bytes, file.sha256])
    content = {
        "format": FORMAT,
        "host": state.host,
        "profile": state.profile,
        "sequence": state.sequence,
        "pushed_at": state.pushed_at,
        "read_at": state.read_at,
        "rules": state.rules,
        "store_id": state.store_id,
        "program": state.program,
        "options": asdict(state.options),
        "periods": {
            name: [each.digest, astuple(each.totals), *([astuple(each.kept)] if each.kept != Totals() else [])]
            for name, each in state.periods.items()
        },
        # Each as month, rows, bytes, SHA-256, from which its path follows.
        "files": tables,
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True).encode()
    return ManifestName(state.host, state.profile, state.sequence, hashlib.sha256(text).hexdigest()[:24]), text


def read(name: ManifestName, content: bytes) -> StoreState:
    """The state that a manifest tells. Raises LakeDamaged, LakeTooNew."""
    whose = f"The manifest {name.id} of {name.host}/{name.profile}"
    # Whatever a later format is, its manifests are called as these are.
    if hashlib.sha256(content).hexdigest()[:24] != name.content:
        raise LakeDamaged(f"{whose} is damaged.")
    try:
        told = json.loads(content)
        if told["format"] > FORMAT:
            raise LakeTooNew(
                f"{whose} is of format {told['format']}, newer than this program knows: update state-ledger."
            )
        return _state(name, told)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise LakeDamaged(f"{whose} is damaged.") from None


def _state(name: ManifestName, told: dict[str, Any]) -> StoreState:
    host, profile = told["host"], told["profile"]
    files = [
        DataFile(table, month, data_path(table, host, profile, month, sha256), int(rows), int(size), sha256)
        for table, listed in told["files"].items()
        for month, rows, size, sha256 in listed
    ]
    options = _known(Options, told["options"])
    periods = {
        period: Period(digest, *(Totals(int(figures[0]), *map(float, figures[1:])) for figures in totals))
        for period, (digest, *totals) in told["periods"].items()
    }
    return StoreState(
        host, profile, int(told["sequence"]), float(told["pushed_at"]), float(told["read_at"]), told["rules"],
        told["store_id"], told["program"], Options(**options | {"left_out": tuple(options.get("left_out", ()))}),
        periods, tuple(files), name.id,
    )  # fmt: skip


def _known(kind: type, told: Mapping[str, Any]) -> dict[str, Any]:
    """What a later version may have added is passed over."""
    names = {each.name for each in fields(kind)}
    return {key: value for key, value in told.items() if key in names}


def in_order(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """Files in the order of tables and months."""
    order = {table.name: number for number, table in enumerate(tables())}
    return tuple(sorted(files, key=lambda file: (order.get(file.table, len(order)), file.month)))


def latest(states: Iterable[StoreState]) -> StoreState:
    """The one that counts of the states of one store; there must be one."""
    return max(states, key=lambda each: (each.sequence, each.read_at, each.manifest_id))
