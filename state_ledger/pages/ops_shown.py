"""The ops page in words: its parts with their basis, their links and the commands that change the store."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from state_ledger import questions
from state_ledger.errors import ParameterError
from state_ledger.health.finding import SEVERITIES, Finding, worst
from state_ledger.pages import figures, ops_rows, planner, provenance
from state_ledger.pages.links import Links
from state_ledger.pages.ops import FEW, Ops, Wanted
from state_ledger.pages.planner import Planned
from state_ledger.retention import told
from state_ledger.retention.options import typed_command
from state_ledger.settings import Settings
from state_ledger.shape import Shape

QUESTIONS = (
    "prune_plan", "open_idle_sessions", "sessions_by_age", "storage_sizes", "orphans", "locks", "delegations",
    "routing",
)  # fmt: skip
"""The canned queries about operations, in the order of the page."""

IDLE_CHOICES = (1, 7, 30, 90)

WORKERS = {
    "locks": ("Locks", "Nobody holds a lock."),
    "delegations": ("Delegations in the background", "Nothing was handed out."),
    "routing": ("Gateway routing", "No chat of a messaging gateway has a session here."),
}
"""By question: the heading, and what is said where there is none."""


class Shown:
    """The parts of the page as its template takes them, for one store and one address.

    Parts whose names end in `_html` are HTML that is escaped already.
    """

    def __init__(
        self, at: Links, path: Path, shape: Shape, settings: Settings, values: Mapping[str, str], now: float
    ) -> None:
        """path: of the store, for commands. values: the parameters of the address. now: epoch seconds."""
        self.at = at
        self.path = path
        self.version = shape.version
        self.zone = settings.zone_name
        self.kept = {key: value for key, value in values.items() if value}
        self.now = now
        # Whoever is shown a redacted store does not run commands on it, and need not know where it lies.
        self._hides_folder = settings.redact

    def public(self, text: str) -> str:
        """A sentence or command without the folder of the store where that is nobody's business."""
        path = self.path
        if not self._hides_folder:
            return text
        bare = text.replace(shlex.quote(str(path)), shlex.quote(path.name)).replace(str(path), path.name)
        return bare.replace(str(path.parent), "…") if path.parent.name else bare

    def finding(self, finding: Finding) -> Finding:
        """A finding as it is told."""
        return Finding(
            finding.kind, finding.severity, self.public(finding.sentence), self.public(finding.remedy), finding.figures
        )

    def commands(self, planned: Planned) -> dict[str, str]:
        """What to type, by name."""
        return {name: self.public(command) for name, command in planned.commands.items()}

    def status(self, ops: Ops) -> list[tuple[str, str, bool]]:
        """Label, text and whether it is a word."""
        by_kind = {finding.kind: finding.figures for finding in ops.findings}
        sqlite, log, free = (by_kind.get(kind, {}) for kind in ("sqlite", "log", "free-pages"))
        version = self.version
        unknown = figures.UNKNOWN
        file_bytes, free_bytes = free.get("bytes"), free.get("free_bytes")
        return [
            ("Schema", "not recorded" if version is None else str(version), version is None),
            ("Journal mode", str(sqlite.get("journal", unknown)), not sqlite),
            ("SQLite here", str(sqlite.get("sqlite", unknown)), not sqlite),
            ("File", unknown if file_bytes is None else figures.size(file_bytes), file_bytes is None),
            ("Log", figures.size(log.get("bytes", 0)), False),
            ("Free in it", unknown if free_bytes is None else figures.size(free_bytes), free_bytes is None),
            ("Sessions", *_counted(None if ops.overview is None else ops.overview.sessions)),
            ("Never ended", *_counted(None if ops.overview is None else ops.overview.open_sessions)),
        ]

    def findings(self, ops: Ops) -> dict[str, Any]:
        """What was found, and where to look closer."""
        said = [self.finding(finding) for finding in ops.findings]
        counted = Counter(each.severity for each in said)
        troubles = [figures.plural(counted[each], each) for each in reversed(SEVERITIES[1:]) if counted[each]]
        return {
            "summary": ", ".join(troubles) or "nothing to mend",
            "told": [each for each in said if each.severity != "ok"],
            "well": [each for each in said if each.severity == "ok"],
            "indexes": [
                (each.kind.partition(":")[2], each.severity) for each in said if each.kind.startswith("text-index:")
            ],
            "look_closer": self.at.ops({**self.kept, "check": "full"}, part="findings"),
            "json": self.at.ops(self.kept, form="json"),
            "command": self.public(typed_command("check", str(self.path))),
        }

    def sizes(self, ops: Ops) -> dict[str, Any] | None:
        """The picture and the table; None where sizes could not be read."""
        if ops.sizes is None:
            return None
        exact = ops.sizes.method == "dbstat"
        said = (
            "Basis: every page of the file, counted by SQLite's dbstat."
            if exact
            else "Basis: a sample of rows of each table; the sizes of the file and of its free pages are exact."
        )
        if not exact and self.kept.get("sizes") == "exact":
            said += " This SQLite has no dbstat, which would tell the others exactly."
        return {
            "how": "exact" if exact else "estimated",
            "legend_html": ops_rows.sizes_legend(ops.sizes),
            "chart_html": ops_rows.sizes_chart(ops.sizes, said),
            "table_html": ops_rows.sizes_table(ops.sizes),
            "provenance_html": provenance.line(said, self.at, "storage_sizes", {}),
            "exact": self.at.ops({**self.kept, "sizes": "exact"}, part="sizes") if ops.sizes_could_be_exact else "",
        }

    def planner(self, wrong: list[ParameterError]) -> dict[str, Any]:
        """The form."""
        fields = planner.filled(self.kept, {error.name for error in wrong})
        more = [field for field in fields if not field["usual"]]
        return {
            "usual": [field for field in fields if field["usual"]],
            "more": more,
            "open": any(field["value"] for field in more),
            "action": f"{self.at.ops()}#planner",
            "kept": [(name, self.kept[name]) for name in ("check", "sizes", "idle_days") if name in self.kept],
            "clear": self.at.ops(part="planner"),
        }

    def plan(self, ops: Ops, asked_for: Wanted) -> dict[str, Any] | None:
        """The answer to the form; None where nothing was asked."""
        if ops.planned is None or asked_for.asked is None:
            return None
        plan = ops.planned.plan
        return {
            "sentence": told.first_line(plan),
            "figures": [
                ("Sessions", figures.count(plan.total.sessions), False),
                ("Messages", figures.count(plan.total.messages), False),
                ("Text", figures.size(plan.total.text_bytes), False),
                ("In the file, about", figures.size(plan.total.estimated_bytes), False),
            ] if plan.delete else [],
            "tables_html": [
                ops_rows.groups_table(f"What would go, by {by}", head, groups, plan.total, name)
                for by, head, groups, name in (
                    ("source", "Source", plan.by_source, "by-source"),
                    ("time idle", "Idle for", plan.by_age, "by-age"),
                )
            ] if plan.delete else [],
            "estimates_html": ops_rows.estimates_table(plan.total) if plan.total.estimated else "",
            "pages": _pages(ops.planned) if plan.delete else "",
            "left_html": ops_rows.left_table(plan, self.zone) if plan.left else "",
            "detached": _detached(ops.planned),
            "steps": [(what, self.public(command)) for what, command in ops.planned.steps],
            "lists": [(what, self.public(command)) for what, command in ops.planned.lists],
            "provenance_html": self._basis(ops.planned, asked_for),
            "json": self.at.ops(self._same(ops.planned), form="json"),
        }  # fmt: skip

    def _basis(self, planned: Planned, asked_for: Wanted) -> str:
        assert asked_for.asked is not None
        criteria = asked_for.asked.criteria
        since = figures.moment(planned.plan.criteria.now, self.zone)
        said = f"Basis: rows and text counted, bytes in the file estimated; ages count from {since} ({self.zone})."
        if set(criteria.filters) or criteria.compat or (criteria.older_than_days or 0) % 1:
            said += " The canned query knows whole days of age and the source only, so it may say more:"
        same = {
            "older_than_days": str(int(criteria.older_than_days or 0)),
            "source": criteria.source or "",
            "now": str(int(planned.plan.criteria.now or 0)),
        }
        return provenance.line(said, self.at, "prune_plan", same)

    def _same(self, planned: Planned) -> dict[str, str]:
        """The parameters that give the same plan again."""
        return {**self.kept, planner.NOW: str(int(planned.plan.criteria.now or 0)), planner.PLAN: "1"}

    def permalink(self, ops: Ops, asked_for: Wanted) -> str:
        """The address that shows the same again."""
        planned = {} if ops.planned is None else self._same(ops.planned)
        return self.at.ops({**self.kept, "idle_days": str(asked_for.idle_days), **planned})

    def open_sessions(self, ops: Ops, asked_for: Wanted) -> dict[str, Any] | None:
        """Open and idle sessions; None where they could not be read."""
        sweep, days = ops.open_sessions, asked_for.idle_days
        if sweep is None:
            return None
        kept = {name: value for name, value in self.kept.items() if name != "idle_days"}

        def choice(each: int) -> dict[str, Any]:
            href = self.at.ops({**kept, "idle_days": str(each)}, part="open")
            return {"label": figures.plural(each, "day"), "href": href, "current": each == days}

        idle = len(sweep.sweep) + len(sweep.kept)
        said = f"Basis: sessions without an end whose last activity is more than {figures.plural(days, 'day')} ago."
        if sweep.recent:
            said += f" {figures.plural(sweep.recent, 'other session')} without an end had some since."
        command = typed_command("sweep", str(self.path), "--idle-days", str(days))
        return {
            "choices": [choice(each) for each in sorted({*IDLE_CHOICES, days})],
            "table_html": ops_rows.open_table(sweep, FEW, self.now, self.at, self.zone) if idle else "",
            "command": self.public(command) if sweep.sweep else "",
            "provenance_html": provenance.line(said, self.at, "open_idle_sessions", {"idle_days": str(days)}),
        }  # fmt: skip

    def steps(self, ops: Ops) -> dict[str, Any] | None:
        """Migrations to come; None where that could not be read."""
        if ops.steps is None:
            return None
        return {
            "steps": [(step.what, step.later) for step in ops.steps],
            "command": self.public(typed_command("migrate", str(self.path))) if ops.steps else "",
        }

    def workers(self, ops: Ops) -> list[dict[str, Any]]:
        """Locks, delegations, routes."""
        shown = []
        for name, (title, none) in WORKERS.items():
            answer = ops.workers.get(name)
            if answer is None:
                continue
            rows, more = answer.rows, answer.truncated
            table = ops_rows.workers_table(name, rows, more, self.at, self.zone) if rows else ""
            shown.append(
                {"title": title, "name": name, "none": none, "table_html": table,
                 "provenance_html": provenance.line("Basis: rows of the store as they are.", self.at, name, {})}
            )  # fmt: skip
        return shown

    def questions(self) -> list[dict[str, str]]:
        """The canned queries, each as page, JSON and CSV."""
        known = questions.load()
        return [
            {"title": known[name].title, "description": known[name].description, "href": self.at.query(name),
             "json": self.at.query(name, form="json"), "csv": self.at.query(name, form="csv")}
            for name in QUESTIONS
        ]  # fmt: skip

    def record(self, ops: Ops, asked_for: Wanted) -> dict[str, Any]:
        """The whole as JSON has it."""
        sizes, sweep, planned = ops.sizes, ops.open_sessions, ops.planned
        return {
            "missing": [self.public(said) for said in ops.late],
            "severity": worst(ops.findings),
            "checked": asked_for.check,
            "findings": [self.finding(finding).record() for finding in ops.findings],
            "sizes": None if sizes is None else {
                "method": sizes.method, "page_size": sizes.page_size, "pages": sizes.pages,
                "free_pages": sizes.free_pages, "file_bytes": sizes.file_bytes, "other_bytes": sizes.other_bytes,
                "by_owner": sizes.by_owner,
            },
            "open_sessions": None if sweep is None else {
                "idle_days": asked_for.idle_days, "sweep": [idle.session_id for idle in sweep.sweep],
                "stay_open": {idle.session_id: idle.kept for idle in sweep.kept}, "not_idle_enough": sweep.recent,
            },
            "migrations": None if ops.steps is None else list(map(asdict, ops.steps)),
            "workers": {name: [dict(row) for row in answer.rows] for name, answer in ops.workers.items()},
            "plan": None if planned is None else told.plan_json(planned.plan, self.commands(planned)),
        }  # fmt: skip


def _counted(number: int | None) -> tuple[str, bool]:
    return figures.count(number, unknown=figures.UNKNOWN), number is None


def _pages(planned: Planned) -> str:
    plan = planned.plan
    return (
        f"{plan.pages.free:,} of {figures.plural(plan.pages.total, 'page')} are free now, at most about"
        f" {plan.pages_freed:,} more then. Deleting does not shrink the file; a vacuum does."
    )


def _detached(planned: Planned) -> str:
    number = len(planned.plan.detached)
    return f"{figures.plural(number, 'session')} that would stay would lose the parent." if number else ""


def sentence(error: ParameterError) -> str:
    """Why a parameter cannot be meant; where it is about several filters at once, in the words of the command line."""
    return str(error) if error.name != planner.PLAN or error.value else f"{error.why}."
