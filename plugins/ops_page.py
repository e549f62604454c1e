"""`/<store>/-/ops`: is the store well, what takes the room, what can go, and who works on it.

| address | is |
|---|---|
| `/<store>/-/ops` | the page: what look-ups tell; `check=full` looks closely, a filter or `plan=1` plans a clean-up |
| `/<store>/-/ops.json` | the same as JSON, with the ids of a plan |

Both only read. What changes a store is a command, and the page prints it.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from datasette.utils.asgi import Response
from markupsafe import Markup

from state_ledger import questions
from state_ledger.errors import ParameterError
from state_ledger.health.finding import SEVERITIES, Finding, worst
from state_ledger.pages import figures, ops_rows, planner, provenance
from state_ledger.pages.links import Links
from state_ledger.pages.ops import FEW, Ops, Wanted, read_ops, wanted
from state_ledger.pages.planner import Planned
from state_ledger.plugins import json_answer, page
from state_ledger.plugins.stores import registry
from state_ledger.retention import told
from state_ledger.retention.options import typed_command

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.plugins.stores import StoreState

QUESTIONS = (
    "prune_plan", "open_idle_sessions", "sessions_by_age", "storage_sizes", "orphans", "locks", "delegations",
    "routing",
)  # fmt: skip
"""The canned queries about operations, in the order of the page."""

NAMES = (*planner.NAMES, planner.PLAN, planner.NOW, "check", "sizes", "idle_days")

IDLE_CHOICES = (1, 7, 30, 90)

WORKERS = {
    "locks": ("Locks", "Nobody holds a lock."),
    "delegations": ("Delegations in the background", "Nothing was handed out."),
    "routing": ("Gateway routing", "No chat of a messaging gateway has a session here."),
}
"""By question: the heading, and what is said where there is none."""


@hookimpl
def register_routes() -> list[tuple[str, Any]]:
    return [(r"/(?P<database>[^/.]+)/-/ops$", ops_page), (r"/(?P<database>[^/.]+)/-/ops\.json$", ops_json)]


async def ops_page(request: Any, datasette: Datasette) -> Response:
    """The page. What cannot be meant is said, and the rest of the page stands."""
    name = await page.open_store(datasette, request)
    values, now = _values(request), time.time()
    asked_for, wrong = wanted(values)
    ops = await _read(datasette, name, asked_for, now)
    shown = _Shown(datasette, name, values, now)
    late = list(ops.late)
    context = {
        "problems": [_sentence(error) for error in wrong],
        "late": late,
        "facts": shown.facts(ops),
        "status": shown.status(ops),
        "checked": asked_for.check,
        "findings": shown.findings(ops),
        "sizes": shown.sizes(ops),
        "planner": shown.planner(wrong),
        "plan": shown.plan(ops, asked_for),
        "open": shown.open_sessions(ops, asked_for),
        "steps": shown.steps(ops),
        "workers": shown.workers(ops),
        "questions": shown.questions(),
    }
    return await page.respond(
        datasette, request, "ledger_ops.html", context, title="Operations", store=name, section="ops",
        status=400 if wrong else 200, permalink="" if wrong else shown.permalink(ops, asked_for),
    )  # fmt: skip


async def ops_json(request: Any, datasette: Datasette) -> Response:
    """What the page says, for programs."""
    name = await page.open_store(datasette, request)
    asked_for, wrong = wanted(_values(request))
    if wrong:
        return json_answer.refuse(" ".join(map(_sentence, wrong)), 400)
    now = time.time()
    ops = await _read(datasette, name, asked_for, now)
    shown = _Shown(datasette, name, {}, now)
    sizes, sweep, planned = ops.sizes, ops.open_sessions, ops.planned
    body = {
        "ok": not ops.late,
        "store": name,
        "missing": list(ops.late),
        "severity": worst(ops.findings),
        "checked": asked_for.check,
        "findings": [
            finding.record() | {"sentence": finding.sentence, "remedy": shown.public(finding.remedy) or None}
            for finding in map(shown.finding, ops.findings)
        ],
        "sizes": None if sizes is None else {
            "method": sizes.method, "page_size": sizes.page_size, "pages": sizes.pages, "free_pages": sizes.free_pages,
            "file_bytes": sizes.file_bytes, "other_bytes": sizes.other_bytes, "by_owner": sizes.by_owner,
        },
        "open_sessions": None if sweep is None else {
            "idle_days": asked_for.idle_days, "sweep": [idle.session_id for idle in sweep.sweep],
            "stay_open": {idle.session_id: idle.kept for idle in sweep.kept}, "not_idle_enough": sweep.recent,
        },
        "migrations": None if ops.steps is None else [{"what": step.what, "later": step.later} for step in ops.steps],
        "workers": {name: [dict(row) for row in answer.rows] for name, answer in ops.workers.items()},
        "plan": None if planned is None else told.plan_json(planned.plan, shown.commands(planned)),
    }  # fmt: skip
    return json_answer.respond(body, status=503 if ops.late else 200)


def _values(request: Any) -> dict[str, str]:
    return {name: (request.args.get(name) or "").strip() for name in NAMES}


def _sentence(error: ParameterError) -> str:
    """The reason in the words of the command line, which may be about several filters at once."""
    return str(error) if error.name != planner.PLAN or error.value else f"{error.why}."


async def _read(datasette: Datasette, name: str, asked_for: Wanted, now: float) -> Ops:
    held = registry(datasette)
    state = held.stores[name]
    return await page.read(
        datasette, name, lambda ask: read_ops(ask, state.patient(ask.connection, held.settings), asked_for, now)
    )


class _Shown:
    """The parts of the page as the template takes them, for one store and one address."""

    def __init__(self, datasette: Datasette, name: str, values: Mapping[str, str], now: float) -> None:
        held = registry(datasette)
        self.at: Links = page.links(datasette, name)
        self.state: StoreState = held.stores[name]
        self.zone = held.settings.zone_name
        self.kept = {key: value for key, value in values.items() if value}
        self.now = now
        # Whoever is shown a redacted store does not run commands on it, and need not know where it lies.
        self._hides_folder = held.settings.redact

    def public(self, text: str) -> str:
        """A sentence or command without the folder of the store where that is nobody's business."""
        path: Path = self.state.store.path
        if not self._hides_folder:
            return text
        bare = text.replace(shlex.quote(str(path)), shlex.quote(path.name)).replace(str(path), path.name)
        return bare.replace(str(path.parent), "…") if path.parent.name else bare

    def finding(self, finding: Finding) -> Finding:
        return Finding(
            finding.kind, finding.severity, self.public(finding.sentence), self.public(finding.remedy), finding.figures
        )

    def commands(self, planned: Planned) -> dict[str, str]:
        return {name: self.public(command) for name, command in planned.commands.items()}

    def facts(self, ops: Ops) -> list[str]:
        if ops.overview is None:
            return page.file_facts(self.state)
        return page.store_facts(self.state, ops.overview.sessions, ops.overview.last_active, self.zone)

    def status(self, ops: Ops) -> list[tuple[str, str, bool]]:
        """Label, text and whether it is a word."""
        by_kind = {finding.kind: finding.figures for finding in ops.findings}
        sqlite, log, free = (by_kind.get(kind, {}) for kind in ("sqlite", "log", "free-pages"))
        version = self.state.shape.version
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
            "command": self.public(typed_command("check", str(self.state.store.path))),
        }

    def sizes(self, ops: Ops) -> dict[str, Any] | None:
        if ops.sizes is None:
            return None
        exact = ops.sizes.method == "dbstat"
        said = (
            "Basis: every page of the file, counted by SQLite's dbstat."
            if exact
            else "Basis: a sample of rows of each table; the sizes of the file and of its free pages are exact."
        )
        return {
            "how": "exact" if exact else "estimated",
            "legend": Markup(ops_rows.sizes_legend(ops.sizes)),
            "chart": Markup(ops_rows.sizes_chart(ops.sizes, said)),
            "table": Markup(ops_rows.sizes_table(ops.sizes)),
            "provenance": Markup(provenance.line(said, self.at, "storage_sizes", {})),
            "exact": self.at.ops({**self.kept, "sizes": "exact"}, part="sizes") if ops.sizes_could_be_exact else "",
        }

    def planner(self, wrong: list[ParameterError]) -> dict[str, Any]:
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
            "tables": [
                Markup(ops_rows.groups_table(f"What would go, by {by}", head, groups, plan.total, name))
                for by, head, groups, name in (
                    ("source", "Source", plan.by_source, "by-source"),
                    ("time idle", "Idle for", plan.by_age, "by-age"),
                )
            ] if plan.delete else [],
            "estimates": Markup(ops_rows.estimates_table(plan.total)) if plan.total.estimated else "",
            "pages": _pages(ops.planned) if plan.delete else "",
            "left": Markup(ops_rows.left_table(plan, self.zone)) if plan.left else "",
            "detached": _detached(ops.planned),
            "steps": [(what, self.public(command)) for what, command in ops.planned.steps],
            "lists": [(what, self.public(command)) for what, command in ops.planned.lists],
            "provenance": Markup(self._basis(ops.planned, asked_for)),
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
        planned = {} if ops.planned is None else self._same(ops.planned)
        return self.at.ops({**self.kept, "idle_days": str(asked_for.idle_days), **planned})

    def open_sessions(self, ops: Ops, asked_for: Wanted) -> dict[str, Any] | None:
        sweep, days = ops.open_sessions, asked_for.idle_days
        if sweep is None:
            return None
        kept = {name: value for name, value in self.kept.items() if name != "idle_days"}

        def choice(each: int) -> page.Link:
            href = self.at.ops({**kept, "idle_days": str(each)}, part="open")
            return page.Link(figures.plural(each, "day"), href, each == days)

        idle = len(sweep.sweep) + len(sweep.kept)
        said = f"Basis: sessions without an end whose last activity is more than {figures.plural(days, 'day')} ago."
        if sweep.recent:
            said += f" {figures.plural(sweep.recent, 'other session')} without an end had some since."
        command = typed_command("sweep", str(self.state.store.path), "--idle-days", str(days))
        return {
            "choices": [choice(each) for each in sorted({*IDLE_CHOICES, days})],
            "table": Markup(ops_rows.open_table(sweep, FEW, self.now, self.at, self.zone)) if idle else "",
            "command": self.public(command) if sweep.sweep else "",
            "provenance": Markup(provenance.line(said, self.at, "open_idle_sessions", {"idle_days": str(days)})),
        }  # fmt: skip

    def steps(self, ops: Ops) -> dict[str, Any] | None:
        if ops.steps is None:
            return None
        return {
            "steps": [(step.what, step.later) for step in ops.steps],
            "command": self.public(typed_command("migrate", str(self.state.store.path))) if ops.steps else "",
        }

    def workers(self, ops: Ops) -> list[dict[str, Any]]:
        shown = []
        for name, (title, none) in WORKERS.items():
            answer = ops.workers.get(name)
            if answer is None:
                continue
            rows, more = answer.rows, answer.truncated
            table = ops_rows.workers_table(name, rows, more, self.at, self.zone) if rows else ""
            shown.append(
                {"title": title, "name": name, "none": none, "table": Markup(table),
                 "provenance": Markup(provenance.line("Basis: rows of the store as they are.", self.at, name, {}))}
            )  # fmt: skip
        return shown

    def questions(self) -> list[dict[str, str]]:
        known = questions.load()
        return [
            {"title": known[name].title, "description": known[name].description, "href": self.at.query(name),
             "json": self.at.query(name, form="json"), "csv": self.at.query(name, form="csv")}
            for name in QUESTIONS
        ]  # fmt: skip


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
