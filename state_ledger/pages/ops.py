"""Operations on one store: is it well, what takes the room, what can go, who works on it. Nothing here writes.

What a look-up answers is read at once; what walks over rows or pages only where the address asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from state_ledger import migrate, storage
from state_ledger.errors import ParameterError, StateLedgerError
from state_ledger.health import checkup
from state_ledger.health.finding import Finding, sorted_by_severity
from state_ledger.health.patient import Patient
from state_ledger.migrate import Step
from state_ledger.pages import planner
from state_ledger.pages.asking import Answer, Ask
from state_ledger.pages.home import Overview, overview_of
from state_ledger.pages.planner import Planned
from state_ledger.questions import in_time
from state_ledger.questions.parameters import Parameter, validate
from state_ledger.retention.options import SWEEP_DAYS, Asked
from state_ledger.retention.sweeping import SweepPlan, plan_sweep
from state_ledger.sqlite import UNREADABLE
from state_ledger.storage import Sizes

T = TypeVar("T")

WORKERS = ("locks", "delegations", "routing")
"""The questions about who works on the store that the page answers itself."""

FEW = 10
"""Rows of each list on the page; the canned query behind it has them all."""

EXACT_AT_ONCE_BYTES = 64 << 20
"""Up to this size of a file exact sizes are worth waiting for: about 60 ms."""

NAMES = (*planner.NAMES, planner.PLAN, planner.NOW, "check", "sizes", "idle_days")
"""The parameters of an address."""

CHECKS, SIZES = ("", "full"), ("", "exact", "estimate")
_MOMENT = Parameter("now", "integer", "", "", (), 0, None)
_IDLE_DAYS = Parameter("idle_days", "integer", "", "", (), 0, 36_500)


@dataclass(frozen=True)
class Wanted:
    """What an address asks for. check: whether to look closely. sizes: one of SIZES.

    idle_days: from when on an open session is listed. asked: the filters of a plan, None for no plan, or
    where something in the address cannot be meant.
    """

    check: bool = False
    sizes: str = ""
    idle_days: int = int(SWEEP_DAYS)
    asked: Asked | None = None


@dataclass(frozen=True)
class Ops:
    """Everything the page shows; None for what could not be read, of which `late` says why.

    findings: the worst first. sizes_could_be_exact: whether they are estimated although this SQLite could
    tell them. workers: answers by question. steps: migrations that are to be made.
    """

    findings: tuple[Finding, ...] = ()
    overview: Overview | None = None
    sizes: Sizes | None = None
    sizes_could_be_exact: bool = False
    steps: list[Step] | None = None
    open_sessions: SweepPlan | None = None
    workers: Mapping[str, Answer] = field(default_factory=dict)
    planned: Planned | None = None
    late: tuple[str, ...] = ()


def wanted(values: Mapping[str, str]) -> tuple[Wanted, list[ParameterError]]:
    """What the parameters of an address mean, and each that cannot be meant with its reason."""
    wrong = []
    for name, choices in (("check", CHECKS), ("sizes", SIZES), (planner.PLAN, ("", "1"))):
        if values.get(name, "") not in choices:
            listed = ", ".join(choice for choice in choices if choice)
            wrong.append(ParameterError(name, values[name], f"choose one of {listed}, or leave it out"))
    numbers: dict[str, int] = {}
    for parameter in (_MOMENT, _IDLE_DAYS):
        try:
            text = validate(parameter, values.get(parameter.name, ""))
            numbers |= {parameter.name: int(text)} if text else {}
        except ParameterError as error:
            wrong.append(error)
    asked, refused = planner.read_filters(values)
    wrong += refused
    planning = bool(values.get(planner.PLAN)) or any(values.get(name) for name in planner.NAMES)
    if asked is not None and numbers.get(planner.NOW):
        asked = asked.at(float(numbers[planner.NOW]))
    return Wanted(
        values.get("check") == "full",
        values.get("sizes", ""),
        numbers.get("idle_days", int(SWEEP_DAYS)),
        asked if planning and not wrong else None,
    ), wrong


def read_ops(ask: Ask, patient: Patient, asked_for: Wanted, now: float) -> Ops:
    """Reads the page on one connection; what fails or takes too long is named in `late` and left out.

    now: epoch seconds from which idle days count.
    """
    late: list[str] = []
    limit_ms = ask.settings.query_time_limit_ms
    connection = ask.connection

    def part(name: str, reader: Callable[[], T]) -> T | None:
        try:
            return reader()
        except StateLedgerError as error:
            late.append(str(error))
        except (*UNREADABLE, OverflowError, OSError) as error:
            late.append(f"The {name} cannot be read on this file: {error}.")
        return None

    def timed(name: str, reader: Callable[[], T]) -> T | None:
        def within() -> T:
            with in_time(connection, name, limit_ms):
                return reader()

        return part(name, within)

    findings = timed("findings", lambda: checkup.glance(patient)) or []
    if asked_for.check:
        findings += part("checks", lambda: checkup.examine(patient, budget_s=limit_ms / 1000)) or []
    sizes = timed("sizes", lambda: storage.measure(connection, exact=_exactly(patient, asked_for)))
    rows = part("sessions", lambda: ask("sessions_per_source").rows)
    workers = {name: part(name, partial(ask, name, {"limit": str(FEW)})) for name in WORKERS}
    sweep = timed("open sessions", lambda: plan_sweep(connection, asked_for.idle_days, now=now, shape=patient.shape))
    steps = timed("migrations", lambda: migrate.plan(connection))
    planned = None
    if asked_for.asked is not None and patient.shape is not None:
        asked, shape = asked_for.asked, patient.shape
        planned = part("plan", lambda: planner.read_plan(ask, shape, asked, patient.path, sizes))
    return Ops(
        sorted_by_severity(findings),
        None if rows is None else overview_of(rows),
        sizes,
        sizes is not None and sizes.method != "dbstat" and storage.has_dbstat(connection),
        steps,
        sweep,
        {name: answer for name, answer in workers.items() if answer is not None},
        planned,
        tuple(late),
    )


def _exactly(patient: Patient, asked_for: Wanted) -> bool:
    if asked_for.sizes:
        return asked_for.sizes == "exact"
    found = storage.pages(patient.connection)
    return found.total * found.size <= EXACT_AT_ONCE_BYTES
