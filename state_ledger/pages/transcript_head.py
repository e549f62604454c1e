"""The head of a transcript page: what is being read, what it cost, where else to go from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state_ledger.pages import figures, tables
from state_ledger.pages.links import Links
from state_ledger.pages.sums import Sums
from state_ledger.pages.tables import Cell, Column
from state_ledger.pages.transcript import SIZE, Transcript, Wanted
from state_ledger.transcript import KINDS, Scope

WHAT = {
    "session": "one session", "conversation": "all its segments in order",
    "work": "the conversation, its delegates folded in",
}  # fmt: skip
"""What each kind of page shows, in words."""


@dataclass(frozen=True)
class Choice:
    """A link among several; `current` marks where the reader is."""

    label: str
    href: str
    current: bool = False
    title: str = ""


def address(wanted: Wanted, scope: Scope, at: Links, **changes: Any) -> str:
    """The page with some of its parameters changed; what has its default is left out, the zone never."""
    values: dict[str, Any] = {
        "tz": wanted.zone,
        "size": wanted.size if wanted.size != SIZE else None,
        "inactive": 1 if wanted.taken_back else None,
        "verbatim": 1 if wanted.verbatim else None,
        **changes,
    }
    kept = {name: str(value) for name, value in values.items() if value is not None}
    return at.transcript(wanted.kind, scope.id, kept)


def permalink(transcript: Transcript, at: Links) -> str:
    """The address that shows this very page again, whoever opens it."""
    anchor = f"#m{transcript.target}" if transcript.target is not None else ""
    return _same_place(transcript, at) + anchor


def why_link(transcript: Transcript, at: Links) -> str:
    """This very page with what made it expensive, which takes longer to find out than the page itself."""
    return _same_place(transcript, at, why=1) + "#why"


def _same_place(transcript: Transcript, at: Links, **changes: Any) -> str:
    wanted = transcript.wanted
    place: dict[str, Any] = {
        "message": wanted.message, "sent": wanted.compared, "after": wanted.after, "before": wanted.before,
        "page": "last" if wanted.last else None,
    }  # fmt: skip
    return address(wanted, transcript.scope, at, **place, **changes)


def message_address(transcript: Transcript, at: Links, message: int, *, compared: bool = False) -> str:
    """The page opened at a message, its difference shown where that is asked for."""
    place = {"message": message, **({"sent": message} if compared else {})}
    return address(transcript.wanted, transcript.scope, at, **place) + f"#m{message}"


def scopes(scope: Scope, wanted: Wanted, at: Links) -> list[Choice]:
    """The session, its conversation, its work: each a link, with how many sessions it has."""
    own = scope.family.own
    counts = {
        "session": 1,
        "conversation": len(scope.family.segments(own.conversation)),
        "work": len(scope.family.work),
    }
    ids = {"session": own.session_id, "conversation": own.conversation, "work": own.work}
    kept = {"tz": wanted.zone}
    return [
        Choice(
            kind.capitalize() + (f" ({counts[kind]})" if kind != "session" else ""),
            at.transcript(kind, ids[kind], kept), kind == wanted.kind, WHAT[kind],
        )
        for kind in KINDS
    ]  # fmt: skip


def pager(transcript: Transcript, at: Links) -> list[Choice]:
    """First, older, newer, last: those that lead somewhere else."""
    page, wanted, scope = transcript.page, transcript.wanted, transcript.scope
    found = []
    if page.before is not None and page.messages:
        found.append(Choice("First", address(wanted, scope, at)))
        found.append(Choice("← Older", address(wanted, scope, at, before=page.messages[0].id)))
    if page.after is not None and page.messages:
        found.append(Choice("Newer →", address(wanted, scope, at, after=page.messages[-1].id)))
        found.append(Choice("Last", address(wanted, scope, at, page="last")))
    return found


def facts(transcript: Transcript) -> list[tuple[str, str]]:
    """Label and text of what is known of the sessions that are read."""
    scope, zone = transcript.scope, transcript.wanted.zone
    first, last = scope.chain[0].facts, scope.tip.facts
    models = list(dict.fromkeys(str(n.facts["model"]) for n in scope.members if n.facts["model"]))
    began = min((n.facts["first_active"] for n in scope.members if n.facts["first_active"]), default=None)
    ended = max((n.facts["last_active"] for n in scope.members if n.facts["last_active"]), default=None)
    listed = [
        ("Id", scope.id),
        ("Source", first["source"]),
        ("Profile", first["profile"]),
        ("Model", ", ".join(models)),
        ("Began", figures.moment(began, zone)),
        ("Last activity", figures.moment(ended, zone)),
        ("Duration", duration(began, ended)),
        ("End", last["end_reason"] or ("ended" if last["ended_at"] else "still open")),
        ("Folder", first["cwd"]),
        ("Branch", first["git_branch"]),
    ]
    return [(label, figures.cut(str(value))) for label, value in listed if value]


def duration(began: float | None, ended: float | None) -> str:
    """Between two moments in two units: `2 d 4 h`, `35 min`, `12 s`."""
    if began is None or ended is None or ended < began:
        return figures.NO_DATA
    left = round(ended - began)
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size} {unit}")
            left %= size
        elif parts:
            break
    return " ".join(parts[:2])


def sent_line(transcript: Transcript, at: Links) -> dict[str, Any]:
    """What share was sent as it is shown, and which message diverges first (accounting rule 18)."""
    sent, wanted = transcript.sent, transcript.wanted
    if sent is None:
        count = address(wanted, transcript.scope, at, verbatim=1)
        return {"said": "", "count": count, "first": None}
    if sent.share is None:
        said = "no message" if sent.verbatim is not None else "not recorded in this store"
        return {"said": said, "count": "", "first": None}
    said = f"{figures.count(sent.verbatim)} of {figures.plural(sent.messages, 'message')} ({figures.ratio(sent.share)})"
    first = None
    if sent.first is not None:
        key = sent.first[1]
        first = Choice(f"message {key}", message_address(transcript, at, key, compared=True))
    return {"said": said, "count": "", "first": first}


def usage_table(transcript: Transcript) -> str:
    """Usage by model, provider and task: helper calls are money and stand beside the conversation."""
    rows: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for node in transcript.scope.members:
        for row in node.usage:
            key = (str(row["canonical_model"] or row["model"] or "no model"), str(row["billing_provider"] or ""),
                   str(row["task"] or ""))  # fmt: skip
            rows.setdefault(key, []).append(row)
    if not rows:
        return ""
    columns = [
        Column("Model"), Column("Task"), Column("Cost", True), Column("Calls", True),
        Column("Fresh", True, "Tokens: input + output"),
        Column("Processed", True, "Tokens: input + output + cache read + cache write"), Column("Cache read", True),
    ]  # fmt: skip
    ordered = sorted(rows.items(), key=lambda item: -(Sums.of(item[1]).cost_usd or 0))
    body = [_usage_row(key, Sums.of(each)) for key, each in ordered]
    return tables.table("Usage by model, provider and task", columns, body, name="usage-table")


def _usage_row(key: tuple[str, str, str], sums: Sums) -> Sequence[Cell]:
    model, provider, task = key
    return [
        Cell(model, sub=provider),
        Cell(task or "conversation"),
        Cell(sums.cost_text, title=figures.exact_money(sums.cost_usd), word=sums.cost_is_word),
        Cell(figures.count(sums.api_call_count), word=sums.api_call_count is None),
        Cell(figures.short(sums.fresh_tokens), title=figures.count(sums.fresh_tokens), word=sums.fresh_tokens is None),
        Cell(figures.short(sums.processed_tokens), title=figures.count(sums.processed_tokens),
             word=sums.processed_tokens is None),
        Cell(figures.ratio(sums.cache_read_ratio), word=sums.cache_read_ratio is None),
    ]  # fmt: skip


def take_along(scope: Scope, at: Links) -> list[Choice]:
    """Where this can be had as data: the one list of exports of a transcript."""
    asked = {"session": scope.id}
    if scope.kind == "session":
        name, what = "session_messages", "Messages"
        asked["limit"] = "1000"
    else:
        name, what = f"lineage_{scope.kind}", "Sessions"
    return [
        Choice("Export", at.export_page({scope.kind: scope.id})),
        Choice(f"{what} as a question", at.query(name, asked)),
        Choice("JSON", at.query(name, asked, form="json")),
        Choice("CSV", at.query(name, asked, form="csv")),
    ]
