"""Usage in time and the roots of sessions, kept so that a question need not read the store for them.

`ledger_time` here has the rows of the view of that name: one per usage row and 15-minute bucket under
each day rule. Buckets make days of any zone, which sums by day would not. The part of each session's
messages that falls into a bucket is what costs time to find out, and is what is kept; the figures are
multiplied when they are read, as the view does.

A rollup is right or it is not used. It is used while nothing was written to the store since it was
read (size and time of its files), while the connection that asks has the views by which it was read
(their text: columns, profile, bounds), and this version's code made it. It is made in one go: what
a conversation is made of can change by one message, so that no part of it can be brought up to date alone.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from state_ledger import access, content, ledger
from state_ledger.ledger import apportion
from state_ledger.ledger.apportion import ALL_TIME, DAY_RULES, SPREAD, USED, WHOLE
from state_ledger.ledger.columns import bucket
from state_ledger.sqlite import Connection

SETTLED_S = 2.0
"""A file that was written less than this ago may be written again within one tick of its clock."""

AT_ONCE = 500
"""Sessions whose messages are looked at in one read."""

PLACES = ("session_id", "conversation_id", "work_id", "tip_session_id", "segment", "depth", "kind", "trouble")

TABLES = f"""
CREATE TABLE usage (id INTEGER PRIMARY KEY, {', '.join(USED)});
CREATE TABLE placed (day_rule TEXT NOT NULL, bucket INTEGER, usage INTEGER NOT NULL, share);
CREATE INDEX placed_in_time ON placed (day_rule, bucket, usage, share);
CREATE TABLE share_of_messages (session_id, bucket TEXT NOT NULL, share REAL NOT NULL);
CREATE TABLE session_place ({', '.join(PLACES)});
CREATE INDEX session_place_by_id ON session_place (session_id);
CREATE VIEW ledger_time AS
  SELECT {', '.join(f'u.{name}' for name in WHOLE)}, p.day_rule, p.bucket, p.bucket AS first_bucket,
         p.bucket AS last_bucket, p.share, {', '.join(f'u.{name} * p.share AS {name}' for name in SPREAD)}
  FROM placed AS p CROSS JOIN usage AS u ON u.id = p.usage
"""
"""`first_bucket` and `last_bucket` of the view bound the session; here each row is bounded by itself."""


class NotRolledUp(Exception):
    """A store whose usage is not kept in a rollup."""


def moment(store: str | Path) -> str:
    """What tells that a store's files are the same as before: their inodes, sizes and times.

    An empty file beside the store is none: readers make and leave it.
    """
    sidecars = access.Sidecars.of(store)
    found = [
        None if each is None or each.st_size == 0 else (each.st_ino, each.st_size, each.st_mtime_ns)
        for each in (Path(store).stat(), sidecars.wal, sidecars.journal)
    ]
    return json.dumps(found)


def settled(when: str, now: float) -> bool:
    """Whether any later write would show in the times of the files."""
    return all(each is None or now - each[2] / 1e9 > SETTLED_S for each in json.loads(when))


def layer(connection: Connection) -> str:
    """The semantic layer of a connection: the text of its views and the code behind their functions."""
    views = connection.execute("SELECT name, sql FROM sqlite_temp_master WHERE type = 'view' ORDER BY name")
    text = json.dumps([[_plain(value) for value in row] for row in views])
    return hashlib.sha256(f"{code()}{text}".encode()).hexdigest()[:24]


def _plain(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@lru_cache(maxsize=1)
def code() -> str:
    """A digest of the code behind the views and their functions."""
    files = sorted(Path(ledger.__file__).parent.glob("*.py"))
    files += [Path(content.__file__), Path(content.__file__).with_name("lineage.py"), Path(__file__)]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def read(store: Connection) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """What a rollup is made of, as tables and rows; each step is one read of the store.

    store: a connection with the semantic layer. Raises sqlite3.DatabaseError, and NotRolledUp for a
    store with names that are not UTF-8: two that differ would be read as one.
    """
    usage = [tuple(row) for row in store.execute(f"SELECT {', '.join(USED)} FROM ledger_usage")]
    if any(isinstance(value, str) and "\ufffd" in value for row in usage for value in row):
        raise NotRolledUp
    yield "usage", [(number, *row) for number, row in enumerate(usage)]
    sessions = list(dict.fromkeys(row[0] for row in usage))
    for at in range(0, len(sessions), AT_ONCE):
        yield "share_of_messages", _shares(store, sessions[at : at + AT_ONCE])
    places = store.execute(f"SELECT {', '.join(PLACES)} FROM ledger_lineage")
    yield "session_place", [tuple(row) for row in places]


def _shares(store: Connection, sessions: list[Any]) -> list[tuple[Any, ...]]:
    listed = f"VALUES {', '.join(['(?)'] * len(sessions))}"
    rows = store.execute(
        f"WITH wanted (id) AS ({listed}) SELECT w.id, h.key, h.value FROM wanted AS w"
        f" CROSS JOIN json_each({apportion.histogram('w.id')}) AS h",
        sessions,
    )
    return [tuple(row) for row in rows]


def write(companion: Connection, tables: Iterable[tuple[str, list[tuple[Any, ...]]]]) -> None:
    """Puts what was read in the place of what there was; within a transaction."""
    for name in ("usage", "placed", "share_of_messages", "session_place"):
        companion.execute(f"DELETE FROM {name}")
    for name, rows in tables:
        if rows:
            companion.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    at = f"CASE WHEN h.bucket <> '' THEN CAST(h.bucket AS INTEGER) ELSE {bucket(apportion.moment(DAY_RULES[0]))} END"
    companion.execute(
        f"INSERT INTO placed SELECT '{DAY_RULES[0]}', {at}, u.id, h.share FROM usage AS u"
        " JOIN share_of_messages AS h ON h.session_id = u.session_id"
    )
    for rule in DAY_RULES[1:]:
        companion.execute(
            f"INSERT INTO placed SELECT '{rule}', {bucket(apportion.moment(rule))}, u.id, 1 FROM usage AS u"
        )
    companion.execute(f"INSERT INTO placed SELECT '{ALL_TIME}', NULL, u.id, 1 FROM usage AS u")
    companion.execute("DELETE FROM share_of_messages")


def is_fresh(companion: Connection, store_path: str | Path, store: Connection) -> bool:
    """Whether the rollup of a companion gives what the views of a connection to the store give now."""
    row = companion.execute("SELECT value FROM note WHERE key = 'rollup'").fetchone()
    if row is None:
        return False
    kept = json.loads(row[0])
    return bool(kept["moment"] == moment(store_path) and kept["layer"] == layer(store))


def remark(when: str, layer_of_views: str) -> str:
    """The note that `is_fresh` reads."""
    return json.dumps({"moment": when, "layer": layer_of_views, "made_at": time.time()})
