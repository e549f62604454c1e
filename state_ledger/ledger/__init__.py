"""The semantic layer: TEMP views between a store and everything that shows it.

`install` makes them on one connection, from the columns that are really there. They are the only
place where the accounting rules live; pages, canned queries and people's own SQL read nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from state_ledger.ledger import (
    apportion,
    audit,
    functions,
    messages,
    operation,
    prices,
    retention,
    sessions,
    temp_views,
    usage,
)
from state_ledger.ledger.days import server_zone
from state_ledger.ledger.plausible import Bound
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook

__all__ = ["LedgerSettings", "install", "view_statements"]


class LedgerSettings(Protocol):
    """What the layer needs of the settings."""

    @property
    def zone_name(self) -> str: ...

    @property
    def max_cost_per_1000_tokens(self) -> float: ...

    @property
    def implausible_from_usd(self) -> float: ...

    @property
    def price_book(self) -> PriceBook: ...


def install(
    connection: Connection,
    *,
    shape: Shape | None = None,
    profile: str = "default",
    settings: LedgerSettings | None = None,
) -> Shape:
    """Makes the SQL functions and the TEMP views on a connection; returns the file's shape.

    Works on `mode=ro` and immutable connections and reads no data. Call it before `query_only` and
    an authorizer are set. Full-text tables whose tokenizer or module is missing here are shadowed
    by an ordinary TEMP view of their columns, so that nothing that lists tables fails on them. On a
    database that is not a store nothing is made.
    """
    shape = Shape.read(connection) if shape is None else shape
    if not shape.is_store:
        return shape
    book = None if settings is None else lambda: settings.price_book
    functions.register(connection, settings.zone_name if settings else server_zone(), book)
    bound = Bound(settings.max_cost_per_1000_tokens, settings.implausible_from_usd) if settings else Bound()
    shadows = tuple(sorted(name for name, why in shape.unreadable.items() if why.startswith(_CANNOT_OPEN)))
    # The one with the shortest way to its tables is asked for, since asking compiles it.
    temp_views.make(connection, *_scripts(_Frozen(shape), shadows, profile, bound), sign="ledger_message_times")
    return shape


_CANNOT_OPEN = ("no such", "vtable constructor failed")
"""How SQLite begins to say that a virtual table cannot even be opened: module, tokenizer or parts missing."""


class _Frozen:
    """A shape as a cache key: equal where the views would be equal."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.key = shape.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=64)
def _scripts(
    frozen: _Frozen, shadows: tuple[str, ...], profile: str, bound: Bound
) -> tuple[str, str]:
    views = [(name, _shadow(name, frozen.shape)) for name in shadows]
    views += view_statements(frozen.shape, profile=profile, bound=bound)
    return temp_views.at_once(views), temp_views.one_by_one(views)


def view_statements(
    shape: Shape,
    *,
    profile: str = "default",
    bound: Bound = Bound(),  # noqa: B008
) -> list[tuple[str, str]]:
    """Every view as (name, SELECT), in the order in which they build on each other."""
    return [
        *usage.views(shape, profile=profile, bound=bound),
        *apportion.views(shape),
        *prices.views(shape),
        *sessions.views(shape, profile=profile),
        *messages.views(shape),
        *retention.views(shape),
        *audit.views(shape),
        *operation.views(shape),
    ]


def _shadow(name: str, shape: Shape) -> str:
    """The SELECT of an empty view in the place of a virtual table that cannot be used here."""
    columns = [
        part.strip().split()[0].strip("\"'`[]")
        for part in shape.virtual[name].partition("(")[2].rpartition(")")[0].split(",")
        if part.strip() and "=" not in part
    ] or ["content"]
    # Datasette asks a table without a key of its own for its rowid.
    listed = ", ".join(f'NULL AS "{column}"' for column in dict.fromkeys(["rowid", *columns]))
    return f"SELECT {listed} WHERE 0"
