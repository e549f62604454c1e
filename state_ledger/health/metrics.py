"""Figures of stores in the text format of Prometheus.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/. Everything is a gauge: totals of a
store go down when sessions are deleted. What is not known has no sample, so that it is no zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from state_ledger import access, storage
from state_ledger.health import budgets
from state_ledger.health.finding import SEVERITIES, Finding
from state_ledger.health.patient import Patient

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Sample(NamedTuple):
    """One value. labels: name and value of each, without that of the store."""

    metric: str
    labels: tuple[tuple[str, str], ...]
    value: float


METRICS: Mapping[str, str] = {
    "state_ledger_up": "1 where the store could be read, else 0.",
    "state_ledger_findings": "Findings of the quick checks by severity.",
    "state_ledger_cost_usd": "Cost of all that is in the store by basis, US dollars; unknown cost is in neither.",
    "state_ledger_calls": "API calls by basis; calls of unknown cost have no price.",
    "state_ledger_tokens": "Tokens by bucket; the buckets do not overlap.",
    "state_ledger_reasoning_tokens": "Reasoning tokens, a part of the output tokens.",
    "state_ledger_cache_read_ratio": "Tokens read from the cache by all prompt tokens, where both were recorded.",
    "state_ledger_sessions": "Sessions in the store.",
    "state_ledger_open_sessions": "Sessions that have not ended.",
    "state_ledger_messages": "Message rows in the store.",
    "state_ledger_budget_amount": "Budget of the running period, in the unit of its label.",
    "state_ledger_budget_used": "Used of the budget in the running period; usage without a price is not in dollars.",
    "state_ledger_budget_forecast": "What will be used of the budget at this pace.",
    "state_ledger_budget_unknown_calls": "Calls in the period of the budget for which no price is known.",
    "state_ledger_file_bytes": "Size of the store, bytes.",
    "state_ledger_log_bytes": "Size of the write-ahead log, bytes.",
    "state_ledger_free_pages": "Pages of the file that are not in use.",
    "state_ledger_page_bytes": "Size of a page, bytes.",
}
"""What each metric is; the order in which they are written."""

_BASES = ("actual", "estimated", "included", "unknown")


def of_store(patient: Patient, findings: Sequence[Finding]) -> list[Sample]:
    """The samples of one store. Raises sqlite3.DatabaseError if it cannot be read."""
    row = patient.connection.execute(
        "SELECT sum(actual_usd) AS actual_usd, sum(estimated_usd) AS estimated_usd, sum(input_tokens) AS input,"
        " sum(output_tokens) AS output, sum(cache_read_tokens) AS cache_read, sum(cache_write_tokens) AS cache_write,"
        " sum(reasoning_tokens) AS reasoning,"
        " sum(CASE WHEN prompt_tokens IS NOT NULL THEN cache_read_tokens END) AS cached, sum(prompt_tokens) AS prompted"
        " FROM ledger_usage"
    ).fetchone()
    (actual, estimated, tokens_in, tokens_out, cache_read, cache_write, reasoning, cached, prompted) = tuple(row)
    calls = dict(
        tuple(each)
        for each in patient.connection.execute("SELECT basis, sum(api_call_count) FROM ledger_usage GROUP BY basis")
    )
    sessions, ended, messages = patient.connection.execute(
        "SELECT (SELECT count(*) FROM main.sessions), (SELECT count(ended_at) FROM ledger_session_facts),"
        " (SELECT count(*) FROM main.messages)"
    ).fetchone()
    buckets = {"input": tokens_in, "output": tokens_out, "cache_read": cache_read, "cache_write": cache_write}
    pages = storage.pages(patient.connection)
    plain: dict[str, float | None] = {
        "state_ledger_reasoning_tokens": reasoning,
        "state_ledger_cache_read_ratio": cached / prompted if prompted and cached is not None else None,
        "state_ledger_sessions": sessions,
        "state_ledger_open_sessions": sessions - ended,
        "state_ledger_messages": messages,
        "state_ledger_file_bytes": pages.total * pages.size,
        "state_ledger_log_bytes": access.Sidecars.of(patient.path).wal_bytes,
        "state_ledger_free_pages": pages.free,
        "state_ledger_page_bytes": pages.size,
    }
    return [
        *of_findings(findings, up=True),
        *_labelled("state_ledger_cost_usd", "basis", {"actual": actual, "estimated": estimated}),
        *_labelled("state_ledger_calls", "basis", {basis: calls.get(basis) for basis in _BASES}),
        *_labelled("state_ledger_tokens", "bucket", buckets),
        *(Sample(*each) for each in budgets.values(budgets.spendings(patient))),
        *(Sample(metric, (), value) for metric, value in plain.items() if value is not None),
    ]


def of_findings(findings: Sequence[Finding], *, up: bool) -> list[Sample]:
    """Whether a store can be read, and its findings by severity."""
    counted = {severity: sum(each.severity == severity for each in findings) for severity in SEVERITIES}
    return [Sample("state_ledger_up", (), int(up)), *_labelled("state_ledger_findings", "severity", counted)]


def render(stores: Mapping[str, Iterable[Sample]]) -> str:
    """The samples of some stores, by name of the store, as text."""
    by_metric: dict[str, list[str]] = {name: [] for name in METRICS}
    for store, samples in stores.items():
        for sample in samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in (("store", store), *sample.labels))
            by_metric[sample.metric].append(f"{sample.metric}{{{labels}}} {_number(sample.value)}")
    lines = []
    for name, values in by_metric.items():
        if values:
            lines += [f"# HELP {name} {METRICS[name]}", f"# TYPE {name} gauge", *values]
    return "\n".join(lines) + "\n" if lines else ""


def _labelled(metric: str, label: str, values: Mapping[str, float | None]) -> list[Sample]:
    return [Sample(metric, ((label, name),), value) for name, value in values.items() if value is not None]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(int(value)) if isinstance(value, int) or float(value).is_integer() else repr(float(value))
