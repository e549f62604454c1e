"""Why something was expensive: the rows of `cost_drivers` as sentences, each with a number and a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from state_ledger.pages import figures
from state_ledger.pages.asking import Ask
from state_ledger.pages.links import Links
from state_ledger.pages.sums import Record

KINDS = ("session", "conversation", "work", "day")
"""What can be explained."""

QUESTION = "cost_drivers"

_THIS = {"session": "The session", "conversation": "The conversation", "work": "The piece of work", "day": "The day"}
_MANY = {
    "session": ("session", "sessions"), "conversation": ("conversation", "conversations"),
    "work": ("piece of work", "pieces of work"), "day": ("day", "days"),
}  # fmt: skip


@dataclass(frozen=True)
class Driver:
    """One reason. kind: as the question names it; row: its figures, with their unit.

    href: where to look; label: what is there.
    """

    kind: str
    sentence: str
    href: str
    label: str
    row: Record

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        names = ("value", "unit", "part_of", "typical", "compared", "count", "name", "session_id", "message_id",
                 "certainty")  # fmt: skip
        return {
            "driver": self.kind,
            "sentence": self.sentence,
            "href": self.href,
            "label": self.label,
            **{name: self.row[name] for name in names},
        }


@dataclass(frozen=True)
class Drivers:
    """All reasons of one subject, and the parameters that ask for them again."""

    kind: str
    drivers: list[Driver]
    asked: Mapping[str, str]


def read_drivers(ask: Ask, at: Links, kind: str, subject: str, more: Mapping[str, str] | None = None) -> Drivers:
    """The cost drivers of a session, conversation, work (any id of it) or day (`YYYY-MM-DD`).

    more: `tz` and `day_rule`, for a day. Reads the usage of the whole store for the medians, and every message
    of the subject. Nothing is found where the store has no such subject. Raises ParameterError, OutOfTime and
    Unanswered as `Ask` does.
    """
    asked = {kind: subject, **{name: value for name, value in (more or {}).items() if value}}
    rows = ask(QUESTION, asked).rows
    return Drivers(kind, [_driver(kind, subject, row, at, asked) for row in rows], asked)


def _driver(kind: str, subject: str, row: Record, at: Links, asked: Mapping[str, str]) -> Driver:
    sentence, href = _SENTENCES[row["driver"]](_Told(kind, subject, row, at, asked))
    label = "Its sessions" if (kind, row["driver"]) == ("day", "cost") else _LABELS[row["driver"]]
    return Driver(row["driver"], sentence, href, label, row)


@dataclass(frozen=True)
class _Told:
    """What a sentence is made of."""

    kind: str
    subject: str
    row: Record
    at: Links
    asked: Mapping[str, str]

    @property
    def peers(self) -> str:
        """Those that the median is of: `34 cli sessions with claude-x`."""
        row = self.row
        one, many = _MANY[self.kind]
        if self.kind == "day":
            return figures.plural(row["compared"] or 0, "day with usage", "days with usage")
        source = f"{figures.cut(str(row['source']), 60)} " if row["source"] else ""
        model = f" with {figures.cut(str(row['canonical_model']), 80)}" if row["canonical_model"] else ""
        return figures.plural(row["compared"] or 0, f"{source}{one}", f"{source}{many}") + model

    def against(self, median: str) -> str:
        """The comparison, as the end of a sentence; '' where there are too few to compare with."""
        row = self.row
        if row["typical"] is None:
            return ""
        times = f"{figures.count(row['value'] / row['typical'])} × " if row["typical"] else ""
        return f", {times}the median of {median} ({self.peers})"

    @property
    def estimate(self) -> str:
        """What labels a figure of a day: usage is spread over days by a rule."""
        return " (an estimate: totals spread over the days of each session)" if self.kind == "day" else ""

    @property
    def here(self) -> str:
        """Where the usage behind the figures stands."""
        if self.kind == "session":
            return self.at.table("session_model_usage", {"session_id": self.subject})
        return self.sessions if self.kind == "day" else self.at.transcript(self.kind, self.subject)

    @property
    def sessions(self) -> str:
        """The sessions that are compared, or those of the day."""
        if self.kind == "day":
            kept = {name: self.asked[name] for name in ("tz", "day_rule") if name in self.asked}
            return self.at.sessions({"since": self.subject, "until": self.subject, **kept})
        return self.at.sessions({"source": self.row["source"] or "", "model": self.row["canonical_model"] or ""})

    @property
    def message(self) -> str:
        """The message that stands out."""
        return self.at.message(self.row["session_id"], self.row["message_id"])

    def part(self, name: str = "value") -> str:
        """The share of the whole, in brackets; '' where there is no whole."""
        whole = self.row["part_of"]
        return f" ({figures.ratio(self.row[name] / whole)})" if whole and self.row[name] is not None else ""


def _cost(told: _Told) -> tuple[str, str]:
    row, this = told.row, _THIS[told.kind]
    unknown = figures.plural(row["count"] or 0, "call") if row["count"] else ""
    if row["value"] is None or (row["value"] == 0 and unknown):
        return f"What {this[0].lower()}{this[1:]} cost is unknown: no price is known for {unknown or 'it'}.", told.here
    said = f"{this} cost {'at least ' if unknown else ''}{figures.money(row['value'])}{told.estimate}"
    if row["typical"] is None and row["compared"]:
        said += f"; no median, there {'is' if row['compared'] == 1 else 'are'} only {told.peers}"
    elif row["value"]:
        said += told.against(figures.money(row["typical"]))
    return said + (f"; {unknown} of unknown cost not counted." if unknown else "."), told.sessions


def _largest_session(told: _Told) -> tuple[str, str]:
    row = told.row
    title = figures.cut(str(row["name"] or row["session_id"]), 80)
    said = f"One of {figures.plural(row['count'], 'session')} cost {figures.money(row['value'])} of it{told.part()}"
    return f"{said}: {title}.", told.at.session(row["session_id"])


def _calls(told: _Told) -> tuple[str, str]:
    row = told.row
    said = f"The model was called {figures.plural(row['value'], 'time')}, helpers apart"
    return f"{said}{told.against(figures.count(row['typical']))}.", told.here


def _prompt_per_call(told: _Told) -> tuple[str, str]:
    row = told.row
    said = (
        f"A call sent {figures.short(row['value'])} tokens of prompt on average,"
        f" {figures.short(row['part_of'])} in {figures.plural(row['count'], 'call')}"
    )
    return f"{said}{told.against(figures.short(row['typical']))}.", told.here


def _context_growth(told: _Told) -> tuple[str, str]:
    row = told.row
    times = figures.count(row["value"] / row["part_of"])
    return (
        f"Each call sends what came before again: {figures.size(row['part_of'])} of messages became about"
        f" {figures.size(row['value'])} of prompts over {figures.plural(row['count'], 'call')}, {times} × as much"
        " (an estimate from the stored messages; the store counts no single call)."
    ), told.message


def _cache_read_ratio(told: _Told) -> tuple[str, str]:
    row = told.row
    said = f"Helpers apart, {figures.ratio(row['value'])} of {figures.short(row['part_of'])} prompt tokens were cached"
    if row["typical"] is not None:
        said += f"; the median is {figures.ratio(row['typical'])} ({told.peers})"
    known = {name: told.asked[name] for name in ("tz", "day_rule") if name in told.asked}
    if told.kind == "day":
        period = {"since": told.subject, "until": told.subject}
        return f"{said}.", told.at.query("cache_ratio_per_day", {**period, **known})
    peers = {"source": row["source"] or "", "model": row["canonical_model"] or ""}
    return f"{said}. These are totals: at which call the cache was lost is not stored.", told.at.query(
        "cache_worst_sessions", peers)  # fmt: skip


def _sent_differently(told: _Told) -> tuple[str, str]:
    row = told.row
    were = "was" if row["value"] == 1 else "were"
    said = f"{figures.count(row['value'])} of {figures.plural(row['part_of'], 'message')} {were} not sent as stored"
    return f"{said}; a cached prompt may end at the first of them.", told.message


def _helper_calls(told: _Told) -> tuple[str, str]:
    row = told.row
    many = figures.plural(row["count"], "helper call") if row["count"] is not None else "Helper calls, not counted,"
    cost = "an unknown amount" if row["value"] is None else f"{figures.money(row['value'])}{told.part()}"
    said = f"{many} (most for {figures.cut(str(row['name']), 60)}) cost {cost}"
    if told.kind == "day":
        period = {"since": told.subject, "until": told.subject}
        known = {name: told.asked[name] for name in ("tz", "day_rule") if name in told.asked}
        return f"{said}.", told.at.query("cost_per_task", {**period, **known})
    if told.kind == "session":
        return f"{said}.", told.at.table("session_model_usage", {"session_id": told.subject, "task__not": ""})
    return f"{said}.", told.here


def _delegates(told: _Told) -> tuple[str, str]:
    row = told.row
    many = figures.plural(row["count"], "session")
    cost = "an unknown amount" if row["value"] is None else figures.money(row["value"])
    title = figures.cut(str(row["name"] or row["session_id"]), 80)
    href = told.at.session(row["session_id"])
    if row["part_of"] is not None and row["value"] is not None:
        return f"{cost}{told.part()} of it was spent by delegates, in {many}, most by {title}.", href
    if told.kind in ("work", "day"):
        return f"Delegates worked in {many}, most by {title}; they cost {cost}.", href
    one = figures.plural(row["count"], "delegate")
    return f"It called {one}; they cost {cost} themselves, which is not in its cost. The largest: {title}.", href


def _tool_output(told: _Told) -> tuple[str, str]:
    row = told.row
    return (
        f"Tool results are {figures.size(row['value'])} of {figures.size(row['part_of'] or 0)} of text{told.part()},"
        f" in {figures.plural(row['count'], 'result')}, most from {figures.cut(str(row['name'] or 'tools'), 60)}."
    ), told.message


def _loop(told: _Told) -> tuple[str, str]:
    row = told.row
    name = figures.cut(str(row["name"] or "A tool"), 60)
    return f"{name} was called {figures.plural(row['value'], 'time')} with the same arguments.", told.message


_SENTENCES = {
    "cost": _cost, "largest_session": _largest_session, "calls": _calls, "prompt_per_call": _prompt_per_call,
    "context_growth": _context_growth, "cache_read_ratio": _cache_read_ratio, "sent_differently": _sent_differently,
    "helper_calls": _helper_calls, "delegates": _delegates, "tool_output": _tool_output, "loop": _loop,
}  # fmt: skip

_LABELS = {
    "cost": "Compared sessions", "largest_session": "Read it", "calls": "Usage", "prompt_per_call": "Usage",
    "context_growth": "Longest prompt", "cache_read_ratio": "Cache", "sent_differently": "The first",
    "helper_calls": "Helper calls", "delegates": "Read it", "tool_output": "Largest result", "loop": "First call",
}  # fmt: skip
