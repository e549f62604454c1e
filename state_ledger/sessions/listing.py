"""Lists of sessions: pickers, counts, finding by id. Source: session-db, section 8.

Session rows are wide (a system prompt can be 30 KB), so a list first orders ids by what indexes
hold, cuts, and only then reads rows, tips and previews, of the few that are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from state_ledger.ledger.columns import column, json_marker
from state_ledger.ledger.sessions import may_continue
from state_ledger.sessions import activity, begins_with, previews, select_columns
from state_ledger.sessions.activity import Conversations
from state_ledger.sessions.conversations import compression_tips
from state_ledger.shape import Shape
from state_ledger.sqlite import Row
from state_ledger.writing.writer import Writer

_BATCH = 500
"""Ids in one statement; SQLite older than 3.32 takes 999 parameters."""

_COMMON = 1000
"""Sessions of one source from which on they are looked through by start."""

_OF_TIP = (
    "id", "ended_at", "end_reason", "message_count", "tool_call_count", "title", "last_active", "preview",
    "model", "system_prompt", "cwd", "git_branch", "git_repo_root",
)  # fmt: skip
"""What a conversation shows of its last segment; the rest is of its first."""

_PARENT = "LEFT JOIN sessions AS p ON p.id = s.parent_session_id"


class _Filter:
    """Conditions on `sessions AS s` (with its parent `p`), joined by AND, and their parameters."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.conditions: list[str] = []
        self.parameters: list[object] = []

    def add(self, condition: str, *parameters: object) -> None:
        self.conditions.append(condition)
        self.parameters += parameters

    def column(self, name: str) -> str:
        return column(self.shape, "sessions", name, "s")

    @property
    def sql(self) -> str:
        return " AND ".join(f"({condition})" for condition in self.conditions) or "1"


def _filter(
    writer: Writer,
    *,
    source: str | None,
    exclude_sources: Collection[str] | None,
    cwd_prefix: str | None,
    min_message_count: int,
    include_archived: bool,
    archived_only: bool,
    children: bool,
) -> _Filter:
    shape = writer.shape
    chosen = _Filter(shape)
    if source:
        # Where many have the source, its index helps less than the order by start, which ends at the limit.
        chosen.add("+s.source = ?" if _is_common(writer, source) else "s.source = ?", source)
    if exclude_sources:
        chosen.add(f"s.source NOT IN ({', '.join('?' * len(exclude_sources))})", *exclude_sources)
    if cwd_prefix:
        folder = cwd_prefix.rstrip("/\\")
        below = (f"{folder}/", f"{folder}\\")
        cwd = chosen.column("cwd")
        chosen.add(f"{cwd} IN (?, ?) OR substr({cwd}, 1, ?) IN (?, ?)", cwd_prefix, folder, len(folder) + 1, *below)
    if min_message_count > 0:
        chosen.add(f"{chosen.column('message_count')} >= ?", min_message_count)
    archived = f"coalesce({chosen.column('archived')}, 0)"
    if archived_only:
        chosen.add(f"{archived} <> 0")
    elif not include_archived:
        chosen.add(f"{archived} = 0")
    if not children:
        chosen.add(_stands_alone(shape))
    return chosen


def _is_common(writer: Writer, source: str) -> bool:
    sql = "SELECT count(*) FROM (SELECT 1 FROM sessions WHERE source = ? LIMIT ?)"
    return bool(writer.value(sql, (source, _COMMON)) == _COMMON)


def _stands_alone(shape: Shape) -> str:
    """Roots and branches, no delegates. What has lost its parent, or names itself as one, is a root."""
    config = column(shape, "sessions", "model_config", "s")
    branch = (
        f"{json_marker(config, '$._branched_from')} IS NOT NULL AND NOT {may_continue(shape, 's')}"
        " OR p.end_reason = 'branched' AND s.started_at >= p.ended_at"
    )
    return f"(p.id IS NULL OR p.rowid = s.rowid OR {branch}) AND {json_marker(config, '$._delegate_from')} IS NULL"


def list_sessions_rich(
    writer: Writer,
    source: str | None = None,
    exclude_sources: Collection[str] | None = None,
    cwd_prefix: str | None = None,
    limit: int = 20,
    offset: int = 0,
    include_children: bool = False,
    min_message_count: int = 0,
    project_compression_tips: bool = True,
    order_by_last_active: bool = False,
    include_archived: bool = False,
    archived_only: bool = False,
    id_query: str | None = None,
    search_query: str | None = None,
    compact_rows: bool = False,
) -> list[dict[str, Any]]:
    """Sessions as a picker shows them: all columns, `preview` and `last_active`, newest start first.

    Roots and branches without archived ones, unless asked. A root that was compressed is shown as
    the last segment of its conversation, under its own start, with `_lineage_root_id`; not so with
    `include_children`, where each segment is a row.
    order_by_last_active: by the newest message anywhere in the conversation. Only then count
    id_query, a part of an id, and search_query, a part of a title or id with or without `- _ .` and
    spaces, of any segment.
    preview: how the first message of the user begins, at most 60 characters and `...`. last_active:
    the newest message, else the start, epoch seconds. compact_rows: without `system_prompt`.
    limit: -1 for all.
    """
    chosen = _filter(
        writer,
        source=source,
        exclude_sources=exclude_sources,
        cwd_prefix=cwd_prefix,
        min_message_count=min_message_count,
        include_archived=include_archived,
        archived_only=archived_only,
        children=include_children,
    )
    with writer.lock:
        if order_by_last_active:
            ids = _page(_by_activity(writer, chosen, id_query, search_query), limit, offset)
        else:
            ids = _by_start(writer, chosen, limit, offset)
        return _rich(writer, ids, project=project_compression_tips and not include_children, compact=compact_rows)


def session_count(
    writer: Writer,
    source: str | None = None,
    cwd_prefix: str | None = None,
    min_message_count: int = 0,
    include_archived: bool = False,
    archived_only: bool = False,
    exclude_children: bool = False,
    exclude_sources: Collection[str] | None = None,
) -> int:
    """How many sessions the same filters of `list_sessions_rich` choose; children count unless excluded."""
    chosen = _filter(
        writer,
        source=source,
        exclude_sources=exclude_sources,
        cwd_prefix=cwd_prefix,
        min_message_count=min_message_count,
        include_archived=include_archived,
        archived_only=archived_only,
        children=not exclude_children,
    )
    parent = _PARENT if exclude_children else ""
    return int(writer.value(f"SELECT count(*) FROM sessions AS s {parent} WHERE {chosen.sql}", chosen.parameters))


def search_sessions(
    writer: Writer, source: str | None = None, limit: int = 20, offset: int = 0
) -> list[dict[str, Any]]:
    """All sessions, children and archived ones too, with `last_active`, the most recently active first."""
    with writer.lock:
        ordered = activity.sessions_by_activity(writer, source)
        return _read(writer, _page(iter(ordered), limit, offset), compact=False)


def search_sessions_by_id(
    writer: Writer, query: str, limit: int = 20, include_archived: bool = True
) -> list[dict[str, Any]]:
    """Conversations with a segment whose id contains `query`, in either case; rows of `list_sessions_rich`.

    An id that is the query comes first, then those that begin with it, then the others; among equals
    the most recently active. A blank query finds nothing.
    """
    wanted = query.strip()
    if not wanted:
        return []
    chosen = _filter(
        writer,
        source=None,
        exclude_sources=None,
        cwd_prefix=None,
        min_message_count=0,
        include_archived=include_archived,
        archived_only=False,
        children=False,
    )
    with writer.lock:
        conversations = Conversations(writer)
        ranks = conversations.with_earlier_segments(activity.id_ranks(writer, wanted))
        found = sorted(_passing(writer, conversations.by_activity(ranks), chosen), key=ranks.__getitem__)
        return _rich(writer, _page(iter(found), limit, 0), project=True, compact=False)


def list_cron_job_runs(writer: Writer, job_id: str, limit: int = 20, offset: int = 0) -> list[dict[str, Any]]:
    """The runs of a scheduled job, newest start first, as rows of `list_sessions_rich`."""
    chosen = _Filter(writer.shape)
    chosen.add("s.source = 'cron'")
    chosen.add(r"s.id LIKE ? ESCAPE '\'", begins_with(f"cron_{job_id}_"))
    with writer.lock:
        return _rich(writer, _by_start(writer, chosen, limit, offset), project=False, compact=False)


def _by_start(writer: Writer, chosen: _Filter, limit: int, offset: int) -> list[str]:
    """A page of ids, newest start first."""
    rows = writer.rows(
        f"SELECT s.id FROM sessions AS s {_PARENT} WHERE {chosen.sql}"
        " ORDER BY s.started_at DESC, s.rowid DESC LIMIT ? OFFSET ?",
        (*chosen.parameters, limit, offset),
    )
    return [row[0] for row in rows]


def _by_activity(writer: Writer, chosen: _Filter, id_query: str | None, search_query: str | None) -> Iterator[str]:
    """Ids, the most recently active conversation first; filters are asked of as many as are drawn."""
    conversations = Conversations(writer)
    found: set[str] | None = None
    if id_query and id_query.strip():
        found = set(conversations.with_earlier_segments(activity.id_ranks(writer, id_query.strip())))
    if search_query and search_query.strip():
        named = dict.fromkeys(activity.named(writer, search_query.strip()), activity.WITHIN)
        titled = set(conversations.with_earlier_segments(named))
        found = titled if found is None else found & titled
    return _passing(writer, conversations.by_activity(found), chosen)


def _passing(writer: Writer, ids: Sequence[str], chosen: _Filter) -> Iterator[str]:
    """Those ids that pass the filter, in their order."""
    for batch in _batches(ids):
        passed = writer.rows(
            f"SELECT s.id FROM sessions AS s {_PARENT} WHERE s.id IN ({', '.join('?' * len(batch))}) AND {chosen.sql}",
            (*batch, *chosen.parameters),
        )
        kept = {row[0] for row in passed}
        yield from (id for id in batch if id in kept)


def _page(ids: Iterator[str], limit: int, offset: int) -> list[str]:
    """LIMIT and OFFSET as SQL has them: a negative limit is none, a negative offset is 0."""
    page: list[str] = []
    if limit == 0:
        return page
    for place, id in enumerate(ids):
        if place >= offset:
            page.append(id)
        if len(page) == limit:
            break
    return page


def _rich(writer: Writer, ids: Sequence[str], *, project: bool, compact: bool) -> list[dict[str, Any]]:
    """The rows of these ids with previews, in their order, and with the tips of conversations."""
    rows = _read(writer, ids, compact=compact)
    compressed = [row["id"] for row in rows if row["end_reason"] == "compression"]
    tips = compression_tips(writer, compressed) if project else {}
    ends = {row["id"]: row for row in _read(writer, list(tips.values()), compact=compact)}
    shown = [tips.get(row["id"], row["id"]) for row in rows]
    begins = {id: text for batch in _batches(shown) for id, text in previews.first_words(writer, batch).items()}
    for row in (*rows, *ends.values()):
        row["preview"] = begins.get(row["id"], "")
    for row in rows:
        end = ends.get(tips.get(row["id"], ""))
        if end is not None:
            row["_lineage_root_id"] = row["id"]
            row.update((name, end[name]) for name in _OF_TIP if name in end)
    return rows


def _read(writer: Writer, ids: Sequence[str], *, compact: bool) -> list[dict[str, Any]]:
    """All columns of these sessions and `last_active`, in their order."""
    columns = select_columns(writer.shape, "s", without=("system_prompt",) if compact else ())
    newest = "(SELECT max(m.timestamp) FROM messages AS m WHERE m.session_id = s.id)"
    found: dict[str, Row] = {}
    names: list[str] = []
    for batch in _batches(ids):
        rows = writer.rows(
            f"SELECT {columns}, coalesce({newest}, s.started_at) AS last_active FROM sessions AS s"
            f" WHERE s.id IN ({', '.join('?' * len(batch))})",
            batch,
        )
        found.update((row["id"], row) for row in rows)
        names = rows[0].keys() if rows else names
    # dict(row) looks up each of its 50 names, five times slower.
    return [dict(zip(names, found[id], strict=True)) for id in ids if id in found]


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))
