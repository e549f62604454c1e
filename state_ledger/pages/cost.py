"""Cost of a period in one grouping: rows, the total of all that fell in it, and its days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from state_ledger.errors import ParameterError
from state_ledger.pages.asking import Answer, Ask
from state_ledger.pages.daily import Daily, daily
from state_ledger.pages.period import PRESETS, Period
from state_ledger.pages.sums import Record, Sums
from state_ledger.questions.parameters import COMMON, ParameterSettings, validate, with_settings

FILTERS = ("source", "model", "profile", "day_rule", "tz")
"""The common parameters that a reader can set beside period and group."""


@dataclass(frozen=True)
class Group:
    """One way to group cost.

    question: who answers; column: the column that names a row; many: what the rows are, in words.
    """

    key: str
    label: str
    question: str
    column: str
    many: str


GROUPS = {
    group.key: group
    for group in (
        Group("model", "Model", "cost_per_model", "model", "models"),
        Group("day", "Day", "cost_per_day_and_model", "day", "days"),
        Group("source", "Source", "cost_per_source", "source", "sources"),
        Group("task", "Task", "cost_per_task", "task", "tasks"),
        Group("profile", "Profile", "cost_per_profile", "profile", "profiles"),
        Group("conversation", "Conversation", "top_conversations", "conversation_id", "conversations"),
        Group("work", "Work", "top_work", "work_id", "pieces of work"),
        Group("cron_job", "Cron job", "cost_per_cron_job", "cron_job", "cron jobs"),
    )
}


OF_STORES = {"store": Group("store", "Store", "cost_per_store", "store", "stores"), **GROUPS}
"""The groupings of several stores as one."""

OF_FLEET = {"host": Group("host", "Host", "cost_per_host", "host", "hosts"), **OF_STORES}
"""The groupings of the books of a fleet."""


@dataclass(frozen=True)
class Cost:
    """What the cost page shows.

    rows: the groups, most expensive first (days: newest first), cut at the question's limit.
    total: the sums of everything that the period and filters select, whatever was cut; for cron
        jobs, of the cron jobs shown. shown: the sums of the rows.
    daily: days stacked by model, for the grouping by day only.
    asked: every parameter as it was understood, for links that ask the same again.
    """

    group: Group
    period: Period
    rows: Sequence[Record]
    total: Sums
    shown: Sums
    cut: bool
    asked: Mapping[str, str]
    daily: Daily | None = None

    @property
    def all_time(self) -> bool:
        """Whether nothing is placed in time: no period and no grouping by day."""
        return not (self.period.since or self.period.until) and self.daily is None


def check(
    values: Mapping[str, str], settings: ParameterSettings, groups: Mapping[str, Group] = GROUPS
) -> list[ParameterError]:
    """Every parameter of the page that cannot be meant, each with its reason."""
    wrong = []
    for name in ("since", "until", *FILTERS, "limit"):
        try:
            validate(with_settings(COMMON[name], settings), values.get(name, ""))
        except ParameterError as error:
            wrong.append(error)
    if values.get("group", "") not in ("", *groups):
        wrong.append(ParameterError("group", values["group"], f"choose one of {', '.join(groups)}"))
    if values.get("period", "") not in ("", *PRESETS):
        wrong.append(ParameterError("period", values["period"], f"choose one of {', '.join(PRESETS)}"))
    since, until = values.get("since", ""), values.get("until", "")
    if since and until and since > until and not {"since", "until"} & {error.name for error in wrong}:
        wrong.append(ParameterError("since", since, f"it is after the last day, {until}"))
    return wrong


def read_cost(ask: Ask, group: Group, period: Period, filters: Mapping[str, str]) -> Cost:
    """Asks for the page. `filters` are values of FILTERS and `limit`, '' for a default.

    Raises ParameterError and OutOfTime as `Ask` does.
    """
    asked = {**period.parameters, **{name: value for name, value in filters.items() if value}}
    answer = ask(group.question, asked)
    if group.key == "day":
        return _per_day(ask, group, period, asked, answer)
    cut = answer.truncated
    shown = Sums.of(answer.rows)
    total = shown
    if cut and group.key != "cron_job":
        whole = {name: value for name, value in asked.items() if name != "limit"}
        total = Sums.of(ask("cost_per_source", {**whole, "limit": str(ask.settings.max_limit)}).rows)
    return Cost(group, period, answer.rows, total, shown, cut, answer.parameters)


def _per_day(ask: Ask, group: Group, period: Period, asked: Mapping[str, str], answer: Answer) -> Cost:
    """Days stacked by model; when those are more rows than one answer holds, days alone."""
    rows, parameters = answer.rows, answer.parameters
    if answer.truncated:
        alone = ask("cost_per_day", {**asked, "limit": str(ask.settings.max_limit)})
        rows = [{**row, "model": "all models"} for row in alone.rows]
        parameters = alone.parameters
        group = Group(group.key, group.label, "cost_per_day", group.column, group.many)
    sums = Sums.of(rows)
    return Cost(group, period, rows, sums, sums, False, parameters, daily(rows, period.days))
