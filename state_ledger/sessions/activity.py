"""Which sessions were active last, and which carry a name: answered from indexes, not from wide rows.

Session ids, starts, titles and message times each stand in an index of schema 23, so ordering all
sessions of a store reads none of its rows but those of children.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from state_ledger.sessions.conversations import continued_sessions, last_segments_first
from state_ledger.writing.writer import Writer

_SEPARATORS = str.maketrans("", "", "-_. ")

EXACT, BEGINNING, WITHIN = 0, 1, 2
"""How well an id matches a query; the least is the best."""


class Conversations:
    """All sessions of a store by when anything last happened in them or in what continues them."""

    def __init__(self, writer: Writer) -> None:
        """Reads the order once; hold the writer's lock to use it with other reads."""
        continues = continued_sessions(writer)
        self._links = [(segment, continues[segment]) for segment in last_segments_first(continues)]
        self._starts = _starts(writer)
        self._newest = _newest_messages(writer)
        for segment, before in self._links:
            if segment in self._newest:
                self._newest[before] = max(self._newest[segment], self._newest.get(before, 0.0))

    def by_activity(self, ids: Iterable[str] | None = None) -> list[str]:
        """These sessions, or all: the newest message first, the start where there is none, then start and id."""
        chosen = self._starts if ids is None else self._starts.keys() & ids
        return _newest_first(chosen, self._starts, self._newest)

    def with_earlier_segments(self, ranks: Mapping[str, int]) -> dict[str, int]:
        """The given sessions and those that they continue; each with the least rank that reaches it."""
        spread = dict(ranks)
        for segment, before in self._links:
            if segment in spread:
                spread[before] = min(spread[segment], spread.get(before, spread[segment]))
        return spread


def sessions_by_activity(writer: Writer, source: str | None = None) -> list[str]:
    """All sessions, or those of a source: the newest message, else the start, decides, newest first."""
    starts = _starts(writer)
    chosen: Iterable[str] = starts
    if source:
        chosen = [row[0] for row in writer.rows("SELECT id FROM sessions WHERE source = ?", (source,))]
    return _newest_first(chosen, starts, _newest_messages(writer))


def id_ranks(writer: Writer, query: str) -> dict[str, int]:
    """Sessions whose id contains `query`, in either case, and how well it matches."""
    wanted = query.casefold()
    ranks = {}
    for (id,) in writer.rows("SELECT id FROM sessions"):
        folded = id.casefold()
        if wanted in folded:
            ranks[id] = EXACT if folded == wanted else BEGINNING if folded.startswith(wanted) else WITHIN
    return ranks


def named(writer: Writer, query: str) -> set[str]:
    """Sessions whose title or id contains `query`, in either case, as it is or without `- _ .` and spaces."""
    wanted = query.casefold()
    bare = wanted.translate(_SEPARATORS)

    def matches(name: str) -> bool:
        folded = name.casefold()
        return wanted in folded or (bare != "" and bare in folded.translate(_SEPARATORS))

    found = {id for (id,) in writer.rows("SELECT id FROM sessions") if matches(id)}
    if writer.shape.has("sessions", "title"):
        titles = writer.rows("SELECT rowid, title FROM sessions WHERE title IS NOT NULL")
        titled = {row for row, title in titles if isinstance(title, str) and matches(title)}
        found |= {id for row, id in writer.rows("SELECT rowid, id FROM sessions") if row in titled}
    return found


def _newest_first(ids: Iterable[str], starts: Mapping[str, float], newest: Mapping[str, float]) -> list[str]:
    keys = [(newest.get(id, starts[id]), starts[id], id) for id in ids if id in starts]
    keys.sort(reverse=True)
    return [id for _, _, id in keys]


def _starts(writer: Writer) -> dict[str, float]:
    """When each session started. Two index scans joined here: no one index has id and start."""
    # A start that is no number sorts as 0, as it would be of no use to anybody who compares it.
    started = dict(map(tuple, writer.rows("SELECT rowid, CAST(started_at AS REAL) FROM sessions")))
    return {id: started.get(row, 0.0) for row, id in writer.rows("SELECT rowid, id FROM sessions")}


def _newest_messages(writer: Writer) -> dict[str, float]:
    """The newest message of each session that has one."""
    rows = writer.rows(
        "SELECT session_id, coalesce(CAST(max(timestamp) AS REAL), 0.0) FROM messages GROUP BY session_id"
    )
    return {row[0]: row[1] for row in rows}
