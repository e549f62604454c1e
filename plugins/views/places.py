"""A place that reads for pages over several stores: the shelf of this instance, or the engine of a fleet.

The views in `several` are written over this alone, so that every page of one is a page of the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from state_ledger.pages.asking import Ask
from state_ledger.pages.cost import Group
from state_ledger.pages.home import Home
from state_ledger.pages.links import AllLinks
from state_ledger.pages.sums import Record
from state_ledger.questions import Question, Result

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.questions.engines import Books
    from state_ledger.settings import Settings
    from state_ledger.sqlite import Connection

T = TypeVar("T")


class Reading(Protocol):
    """Several stores as one, while questions are asked."""

    @property
    def source(self) -> Connection | Books:
        """What questions are asked of."""

    @property
    def settings(self) -> Settings: ...

    @property
    def notices(self) -> list[str]:
        """Sentences on what is not in the answers or not up to date."""

    @property
    def copies(self) -> int:
        """How many copies of sessions do not count, since another store has more of the record."""

    @property
    def missing(self) -> Mapping[str, str]:
        """Stores that are in no answer, each with a sentence that says why."""

    @property
    def about(self) -> dict[str, Any]:
        """Of what an answer is, for programs: beside its rows in JSON."""

    def prepare(self, sql: str) -> None:
        """Reads what an SQL text needs and is not there yet."""

    def ask(self, name: str, parameters: Mapping[str, str] | None = None) -> Result:
        """Answers a question in the time that a question has."""


class Place(ABC):
    """What a request over several stores is about.

    at: addresses that stay narrowed as the request is. groups: how cost can be grouped. cache: the questions of the
    cache page. taken: values of parameters by which the place is narrowed and which no question gets. known: the
    questions that can be asked.
    """

    datasette: Datasette
    at: AllLinks
    groups: Mapping[str, Group]
    cache: Sequence[str]
    taken: Mapping[str, str]
    known: Mapping[str, Question]

    @abstractmethod
    async def read(self, reader: Callable[[Any], T]) -> T:
        """Runs a reader, which gets a Reading, where the questions are answered. Raises StateLedgerError."""

    @property
    @abstractmethod
    def live(self) -> dict[str, str]:
        """As `page.live`, for what is shown."""

    @property
    def shown(self) -> dict[str, Any]:
        """What every page of the place shows beside its own."""
        return {}

    @abstractmethod
    def parts(self, ask: Ask, asked: Mapping[str, str]) -> list[Record]:
        """What the home lists of its stores, with what each cost in a period."""

    @abstractmethod
    def home(self, home: Home, parts: list[Record]) -> dict[str, Any]:
        """What the home shows beside its figures: `facts`, and its stores."""

    def elsewhere(self, reading: Any, name: str, values: Mapping[str, str]) -> str:
        """Where the file of an answer is, if one store alone has it; '' where it is made here."""
        return ""

    @abstractmethod
    async def transcript(self, request: Any) -> Any:
        """The answer to a request for a session, conversation or piece of work."""


class Find(Protocol):
    """What finds the place of a request."""

    async def __call__(self, datasette: Datasette, request: Any, question: str = "") -> Place:
        """The place, as far as this visitor may see it; question: whose rows are asked for.

        Raises Forbidden, NotFound where nothing of the kind is served, ParameterError for what it cannot be narrowed
        to, and other StateLedgerErrors where it cannot be read.
        """

    async def version(self, datasette: Datasette, request: Any) -> str:
        """A text that changes with what this visitor sees of it. Raises as `__call__` does."""

    def links(self, datasette: Datasette) -> AllLinks:
        """The addresses of all of it."""
