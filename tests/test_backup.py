"""A backup is of one moment, whole, private and verified, whoever writes meanwhile and whatever goes wrong."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state_ledger import copying
from state_ledger.backup import back_up, contents, places
from state_ledger.errors import BackupError, StoreAccessError
from state_ledger.sqlite import sqlite3
from tests.conftest import ROOT, filling, names_in, unix


@pytest.fixture
def live(filled: Path, path: Path) -> Path:
    """A store of one's own, that nobody has open."""
    shutil.copyfile(filled, path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def asked(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        return [tuple(row) for row in connection.execute(sql)]


def test_a_backup_is_one_private_file_with_everything_in_it(live: Path, folder: Path) -> None:
    before, beside = live.read_bytes(), names_in(live.parent)
    told: list[tuple[int, int]] = []
    began = time.time()
    made = back_up(live, folder, progress=lambda done, total: told.append((done, total)))
    assert (made.path.parent, names_in(folder)) == (folder, [made.path.name])
    assert made.path.name.startswith(f"state-{places.stem_of(live).rpartition('-')[2]}-")
    assert (stat.S_IMODE(made.path.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)
    assert began <= made.taken_at <= time.time() and made.bytes == made.path.stat().st_size
    assert made.compared and made.contents.by_basis == {"estimated": 0.5}
    assert (made.contents.sessions, made.contents.messages, made.contents.calls) == (2, 300, 6)
    assert (made.contents.tokens, made.contents.cost_usd) == (1560, 0.5)
    assert "2 sessions, 300 messages, 6 calls, 1,560 tokens processed, $0.50 (estimated $0.50)" in made.sentence
    assert len(told) > 2 and told[-1][0] == told[-1][1] == made.bytes
    assert asked(made.path, "PRAGMA integrity_check") == [("ok",)]
    assert made.path.read_bytes()[18:20] == before[18:20], "its journal mode is the store's"
    assert (live.read_bytes(), names_in(live.parent)) == (before, sorted([*beside, "backups"]))


@unix
@pytest.mark.parametrize("log", [True, False], ids=["with a log", "without a log"])
def test_all_that_was_acknowledged_before_is_in_it_and_the_writer_never_fails(
    live: Path, folder: Path, tmp_path: Path, log: bool
) -> None:
    with closing(sqlite3.connect(live)) as connection:
        connection.execute(f"PRAGMA journal_mode = {'WAL' if log else 'DELETE'}").fetchone()
    said = tmp_path / "acknowledged"
    with said.open("wb") as out:
        writer = subprocess.Popen(
            [sys.executable, "-m", "tests.appending", str(live), "w", "1000000"], cwd=ROOT, stdout=out
        )
    try:

        def acknowledged() -> int:
            assert writer.poll() is None, "the writer failed"
            return said.read_bytes().count(b"\n")

        def wait_for(number: int) -> int:
            while acknowledged() < number:
                time.sleep(0.01)
            return acknowledged()

        for _ in range(2):
            before = wait_for(acknowledged() + 20)
            made = back_up(live, folder)
            wait_for(acknowledged() + 20)
            stored = [
                row[0] for row in asked(made.path, "SELECT content FROM messages WHERE session_id = 'w' ORDER BY id")
            ]
            assert len(stored) >= before and stored == [f"w {number}" for number in range(len(stored))]
            assert made.contents == contents.read_file(made.path) and made.compared
            assert (made.contents.messages, made.contents.cost_usd) == (300 + len(stored), 0.5)
            assert asked(made.path, "PRAGMA integrity_check") == [("ok",)]
    finally:
        writer.kill()
        writer.wait()
    assert len(places.existing(live, folder)) == 2


def test_what_is_only_in_the_log_is_in_the_backup_and_not_in_a_copy_of_the_file(live: Path, folder: Path) -> None:
    with closing(sqlite3.connect(live)) as owner:
        owner.execute("PRAGMA wal_autocheckpoint = 0")
        owner.execute("UPDATE sessions SET title = 'new' WHERE id = 'a'")
        owner.commit()
        plain = Path(shutil.copy(live, live.with_name("plain.db")))
        made = back_up(live, folder)
    title = "SELECT title FROM sessions WHERE id = 'a'"
    assert (asked(plain, title), asked(made.path, title)) == ([(None,)], [("new",)])


def test_the_log_of_a_program_that_crashed_is_in_the_backup_and_left_as_it_was(live: Path, folder: Path) -> None:
    crashed = live.with_name("crashed.db")
    with closing(sqlite3.connect(live)) as owner:
        owner.execute("PRAGMA wal_autocheckpoint = 0")
        owner.execute("UPDATE sessions SET title = 'last words' WHERE id = 'a'")
        owner.commit()
        for ending in ("", "-wal"):
            shutil.copyfile(f"{live}{ending}", f"{crashed}{ending}")
    before = crashed.read_bytes(), Path(f"{crashed}-wal").read_bytes(), names_in(live.parent)
    made = back_up(crashed, folder)
    assert asked(made.path, "SELECT title FROM sessions WHERE id = 'a'") == [("last words",)]
    assert not made.compared
    after = crashed.read_bytes(), Path(f"{crashed}-wal").read_bytes(), names_in(live.parent)
    assert after == (*before[:2], sorted([*before[2], "backups"]))


def test_without_room_nothing_is_begun(live: Path, disk: Callable[[int], Path]) -> None:
    small = disk(8)
    with pytest.raises(BackupError, match=r"needs [\d,]+ bytes in .*are free"):
        back_up(live, small)
    assert names_in(small) == []


def test_a_disk_that_fills_up_meanwhile_keeps_the_older_backup_and_nothing_else(
    live: Path, disk: Callable[[int], Path]
) -> None:
    small = disk(40)
    first = back_up(live, small, keep=1)
    with pytest.raises(BackupError, match="was not made: there is no room left"):
        back_up(live, small, keep=1, progress=filling(small / "ballast"))
    (small / "ballast").unlink()
    assert names_in(small) == [first.path.name] and contents.read_file(first.path) == first.contents


def test_a_store_of_a_newer_schema_is_backed_up_as_it_is(live: Path, folder: Path) -> None:
    with closing(sqlite3.connect(live)) as connection:
        connection.executescript(
            "UPDATE schema_version SET version = 30; ALTER TABLE sessions ADD COLUMN hidden TEXT;"
            " UPDATE sessions SET hidden = id; CREATE TABLE reactions (emoji); INSERT INTO reactions VALUES ('👍')"
        )
    made = back_up(live, folder)
    assert made.contents.schema == 30
    assert asked(made.path, "SELECT hidden FROM sessions ORDER BY id") == [("a",), ("b",)]
    assert asked(made.path, "SELECT emoji FROM reactions") == [("👍",)]


def test_names_of_every_kind_and_links_lead_to_the_store(live: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a folder 100%?#" / "profiles" / "桂林 工作" / "state.db"
    odd.parent.mkdir(parents=True)
    live.rename(odd)
    link = tmp_path / "link.db"
    link.symlink_to(odd)
    place = tmp_path / "バックアップ 1%"
    first, second = back_up(odd, place), back_up(link, place)
    assert first.contents == second.contents and len(names_in(place)) == 2
    digests = {made.path.name.split("-")[-2] for made in (first, second)}
    assert len(digests) == 1, "one file, whatever leads to it"
    assert "profiles" not in first.path.name


def test_rotation_removes_the_oldest_of_this_store_and_nothing_else(live: Path, folder: Path) -> None:
    other = Path(shutil.copy(live, live.with_name("other.db")))
    strange = back_up(other, folder)
    kept = [back_up(live, folder) for _ in range(3)]
    assert len({made.path for made in kept}) == 3, "made within one second, and yet three"
    stem = places.stem_of(live)
    theirs = folder / f"{stem}-notes.db"
    theirs.write_text("mine")
    link = folder / f"{stem}-20200101T000000Z.db"
    link.symlink_to(other)
    made = back_up(live, folder, keep=2)
    assert made.removed == tuple(each.path for each in kept[:2])
    left = sorted([strange.path.name, theirs.name, link.name, kept[2].path.name, made.path.name])
    assert names_in(folder) == left and other.exists()
    with pytest.raises(BackupError, match="At least one"):
        back_up(live, folder, keep=0)


def damage(path: Path) -> None:
    """Overwrites a page of the messages themselves."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes(size))


def test_a_damaged_store_is_no_success_and_costs_no_good_backup(live: Path, folder: Path) -> None:
    good = back_up(live, folder)
    damage(live)
    with pytest.raises(BackupError, match=r"is damaged: SQLite says .* no backup was removed"):
        back_up(live, folder, keep=1)
    (bad,) = folder.glob("*.damaged")
    assert places.existing(live, folder) == [good.path] and stat.S_IMODE(bad.stat().st_mode) == 0o600
    assert contents.read_file(good.path) == good.contents


@pytest.mark.parametrize("table", ["data", "config", "docsize"])
def test_a_damaged_search_index_keeps_no_message_out_of_a_backup(live: Path, folder: Path, table: str) -> None:
    with closing(sqlite3.connect(live)) as connection:
        connection.execute(f"DELETE FROM messages_fts_{table}")
        connection.commit()
    made = back_up(live, folder)
    assert made.contents.messages == 300 and len(asked(made.path, "SELECT id FROM messages")) == 300
    assert ("search indexes are damaged" in made.sentence) is bool(made.index_damage)
    damage(live)
    with pytest.raises(BackupError, match="is damaged"):
        back_up(live, folder)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda path: None, "no file"),
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_text("words " * 100), "not a SQLite"),
        (lambda path: path.mkdir(), "not an ordinary file|folder"),
    ],
    ids=["missing", "empty", "text", "folder"],
)
def test_what_is_no_store_is_told_in_a_sentence(
    path: Path, folder: Path, make: Callable[[Path], object], word: str
) -> None:
    make(path)
    with pytest.raises(StoreAccessError, match=word):
        back_up(path, folder)
    assert not folder.exists()


def test_a_database_of_another_program_is_refused(path: Path, folder: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
    with pytest.raises(StoreAccessError, match="another program"):
        back_up(path, folder)
    assert names_in(folder) == []


BY_ANOTHER = """
from pathlib import Path
from state_ledger.backup import back_up
from state_ledger.errors import StateLedgerError
for path in sys.argv[1:]:
    try:
        made = back_up(Path(path), Path(os.environ["HOME"]) / "b")
    except StateLedgerError as error:
        print(error)
    else:
        print(made.contents.messages, oct(made.path.stat().st_mode & 0o777))
"""


def test_another_user_who_may_read_a_store_can_back_it_up_and_leaves_nothing_beside_it(
    filled: Path, open_folder: Path, as_nobody: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    files = [Path(shutil.copy(filled, open_folder / name)) for name in ("open.db", "closed.db")]
    for file, mode in zip(files, (0o644, 0o600), strict=True):
        file.chmod(mode)
    done = as_nobody(BY_ANOTHER, *files)
    first, second = done.stdout.splitlines()
    assert first == "300 0o600" and "closed.db may not be read by nobody" in second, done.stderr
    assert names_in(open_folder) == ["closed.db", "open.db"]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(copying, "HELD_BYTES", 0)
    yield


def test_a_large_store_without_a_log_is_read_in_steps_that_let_writers_in(
    live: Path, folder: Path, small_steps: None
) -> None:
    with closing(sqlite3.connect(live, timeout=0, isolation_level=None)) as owner:
        owner.execute("PRAGMA journal_mode = DELETE").fetchone()
        written: list[int] = []

        def write(_done: int, _total: int) -> None:
            if len(written) < 2:
                written.append(owner.execute("UPDATE sessions SET title = hex(randomblob(4)) WHERE id = 'a'").rowcount)

        made = back_up(live, folder, progress=write)
        title = owner.execute("SELECT title FROM sessions WHERE id = 'a'").fetchone()
    assert written == [1, 1], "a lock that lasts would have raised"
    assert not made.compared and asked(made.path, "SELECT title FROM sessions WHERE id = 'a'") == [tuple(title)]
