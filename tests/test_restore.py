"""A backup becomes a store where nothing is; nothing that exists is ever overwritten."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from state_ledger.backup import back_up, contents
from state_ledger.backup.restoring import restore
from state_ledger.cli import main, output
from state_ledger.errors import BackupError, StateLedgerError
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests.conftest import filling, names_in


@pytest.fixture
def live(path: Path) -> Path:
    """A store with one session, at rest."""
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "moored at the pier")
        db.update_token_counts("s", 700, 80, model="a-model", estimated_cost_usd=0.25)
    return path


@pytest.fixture
def backup(live: Path, tmp_path: Path) -> Path:
    return back_up(live, tmp_path / "backups").path


def test_a_restored_store_is_the_store_and_can_be_written_to(live: Path, backup: Path, tmp_path: Path) -> None:
    before = backup.read_bytes()
    target = tmp_path / "new folder" / "桂林.db"
    made = restore(backup, target)
    assert (made.path, names_in(target.parent)) == (target, [target.name])
    assert made.contents == contents.read_file(live) and made.contents.cost_usd == 0.25
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with SessionDB(target) as db:
        assert [row["content"] for row in db.get_messages("s")] == ["moored at the pier"]
        assert [row["session_id"] for row in db.search_messages("pier")] == ["s"]
        db.append_message("s", "user", "and under way")
    with closing(sqlite3.connect(target)) as new, closing(sqlite3.connect(live)) as old:
        modes = [connection.execute("PRAGMA journal_mode").fetchone() for connection in (new, old)]
    assert modes[0] == modes[1], "a store with a write-ahead log gets one again"
    assert backup.read_bytes() == before and names_in(backup.parent) == [backup.name]


def test_a_store_that_exists_is_named_and_left_alone(live: Path, backup: Path) -> None:
    with closing(sqlite3.connect(live)) as owner:
        owner.execute("INSERT INTO sessions (id, source, started_at) VALUES ('t', 'cli', 1)")
        owner.commit()
        before = live.read_bytes(), names_in(live.parent)
        with pytest.raises(BackupError, match=r"state\.db is a store with 2 sessions, perhaps at work: it is not over"):
            restore(backup, live)
        with pytest.raises(BackupError, match="is a store with 1 sessions"):
            restore(backup, backup)
        assert (live.read_bytes(), names_in(live.parent)) == before


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("mine"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nowhere"),
        lambda path: Path(f"{path}-wal").write_bytes(b"x"),
        lambda path: Path(f"{path}-journal").write_bytes(b""),
    ],
    ids=["file", "folder", "dangling link", "log", "journal"],
)
def test_nothing_is_overwritten_and_no_log_of_another_store_is_played_in(
    backup: Path, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    target = tmp_path / "target.db"
    make(target)
    before = names_in(tmp_path)
    with pytest.raises(BackupError, match=r"not overwritten|log of another store"):
        restore(backup, target)
    assert names_in(tmp_path) == before


def test_a_damaged_backup_is_refused_before_anything_is_made(backup: Path, tmp_path: Path) -> None:
    size = backup.stat().st_size
    for number, spoil in enumerate(
        (
            lambda path: os.truncate(path, size // 2),
            lambda path: os.truncate(path, 10),
            lambda path: path.write_bytes(bytes(size)),
            lambda path: path.write_bytes(path.read_bytes()[:4096] + os.urandom(4096) + path.read_bytes()[8192:]),
        )
    ):
        spoiled = Path(shutil.copy(backup, tmp_path / f"spoiled-{number}.db"))
        spoil(spoiled)
        with pytest.raises(StateLedgerError):
            restore(spoiled, tmp_path / "folder" / "new.db")
    assert not (tmp_path / "folder").exists()


def test_a_disk_that_fills_up_keeps_nothing_of_a_store(
    filled: Path, tmp_path: Path, disk: Callable[[int], Path]
) -> None:
    made = back_up(filled, tmp_path / "backups")
    small = disk(40)
    with pytest.raises(BackupError, match="was not made: there is no room left"):
        restore(made.path, small / "state.db", progress=filling(small / "ballast"))
    assert names_in(small) == ["ballast"]


def test_the_verbs_speak_json_and_in_sentences(live: Path, tmp_path: Path) -> None:
    place, target = tmp_path / "backups", tmp_path / "new.db"
    made = CliRunner().invoke(main, ["backup", str(live), "--to", str(place), "--keep", "2", "--full", "--json"])
    said = json.loads(made.stdout)
    assert made.exit_code == output.DONE and Path(said["path"]).parent == place
    assert said["contents"]["messages"] == 1 and said["compared"] is True and made.stderr == ""
    again = CliRunner().invoke(main, ["restore", said["path"], str(target), "--json"])
    assert json.loads(again.stdout)["contents"] == said["contents"]
    refused = CliRunner().invoke(main, ["restore", said["path"], str(target)])
    assert refused.exit_code == output.NOT_WELL and "is a store with 1 sessions" in refused.stderr
    spoken = CliRunner().invoke(main, ["backup", str(live), "--to", str(place)])
    assert "verified" in spoken.stdout and "$0.25 (estimated $0.25)" in spoken.stdout
    missing = CliRunner().invoke(main, ["backup", str(tmp_path / "none.db"), "--to", str(place)])
    assert missing.exit_code == output.NOT_WELL and missing.stderr.startswith("Error: There is no file")


def test_without_a_folder_a_backup_goes_to_that_of_the_users_data(
    live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    made = CliRunner().invoke(main, ["backup", str(live)])
    (file,) = (tmp_path / "data" / "state-ledger" / "backups").iterdir()
    assert str(file) in made.stdout and names_in(live.parent) == ["data", "state.db"]
