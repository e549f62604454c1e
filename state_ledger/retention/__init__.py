"""Cleaning up: what would be pruned and what not and why, pruning, archiving, and doing so by the clock.

Source: session-db, section 10. Only ended sessions are pruned. A session that a crash left open never
ends, so a plan names what it leaves alone: a clean-up that says 0 beside a full store looks healthy.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from state_ledger.ledger.columns import column
from state_ledger.retention import choice, deletion
from state_ledger.retention.selection import DAY_S, last_active, select
from state_ledger.sessions import conversations
from state_ledger.sqlite import Connection
from state_ledger.writing import meta
from state_ledger.writing.writer import Writer

_LAST_PRUNE, _LAST_ARCHIVE = "last_auto_prune", "last_auto_archive"

_REASONS = ("never_ended", "pinned", "in_use", "archived")
"""Why a session that is old enough stays, as a `PrunePlan` has it: one that is being compressed is in use."""


@dataclass(frozen=True)
class PrunePlan:
    """What a prune with some filters would do now.

    delete: ids of the sessions that would go, oldest start first. stay: ids of those that meet age
    and filters and would stay all the same, by reason (of `choice.REASONS`); the first reason that
    holds counts. messages: how many messages would go. oldest and newest: when the oldest and the
    newest session to go were last active, epoch seconds. orphaned: ids of sessions that stay and
    would lose their parent.
    """

    delete: tuple[str, ...]
    stay: dict[str, tuple[str, ...]]
    messages: int
    oldest: float | None
    newest: float | None
    orphaned: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The plan for a person."""
        said = f"{_counted(len(self.delete), 'session')} with {_counted(self.messages, 'message')} would be deleted"
        if self.oldest is not None and self.newest is not None:
            said += f", last active from {_day(self.oldest)} to {_day(self.newest)}"
        kept = [f"{len(ids):,} {choice.REASONS[reason]}" for reason, ids in self.stay.items() if ids]
        said += f"; {', '.join(kept)} would stay." if kept else "."
        if self.orphaned:
            said += f" {_counted(len(self.orphaned), 'session')} would lose the parent."
        return said


def plan_prune(
    writer: Writer, /, older_than_days: float | None = 90, source: str | None = None, **filters: Any
) -> PrunePlan:
    """What `prune_sessions` with the same arguments would delete, what it would leave, and why. Reads only.

    Raises TypeError for an unknown filter.
    """
    with writer.lock:
        chosen = _choose(writer, older_than_days, source, filters)
        delete = chosen.ids
        stay = {reason: tuple(row["id"] for row in rows) for reason, rows in chosen.stay.items()}
        activity = [row["last_active"] for row in chosen.rows if row["last_active"] is not None]
        return PrunePlan(
            tuple(delete),
            {reason: stay[reason] + (stay["locked"] if reason == "in_use" else ()) for reason in _REASONS},
            _sum_of(writer, delete, "SELECT count(*) FROM messages WHERE session_id IN ({})"),
            min(activity, default=None),
            max(activity, default=None),
            writer.reading(lambda connection: deletion.children_that_stay(connection, writer.shape, delete)),
        )


def list_prune_candidates(
    writer: Writer, /, older_than_days: float | None = None, source: str | None = None, **filters: Any
) -> list[dict[str, Any]]:
    """The sessions that `prune_sessions` with the same arguments would delete, oldest first.

    Each has id, source, title, model, started_at, ended_at, message_count, archived, last_active.
    """
    rows = _choose(writer, older_than_days, source, filters).rows
    return [{key: row[key] for key in row.keys() if not key.startswith("is_")} for row in rows]  # noqa: SIM118


def prune_sessions(
    writer: Writer,
    /,
    older_than_days: float | None = 90,
    source: str | None = None,
    sessions_dir: Path | str | None = None,
    **filters: Any,
) -> int:
    """Deletes ended sessions without activity for some days, in one transaction; returns their number.

    older_than_days: days since the newest message (the start, where there is none); None for any age.
    Pinned sessions stay, and earlier segments of a conversation that is still in use. Children of a
    deleted session become roots. sessions_dir: a folder whose transcript files go too. Filters, all
    of which must hold: started_before, started_after, last_active_before, last_active_after (epoch
    seconds; the "before" ones take the place of older_than_days), title_like, model_like, branch_like
    (parts, either case), end_reason, user_id, chat_id, chat_type, provider, cwd_prefix, min_ and
    max_messages, _tokens, _cost, _tool_calls, archived (True, False).
    Raises TypeError for an unknown filter.
    """

    def work(connection: Connection) -> list[str]:
        ids = _choose(writer, older_than_days, source, filters).ids
        deletion.remove(connection, writer.shape, ids)
        return ids

    deleted = writer.write(work)
    deletion.remove_files(writer, sessions_dir, deleted)
    return len(deleted)


def archive_sessions(
    writer: Writer, /, older_than_days: float | None = None, source: str | None = None, **filters: Any
) -> int:
    """Archives what `prune_sessions` with the same arguments would delete, with all segments of each
    conversation; returns the number of sessions chosen. Archived ones are left out unless asked for."""
    filters.setdefault("archived", False)

    def work(connection: Connection) -> int:
        return _archive(writer, _choose(writer, older_than_days, source, filters).ids)

    return writer.write(work)


def archive_stale_sessions(writer: Writer, idle_days: float | None, *, exclude_pinned: bool = True) -> int:
    """Archives conversations without activity for some days, open ones too; returns their number.

    The last segment decides for a conversation. idle_days: None or below 0 archives nothing.
    """
    if idle_days is None or idle_days < 0:
        return 0

    def work(connection: Connection) -> int:
        shape = writer.shape
        pinned = f"AND coalesce({column(shape, 'sessions', 'pinned', 's')}, 0) = 0" if exclude_pinned else ""
        rows = connection.execute(
            f"SELECT s.id FROM sessions AS s WHERE {last_active(shape)} < ? {pinned}"
            f" AND coalesce({column(shape, 'sessions', 'archived', 's')}, 0) = 0"
            " AND s.end_reason IS NOT 'compression' ORDER BY s.started_at",
            (time.time() - idle_days * DAY_S,),
        ).fetchall()
        return _archive(writer, [row[0] for row in rows])

    return writer.write(work)


def maybe_auto_prune_and_vacuum(
    writer: Writer,
    retention_days: float = 90,
    min_interval_hours: float = 24,
    vacuum: bool = True,
    sessions_dir: Path | str | None = None,
) -> dict[str, Any]:
    """Prunes unless that was done within the interval; rewrites the file if anything was deleted.

    Returns `{"skipped", "pruned", "vacuumed"}`, with "error" (a sentence) if something went wrong:
    it raises nothing, as it runs beside other work.
    """
    result: dict[str, Any] = {"skipped": False, "pruned": 0, "vacuumed": False}
    try:
        if _done_lately(writer, _LAST_PRUNE, min_interval_hours):
            return {**result, "skipped": True}
        result["pruned"] = prune_sessions(writer, retention_days, sessions_dir=sessions_dir)
        meta.set_meta(writer, _LAST_PRUNE, str(time.time()))
        if vacuum and result["pruned"]:
            meta.vacuum(writer)
            result["vacuumed"] = True
    except Exception as error:
        result["error"] = str(error)
    return result


def maybe_auto_archive(
    writer: Writer, idle_days: float = 3, min_interval_hours: float = 24, exclude_pinned: bool = True
) -> dict[str, Any]:
    """Archives what is stale unless that was done within the interval.

    Returns `{"skipped", "archived"}`, with "error" (a sentence) if something went wrong; raises nothing.
    """
    result: dict[str, Any] = {"skipped": False, "archived": 0}
    try:
        if _done_lately(writer, _LAST_ARCHIVE, min_interval_hours):
            return {**result, "skipped": True}
        result["archived"] = archive_stale_sessions(writer, idle_days, exclude_pinned=exclude_pinned)
        meta.set_meta(writer, _LAST_ARCHIVE, str(time.time()))
    except Exception as error:
        result["error"] = str(error)
    return result


def _choose(
    writer: Writer, older_than_days: float | None, source: str | None, filters: dict[str, Any]
) -> choice.Choice:
    """The rows that a prune deletes, and the others that meet age and filters, by reason."""
    asked_archived = filters.get("archived") is False
    selection = select(
        writer.shape, older_than_days, source, {**filters, "archived": None} if asked_archived else filters
    )
    protection = choice.Protection(time.time(), archived=asked_archived)
    return writer.reading(lambda connection: choice.choose(connection, selection, protection, old_only=True))


def _sum_of(writer: Writer, ids: Sequence[str], sql: str, batch: int = 500) -> int:
    parts = (ids[at : at + batch] for at in range(0, len(ids), batch))
    return sum(int(writer.value(sql.format(", ".join("?" * len(part))), part)) for part in parts)


def _archive(writer: Writer, ids: Iterable[str]) -> int:
    return sum(conversations.set_session_archived(writer, id, True) for id in ids)


def _done_lately(writer: Writer, key: str, hours: float) -> bool:
    try:
        last = float(meta.get_meta(writer, key) or 0)
    except ValueError:
        return False
    return 0 <= time.time() - last < hours * 3600


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))
