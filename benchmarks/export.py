"""Exports beside what Python's own csv and json make of the same rows of a bare connection."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.clock import alternating, cpu_ms
from benchmarks.figure import Figure
from state_ledger.connection import decode_text, open_for_reading, read_only_uri
from state_ledger.portability.export import Export, Options
from state_ledger.portability.formats import FORMATS
from state_ledger.portability.scope import Scope
from state_ledger.portability.source import Source
from state_ledger.redact import redact
from state_ledger.sqlite import Connection, sqlite3

CSV, JSONL = 1.3, 1.5


def measure(bench: Bench) -> Iterator[Figure]:
    """All messages of a store as CSV and as JSON Lines, and what redaction adds."""
    path = bench.path
    csv_ms, bare_csv = alternating([lambda: _export(path, "csv"), lambda: _csv(path)], bench.turns)
    yield Figure("export: CSV", csv_ms, CSV * bare_csv, "ms", f"{CSV} x sqlite3 + csv.writer", bare_csv, of="csv")
    jsonl, bare_json = alternating([lambda: _export(path, "jsonl"), lambda: _json(path)], bench.turns)
    told = f"{JSONL} x sqlite3 + json.dumps"
    yield Figure("export: JSON Lines", jsonl, JSONL * bare_json, "ms", told, bare_json, of="jsonl")
    for name, job in (
        ("export: NDJSON", lambda: _export(path, "ndjson")),
        ("export: HTML, redacted", lambda: _export(path, "html", redacted=True)),
        ("redaction of every message", lambda: _redact(path)),
    ):
        yield Figure(name, cpu_ms(job), None, "ms", "", bare_json)


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
