"""Exports beside what Python's own csv and json make of the same rows of a bare connection."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from benchmarks.clock import cpu_ms
from benchmarks.figure import Figure
from state_ledger.connection import decode_text, open_for_reading, read_only_uri
from state_ledger.portability.export import Export, Options
from state_ledger.portability.formats import FORMATS
from state_ledger.portability.scope import Scope
from state_ledger.portability.source import Source
from state_ledger.redact import redact
from state_ledger.sqlite import Connection, sqlite3

CSV, JSONL = 1.3, 1.5


def measure(path: Path, turns: int) -> list[Figure]:
    """All messages of a store as CSV and as JSON Lines, and what redaction adds."""
    jobs: list[tuple[str, Callable[[], None], Callable[[], None], float | None, str]] = [
        ("export: CSV", lambda: _export(path, "csv"), lambda: _csv(path), CSV, f"{CSV} x sqlite3 + csv.writer"),
        ("export: JSON Lines", lambda: _export(path, "jsonl"), lambda: _json(path), JSONL,
         f"{JSONL} x sqlite3 + json.dumps"),
        ("export: NDJSON", lambda: _export(path, "ndjson"), lambda: _json(path), None, ""),
        ("export: HTML, redacted", lambda: _export(path, "html", redacted=True), lambda: _json(path), None, ""),
        ("redaction of every message", lambda: _redact(path), lambda: _json(path), None, ""),
    ]  # fmt: skip
    figures = []
    for name, ours, raw, times, target in jobs:
        measured, bare = _beside(ours, raw, turns)
        figures.append(Figure(name, measured, None if times is None else times * bare, "ms", target, bare))
    return figures


def _beside(ours: Callable[[], None], raw: Callable[[], None], turns: int) -> tuple[float, float]:
    """Median CPU of both, taking turns."""
    pairs = [(cpu_ms(ours), cpu_ms(raw)) if turn % 2 else (cpu_ms(raw), cpu_ms(ours))[::-1] for turn in range(turns)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def _export(path: Path, form: str, *, redacted: bool = False) -> None:
    with closing(open_for_reading(path)) as connection, Path("/dev/null").open("wb") as out:
        made = Export.open(Source(connection), Scope("all"), Options(redact=redacted, taken_back=True))
        for piece in FORMATS[form].write(made):
            out.write(piece)
        assert made.whole


def _bare(path: Path) -> Connection:
    """A connection like the ones that Datasette makes: text that is not UTF-8 does not fail."""
    connection = sqlite3.connect(read_only_uri(path), uri=True)
    bad = connection.execute("SELECT 1 FROM messages WHERE instr(CAST(content AS BLOB), x'E920') LIMIT 1").fetchone()
    if bad:
        connection.text_factory = decode_text
    return connection


def _csv(path: Path) -> None:
    with closing(_bare(path)) as connection, Path("/dev/null").open("w", encoding="utf-8", newline="") as out:
        cursor = connection.execute("SELECT * FROM messages ORDER BY id")
        writer = csv.writer(out)
        writer.writerow([column[0] for column in cursor.description])
        writer.writerows(cursor)


def _json(path: Path) -> None:
    with closing(_bare(path)) as connection, Path("/dev/null").open("w", encoding="utf-8") as out:
        cursor = connection.execute("SELECT * FROM messages ORDER BY id")
        names = [column[0] for column in cursor.description]
        for row in cursor:
            out.write(json.dumps(dict(zip(names, row, strict=True)), default=str) + "\n")


def _redact(path: Path) -> None:
    with closing(_bare(path)) as connection:
        for (content,) in connection.execute("SELECT content FROM messages"):
            if isinstance(content, str):
                redact(content)
