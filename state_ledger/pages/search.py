"""The search page: the hits by conversation, sessions by name, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from state_ledger import questions, search
from state_ledger.companion import beside
from state_ledger.ledger import ancestry
from state_ledger.pages import figures
from state_ledger.pages.asking import Ask, OutOfTime, Unanswered
from state_ledger.pages.search_address import QUESTION, SESSIONS_QUESTION, Asked
from state_ledger.pages.sums import Record
from state_ledger.search import marks
from state_ledger.shape import Shape
from state_ledger.sqlite import sqlite3

BUDGET_S = 1.5
"""Seconds that a page looks for hits; it then shows what it has and offers to go on."""

QUICK_COUNT_S, COUNT_S = 0.05, 2.0
"""Seconds for the count on the page itself, and for one that is asked for by itself."""

GRACE_MS = 50
"""What may be added to a budget, which is looked at between two pieces, before SQLite itself is stopped."""

MOST_COUNTED = 1000

SESSIONS_SHOWN = 3

TOO_MANY = (
    "This search did not end in its time. Add a word, or choose fewer days, or raise the setting query_time_limit_ms."
)

@dataclass(frozen=True)
class Neighbour:
    """The message before or after a hit, cut at 200 characters."""

    role: str
    text: str


@dataclass(frozen=True)
class Shown:
    """One hit with the messages around it."""

    hit: search.Hit
    before: Neighbour | None
    after: Neighbour | None


@dataclass(frozen=True)
class Conversation:
    """The hits of one conversation. named: whether its title is one, and not the beginning of its first message."""

    conversation_id: str
    title: str
    named: bool
    hits: Sequence[Shown]

    @property
    def first(self) -> search.Hit:
        """The hit by which the conversation got its place on the page."""
        return self.hits[0].hit


@dataclass(frozen=True)
class Found:
    """What the page shows.

    sessions: whose title or id matches, and whether there are more. count: None where it is not known
    yet. problems: sentences about what could not be answered.
    """

    answer: search.Answer | None
    conversations: Sequence[Conversation] = ()
    sessions: Sequence[Record] = ()
    more_sessions: bool = False
    count: search.Count | None = None
    problems: Sequence[str] = ()


def read_search(
    ask: Ask,
    asked: Asked,
    *,
    shape: Shape | None = None,
    counted: bool = True,
) -> Found:
    """Looks for what was asked, within BUDGET_S.

    shape: of the store, read if it is not given; counted: whether a quick count is tried.
    """
    if not asked.q:
        return Found(None)
    limit_ms = ask.settings.query_time_limit_ms
    budget_s = limit_ms / 1000 if asked.longer else min(BUDGET_S, limit_ms / 1000)
    request = asked.request(ask.settings.zone_name)
    try:
        with questions.in_time(ask.connection, QUESTION, limit_ms + GRACE_MS), beside(ask.connection) as companion:
            answer = search.find(ask.connection, request, shape=shape, companion=companion, budget_s=budget_s)
            conversations = by_conversation(ask, answer.hits)
    except OutOfTime:
        return Found(None, problems=[TOO_MANY])
    except sqlite3.DatabaseError as error:
        return Found(None, problems=[str(Unanswered(QUESTION, error))])
    problems: list[str] = []
    sessions, more = sessions_by_name(ask, asked, problems)
    count = _quick_count(ask, asked, answer, shape) if counted else None
    return Found(answer, conversations, sessions, more, count, problems)


def read_count(
    ask: Ask,
    asked: Asked,
    *,
    shape: Shape | None = None,
    budget_s: float = COUNT_S,
) -> search.Count:
    """How many messages match, whatever page of them is shown. Raises OutOfTime and Unanswered."""
    request = replace(asked, before=None).request(ask.settings.zone_name)
    try:
        limit_ms = round(budget_s * 1000) + GRACE_MS
        with questions.in_time(ask.connection, QUESTION, limit_ms), beside(ask.connection) as companion:
            return search.count(
                ask.connection, request, shape=shape, companion=companion, most=MOST_COUNTED, budget_s=budget_s
            )
    except sqlite3.DatabaseError as error:
        raise Unanswered(QUESTION, error) from error


def count_text(count: search.Count) -> str:
    """`12 messages`, `more than 1,000 messages`; `at least 40 messages` where the time ran out."""
    said = figures.plural(count.number, "message")
    if not count.more:
        return said
    return f"more than {said}" if count.number >= MOST_COUNTED else f"at least {said}"


def by_conversation(ask: Ask, hits: Sequence[search.Hit]) -> list[Conversation]:
    """The hits in groups, a conversation at the place of its first hit."""
    members = ancestry.members(ask.connection, (hit.session_id for hit in hits))
    of_session = {name: member.conversation_id for name, member in members.items()}
    return grouped(hits, of_session, lambda names: ancestry.beginnings(ask.connection, names))


def grouped(
    hits: Sequence[search.Hit],
    of_session: Mapping[str, str],
    beginnings: Callable[[Iterable[str]], Mapping[str, str | None]],
) -> list[Conversation]:
    """Hits in groups. of_session: the conversation of each session; beginnings: of conversations without a title."""
    groups: dict[str, list[search.Hit]] = {}
    for hit in hits:
        groups.setdefault(of_session.get(hit.session_id, hit.session_id), []).append(hit)
    titles = {name: next((hit.title for hit in found if hit.title), None) for name, found in groups.items()}
    previews = beginnings(name for name, title in titles.items() if not title)
    return [
        Conversation(
            name, str(titles[name] or previews.get(name) or name), bool(titles[name]), [_shown(hit) for hit in found]
        )
        for name, found in groups.items()
    ]


def record(shown: Shown, conversation_id: str) -> dict[str, Any]:
    """A hit as JSON has it: matches between `>>>` and `<<<`, their places in `matches`."""
    hit = shown.hit
    return {
        "id": hit.id,
        "session_id": hit.session_id,
        "conversation_id": conversation_id,
        "title": hit.title,
        "role": hit.role,
        "snippet": marks.plain(hit.snippet),
        "matches": marks.places(hit.snippet),
        "timestamp": hit.timestamp,
        "tool_name": hit.tool_name,
        "source": hit.source,
        "model": hit.model,
        "session_started": hit.session_started,
        "context": hit.context,
    }


def _quick_count(
    ask: Ask, asked: Asked, answer: search.Answer, shape: Shape | None
) -> search.Count | None:
    if answer.route is None:
        return None
    if answer.complete and answer.next_before is None and asked.before is None and asked.sort != search.BEST:
        return search.Count(len(answer.hits), False)
    try:
        count = read_count(ask, asked, shape=shape, budget_s=QUICK_COUNT_S)
    except (OutOfTime, Unanswered):
        return None
    # Half a count says little beside the hits themselves: a later one has more time.
    return None if count.more and count.number < MOST_COUNTED else count


def sessions_by_name(ask: Ask, asked: Asked, problems: list[str]) -> tuple[Sequence[Record], bool]:
    """Sessions by name, and whether there are more; on the first page only, where no filter speaks of messages."""
    if asked.before is not None or (asked.filtered and not _only_one_source(asked)):
        return [], False
    name = asked.q.replace('"', " ").strip()
    if not name:
        return [], False
    source = asked.source[0] if asked.source else ""
    try:
        found = ask(SESSIONS_QUESTION, {"q": name, "source": source, "limit": str(SESSIONS_SHOWN)})
    except (OutOfTime, Unanswered) as error:
        problems.append(str(error))
        return [], False
    return found.rows, found.truncated


def _only_one_source(asked: Asked) -> bool:
    return len(asked.source) == 1 and not replace(asked, source=()).filtered


def _shown(hit: search.Hit) -> Shown:
    place = _place(hit)
    around = [Neighbour(str(each.get("role") or ""), str(each.get("content") or "")) for each in hit.context]
    before = around[place - 1] if 0 < place <= len(around) else None
    after = around[place + 1] if place + 1 < len(around) else None
    return Shown(hit, before, after)


def _place(hit: search.Hit) -> int:
    """Where in its context a message itself stands: in the middle of three; of two it is told by its text."""
    if len(hit.context) != 2:
        return 1 if len(hit.context) == 3 else 0
    first, second = hit.context
    if (first.get("role") == hit.role) != (second.get("role") == hit.role):
        return 0 if first.get("role") == hit.role else 1
    words = marks.unmarked(hit.snippet).strip(".… \n")[:40]
    return 1 if words in str(second.get("content")) and words not in str(first.get("content")) else 0
