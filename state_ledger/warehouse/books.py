"""A warehouse as pages and commands ask it: named questions, over all stores or over some."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from state_ledger import prices
from state_ledger.ledger.prices import KEY
from state_ledger.questions import EngineError, OutOfTime, Question, engines
from state_ledger.settings import Settings
from state_ledger.warehouse import loading
from state_ledger.warehouse.carrying import Carrier
from state_ledger.warehouse.catalogue import SESSION_COLUMNS, catalogue, is_of_files, lacks_session, reads_texts
from state_ledger.warehouse.dialect import Dialect, Interrupted
from state_ledger.warehouse.prices import Listed
from state_ledger.warehouse.values import as_sqlite_gives
from state_ledger.warehouse.views import State

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook
    from state_ledger.questions.parameters import ParameterSettings


class Store(NamedTuple):
    """A store of a warehouse. name: `host/profile`; pushed_at: epoch seconds; texts: whether messages were pushed."""

    place: int
    name: str
    host: str
    profile: str
    pushed_at: float
    texts: bool


class Warehouse(engines.Books):
    """The books of the stores that one engine holds, as of one generation.

    stores: all of them, by name. chosen: those to which answers are narrowed. Used by many threads at once.
    """

    def __init__(self, dialect: Dialect, settings: Settings) -> None:
        self.dialect = dialect
        self.settings = settings
        self.name = dialect.name
        self.questions = catalogue()
        self.state, self.stores = _read(dialect)
        self.chosen = self.stores
        # What is worked out once of these stores, whichever of them are chosen.
        self.remembered: dict[Any, Any] = {}
        self._listed: tuple[PriceBook, Listed] | None = None
        self._carriers: dict[str, Carrier] = {}

    def narrowed(
        self, *, hosts: Collection[str] = (), profiles: Collection[str] = (), stores: Collection[str] = ()
    ) -> Warehouse:
        """The same books, with answers about the chosen hosts, profiles or stores alone; () is all.

        Which copy of a session counts is decided among all stores, so that answers for each add up to the whole.
        """
        chosen = [
            each for each in self.chosen
            if (not hosts or each.host in hosts) and (not profiles or each.profile in profiles)
            and (not stores or each.name in stores)
        ]  # fmt: skip
        other = Warehouse.__new__(Warehouse)
        other.__dict__.update(self.__dict__)
        other.chosen, other._listed, other._carriers = tuple(chosen), None, {}
        return other

    def answer(
        self, question: Question, settings: ParameterSettings, bound: Mapping[str, str], limit_ms: int | None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        if reads_texts(question):
            self._check_texts(question)
        asked = dict(bound)
        try:
            if lacks_session(question, asked):
                asked["session"] = self._newest_session(settings, limit_ms)
            sql = question.compiled(settings, spare_rows=1)
            columns, rows = self.run(sql, asked, settings, limit_ms, places=is_of_files(question))
        except Interrupted as error:
            raise OutOfTime(question.name, limit_ms or 0) from error
        rows = as_sqlite_gives(columns, rows, question)
        return self._with_places(question, columns, rows, settings)

    def run(
        self, sql: str, bound: Mapping[str, str], settings: ParameterSettings, limit_ms: int | None = None,
        *, places: bool = False,
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows of any SELECT over the views, in SQLite's dialect. Raises Interrupted, EngineError.

        places: whether rows about the file of a store say which.
        """
        statement = self._carrier(settings).statement(sql, bound, places=places)
        columns, rows = self.dialect.run(statement.text, statement.values, limit_ms)
        # Of an answer without rows ClickHouse does not tell the columns.
        return list(statement.columns) or columns, rows

    def close(self) -> None:
        """Gives back what the engine has open."""
        self.dialect.close()

    def _carrier(self, settings: ParameterSettings) -> Carrier:
        book = self.settings.price_book
        carrier = self._carriers.get(settings.zone_name)
        if carrier is None or carrier.book() is not book:
            narrowed = len(self.chosen) < len(self.stores)
            carrier = self._carriers[settings.zone_name] = Carrier(
                self.dialect, self.state, settings.zone_name, lambda: book, lambda: self._prices(book, settings),
                tuple(each.place for each in self.chosen) if narrowed else None,
            )  # fmt: skip
        return carrier

    def _prices(self, book: PriceBook, settings: ParameterSettings) -> Listed:
        if self._listed is None or self._listed[0] is not book:
            prices.load()
            key = ", ".join(f"coalesce({name}, '') AS {name}" for name in KEY)
            used = f"SELECT {key} FROM ledger_usage_rows UNION SELECT {key} FROM ledger_usage"
            _, models = self.run(used, {}, settings)
            self._listed = book, Listed(book, sorted((str(a), str(b), str(c)) for a, b, c in models))
        return self._listed[1]

    def _newest_session(self, settings: ParameterSettings, limit_ms: int | None) -> str:
        newest = "SELECT session_id FROM ledger_session_facts ORDER BY started_at DESC, session_id DESC LIMIT 1"
        _, rows = self.run(newest, {}, settings, limit_ms)
        return str(rows[0][0]) if rows else ""

    def _check_texts(self, question: Question) -> None:
        if self.chosen and not any(each.texts for each in self.chosen):
            raise EngineError(
                f"{question.name} reads what was said, and no store here was pushed with its messages."
                " Push them with: state-ledger lake push --with-messages"
            )

    def _with_places(
        self, question: Question, columns: list[str], rows: list[tuple[Any, ...]], settings: ParameterSettings
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The rows with `store` and `host` at their end, where they are about sessions."""
        column = next((name for name in SESSION_COLUMNS if name in columns), None)
        if column is None or "store" in columns:
            return columns, rows
        at = columns.index(column)
        places = self._places({row[at] for row in rows if row[at] is not None}, settings)
        return [*columns, "store", "host"], [(*row, *places.get(row[at], (None, None))) for row in rows]

    def _places(self, sessions: set[str], settings: ParameterSettings) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        listed = sorted(sessions)
        for at in range(0, len(listed), _MOST_AT_ONCE):
            bound = {f"s{number}": each for number, each in enumerate(listed[at : at + _MOST_AT_ONCE])}
            marks = ", ".join(f":{name}" for name in bound)
            _, rows = self.run(
                f"SELECT session_id, store, host FROM ledger_places WHERE session_id IN ({marks})", bound, settings
            )
            found |= {row[0]: (row[1], row[2]) for row in rows}
        return found


_MOST_AT_ONCE = 500
"""Sessions that one look-up names."""


def _read(dialect: Dialect) -> tuple[State, tuple[Store, ...]]:
    generation = loading.newest(dialect)
    of_this = f"WHERE generation = {generation}"
    stores = [
        Store(int(place), store, host, profile, float(pushed_at), bool(texts))
        for place, store, host, profile, pushed_at, texts in dialect.run(
            f"SELECT place, store, host, profile, pushed_at, texts FROM fleet_stores {of_this} ORDER BY store"
        )[1]
    ]
    return loading.state_of(dialect, generation), tuple(stores)
