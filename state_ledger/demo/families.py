"""Families of sessions: one session and all that come from it.

Times are seconds after the beginning of the family; `plan` moves them into the period.
"""

from __future__ import annotations

from random import Random

from state_ledger.demo.prices import CHEAP, MAIN, REPORTING, SONNET, Route
from state_ledger.demo.prose import draw_topic
from state_ledger.demo.rhythm import duration
from state_ledger.demo.session import Peer, Place, Session

_SOURCES = {
    "cli": 30, "cron": 20, "telegram": 18, "discord": 9, "webui": 8, "tui": 5, "api_server": 4, "tool": 3,
    "whatsapp": 3,
}  # fmt: skip
SOURCES = tuple(_SOURCES)
"""Where sessions that no other session started come from."""

PEOPLE = ("cli", "cli", "telegram", "discord", "webui", "tui")
"""Where people sit who choose their model themselves."""

ROUTES = tuple(route for route, _ in MAIN)

JOBS = {
    "morning_brief": (6, 30),
    "server-health": (7, 0),
    "backup_check": (2, 15),
    "inbox-digest": (16, 45),
    "evening_report": (18, 0),
    "9f3c1a7be204": (21, 10),
}
"""Scheduled jobs and the hour and minute at which they run; one has only its number for a name."""

_MESSENGERS = ("telegram", "discord", "whatsapp")
_PEERS = tuple(
    Peer(str(number), str(chat), kind, name)
    for number, chat, kind, name in (
        (51230811, 51230811, "dm", "Mira"),
        (60911742, 60911742, "dm", "지훈"),
        (77120934, -1001482, "group", "Kitchen table"),
        (81230017, 81230017, "dm", "Yuki"),
        (90331275, -1002210, "group", "Ops room"),
    )
)
_PLACES = (
    Place("/home/mira/work/billing", "main", "/home/mira/work/billing"),
    Place("/home/mira/work/api-client/src", "fix/retries", "/home/mira/work/api-client"),
    Place("/home/mira/notes"),
    Place("/srv/ops", "main", "/srv/ops"),
)
_PROFILES = (None, None, None, "work", "family")
_ENDS = {
    "cron": ("cron_complete",),
    "cli": ("cli_close", "cli_close", "new_session", "session_switch"),
    "tui": ("tui_close", "tui_shutdown", "ws_disconnect"),
    "webui": ("ws_disconnect", "new_session", "idle_timeout"),
}
_MESSENGER_ENDS = ("idle", "session_reset", "daily")
_OTHER_ENDS = ("agent_close",)


def root(
    rng: Random,
    *,
    source: str | None = None,
    language: str | None = None,
    theme: str | None = None,
    route: Route | None = None,
) -> Session:
    """A session that starts a family; what is not given is drawn."""
    source = source or rng.choices(SOURCES, tuple(_SOURCES.values()))[0]
    machine = source in ("cron", "tool")
    language = language or ("en" if machine else None)
    theme = theme or ("servers" if source == "cron" else None)
    session = Session(
        kind="root",
        source=source,
        route=route or _draw(rng, CHEAP if machine else MAIN),
        topic=draw_topic(rng, language, theme),
        until=duration(rng, source),
        closed=rng.uniform(2, 900),
        weight=0.3 if machine else 1.2,
        profile=rng.choice(_PROFILES),
    )
    if source == "cron":
        session.job = rng.choice(tuple(JOBS))
    elif source in _MESSENGERS:
        session.peer = rng.choice(_PEERS)
    elif source in ("cli", "tui"):
        session.place = rng.choice(_PLACES)
    ends = _MESSENGER_ENDS if session.peer else _ENDS.get(source, _OTHER_ENDS)
    session.end_reason = rng.choice(ends)
    return session


def by_chance(rng: Random) -> list[Session]:
    """A family as chance brings it: mostly a single session."""
    first = root(rng)
    if first.source in ("cron", "tool"):
        return [first]
    kind = rng.choices(("single", "chain", "delegates", "tree", "branch", "resets"), (64, 9, 14, 3, 6, 4))[0]
    if kind == "chain":
        return chain(rng, first, min(9, 2 + int(rng.expovariate(0.6))))
    if kind == "delegates":
        return [first, *(delegate(rng, first) for _ in range(rng.randint(1, 3)))]
    if kind == "tree":
        return delegation_tree(rng, first)
    if kind == "branch":
        return branched(rng, first, ends=rng.random() < 0.5)
    if kind == "resets" and first.peer:
        return resets(rng, first)
    return [first]


def chain(rng: Random, first: Session, length: int) -> list[Session]:
    """A conversation of `length` sessions, each continuing one that was compressed."""
    made = [first]
    while len(made) < length:
        made.append(continuation(rng, made[-1]))
    return made


def continuation(rng: Random, parent: Session) -> Session:
    """The session that goes on after `parent` was compressed; takes over the parent's ending."""
    following = Session(
        kind="continuation",
        source=parent.source,
        route=parent.route,
        topic=parent.topic,
        parent=parent,
        closed=parent.closed,
        end_reason=parent.end_reason,
        weight=max(1.3, parent.weight),
        profile=parent.profile,
        peer=parent.peer,
        place=parent.place,
    )
    parent.end_reason, parent.closed, parent.weight = "compression", 1.5, max(1.3, parent.weight)
    following.started = parent.until + 2.0
    following.until = following.started + duration(rng, parent.source)
    return following


def delegate(rng: Random, parent: Session) -> Session:
    """A session that `parent` started for a part of its work, and that ends before the parent does."""
    begin = parent.started + (parent.until - parent.started) * rng.uniform(0.1, 0.6)
    made = Session(
        kind="delegate",
        source="subagent",
        route=parent.route if rng.random() < 0.4 else _draw(rng, CHEAP),
        topic=parent.topic,
        parent=parent,
        started=begin,
        until=min(begin + duration(rng, "subagent"), begin + (parent.until - begin) * 0.8),
        closed=0.5,
        end_reason="agent_close",
        weight=0.45,
        profile=parent.profile,
        place=parent.place,
    )
    parent.delegates += 1
    return made


def delegation_tree(rng: Random, first: Session) -> list[Session]:
    """A session, two delegates, a delegate of a delegate, and one delegate that is compressed."""
    first.until = max(first.until, 5400.0)
    one, two = delegate(rng, first), delegate(rng, first)
    for made in (one, two):
        made.until = max(made.until, made.started + 600.0)
    below = delegate(rng, one)
    return [first, one, two, below, continuation(rng, two)]


def branched(rng: Random, first: Session, *, ends: bool) -> list[Session]:
    """A session and a branch off it; the first one ends there, or goes on beside it."""
    other = root(rng, source=first.source, route=first.route)
    other.topic = first.topic
    other.kind, other.parent, other.place, other.profile = "branch", first, first.place, first.profile
    other.peer = first.peer
    if ends:
        first.end_reason, first.closed = "branched", 1.0
        begin = first.until + 1.0
    else:
        begin = first.started + (first.until - first.started) * 0.6
    other.started, other.until = begin, begin + other.until
    return [first, other]


def resets(rng: Random, first: Session) -> list[Session]:
    """A messenger's chat that is begun anew: linked to the earlier session, yet no continuation."""
    other = root(rng, source=first.source, language=first.topic.language, route=first.route)
    other.kind, other.parent, other.peer, other.profile = "reset", first, first.peer, first.profile
    first.end_reason, first.closed = "session_reset", 3.0
    begin = first.until + 3.0 + rng.uniform(0, 40_000)
    other.started, other.until = begin, begin + other.until
    return [first, other]


def troubled(rng: Random, trouble: str) -> Session:
    """A short session at a desk, to which the trouble of that name happens."""
    session = root(rng, source="cli", language="en", route=SONNET)
    session.trouble, session.weight, session.profile = trouble, 0.7, None
    return session


def switch_models(rng: Random, session: Session, feature: str) -> None:
    """Lets a session change its model once (`switch`), or there and back again (`switch_back`).

    `partly_actual`: the first model's provider reports what it really cost, the second's does not.
    """
    if feature == "partly_actual":
        session.route = REPORTING
    others = [route for route in ROUTES if route.model != session.route.model and not route.reports_cost]
    session.switches = [(rng.uniform(0.3, 0.5), rng.choice(others).after_switch())]
    if feature == "switch_back":
        session.switches.append((rng.uniform(0.6, 0.8), session.route.after_switch()))


def _draw(rng: Random, weighted: tuple[tuple[Route, int], ...]) -> Route:
    return rng.choices([route for route, _ in weighted], [weight for _, weight in weighted])[0]
