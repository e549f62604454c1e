"""Everything that a transcript page shows, read on one connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from state_ledger.pages.asking import Ask, Unanswered
from state_ledger.pages.sums import Sums
from state_ledger.questions import in_time
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.transcript import Message, Scope, delegates, messages, read_scope, sent
from state_ledger.transcript.messages import Place, Stretch, Text
from state_ledger.transcript.sent import Sent

SIZE, MOST = 50, 500
"""Messages on a page where the address does not say, and at the most."""

FOLDED = 20
"""Messages of one delegate that are folded in where it was called."""

FOLDED_IN_ALL = 200
"""Messages of all delegates on one page."""

COUNTED_BY_ITSELF = 1000
"""Up to so many messages, the share that was sent verbatim is counted without being asked for."""


@dataclass(frozen=True)
class Wanted:
    """What an address asks for.

    kind, session_id: what to read. after, before: the page next to this message; last: the last page.
    message: the page around this message. compared: the message whose difference is shown. verbatim:
    count what was sent verbatim, however long it takes. Sizes in messages.
    """

    kind: str
    session_id: str
    zone: str
    after: int | None = None
    before: int | None = None
    last: bool = False
    message: int | None = None
    compared: int | None = None
    taken_back: bool = False
    verbatim: bool = False
    size: int = SIZE


@dataclass(frozen=True, eq=False)
class Fold:
    """A delegate where it was called: its first messages, or those around the one that was asked for.

    more: whether it has messages that are not shown here. delegates: those that it called in turn.
    """

    session_id: str
    page: Stretch
    delegates: Mapping[int, Sequence[Fold]]
    opened: bool = False


@dataclass(frozen=True, eq=False)
class Transcript:
    """One page of a conversation.

    page: the messages. folds: delegates by the message under which they stand. target: the message that
    was asked for. elsewhere: a message that was asked for and is in another session. missing: one that
    is in none; hidden: one that was taken back and is not shown. sent: None where it was not counted;
    sums: of every session of the scope.
    """

    scope: Scope
    page: Stretch
    folds: Mapping[int, Sequence[Fold]]
    sums: Sums
    sent: Sent | None = None
    compared: tuple[int, Text, Text] | None = None
    target: int | None = None
    elsewhere: Place | None = None
    missing: int | None = None
    hidden: int | None = None
    delegates_cut: bool = False
    wanted: Wanted = field(default_factory=lambda: Wanted("session", "", "UTC"))

    @property
    def shown(self) -> set[int]:
        """The ids of the messages on the page, without those in folds."""
        return {message.id for message in self.page.messages}


def read_transcript(ask: Ask, wanted: Wanted) -> Transcript:
    """Reads a page. Raises UnknownSession, OutOfTime and Unanswered."""
    name = f"transcript of a {wanted.kind}"
    try:
        with in_time(ask.connection, name, ask.settings.query_time_limit_ms):
            return _Reading(ask.connection, wanted).read()
    except sqlite3.DatabaseError as error:
        raise Unanswered(name, error) from error


class _Reading:
    def __init__(self, connection: Connection, wanted: Wanted) -> None:
        self.connection = connection
        self.wanted = wanted
        self.scope = read_scope(connection, wanted.kind, wanted.session_id)
        self.left = FOLDED_IN_ALL
        self.cut = False
        self.target: int | None = None
        self.elsewhere: Place | None = None
        self.missing: int | None = None
        self.hidden: int | None = None
        self.way: list[tuple[str, str, int]] = []
        self.inside: Place | None = None

    def read(self) -> Transcript:
        page = self._page()
        folds = self._folds(page, frozenset()) if self.wanted.kind == "work" else self._cards(page)
        return Transcript(
            self.scope, page, folds, Sums.of(row for node in self.scope.members for row in node.usage),
            self._sent(), self._compared(), self.target, self.elsewhere, self.missing, self.hidden, self.cut,
            self.wanted,
        )  # fmt: skip

    def _page(self) -> Stretch:
        """The page that the address asks for: around a message, next to one, the last or the first."""
        wanted, chain, connection = self.wanted, self.scope.chain_ids, self.connection
        options = {"taken_back": wanted.taken_back}
        for number in (wanted.message, wanted.compared):
            place = self._place(number) if number is not None else None
            if place is not None:
                return messages.page_around(connection, chain, place, wanted.size, **options)
        for number, read in ((wanted.after, messages.page_after), (wanted.before, messages.page_before)):
            found = messages.locate(connection, number) if number is not None else None
            if found is not None and found[0] in chain:
                return read(connection, chain, found, wanted.size, **options)
            if number is not None:
                self.missing, self.elsewhere = (number, None) if found is None else (None, found)
        if wanted.last:
            return messages.last_page(connection, chain, wanted.size, **options)
        return messages.first_page(connection, chain, wanted.size, **options)

    def _place(self, number: int) -> Place | None:
        """Where in the chain a message is, or the call of the delegate that it is in."""
        found = messages.locate(self.connection, number)
        if found is None:
            self.missing = number
            return None
        if not self.wanted.taken_back and messages.state_of(self.connection, found[1]) == "taken back":
            self.hidden = found[1]
        if found[0] in self.scope.chain_ids:
            self.target = found[1]
            return found
        if self.wanted.kind == "work":
            self.way = delegates.way_to(self.scope.family, self.connection, self.scope.chain_ids, found[0])
        if not self.way:
            self.elsewhere = found
            return None
        self.target, self.inside = found[1], found
        caller, _, message = self.way[0]
        return caller, message

    def _cards(self, page: Stretch) -> dict[int, list[Fold]]:
        """Delegates without their messages: a link each."""
        empty = Stretch([], None, None)
        return {
            message: [Fold(each, empty, {}) for each in called]
            for message, called in self._called(page).items()
        }  # fmt: skip

    def _called(self, page: Stretch) -> dict[int, list[str]]:
        callers = list(dict.fromkeys(message.session_id for message in page.messages))
        called = delegates.calls(self.connection, self.scope.family, callers)
        return delegates.placed(self.scope.family, called, page)

    def _folds(self, page: Stretch, above: frozenset[str]) -> dict[int, list[Fold]]:
        """Delegates with their messages, and theirs in turn, as long as the page has room."""
        return {
            message: [self._fold(each, above) for each in called if each not in above]
            for message, called in self._called(page).items()
        }  # fmt: skip

    def _fold(self, session_id: str, above: frozenset[str]) -> Fold:
        steps = {step[1]: at for at, step in enumerate(self.way)}
        on_the_way = session_id in steps
        size = FOLDED if on_the_way else min(FOLDED, self.left)
        if size <= 0:
            self.cut = True
            return Fold(session_id, Stretch([], None, None), {})
        chain = [node.session_id for node in self.scope.family.segments(session_id)] or [session_id]
        options = {"taken_back": self.wanted.taken_back}
        at = self._inside(session_id, steps) if on_the_way else None
        if at is not None and at[0] in chain:
            page = messages.page_around(self.connection, chain, at, size, **options)
        else:
            page = messages.first_page(self.connection, chain, size, **options)
        self.left -= len(page.messages)
        return Fold(session_id, page, self._folds(page, above | {session_id}), on_the_way)

    def _inside(self, session_id: str, steps: Mapping[str, int]) -> Place | None:
        """The place to open in a delegate on the way: the next call, or the message itself."""
        following = steps[session_id] + 1
        if following < len(self.way):
            caller, _, message = self.way[following]
            return caller, message
        return self.inside

    def _sent(self) -> Sent | None:
        stored = sum(node.facts["messages"] or 0 for node in self.scope.chain)
        if stored > COUNTED_BY_ITSELF and not self.wanted.verbatim:
            return None
        return sent.read_sent(self.connection, self.scope.chain_ids)

    def _compared(self) -> tuple[int, Text, Text] | None:
        found = messages.locate(self.connection, self.wanted.compared) if self.wanted.compared else None
        both = sent.read_both(self.connection, found[1]) if found else None
        return (found[1], *both) if found and both else None


def all_messages(transcript: Transcript) -> list[Message]:
    """The messages of the page and of its folds."""
    found = list(transcript.page.messages)
    open_folds = [fold for folds in transcript.folds.values() for fold in folds]
    while open_folds:
        fold = open_folds.pop()
        found += fold.page.messages
        open_folds += [inner for folds in fold.delegates.values() for inner in folds]
    return found
