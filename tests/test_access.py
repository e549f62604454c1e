"""What may be read without harm to its owner is read; anything else is refused in a sentence."""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path

import pytest

from state_ledger import access
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import sqlite3
from tests.conftest import names_in
from tests.writers import crashed_in_the_middle_of_a_write


def _missing(folder: Path) -> Path:
    return folder / "nothing.db"


def _folder(folder: Path) -> Path:
    return folder


def _written(content: bytes):
    def make(folder: Path) -> Path:
        path = folder / "state.db"
        path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_missing, "There is no file"),
        (_folder, "is a folder"),
        (_written(b""), "is empty"),
        (_written(b"SQLite format 3\x00" + b"\x10"), "cut off after 17 bytes"),
        (_written(b"\x00" * 8192), "nothing but zero bytes"),
        (_written(b"# a page of text\n" * 100), "not a SQLite database"),
        (_written(os.urandom(15) + b"\x01" + os.urandom(4096)), "encrypted"),
        (lambda folder: Path("/dev/null"), "not an ordinary file"),
        (lambda folder: folder / "a\x00b", "There is no file"),
    ],
)
def test_what_is_no_store_is_named_with_a_remedy(tmp_path, make, words):
    with pytest.raises(StoreAccessError) as caught:
        access.check(make(tmp_path))
    assert words in str(caught.value)
    assert caught.value.remedy.endswith(".")
    assert not caught.value.snapshot_possible


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_store_of_ones_own_is_readable(small_store, journal):
    access.check(small_store(journal=journal))


def test_a_hot_journal_is_named_and_a_snapshot_offered(small_store, tmp_path):
    path = crashed_in_the_middle_of_a_write(small_store, tmp_path)
    with pytest.raises(StoreAccessError, match="in the middle of a write") as caught:
        access.check(path)
    assert caught.value.snapshot_possible


def test_the_journal_of_a_writer_at_work_is_no_reason_to_refuse(small_store, tmp_path):
    path = crashed_in_the_middle_of_a_write(small_store, tmp_path)
    now = time.time()
    os.utime(f"{path}-journal", (now, now))
    access.check(path)


def test_checking_gives_up_no_lock_that_this_process_holds(small_store):
    path = small_store()
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    access.check(path)
    assert _locked_for_others(path)
    writer.execute("ROLLBACK")
    writer.close()
    assert not _locked_for_others(path)


def test_a_replaced_file_is_judged_anew(small_store, tmp_path):
    path = small_store()
    access.check(path)
    other = tmp_path / "other"
    other.write_bytes(b"no database at all" * 100)
    other.replace(path)
    with pytest.raises(StoreAccessError, match="not a SQLite database"):
        access.check(path)


def test_what_was_replaced_does_not_keep_its_space(small_store, tmp_path):
    path = small_store()
    before = _open_descriptors()
    for _ in range(5):
        access.check(path)
        shutil.copyfile(path, tmp_path / "next.db")
        (tmp_path / "next.db").replace(path)
    access.check(path)
    assert _open_descriptors() <= before + 1


CHECK = """
from state_ledger.errors import StoreAccessError
try:
    state_ledger.access.check(sys.argv[1])
except StoreAccessError as refusal:
    print(refusal.snapshot_possible, refusal)
else:
    print("fine")
"""


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "says"),
    [
        (0o755, 0o644, "cannot make in"),
        (0o777, 0o644, "keep root from writing"),
        (0o777, 0o664, "keep root from writing"),
        (0o777, 0o666, "fine"),
        (0o755, 0o600, "may not be read by"),
    ],
)
def test_a_quiet_log_mode_store_of_another_user(
    small_store, open_folder, as_nobody, folder_mode, file_mode, says
):
    path = small_store(journal="wal", folder=open_folder)
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)
    answer = as_nobody(CHECK, path)
    assert says in answer.stdout, answer
    assert names_in(open_folder) == ["state.db"]
    if "cannot make" in says or "keep root" in says:
        assert answer.stdout.startswith("True ")


def test_a_group_that_shares_its_files_may_read(small_store, open_folder, as_nobody):
    path = small_store(journal="wal", folder=open_folder)
    os.chown(path, 0, 65534)
    path.chmod(0o664)
    open_folder.chmod(0o777)
    assert as_nobody(CHECK, path).stdout == "fine\n"


@pytest.mark.parametrize(("sidecar_mode", "says"), [(0o644, "fine"), (0o600, "by its owner only")])
def test_a_live_store_of_another_user(small_store, open_folder, as_nobody, sidecar_mode, says):
    path = small_store(journal="wal", folder=open_folder)
    owner = sqlite3.connect(path)
    owner.execute("INSERT INTO schema_version VALUES (6)")
    owner.commit()
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").chmod(sidecar_mode)
    assert says in as_nobody(CHECK, path).stdout
    owner.close()


def test_a_quiet_store_without_a_log_may_be_read_by_anyone(small_store, open_folder, as_nobody):
    path = small_store(folder=open_folder)
    open_folder.chmod(0o777)
    assert as_nobody(CHECK, path).stdout == "fine\n"


def _locked_for_others(path: Path) -> bool:
    import subprocess
    import sys

    code = (
        "import sys; from state_ledger.sqlite import sqlite3\n"
        "c = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try: c.execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError: print('locked')"
    )
    return (
        "locked"
        in subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        ).stdout
    )


def _open_descriptors() -> int:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list open descriptors")
    return sum(1 for fd in folder.iterdir() if _is_regular(fd))


def _is_regular(descriptor: Path) -> bool:
    try:
        return stat.S_ISREG(descriptor.stat().st_mode)
    except OSError:
        return False
