"""A plan and what was done in words and numbers, and the command that does it. Source: accounting rules 23 and 24."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from state_ledger.cli import output
from state_ledger.pages.figures import plural
from state_ledger.retention.choice import REASONS
from state_ledger.retention.plan import Group, Left, Plan
from state_ledger.retention.pruning import CHANGED, Pruned
from state_ledger.retention.sweeping import REASONS as NOT_SWEPT
from state_ledger.retention.sweeping import SweepPlan
from state_ledger.retention.weight import Weight
from state_ledger.storage import Pages


def first_line(plan: Plan) -> str:
    """What would go and what stays in one sentence; where nothing would go, why."""
    stays = ", ".join(f"{len(left.ids):,} {REASONS[left.reason]}" for left in plan.left)
    if not plan.delete:
        if not plan.sessions:
            return "Nothing would be deleted: the store has no sessions."
        if not plan.matching:
            return f"Nothing would be deleted: none of the {plan.sessions:,} sessions is one that the filters select."
        return f"Nothing would be deleted: of {plural(plan.matching, 'session')} that the filters select, {stays}."
    said = f"{plural(plan.total.sessions, 'session')} with {plural(plan.total.messages, 'message')} would be deleted"
    return f"{said}; {stays} would stay." if stays else f"{said}."


def plan_lines(plan: Plan, commands: Mapping[str, str], *, last: str = "To do this") -> list[str]:
    """The whole plan, the first line first.

    commands: what to type, by `prune`, `list <reason>` and `sweep`. last: what the command is called that does it.
    """
    lines = [first_line(plan)]
    if plan.delete:
        for what, groups in (("source", plan.by_source), ("idle for", plan.by_age)):
            lines += ["", _table(what, groups, plan.total)]
        lines += ["", *_weights(plan)]
    if plan.left:
        lines += ["", "What stays:"]
        for left in plan.left:
            lines += _left(left, plan, commands)
    if plan.detached:
        lines += ["", f"{plural(len(plan.detached), 'session')} that would stay would lose the parent."]
    if plan.orphans:
        rows = plural(plan.orphans, "row")
        lines += ["", f"{rows} of messages and usage belong to no session any more; a prune leaves them as they are."]
    if plan.delete and "prune" in commands:
        lines += ["", f"{last}: {commands['prune']}"]
    return lines


def done_lines(done: Pruned, commands: Mapping[str, str]) -> list[str]:
    """What a prune did."""
    rows = ", ".join(f"{number:,} of {table}" for table, number in sorted(done.rows.items()))
    lines = [
        f"{plural(len(done.deleted), 'session')} deleted"
        + (f"; rows removed: {rows}." if rows else "."),
    ]
    reasons: dict[str, int] = {}
    for reason in done.left.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    words = {**REASONS, **CHANGED}
    for reason, number in reasons.items():
        lines.append(f"{plural(number, 'session')} of the plan stayed: {words[reason]}.")
    if done.pages is not None:
        lines.append(free_pages(done.pages, commands["vacuum"]))
    return lines


def free_pages(pages: Pages, vacuum: str) -> str:
    """What waits for VACUUM, and how that is done."""
    said = f"{plural(pages.free, 'page')} of {pages.total:,} free, {pages.size:,} bytes each"
    if not pages.free:
        return f"{said}; the file is as large as before."
    return f"{said}; the file is as large as before until it is rewritten: {vacuum}"


def sweep_lines(plan: SweepPlan, idle_days: float, commands: Mapping[str, str]) -> list[str]:
    """A sweep as a plan, its first line first."""
    days = f"{idle_days:g} days"
    if plan.sweep:
        number = plural(len(plan.sweep), "open session")
        lines = [f"{number} idle for more than {days} would be ended (reason: swept)."]
        rows = [(idle.session_id, idle.source, idle.title, day(idle.idle_since)) for idle in plan.sweep[:_SHOWN]]
        lines += ["", output.table(("session", "source", "title", "idle since"), rows)]
        if len(plan.sweep) > _SHOWN:
            lines.append(f"and {len(plan.sweep) - _SHOWN:,} more (--json has all of them)")
    elif plan.kept:
        lines = ["Nothing would be ended: what is idle for long enough stays open, see below."]
    elif plan.recent:
        lines = [f"Nothing would be ended: {plural(plan.recent, 'open session')}, none idle for more than {days}."]
    else:
        lines = ["Nothing would be ended: no session that the filters select is open."]
    lines += [f"{idle.session_id} stays open: {NOT_SWEPT[idle.kept or '']}." for idle in plan.kept]
    if plan.sweep and "sweep" in commands:
        lines += ["", f"To do this: {commands['sweep']}"]
    return lines


_SHOWN = 20


def day(moment: float | None) -> str:
    """The UTC day of a moment, `?` where there is none."""
    return "?" if moment is None else time.strftime("%Y-%m-%d", time.gmtime(moment))


def _table(what: str, groups: Sequence[Group], total: Weight) -> str:
    def row(name: str, weight: Weight) -> tuple[object, ...]:
        return (name, weight.sessions, weight.messages, weight.text_bytes, weight.usage_rows, weight.estimated_bytes)

    columns = (what, "sessions", "messages", "bytes of text", "usage rows", "bytes in all, est.")
    return output.table(columns, [*(row(group.name, group.weight) for group in groups), row("all", total)])


def _weights(plan: Plan) -> list[str]:
    total = plan.total
    ranked = sorted(total.estimated.items(), key=lambda part: -part[1])
    small = [size for _, size in ranked if size < total.estimated_bytes / 100]
    parts = [f"{name} {size:,}" for name, size in ranked[: len(ranked) - len(small)]]
    parts += [f"{len(small)} smaller ones {sum(small):,}"] if small else []
    lines = [f"Bytes by table and index, estimated by rows: {', '.join(parts)}."] if parts else []
    size = f"{plan.pages.size:,} bytes each"
    lines.append(
        f"Free pages: {plan.pages.free:,} of {plan.pages.total:,} now, at most about {plan.pages_freed:,} more once the"
        f" indexes are merged ({size}). Deleting does not shrink the file; VACUUM does."
    )
    return lines


def _left(left: Left, plan: Plan, commands: Mapping[str, str]) -> list[str]:
    sources = ", ".join(f"{source} {number:,}" for source, number in left.by_source.items())
    since = "" if left.idle_since is None else f"; the longest idle since {day(left.idle_since)}"
    lines = [f"- {len(left.ids):,} {REASONS[left.reason]} ({sources}{since})"]
    if f"list {left.reason}" in commands:
        lines.append(f"  to list them: {commands[f'list {left.reason}']}")
    if left.reason == "never_ended" and "sweep" in commands:
        lines.append(f"  to end them: {commands['sweep']}")
    if left.reason == "in_use":
        lines.append("  with --compat they go, and the segment after them loses its parent")
    return lines


def plan_json(plan: Plan, commands: Mapping[str, str]) -> dict[str, Any]:
    """The plan for programs: what `plan_lines` says, with all ids."""

    def weight(of: Weight) -> dict[str, Any]:
        return {
            "sessions": of.sessions,
            "messages": of.messages,
            "text_bytes": of.text_bytes,
            "usage_rows": of.usage_rows,
            "estimated_bytes": dict(of.estimated),
        }

    return {
        "sentence": first_line(plan),
        "now": plan.criteria.now,
        "delete": list(plan.delete),
        "total": weight(plan.total),
        "by_source": [{"source": group.name, **weight(group.weight)} for group in plan.by_source],
        "by_age": [{"idle_for": group.name, **weight(group.weight)} for group in plan.by_age],
        "stay": [
            {
                "reason": left.reason,
                "in_words": REASONS[left.reason],
                "sessions": len(left.ids),
                "by_source": dict(left.by_source),
                "idle_since": left.idle_since,
                "ids": list(left.ids),
            }
            for left in plan.left
        ],
        "lose_their_parent": list(plan.detached),
        "orphan_rows": plan.orphans,
        "pages": {"total": plan.pages.total, "free": plan.pages.free, "size": plan.pages.size},
        "pages_freed_at_most": plan.pages_freed,
        "commands": dict(commands),
    }


def done_json(done: Pruned) -> dict[str, Any]:
    """What a prune did, for programs."""
    return {
        "deleted": done.deleted,
        "rows_removed": dict(done.rows),
        "stayed": done.left,
        "transactions": done.transactions,
        "longest_lock_s": round(done.longest_s, 3),
        "pages": None
        if done.pages is None
        else {"total": done.pages.total, "free": done.pages.free, "size": done.pages.size},
    }
