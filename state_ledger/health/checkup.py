"""The checks, the quick ones and the slow ones, in one go each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from state_ledger import access, storage
from state_ledger.errors import StoreAccessError
from state_ledger.health import budgets, file_system, growth, integrity, log, rows, texts
from state_ledger.health.finding import Finding, Report, sorted_by_severity
from state_ledger.health.patient import AT_REST, Patient, admit, command
from state_ledger.homes import expanded
from state_ledger.schema import SCHEMA_VERSION
from state_ledger.settings import Settings
from state_ledger.sqlite import UNREADABLE, sqlite3, version_info
from state_ledger.writing.journal import has_wal_reset_bug, mode_of

BIG_LOG_BYTES = 64 << 20
"""A log beyond this costs every reader time and should have been brought back (checkpoints try at that size)."""
WAITING_PAGES = 1000
"""SQLite's own measure of when a log is to be brought back (wal_autocheckpoint)."""
FREE_SHARE = 0.25
FREE_BYTES = 16 << 20
"""From this share and this much on, giving free pages back to the disk is worth the work."""

Tell = Callable[[str], None]
"""Told what is being looked at."""

_REPEATS = 3


def check(
    path: str | Path, *, full: bool = False, settings: Settings | None = None, tell: Tell | None = None
) -> Report:
    """Looks at a store without changing it, leaving anything beside it, or keeping a writer waiting.

    full: integrity entry by entry, in a private copy where the file keeps no write-ahead log, since a long
    look would hold its writers up. Whatever is wrong is a finding; nothing of it is raised.
    """
    path = expanded(path).absolute()
    tell = tell or (lambda what: None)
    try:
        for _ in range(_REPEATS):
            before = _moment(path)
            copied = full and not access.is_wal(access.header_of(path))
            with admit(path, settings, copied=copied) as admitted:
                found = [*glance(admitted), *examine(admitted, full=full, tell=tell)]
                how = admitted.how
            # What is read as a file at rest must have rested meanwhile.
            if how != AT_REST or _moment(path) == before:
                break
        else:
            with admit(path, settings, copied=True) as admitted:
                found, how = [*glance(admitted), *examine(admitted, full=full, tell=tell)], admitted.how
    except StoreAccessError as error:
        found, how = [_no_access(error)], "not"
    except UNREADABLE as error:
        found, how = (
            [Finding("file", "error", f"SQLite cannot read {path.name} ({error}).", command(path, "repair", "NEW"))],
            "not",
        )
    return Report(path, how, full, sorted_by_severity(_agreeing(found)))


def _agreeing(found: list[Finding]) -> list[Finding]:
    """What cannot be made anew in place, because its pages cannot be read, is not offered that by any finding."""
    remedies = {each.kind.split(":")[-1]: each.remedy for each in found if each.kind.startswith("integrity:full-text")}
    return [
        replace(each, remedy=remedies[each.kind.partition(":")[2]])
        if each.kind.startswith("text-") and each.is_trouble and each.kind.partition(":")[2] in remedies
        else each
        for each in found
    ]


def glance(patient: Patient) -> list[Finding]:
    """What can be told at once, for a page: what `glance_at_file` tells, and what was used of the budgets.

    Where there are budgets, the usage of their periods is added up.
    """
    is_store = patient.shape is not None and patient.shape.is_store
    return [*glance_at_file(patient), *(_gathered("budgets", patient, _budgets) if is_store else ())]


def glance_at_file(patient: Patient) -> list[Finding]:
    """What can be told of the file at once: look-ups by key, a few system calls, no walk over rows."""
    found = [*_gathered("file", patient, _file), *_gathered("schema", patient, _schema)]
    found += _gathered("log", patient, _log)
    if patient.shape is not None and patient.shape.is_store:
        found += _gathered("search indexes", patient, texts.glance)
    return [*found, *_gathered("free pages", patient, _free_pages)]


def examine(
    patient: Patient, *, full: bool = False, tell: Tell | None = None, budget_s: float | None = None
) -> list[Finding]:
    """What takes a walk over rows or pages. full: as in `check`.

    budget_s: after so many seconds all of it ends, pages last; what was not checked is told.
    """
    tell = tell or (lambda what: None)
    until = None if budget_s is None else time.monotonic() + budget_s
    found = _examined_rows(patient, tell, until)
    pages = list(_integrity(patient, full, tell, until))
    if any(finding.kind.startswith("integrity:") and finding.severity == "error" for finding in pages):
        # Then it is no news that a check failed.
        found = [replace(each, severity="note") if each.kind.startswith(_UNCHECKED) else each for each in found]
    return [*pages, *found]


_UNCHECKED = "unchecked:"


def _examined_rows(patient: Patient, tell: Tell, until: float | None) -> list[Finding]:
    found: list[Finding] = []
    if patient.shape is None or not patient.shape.is_store:
        return found
    for name, work in (
        ("search indexes", texts.examine),
        ("orphans", rows.orphans),
        ("foreign keys", rows.foreign_keys),
        ("messages stored twice", rows.doubles),
        ("titles", rows.titles),
        ("indexes", rows.indexes),
        ("figures of the ledger", rows.discrepancies),
        ("growth", _growth),
    ):
        tell(name)
        with integrity.ending(patient.connection, until):
            found += [_not_in_time(name, patient)] if _is_up(until) else _gathered(name, patient, work, until)
    return found


def _gathered(
    name: str, patient: Patient, work: Callable[[Patient], Iterator[Finding]], until: float | None = None
) -> list[Finding]:
    """The findings of one check; what keeps it from being made is one."""
    try:
        return list(work(patient))
    except UNREADABLE as error:
        if _is_up(until):
            return [_not_in_time(name, patient)]
        return [Finding(_UNCHECKED + name, "warning", f"The {name} could not be looked at ({error}).")]


def _is_up(until: float | None) -> bool:
    return until is not None and time.monotonic() >= until


def _not_in_time(name: str, patient: Patient) -> Finding:
    return Finding(_UNCHECKED + name, "note", f"Not checked in the time: {name}.", patient.command("check"))


def _budgets(patient: Patient) -> Iterator[Finding]:
    return budgets.findings(budgets.spendings(patient))


def _file(patient: Patient) -> Iterator[Finding]:
    library = f"SQLite {sqlite3.sqlite_version} ({sqlite3.__name__.partition('.')[0]})"
    mode = "wal" if access.is_wal(access.header_of(patient.path)) else mode_of(patient.connection)
    figures = {"sqlite": sqlite3.sqlite_version, "library": sqlite3.__name__.partition(".")[0], "journal": mode}
    if has_wal_reset_bug(version_info):
        yield Finding(
            "sqlite", "warning" if mode == "wal" else "note",
            f"This program uses {library}, which can corrupt a file in write-ahead mode when two connections reset its"
            " log at once (the WAL-reset bug).",
            "pip install pysqlite3, or use SQLite 3.51.3 or later.", figures,
        )  # fmt: skip
    else:
        yield Finding(
            "sqlite", "ok",
            f"This program uses {library}, which is free of the WAL-reset bug; other programs bring their own.",
            figures=figures,
        )  # fmt: skip
    if mode != "wal":
        yield Finding(
            "journal", "note", f"The journal mode is {mode}: readers and writers wait for each other.", figures=figures
        )
    mount = file_system.mount_of(patient.path)
    if mount is None:
        yield Finding("file-system", "note", "Which file system the store lies on is not told by this system.")
    elif mount.is_shared:
        yield Finding(
            "file-system", "error" if mode == "wal" else "warning",
            f"The store lies on a {mount.type} mount ({mount.folder}), where several machines may have it open; a"
            " write-ahead log does not work there and can corrupt the file.",
            "Move the store to a local disk; to read it elsewhere, take a backup and copy that.",
            {"type": mount.type},
        )  # fmt: skip
    else:
        yield Finding(
            "file-system", "ok", f"The store lies on a local {mount.type} file system.", figures={"type": mount.type}
        )
    cut = integrity.missing_bytes(patient.path)
    if cut is not None:
        yield Finding(
            "integrity:truncated", "error",
            f"The file is cut off: it has {cut[0]:,} of {cut[1]:,} bytes. What is left is damaged.",
            patient.command("repair", "NEW"), {"bytes": cut[0], "needed": cut[1]},
        )  # fmt: skip


def _schema(patient: Patient) -> Iterator[Finding]:
    shape = patient.shape
    if shape is None:
        yield Finding(
            "schema", "error", "The schema of the file cannot be read: it is damaged.", patient.command("repair", "NEW")
        )
        return
    if not shape.is_store:
        yield Finding(
            "schema", "error", f"{patient.path.name} is no store: it lacks the tables sessions and messages.",
            "Name a state.db file.",
        )  # fmt: skip
        return
    said = f"schema {shape.version}" if shape.version is not None else "no schema number"
    figures = {"version": shape.version, "known": SCHEMA_VERSION}
    missing = [f"{table}.{name}" for table, names in shape.missing.items() for name in names]
    if shape.version is not None and shape.version > SCHEMA_VERSION:
        yield Finding(
            "schema", "note",
            f"The store has {said}, newer than this program knows ({SCHEMA_VERSION}); it is read by what it has.",
            "Update state-ledger: pip install -U state-ledger.", figures,
        )  # fmt: skip
    elif missing or (shape.version or 0) < SCHEMA_VERSION:
        yield Finding(
            "schema", "note",
            f"The store has {said}; this program writes {SCHEMA_VERSION}. {_listed(missing)}",
            patient.command("migrate"), {**figures, "missing": missing},
        )  # fmt: skip
    else:
        yield Finding("schema", "ok", f"The store has {said}, with all its columns.", figures=figures)
    for table in shape.leftover_usage_tables:
        yield Finding(
            f"left-over:{table}", "note", f"The table {table} is left over from a rebuild; its rows are counted.",
            patient.command("migrate"),
        )  # fmt: skip


def _listed(missing: list[str]) -> str:
    if not missing:
        return "No column that is read is missing."
    more = ", …" if missing[8:] else ""
    return f"{len(missing)} columns are missing and read as no data: {', '.join(missing[:8])}{more}."


def _log(patient: Patient) -> Iterator[Finding]:
    found = log.look(patient.path)
    if not found.bytes:
        return
    figures = {"bytes": found.bytes, "pages": found.pages, "waiting": found.waiting}
    size = f"The write-ahead log has {found.bytes:,} bytes"
    waiting = "" if found.waiting is None else f", {found.waiting:,} of its pages are not in the store itself yet"
    readers = found.readers or ()
    if found.waiting is not None and found.waiting >= WAITING_PAGES and readers:
        who = ", ".join(name for _pid, name in readers)
        yield Finding(
            "log", "warning",
            f"{size}{waiting}: it cannot be emptied while {who} {'reads' if len(readers) == 1 else 'read'}.",
            "End that read (or that program, if it hangs), then: " + patient.command("optimize"),
            {**figures, "readers": [pid for pid, _name in readers]},
        )  # fmt: skip
    elif found.bytes > BIG_LOG_BYTES:
        users = log.users(patient.path)
        if users is None:
            by = " Who has it open is not told by this system."
        elif users:
            by = f" It is open in {', '.join(name for _pid, name in users)}."
        else:
            by = " No process that this user may see has it open."
        yield Finding(
            "log", "warning", f"{size}{waiting}, more than it should keep.{by}", patient.command("optimize"),
            {**figures, "users": None if users is None else [pid for pid, _name in users]},
        )  # fmt: skip
    else:
        yield Finding("log", "ok", f"{size}{waiting}.", figures=figures)


def _free_pages(patient: Patient) -> Iterator[Finding]:
    found = storage.pages(patient.connection)
    free, whole = found.free * found.size, found.total * found.size
    figures = {"bytes": whole, "free_pages": found.free, "free_bytes": free}
    if free >= FREE_BYTES and free >= FREE_SHARE * whole:
        yield Finding(
            "free-pages", "note",
            f"{found.free:,} of {found.total:,} pages are free ({free:,} bytes); the disk gets them back by a vacuum.",
            patient.command("vacuum"), figures,
        )  # fmt: skip
    else:
        yield Finding("free-pages", "ok", f"{found.free:,} of {found.total:,} pages are free.", figures=figures)


def _integrity(patient: Patient, full: bool, tell: Tell, until: float | None) -> Iterator[Finding]:
    has_log = access.is_wal(access.header_of(patient.path))
    piece_s = integrity.PIECE_BESIDE_A_LOG_S if has_log else integrity.PIECE_S
    found = integrity.examine(
        patient.connection, full=full, piece_s=piece_s, tick=lambda table: tell(f"pages of {table}"), until=until
    )
    for damage in found.damages:
        kind = f"integrity:{damage.kind}:{damage.name}"
        if damage.kind in (integrity.ROWS, integrity.SCHEMA):
            of = f"the table {damage.name}" if damage.kind == integrity.ROWS else "the schema"
            yield Finding(
                kind, "error",
                f"Structural damage: pages of {of} cannot be read ({damage.says}). Making an index anew does not help.",
                patient.command("repair", "NEW"),
            )  # fmt: skip
        elif damage.kind == integrity.UNTOLD:
            yield Finding(
                kind, "error",
                f"SQLite complains of the table {damage.name} or an index of it ({damage.says}); there was no time to"
                " find out which.",
                patient.command("check"),
            )  # fmt: skip
        elif not damage.in_pages and texts.reads_nul_differently(patient, damage.name):
            yield Finding(
                kind, "note",
                f"The search index {damage.name} disagrees with its copy of the text, which holds NULs: SQLite up to"
                " 3.40 reads those otherwise than later ones, so that this need not be damage.",
                patient.command("migrate"),
            )  # fmt: skip
        else:
            remedy = ("repair", "NEW") if damage.in_pages else ("optimize", "--rebuild-index", damage.name)
            yield Finding(
                kind, "error",
                f"The {damage.kind} {damage.name} is damaged ({damage.says}); the rows are whole, nothing is lost.",
                patient.command(*remedy),
            )  # fmt: skip
    if found.unchecked:
        listed = ", ".join(f"{table} ({why})" for table, why in found.unchecked.items())
        yield Finding(
            "integrity:unchecked", "note", f"Not checked for damage: {listed}.", patient.command("check", "--full")
        )
    if not found.damages:
        checked = "that were checked " if found.unchecked else ""
        depth = "entry by entry" if full else "in their structure, free pages apart"
        yield Finding("integrity", "ok", f"The pages of tables and indexes {checked}are sound ({depth}).")


def _growth(patient: Patient) -> Iterator[Finding]:
    found = growth.measure(patient.connection)
    figures = {
        "bytes": found.bytes,
        "bytes_per_week": round(found.bytes_per_week),
        "weeks": [number for _begin, number in found.weeks],
        **{f"reaches {name}": moment for name, moment in found.reached.items()},
    }
    if not found.bytes_per_week:
        yield Finding(
            "growth", "ok", "No message was stored in the last four weeks: the store does not grow.", figures=figures
        )
        return
    forecasts = [
        f"{name} {_day(moment)}" for name, moment in found.reached.items() if moment is not None
    ]  # fmt: skip
    said = f"; at this pace it reaches {', '.join(forecasts)}" if forecasts else ""
    soon = any(moment is not None and moment < time.time() + 30 * 86400 for moment in found.reached.values())
    yield Finding(
        "growth", "note" if soon else "ok",
        f"The store grows by {found.bytes_per_week:,.0f} bytes a week{said}.",
        patient.command("sizes") if soon else "", figures,
    )  # fmt: skip


def _day(moment: float) -> str:
    try:
        return f"on {datetime.fromtimestamp(moment, timezone.utc):%Y-%m-%d}"
    except (OverflowError, ValueError, OSError):
        return "not in a lifetime"


def _no_access(error: StoreAccessError) -> Finding:
    return Finding("file", "error", error.problem, error.remedy)


def _moment(path: Path) -> tuple[object, ...]:
    sidecars = access.Sidecars.of(path)
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns, sidecars.wal is None, sidecars.wal_bytes)
