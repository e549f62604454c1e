"""A store at a glance: what is in it, what it cost lately, how big it is, whether it is well."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from state_ledger import access, storage
from state_ledger.budgets.spending import Spending
from state_ledger.errors import StateLedgerError
from state_ledger.health import budgets, checkup
from state_ledger.health.finding import Finding, sorted_by_severity, worst
from state_ledger.health.patient import Patient, admit
from state_ledger.homes import expanded
from state_ledger.ledger.days import today
from state_ledger.pages.asking import Ask
from state_ledger.pages.period import presets
from state_ledger.pages.sums import Sums
from state_ledger.settings import Settings
from state_ledger.sqlite import UNREADABLE


@dataclass(frozen=True)
class Status:
    """One store. month, recent: sums of this month and of the last 30 days, None where they cannot be asked.

    sessions, messages: rows; None where they cannot be counted. findings: those of `checkup.glance`, and why
    something could not be told. budgets: what was used of those that are for the store.
    """

    path: Path
    profile: str
    schema: int | None
    sessions: int | None
    messages: int | None
    month: Sums | None
    recent: Sums | None
    bytes: int
    log_bytes: int
    findings: tuple[Finding, ...]
    budgets: tuple[Spending, ...] = ()

    @property
    def severity(self) -> str:
        """The worst of its findings."""
        return worst(self.findings)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "path": str(self.path),
            "profile": self.profile,
            "schema": self.schema,
            "sessions": self.sessions,
            "messages": self.messages,
            "this_month": None if self.month is None else _figures(self.month),
            "last_30_days": None if self.recent is None else _figures(self.recent),
            "budgets": [spending.record() for spending in self.budgets],
            "bytes": self.bytes,
            "log_bytes": self.log_bytes,
            "severity": self.severity,
            "findings": [finding.record() for finding in self.findings if finding.severity != "ok"],
        }


def read(path: Path, settings: Settings | None = None) -> Status:
    """Looks at a store without changing it; whatever keeps something from being told is a finding."""
    from state_ledger.stores import profile_of

    settings = Settings() if settings is None else settings
    path = expanded(path).absolute()
    log = access.Sidecars.of(path).wal_bytes
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    try:
        with admit(path, settings) as admitted:
            return _of(admitted, profile_of(path), size, log)
    except StateLedgerError as error:
        findings = (Finding("file", "error", str(error)),)
    except UNREADABLE as error:
        findings = (Finding("file", "error", f"SQLite cannot read it ({error}).", f"state-ledger check {path}"),)
    return Status(path, profile_of(path), None, None, None, None, None, size, log, findings)


def _of(patient: Patient, profile: str, size: int, log: int) -> Status:
    findings = checkup.glance(patient)
    sessions = messages = None
    month = recent = None
    spent: list[Spending] = []
    shape = patient.shape
    if shape is not None and shape.is_store:
        try:
            sessions, messages = patient.connection.execute(
                "SELECT (SELECT count(*) FROM main.sessions), (SELECT count(*) FROM main.messages)"
            ).fetchone()
            month, recent = _sums(patient)
            spent = budgets.spendings(patient)
        except (*UNREADABLE, StateLedgerError) as error:
            findings.append(
                Finding("figures", "warning", f"The figures could not be told: {error}", patient.command("check"))
            )
    found = storage.pages(patient.connection) if shape is not None else None
    return Status(
        patient.path, profile, None if shape is None else shape.version, sessions, messages, month, recent,
        size if found is None else found.total * found.size, log, sorted_by_severity(findings),
        tuple(spent),
    )  # fmt: skip


def _sums(patient: Patient) -> tuple[Sums, Sums]:
    """This month and the last 30 days, from one question that spans both."""
    settings = patient.settings
    known = {period.key: period for period in presets(today(settings.zone_name))}
    month, recent = known["this-month"], known["30d"]
    spanning = {"since": min(month.since, recent.since), "until": recent.until}
    asked = {**spanning, "tz": settings.zone_name, "day_rule": settings.day_rule}
    days = Ask(patient.connection, settings)("cost_per_day", asked).rows
    each = [
        Sums.of(row for row in days if row["day"] is not None and period.since <= row["day"] <= period.until)
        for period in (month, recent)
    ]
    return each[0], each[1]


def _figures(sums: Sums) -> dict[str, Any]:
    return {
        "actual_usd": sums.actual_usd,
        "estimated_usd": sums.estimated_usd,
        "included_calls": sums.included_calls,
        "unknown_calls": sums.unknown_calls,
        "calls": sums.api_call_count,
        "cache_read_ratio": sums.cache_read_ratio,
    }
