"""For monitors: whether the stores are well, and their figures.

| address | is |
|---|---|
| `/-/ledger/health.json` | the findings of the quick checks; 503 where a store has an error, or as `?fail=` says |
| `/-/ledger/metrics` | figures as text for Prometheus; 404 unless the setting `metrics` is on |

Both tell of the stores that the visitor may see. An answer is kept for some seconds, so that asking often
costs nothing; titles, texts and folders are in neither.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from datasette.utils.asgi import Forbidden, NotFound, Response

from state_ledger.errors import StateLedgerError
from state_ledger.health import checkup, metrics
from state_ledger.health.finding import SEVERITIES, Finding, worst
from state_ledger.plugins import compat, json_answer, visits
from state_ledger.plugins.store_database import StoreRefused
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page
from state_ledger.questions import in_time
from state_ledger.sqlite import UNREADABLE

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.sqlite import Connection

KEPT_S = 10.0
"""How long an answer is given again."""


class _Seen(NamedTuple):
    at: float
    findings: list[Finding]
    samples: list[metrics.Sample]


class _Memory:
    """What was seen last of each store, and who looks at it just now."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, bool], _Seen] = {}
        self.looking: dict[tuple[str, bool], asyncio.Lock] = {}


async def health_json(request: Any, datasette: Datasette) -> Response:
    """The findings on each store; asks no more than look-ups by key."""
    from_severity = request.args.get("fail") or "error"
    if from_severity not in SEVERITIES[1:]:
        return json_answer.refuse(f"fail={from_severity}: it is one of {', '.join(SEVERITIES[1:])}.", 400)
    stores = {}
    for name in await _visible(datasette, request):
        findings = (await _look(datasette, name, with_figures=False)).findings
        stores[name] = {
            "ok": _below(worst(findings), from_severity),
            "severity": worst(findings),
            "findings": [
                {"kind": each.kind, "severity": each.severity, "sentence": _said(datasette, name, each)}
                for each in findings
            ],
        }
    ok = all(store["ok"] for store in stores.values())
    answer = json_answer.respond({"ok": ok, "stores": stores}, status=200 if ok else 503)
    answer.headers["Cache-Control"] = "no-store"
    return answer


async def metrics_text(request: Any, datasette: Datasette) -> Response:
    """The figures of each store as text."""
    names = await _visible(datasette, request)
    if not registry(datasette).settings.metrics:
        raise NotFound("Metrics are off; the setting metrics turns them on")
    samples = {name: (await _look(datasette, name, with_figures=True)).samples for name in names}
    return Response(metrics.render(samples), content_type=metrics.CONTENT_TYPE, headers={"Cache-Control": "no-store"})


async def _visible(datasette: Datasette, request: Any) -> list[str]:
    """The stores that this visitor may see. Raises Forbidden if that is none of some."""
    if not await compat.may_view_instance(datasette, request.actor):
        raise Forbidden("view-instance")
    names = await page.visible_stores(datasette, request)
    if not names and registry(datasette).stores:
        raise Forbidden("view-database")
    return names


async def _look(datasette: Datasette, name: str, *, with_figures: bool) -> _Seen:
    """What is known of a store; of several who ask at once one looks, on a reading thread."""
    held: Any = registry(datasette)
    if not hasattr(held, "health"):
        held.health = _Memory()
    memory: _Memory = held.health
    key = (name, with_figures)
    async with memory.looking.setdefault(key, asyncio.Lock()):
        seen = memory.seen.get(key)
        if seen is None or time.monotonic() - seen.at > KEPT_S:
            with visits.for_everyone():
                seen = memory.seen[key] = await _fresh(datasette, name, with_figures)
        return seen


async def _fresh(datasette: Datasette, name: str, with_figures: bool) -> _Seen:
    held = registry(datasette)
    state = held.stores[name]
    findings: list[Finding] = []
    samples: list[metrics.Sample] = []

    def look(connection: Connection) -> None:
        patient = state.patient(connection, held.settings)
        with in_time(connection, "health", held.settings.query_time_limit_ms):
            findings.extend(checkup.glance(patient))
            if with_figures:
                samples.extend(metrics.of_store(patient, findings))

    try:
        await datasette.get_database(name).execute_fn(look)
    except (StoreRefused, StateLedgerError, *UNREADABLE, OSError) as error:
        said = error.message if isinstance(error, StoreRefused) else str(error)
        findings.append(Finding("file", "error", f"The store cannot be read: {said}"))
        samples = metrics.of_findings(findings, up=False)
    return _Seen(time.monotonic(), findings, samples)


def _said(datasette: Datasette, name: str, finding: Finding) -> str:
    """The sentence without the folder that the store lies in."""
    path = registry(datasette).stores[name].store.path
    return finding.sentence.replace(str(path), path.name).replace(str(path.parent), "…")


def _below(severity: str, bound: str) -> bool:
    return SEVERITIES.index(severity) < SEVERITIES.index(bound)
