"""Writing a demo store to a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from random import Random

from state_ledger import full_text as text_indexes
from state_ledger import private, schema, unfinished
from state_ledger.demo import gateway, troubles
from state_ledger.demo.load import Progress, load
from state_ledger.demo.plan import plan
from state_ledger.demo.prose import Voices
from state_ledger.demo.rhythm import Rhythm
from state_ledger.demo.session import Session
from state_ledger.demo.tools import Toolbox
from state_ledger.sqlite import sqlite3, version_info
from state_ledger.writing.journal import has_wal_reset_bug

DEFAULT_END = datetime(2026, 11, 28, 23, 0, tzinfo=timezone.utc)
"""Where a demo store's period ends unless told otherwise: fixed, so that equal seeds give equal rows."""


@dataclass(frozen=True)
class Demo:
    """What was made: rows by table, size of the file, and the session of each trouble by its name."""

    path: Path
    sessions: int
    messages: int
    usage_rows: int
    bytes: int
    troubles: dict[str, str]


def make_demo(
    path: str | os.PathLike[str],
    *,
    seed: int = 1,
    sessions: int = 150,
    days: int = 90,
    messages_per_session: float = 36.0,
    now: datetime | None = None,
    full_text: bool = True,
    progress: Progress | None = None,
) -> Demo:
    """Writes a demo store to `path`, which must not exist.

    seed, now: equal ones give equal rows. `now` is where the period of `days` days ends (aware, or
    taken as UTC), `DEFAULT_END` if None.
    sessions: how many; messages_per_session: how many messages one has on average (log-normal).
    full_text: whether the two full-text indexes are made; they take half the time of a big store.

    The file is written under a temporary name beside `path` and renamed when it is complete, in WAL
    mode unless the linked SQLite is one that corrupts such files, then in rollback mode.

    Raises FileExistsError if there is something at `path`, or a journal of that name; ValueError if
    the store would be too small to hold what it promises; OSError if it cannot be written.
    """
    target = Path(path)
    _refuse_existing(target)
    end = now or DEFAULT_END
    end = end.replace(tzinfo=timezone.utc) if end.tzinfo is None else end
    rng, voices, rhythm = Random(f"{seed}/plan"), Voices(seed), Rhythm(end.timestamp(), days)
    planned = plan(rng, voices, rhythm, sessions, messages_per_session)
    private.folder(target.parent)
    part = unfinished.place(target.name, target.parent)
    try:
        private.new_file(part)
        counts = _write(part, planned, seed, voices, end.timestamp(), full_text, progress)
        _refuse_existing(target)
        part.rename(target)
    finally:
        unfinished.remove(part)
    return Demo(target, *counts, target.stat().st_size, _troubled(planned))


def _refuse_existing(target: Path) -> None:
    # A journal left by a file that is gone would be played into the new one, and ruin it.
    for path in (target, *(target.with_name(target.name + suffix) for suffix in ("-journal", "-wal"))):
        if path.exists():
            raise FileExistsError(f"{path} exists already. Remove it, or give the demo store another name.")


def _troubled(planned: list[Session]) -> dict[str, str]:
    return {one.trouble: one.id for one in planned if one.trouble}


def _write(
    path: Path,
    planned: list[Session],
    seed: int,
    voices: Voices,
    end: float,
    full_text: bool,
    progress: Progress | None,
) -> tuple[int, int, int]:
    """Writes the whole store; returns rows of sessions, messages and usage."""
    report: Progress = progress or (lambda _what, _done, _all: None)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # Nobody else sees this file before it is complete, and after a crash it is thrown away.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN")
        schema.create_tables(connection)
        load(connection, planned, Random(f"{seed}/sessions"), voices, Toolbox(seed), report)
        gateway.write(connection, planned, end)
        troubles.spoil(connection, _troubled(planned))
        report("indexes", len(planned), len(planned))
        schema.create_indexes(connection)
        if full_text:
            report("full text", len(planned), len(planned))
            text_indexes.create(connection)
        connection.execute("COMMIT")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_mode = {'DELETE' if has_wal_reset_bug(version_info) else 'WAL'}")
        sizes = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("sessions", "messages", "session_model_usage")
        ]
    finally:
        connection.close()
    return sizes[0], sizes[1], sizes[2]
