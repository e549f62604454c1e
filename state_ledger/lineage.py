"""Which sessions are one conversation and one piece of work, whatever the parent links look like.

Parent links form a graph in which every session has at most one parent. Links may loop, point at
missing rows or be thousands deep (accounting rule 14), so the walk is a plain loop over rows: it
visits each session once and needs neither recursion nor a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["root", "continuation", "branch", "delegate", "other"]
Trouble = Literal["loop", "missing parent"]


@dataclass(frozen=True)
class Link:
    """One session and its stored parent link.

    row, parent: row ids of the session and of its parent; `parent` is None without a parent row.
    dangling: the session names a parent that is not in the store.
    """

    row: int
    parent: int | None
    kind: str
    dangling: bool = False


@dataclass
class Place:
    """Where a session stands (accounting rules 11 to 14).

    link: the parent, None where there is none, where it is missing, and where a loop was cut.
    conversation: the first session of the chain of continuations it belongs to.
    work: the first session of the piece of work: conversations joined by delegation.
    tip: the last session of its conversation.
    segment: 1 for the first session of a conversation, 2 for its continuation, and so on.
    depth: how many delegations lie between this session and the start of its work.
    """

    row: int
    link: int | None
    conversation: int
    work: int
    tip: int
    segment: int
    depth: int
    trouble: Trouble | None


def arrange(links: Iterable[Link]) -> list[Place]:
    """Places every session, parents before children, in time linear in the number of sessions.

    A loop is cut at its smallest row id: that session has no `link` and starts a conversation and a
    work of its own; every session of the loop is marked.
    """
    by_row = {link.row: link for link in links}
    parent = {
        row: link.parent if link.parent in by_row else None for row, link in by_row.items()
    }  # fmt: skip
    looped = _cut_loops(parent)
    places: dict[int, Place] = {}
    for row in by_row:
        for step in reversed(_unplaced_chain(row, parent, places)):
            places[step] = _place(by_row[step], parent[step], places, looped)
    _mark_tips(places, by_row)
    return list(places.values())


def _cut_loops(parent: dict[int, int | None]) -> set[int]:
    """Cuts every loop of `parent` in place; returns the rows that were part of one."""
    done: set[int] = set()
    looped: set[int] = set()
    for start in parent:
        path: list[int] = []
        on_path: set[int] = set()
        row: int | None = start
        while row is not None and row not in done and row not in on_path:
            path.append(row)
            on_path.add(row)
            row = parent[row]
        if row is not None and row in on_path:
            loop = path[path.index(row) :]
            looped.update(loop)
            parent[min(loop)] = None
        done.update(path)
    return looped


def _unplaced_chain(row: int, parent: dict[int, int | None], places: dict[int, Place]) -> list[int]:
    """The session and its ancestors up to the first that already has a place."""
    chain: list[int] = []
    step: int | None = row
    while step is not None and step not in places:
        chain.append(step)
        step = parent[step]
    return chain


def _place(link: Link, parent: int | None, places: dict[int, Place], looped: set[int]) -> Place:
    above = places[parent] if parent is not None else None
    trouble: Trouble | None = "loop" if link.row in looped else "missing parent" if link.dangling else None
    place = Place(link.row, parent, link.row, link.row, link.row, 1, 0, trouble)
    if above is not None and link.kind == "continuation":
        place.conversation, place.work = above.conversation, above.work
        place.segment, place.depth = above.segment + 1, above.depth
    elif above is not None and link.kind == "delegate":
        place.work, place.depth = above.work, above.depth + 1
    return place


def _mark_tips(places: dict[int, Place], links: dict[int, Link]) -> None:
    last: dict[int, Place] = {}
    for place in places.values():
        known = last.get(place.conversation)
        if known is None or place.segment > known.segment:
            last[place.conversation] = place
    for place in places.values():
        place.tip = last[place.conversation].row
