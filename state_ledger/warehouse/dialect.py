"""What differs between engines, in one class per engine: names of types, spelling of a few functions, and how
tables are made, filled, emptied and asked.

All else (which rows count, what a view shows, how a question is carried over) is the same for all and stands in
the other modules. An engine is added by one subclass of `Dialect`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from state_ledger.lake.tables import Kind
from state_ledger.questions import EngineError, engines

if TYPE_CHECKING:
    import pyarrow

Rows = list[tuple[Any, ...]]


class Interrupted(EngineError):
    """A statement did not end within its time."""


class Dialect(ABC):
    """One engine and the connection to it. Used by many threads at once.

    name: as in `Result.engine`. sqlglot: what sqlglot calls its SQL. kinds: the type of a column that may be
    NULL, by the kind of its values. recursion_unites: whether a recursive query may go on with UNION, and so end
    where it finds nothing new. shared: whether others may load while somebody reads, so that there may at any time
    be rows that do not show yet.
    """

    name: ClassVar[engines.Name]
    sqlglot: ClassVar[str]
    kinds: ClassVar[Mapping[Kind, str]]
    recursion_unites: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    # -- the text of statements ---------------------------------------------------------------------

    def adapt(self, tree: exp.Expr) -> exp.Expr:
        """A statement with what this engine spells otherwise and sqlglot does not know; may change the tree."""
        return tree

    def text(self, tree: exp.Expr) -> str:
        """A statement as this engine reads it."""
        return self.adapt(tree).sql(dialect=self.sqlglot, identify=True, copy=False, comments=False)

    @abstractmethod
    def parameter(self, name: str, kind: Kind, *, many: bool = False) -> exp.Expr:
        """Where a bound value stands; many: a list of values."""

    @abstractmethod
    def unnested(self, columns: Mapping[str, tuple[str, Kind]]) -> exp.Expr:
        """A SELECT of rows from lists of equal length: columns by name, each with the name of its list and a kind."""

    @abstractmethod
    def date_text(self, days: exp.Expr, *, far: bool) -> exp.Expr:
        """`YYYY-MM-DD` of a number of days since 1970-01-01; far: whether it may lie outside the years 1900 to 2299."""

    @abstractmethod
    def bytes_of(self, text: exp.Expr) -> exp.Expr:
        """The number of bytes of a text in UTF-8."""

    @abstractmethod
    def listed(self, value: exp.Expr) -> exp.Expr:
        """An aggregate: the distinct texts of a group in order, with commas between them; NULL where there is none."""

    # -- rows ------------------------------------------------------------------------------------------

    @abstractmethod
    def run(self, sql: str, values: Mapping[str, Any] | None = None, limit_ms: int | None = None) -> tuple[
        list[str], Rows
    ]:
        """Columns and rows of a statement. Raises Interrupted after `limit_ms`, and EngineError."""

    @abstractmethod
    def make(self, table: str, columns: Sequence[tuple[str, Kind]], order: Sequence[str]) -> None:
        """Makes a table if it is not there; order: the columns by which its rows are best kept."""

    @abstractmethod
    def insert(self, table: str, rows: pyarrow.Table) -> None:
        """Adds rows, whose columns are those of the table."""

    @abstractmethod
    def delete(self, table: str, column: str, numbers: Sequence[int]) -> None:
        """Removes the rows in which a whole-number column has one of these values."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within, no other program that asks for the same loads into this database, where the engine can tell."""
        yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written within it shows at its end, or not at all after an error, where the engine can."""
        yield

    @abstractmethod
    def close(self) -> None:
        """Gives back what is open."""
