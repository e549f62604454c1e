"""Which sessions a demo store has: families of sessions, who continues whom, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import cycle
from math import exp
from random import Random

from state_ledger.demo import families
from state_ledger.demo.prose import Voices
from state_ledger.demo.rhythm import Rhythm
from state_ledger.demo.session import Session
from state_ledger.demo.troubles import TROUBLES

MINIMUM_SESSIONS = 100
"""Below this, not everything a demo store promises fits in."""

FEATURES = (
    "switch",
    "structured",
    "compacts_in_place",
    "sent_differently",
    "taken_back",
    "idle",
    "switch_back",
    "pinned",
    "archived",
    "breaks_cache",
    "partly_actual",
)
"""What happens in ordinary sessions, dealt out in turn: changes of model, pictures, compaction in
place, messages sent otherwise than stored, a turn taken back, a session never ended, flags, a prompt
cache that keeps breaking, and a real cost known for one of two models."""

_SPREAD = 0.9
_OVERSHOOT = 4.5
"""Messages that a session has beyond its size: a turn, once begun, is written to its end."""
_FEATURED = 0.6


def plan(rng: Random, voices: Voices, rhythm: Rhythm, sessions: int, mean_messages: float) -> list[Session]:
    """`sessions` sessions, in order of their start, with `mean_messages` messages on average.

    Raises ValueError for fewer than `MINIMUM_SESSIONS`.
    """
    if sessions < MINIMUM_SESSIONS:
        raise ValueError(f"A demo store needs at least {MINIMUM_SESSIONS} sessions to show what it promises.")
    planned: list[Session] = []
    features = cycle(FEATURES)
    ordinary = sessions - len(TROUBLES)
    drawn = _families(rng)
    while len(planned) < ordinary:
        family = next(drawn)[: ordinary - len(planned)]
        _give_features(rng, family[0], features, alone=len(family) == 1)
        _place(rng, rhythm, family)
        planned += family
    for name in TROUBLES:
        troubled = families.troubled(rng, name)
        _place(rng, rhythm, [troubled])
        planned.append(troubled)
    _size(rng, planned, mean_messages)
    planned.sort(key=lambda session: session.started)
    _name(rng, voices, planned)
    return planned


def _families(rng: Random) -> Iterator[list[Session]]:
    """Families without end: first one of every kind that a store must have, then what chance brings."""
    yield families.chain(rng, families.root(rng, source="telegram", language="ko", theme="servers"), 7)
    yield families.chain(rng, families.root(rng, source="cli", language="en", theme="coding"), 6)
    yield families.delegation_tree(rng, families.root(rng, source="cli", language="en", theme="coding"))
    yield families.branched(rng, families.root(rng, source="webui", language="en", theme="travel"), ends=True)
    yield families.branched(rng, families.root(rng, source="cli", language="zh", theme="coding"), ends=False)
    yield families.resets(rng, families.root(rng, source="telegram", language="ja", theme="cooking"))
    for source in families.SOURCES:
        yield [families.root(rng, source=source)]
    for route in families.ROUTES:
        yield [families.root(rng, source=rng.choice(families.PEOPLE), route=route)]
    while True:
        yield families.by_chance(rng)


def _give_features(rng: Random, root: Session, features: Iterator[str], *, alone: bool) -> None:
    if root.source in ("cron", "tool") or rng.random() > _FEATURED:
        return
    feature = next(features)
    root.features = frozenset((feature,))
    if feature in ("switch", "switch_back", "partly_actual"):
        families.switch_models(rng, root, feature)
    if feature == "idle" and alone:
        root.closed = None


def _place(rng: Random, rhythm: Rhythm, family: list[Session]) -> None:
    """Turns a family's times, so far relative to its beginning, into moments of the period."""
    root = family[0]
    span = max(session.until + (session.closed or 0.0) for session in family)
    longest = (rhythm.end - rhythm.start) * 0.9
    shrink = min(1.0, longest / span)
    start = rhythm.scheduled(rng, *families.JOBS[root.job]) if root.job else rhythm.moment(rng)
    # What is over by the end of the period has to begin early enough.
    start = max(rhythm.start, min(start, rhythm.end - span * shrink - rng.uniform(60, 7200)))
    for session in family:
        session.started = round(start + session.started * shrink, 6)
        session.until = round(start + session.until * shrink, 6)
        if session.closed is not None:
            session.closed = round(session.closed * shrink, 6)


def _size(rng: Random, planned: list[Session], mean: float) -> None:
    drawn = [session.weight * exp(rng.gauss(0, _SPREAD)) for session in planned]
    scale = max(1.0, mean - _OVERSHOOT) * len(planned) / sum(drawn)
    for session, size in zip(planned, drawn, strict=True):
        session.size = max(4, round(size * scale))


def _name(rng: Random, voices: Voices, planned: list[Session]) -> None:
    """Gives ids and titles: no id twice, no title twice."""
    ids: set[str] = set()
    titles: set[str] = set()
    lineage: dict[Session, int] = {}
    for session in planned:
        session.id = _id(rng, session, ids)
        ids.add(session.id)
        parent = session.parent
        if session.kind == "delegate" and parent:
            session.markers["_delegate_from"] = parent.id
        elif session.kind == "branch" and parent:
            session.markers["_branched_from"] = parent.id
        elif session.kind == "continuation" and parent:
            # The agent's configuration goes on: a delegate's continuation names its grandparent.
            session.markers = dict(parent.markers)
        title: str | None
        if session.trouble:
            title = TROUBLES[session.trouble].title
        elif session.kind == "continuation" and parent:
            lineage[session] = lineage.get(parent, 1) + 1
            base = (parent.title or "").rpartition(" #")[0] or parent.title
            title = f"{base} #{lineage[session]}" if base else None
        elif session.job:
            title = f"{session.job.replace('_', ' ')} · {_at(session):%d %b %H:%M}"
        elif rng.random() < 0.1:
            title = None
        else:
            title = _unused(rng, voices.voice(session.topic).titles, titles)
        session.title = title if title not in titles else None
        if session.title:
            titles.add(session.title)


def _unused(rng: Random, candidates: tuple[str, ...], taken: set[str]) -> str:
    for _ in range(4):
        title = rng.choice(candidates)
        if title not in taken:
            return title
    number = 2
    while f"{title} ({number})" in taken:
        number += 1
    return f"{title} ({number})"


def _at(session: Session) -> datetime:
    return datetime.fromtimestamp(session.started, timezone.utc)


def _id(rng: Random, session: Session, taken: set[str]) -> str:
    """An id as the program makes them; the local time in it is UTC here."""
    moment = f"{_at(session):%Y%m%d_%H%M%S}"
    if session.job:
        while f"cron_{session.job}_{moment}" in taken:
            session.started += 1.0
            session.until += 1.0
            moment = f"{_at(session):%Y%m%d_%H%M%S}"
        return f"cron_{session.job}_{moment}"
    if session.source == "api_server":
        return f"api:desk/{moment}.{rng.randrange(16**4):04x}"
    return f"{moment}_{rng.randrange(16**6):06x}"
