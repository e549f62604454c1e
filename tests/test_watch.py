"""Has a store changed? Told without keeping a writer from anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from state_ledger.sqlite import sqlite3
from state_ledger.watch import Watch

INSERT = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'user', 'more', 1)"


@pytest.fixture(params=["wal", "delete"])
def live(request: pytest.FixtureRequest, small_store: Callable[..., Path]) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A store and a connection that writes to it."""
    path = small_store(journal=request.param)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as writer:
        writer.execute("SELECT count(*) FROM messages").fetchall()
        yield path, writer


def aged(path: Path) -> None:
    """Makes the files look as if nobody had written for an hour."""
    for each in (path, Path(f"{path}-wal")):
        if each.exists():
            status = each.stat()
            os.utime(each, ns=(status.st_atime_ns, status.st_mtime_ns - 3600 * 10**9))


def test_the_version_changes_with_every_commit_and_with_nothing_else(live: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = live
    watch = Watch(path)
    seen = [watch.version()]
    for _ in range(3):
        assert watch.version() == seen[-1]
        writer.execute(INSERT)
        seen.append(watch.version())
    assert len(set(seen)) == 4
    writer.execute("BEGIN IMMEDIATE")
    writer.execute(INSERT)
    assert watch.version() == seen[-1], "not before it is committed"
    writer.execute("ROLLBACK")
    assert watch.version() == seen[-1]
    watch.close()


def test_a_store_at_rest_is_not_asked_again(live: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = live
    watch = Watch(path)
    first = watch.version()
    aged(path)
    assert watch.version() == first
    asked = watch.asked
    for _ in range(20):
        assert watch.version() == first
    assert watch.asked == asked, "the file system told enough"
    writer.execute(INSERT)
    assert watch.version() != first
    watch.close()


def test_a_watch_keeps_no_writer_from_a_checkpoint_that_empties_the_log(small_store: Callable[..., Path]) -> None:
    path = small_store(journal="wal")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as writer:
        watch = Watch(path)
        watch.version()
        writer.execute(INSERT)
        watch.version()
        assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        assert Path(f"{path}-wal").stat().st_size == 0
        watch.close()


def test_a_locked_store_keeps_its_version_and_a_replaced_or_lost_one_gets_another(
    small_store: Callable[..., Path], tmp_path: Path
) -> None:
    path = small_store()
    watch = Watch(path)
    first = watch.version()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute(INSERT)
        assert watch.version() == first
        writer.execute("COMMIT")
        second = watch.version()
        assert second != first
    small_store("other.db").replace(path)
    third = watch.version()
    path.unlink()
    lost = watch.version()
    assert len({first, second, third, lost}) == 4
    assert watch.version() == lost
    small_store()
    assert watch.version() != lost
    watch.close()
