"""Rows that do not fit together: orphans, messages stored twice, titles given twice, figures that disagree."""

from __future__ import annotations

from collections.abc import Iterator

from state_ledger import schema
from state_ledger.health.finding import Finding
from state_ledger.health.patient import Patient


def orphans(patient: Patient) -> Iterator[Finding]:
    """Rows that refer to a session that is not there, counted by kind."""
    rows = patient.connection.execute(
        "SELECT kind, count(*), sum(rows) FROM ledger_orphans GROUP BY kind ORDER BY kind"
    ).fetchall()
    for kind, sessions, number in rows:
        harm, severity = _HARM.get(kind, ("", "note"))
        yield Finding(
            f"orphans:{kind}", severity,
            f"{_rows(number)} of the kind “{kind}” {'refers' if number == 1 else 'refer'} to"
            f" {_sessions(sessions)} not in the store.{harm}",
            patient.command("repair", "NEW", "--orphans", "detach"), {"rows": number, "sessions": sessions},
        )  # fmt: skip
    if not rows:
        yield Finding("orphans", "ok", "Every row that refers to a session finds it.")


_HARM = {
    "message without a session": (" They are in no list and no figure.", "warning"),
    "usage row without a session": (" Their cost is counted, as of no session.", "note"),
    "link to a missing parent": (" Writes to such a session fail where foreign keys are checked.", "warning"),
}


def foreign_keys(patient: Patient) -> Iterator[Finding]:
    """What SQLite itself says: every declared reference of every table."""
    counted: dict[tuple[str, str], int] = {}
    for table, _row, parent, _number in patient.connection.execute("PRAGMA main.foreign_key_check"):
        counted[table, parent] = counted.get((table, parent), 0) + 1
    for (table, parent), number in sorted(counted.items()):
        yield Finding(
            f"foreign-keys:{table}", "warning", f"{_rows(number)} of {table} break the reference to {parent}.",
            patient.command("repair", "NEW", "--orphans", "detach"), {"rows": number},
        )  # fmt: skip
    if not counted:
        yield Finding("foreign-keys", "ok", "No declared reference is broken.")


def doubles(patient: Patient) -> Iterator[Finding]:
    """Messages that compaction stored a second time; they are shown and counted once."""
    # One pass along the index; only where moments agree is content compared.
    number = patient.connection.execute(
        "SELECT count(*) FROM ledger_message_rows AS r WHERE r.id IN (SELECT m.id FROM main.messages AS m JOIN"
        " (SELECT session_id, timestamp FROM main.messages GROUP BY session_id, timestamp HAVING count(*) > 1) AS t"
        " ON t.session_id = m.session_id AND t.timestamp = m.timestamp) AND r.first_id <> r.id"
    ).fetchone()[0]
    if number:
        yield Finding(
            "doubles", "note",
            f"{_rows(number)} repeat a message of the same session, as compaction leaves them; each is counted once.",
            figures={"rows": number},
        )  # fmt: skip


def titles(patient: Patient) -> Iterator[Finding]:
    """Titles that several sessions have; an index of every store since schema 4 keeps them apart."""
    if patient.shape is None or not patient.shape.has("sessions", "title"):
        return
    number = patient.connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM main.sessions WHERE title IS NOT NULL GROUP BY title HAVING count(*) > 1)"
    ).fetchone()[0]
    if number:
        yield Finding(
            "titles", "warning",
            f"{number:,} titles are those of several sessions: which one is resumed by its title is chance.",
            patient.command("migrate"), {"titles": number},
        )  # fmt: skip


def indexes(patient: Patient) -> Iterator[Finding]:
    """Declared indexes that the file lacks: every list of sessions or messages gets slow without them."""
    if patient.shape is None or (patient.shape.version or 0) > schema.SCHEMA_VERSION:
        return
    live = {
        row[0]
        for row in patient.connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'index'").fetchall()
    }
    missing = [i.name for i in schema.INDEXES if i.name not in live and patient.shape.has(i.table)]
    if missing:
        yield Finding(
            "indexes", "note", f"{len(missing)} of {len(schema.INDEXES)} indexes are missing: {', '.join(missing)}.",
            patient.command("migrate"), {"missing": len(missing)},
        )  # fmt: skip


def discrepancies(patient: Patient) -> Iterator[Finding]:
    """What the audit of the ledger says: rows set aside, figures that disagree."""
    aside, claimed = patient.connection.execute(
        "SELECT count(*), coalesce(sum(claimed_usd), 0) FROM ledger_set_aside"
    ).fetchone()
    kinds = patient.connection.execute(
        "SELECT kind, count(*) FROM ledger_discrepancies GROUP BY kind ORDER BY count(*) DESC, kind"
    ).fetchall()
    remedy = patient.command("query ledger_problems")
    if aside:
        yield Finding(
            "set-aside", "note", f"{_rows(aside)} cannot be true and are in no sum; they claim {claimed:,.2f} USD.",
            remedy, {"rows": aside, "claimed_usd": claimed},
        )  # fmt: skip
    if kinds:
        listed = ", ".join(f"{kind}: {number:,}" for kind, number in kinds)
        yield Finding(
            "discrepancies", "note", f"Figures of the store disagree; they are reported, not corrected ({listed}).",
            remedy, dict((kind, number) for kind, number in kinds),
        )  # fmt: skip
    if not aside and not kinds:
        yield Finding("discrepancies", "ok", "The figures of the store agree with each other.")


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _sessions(number: int) -> str:
    return "a session that is" if number == 1 else f"{number:,} sessions that are"
