"""Several stores as one: the profiles of a user, or any other files.

`ask_stores` answers one question once; a `Shelf` keeps what it has read, for programs that go on asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from state_ledger.questions import Result
from state_ledger.settings import Settings
from state_ledger.shelf.keeping import Member, NotOverStores, Reading, Shelf
from state_ledger.stores import name_stores

__all__ = ["Member", "NotOverStores", "Reading", "Shelf", "StoresAnswer", "ask_stores", "members"]


@dataclass(frozen=True)
class StoresAnswer:
    """An answer over several stores.

    result: as of one store; rows about a session name its store in `store`. notices: sentences on stores
    that are not in it. copies: how many copies of sessions were left out since they count elsewhere.
    """

    result: Result
    notices: list[str]
    copies: int


def members(paths: Iterable[str | Path]) -> list[Member]:
    """Files as members, named as their URLs would be; a path given twice is one."""
    return [Member(store.name, store.path, store.profile) for store in name_stores(paths)]


def ask_stores(
    paths: Iterable[str | Path],
    name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    settings: Settings | None = None,
) -> StoresAnswer:
    """Answers a named question over several stores at once.

    A store that cannot be read is left out and named in the notices. Raises UnknownQuestion,
    ParameterError, OutOfTime, and NotOverStores for a question that only one store can answer.
    """
    with closing(Shelf(settings or Settings())) as shelf, shelf.reading(members(paths)) as reading:
        result = reading.ask(name, parameters)
        return StoresAnswer(result, reading.notices, reading.copies)
