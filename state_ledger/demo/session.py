"""One planned session of a demo store, and the row it becomes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from state_ledger.demo.prices import Route
from state_ledger.demo.prose import Topic
from state_ledger.demo.usage import Tally

COLUMNS = (
    "id",
    "source",
    "user_id",
    "session_key",
    "chat_id",
    "chat_type",
    "display_name",
    "origin_json",
    "model",
    "model_config",
    "system_prompt",
    "parent_session_id",
    "started_at",
    "ended_at",
    "end_reason",
    "message_count",
    "tool_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cwd",
    "git_branch",
    "git_repo_root",
    "billing_provider",
    "billing_base_url",
    "billing_mode",
    "estimated_cost_usd",
    "actual_cost_usd",
    "cost_status",
    "cost_source",
    "title",
    "api_call_count",
    "profile_name",
    "rewind_count",
    "archived",
    "pinned",
)
"""Columns of `sessions` that a demo store fills, in the order of `row`."""


@dataclass(frozen=True)
class Peer:
    """The other side of a messaging session."""

    user_id: str
    chat_id: str
    chat_type: str
    name: str

    def key(self, source: str) -> str:
        """The gateway's session key."""
        return f"agent:main:{source}:{self.chat_type}:{self.chat_id}"


@dataclass(frozen=True)
class Place:
    """Where a session works: a folder, and the repository it is in."""

    cwd: str
    git_branch: str | None = None
    git_root: str | None = None


@dataclass(eq=False)
class Session:
    """What is decided about a session before its messages are written.

    kind: root, continuation, branch, delegate or reset.
    started, until: epoch seconds of its beginning and of its last message (while a family is being
        drawn up: seconds after the family's start).
    closed: seconds from the last message to the end; None for a session that never ended.
    size: messages it is to have, about.
    switches: (share of the messages after which, route) of every change of model.
    features: what is to happen in it; see `plan.FEATURES`.
    """

    kind: str
    source: str
    route: Route
    topic: Topic
    parent: Session | None = None
    started: float = 0.0
    until: float = 0.0
    closed: float | None = 5.0
    end_reason: str | None = None
    size: int = 1
    weight: float = 1.0
    id: str = ""
    title: str | None = None
    profile: str | None = None
    peer: Peer | None = None
    place: Place | None = None
    job: str | None = None
    markers: dict[str, str] = field(default_factory=dict)
    switches: list[tuple[float, Route]] = field(default_factory=list)
    features: frozenset[str] = frozenset()
    delegates: int = 0
    trouble: str | None = None

    @property
    def ended(self) -> float | None:
        """`ended_at`, None for a session that never ended."""
        return None if self.closed is None else self.until + self.closed

    @property
    def talks(self) -> bool:
        """Whether it is held in a messenger."""
        return self.peer is not None


@dataclass
class Counts:
    """What the session row says of its messages."""

    messages: int = 0
    tool_calls: int = 0
    rewinds: int = 0


def row(session: Session, counts: Counts, total: Tally, last: Route, system_prompt: str) -> tuple[Any, ...]:
    """The row of `sessions`, in the order of `COLUMNS`.

    total: sums of the main loop. last: the route of the last call, whose cost status the row has.
    """
    # A change of model replaces the session's model in messengers and leaves it elsewhere.
    route = last if session.talks or not session.switches else session.route
    peer, place = session.peer, session.place
    config: dict[str, Any] = {"temperature": 0.7, "max_iterations": 90, **session.markers}
    if session.route.reasons:
        config["reasoning_config"] = {"enabled": True, "effort": "medium"}
    origin = {"platform": session.source, "chat_id": peer.chat_id, "user_name": peer.name} if peer else None
    return (
        session.id,
        session.source,
        peer.user_id if peer else None,
        peer.key(session.source) if peer else None,
        peer.chat_id if peer else None,
        peer.chat_type if peer else None,
        peer.name if peer else None,
        json.dumps(origin, ensure_ascii=False) if origin else None,
        route.model,
        json.dumps(config),
        None if session.switches else system_prompt,
        session.parent.id if session.parent else None,
        session.started,
        session.ended,
        None if session.closed is None else session.end_reason,
        counts.messages,
        counts.tool_calls,
        total.fresh,
        total.output,
        total.cache_read,
        total.cache_write,
        total.reasoning,
        place.cwd if place else None,
        place.git_branch if place else None,
        place.git_root if place else None,
        route.provider,
        route.base_url or None,
        route.mode or None,
        total.estimated,
        total.actual or None,
        last.cost_status,
        last.cost_source,
        session.title,
        total.calls,
        session.profile,
        counts.rewinds,
        int("archived" in session.features),
        int("pinned" in session.features),
    )
