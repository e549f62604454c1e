"""A verb that writes says what it would do, asks whoever is there, and takes a backup before."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from state_ledger.cli import main, output
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests.conftest import names_in

VERB = "from state_ledger.cli import main; main()"


@pytest.fixture
def live(path: Path) -> Path:
    with SessionDB(path) as db:
        db.create_session("old", "cli")
        db.append_message("old", "user", "moored")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An exported session that the store does not have."""
    with SessionDB(tmp_path / "elsewhere.db") as db:
        db.create_session("new", "cli")
        db.append_message("new", "user", "under way")
    exported = tmp_path / "new.jsonl"
    CliRunner().invoke(main, ["export", str(tmp_path / "elsewhere.db"), "--all", "--output", str(exported)])
    return exported


def sessions(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM sessions ORDER BY id")]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_where_nobody_can_be_asked_nothing_is_done(live: Path, file: Path, tmp_path: Path) -> None:
    before = live.read_bytes()
    done = run("import", file, live, "--backup-dir", tmp_path / "backups")
    assert done.exit_code == output.NOT_CONFIRMED
    assert str(file) in done.stderr and "Nothing was done: nobody can be asked here" in done.stderr
    assert live.read_bytes() == before and "backups" not in names_in(tmp_path)


def test_yes_does_not_ask_and_a_backup_has_what_was_there_before(live: Path, file: Path, tmp_path: Path) -> None:
    done = run("import", file, live, "--yes", "--backup-dir", tmp_path / "backups")
    assert done.exit_code == output.DONE and done.stdout == "1 sessions with 1 messages were imported.\n"
    (backup,) = (tmp_path / "backups").iterdir()
    assert f"Backup: {backup}: " in done.stderr
    assert (sessions(live), sessions(backup)) == (["new", "old"], ["old"])


def test_without_a_backup_none_is_taken_and_the_two_options_exclude_each_other(
    live: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    both = run("import", file, live, "--yes", "--no-backup", "--backup-dir", tmp_path / "backups")
    assert both.exit_code == output.USAGE and sessions(live) == ["old"]
    assert run("import", file, live, "-y", "--no-backup").exit_code == output.DONE
    assert sessions(live) == ["new", "old"] and not {"data", "backups"} & set(names_in(tmp_path))


def test_a_backup_that_fails_keeps_the_store_from_being_written(live: Path, file: Path, tmp_path: Path) -> None:
    (tmp_path / "backups").write_text("a file where the folder should be")
    place = tmp_path / "backups" / "below"
    done = run("import", file, live, "--yes", "--backup-dir", place)
    assert done.exit_code == output.NOT_WELL and "cannot be used" in done.stderr
    assert sessions(live) == ["old"]


def test_a_link_and_a_name_of_any_kind_lead_to_the_store(live: Path, file: Path, tmp_path: Path) -> None:
    odd = tmp_path / "桂林 工作 100%?#" / "state.db"
    odd.parent.mkdir()
    live.rename(odd)
    link = tmp_path / "a link.db"
    link.symlink_to(odd)
    done = run("import", file, link, "--yes", "--backup-dir", tmp_path / "バックアップ")
    assert done.exit_code == output.DONE and link.is_symlink()
    (backup,) = (tmp_path / "バックアップ").iterdir()
    assert (sessions(odd), sessions(backup)) == (["new", "old"], ["old"])
    assert names_in(odd.parent) == ["state.db"] and "a link.db-wal" not in names_in(tmp_path)


def newer(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE schema_version SET version = 30")
        connection.execute(change)
        connection.commit()


def test_a_newer_schema_is_refused_before_the_question_unless_it_has_all_that_is_known(
    live: Path, file: Path, tmp_path: Path
) -> None:
    newer(live, "ALTER TABLE sessions ADD COLUMN hidden")
    place = ("--backup-dir", tmp_path / "backups")
    assert "nothing was done" in run("migrate", live, "--yes", *place).output
    assert run("import", file, live, "--yes", *place).exit_code == output.DONE
    newer(live, "ALTER TABLE messages DROP COLUMN observed")
    backups = names_in(tmp_path / "backups")
    refused = run("import", file, live, "--yes", *place)
    assert refused.exit_code == output.NOT_WELL
    assert "schema 30, which is newer" in refused.stderr and "messages (observed)" in refused.stderr
    assert names_in(tmp_path / "backups") == backups


def test_a_migration_shows_its_steps_and_backs_up_the_store_as_it_was(small_store: Any, tmp_path: Path) -> None:
    path = small_store()
    done = run("migrate", path, "--yes", "--backup-dir", tmp_path / "backups")
    assert done.exit_code == output.DONE and "Add to sessions: " in done.stderr and "is up to date" in done.stdout
    (backup,) = (tmp_path / "backups").iterdir()
    for store, version in ((path, 23), (backup, 5)):
        with closing(sqlite3.connect(store)) as connection:
            assert connection.execute("SELECT version FROM schema_version").fetchall() == [(version,)]
    again = run("migrate", path)
    assert again.exit_code == output.DONE and "nothing was done" in again.output


# In a real terminal

terminal = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`typed("import", …)` starts the command in a pseudo-terminal."""
    import pexpect

    started = []

    def start(*arguments: str | Path) -> Any:
        child = pexpect.spawn(
            sys.executable, ["-c", VERB, *map(str, arguments)], encoding="utf-8", timeout=60, dimensions=(24, 200)
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.close(force=True)


@terminal
@pytest.mark.parametrize("answer", ["n", "", "\x03"], ids=["no", "return", "control c"])
def test_any_answer_but_yes_leaves_the_store_alone(
    live: Path, file: Path, tmp_path: Path, typed: Callable[..., Any], answer: str
) -> None:
    before = live.read_bytes()
    child = typed("import", file, live, "--backup-dir", tmp_path / "backups")
    child.expect(r"that .*state\.db does not have are put into it\.")
    child.expect_exact("Do it? [y/N]:")
    child.send(answer) if answer == "\x03" else child.sendline(answer)
    child.expect_exact("Nothing was done.")
    child.expect_exact(EOF())
    child.wait()
    assert child.exitstatus == output.NOT_CONFIRMED
    assert live.read_bytes() == before and "backups" not in names_in(tmp_path)


@terminal
def test_yes_in_a_terminal_shows_the_backup_as_a_bar_and_does_it(
    live: Path, file: Path, tmp_path: Path, typed: Callable[..., Any]
) -> None:
    child = typed("import", file, live, "--backup-dir", tmp_path / "backups")
    child.expect_exact("Do it? [y/N]:")
    child.sendline("y")
    child.expect(r"Backing up +\[#+\] +100%")
    child.expect_exact("Backup: ")
    child.expect_exact("1 sessions with 1 messages were imported.")
    child.expect_exact(EOF())
    child.wait()
    assert child.exitstatus == output.DONE
    assert sessions(live) == ["new", "old"] and len(names_in(tmp_path / "backups")) == 1


@terminal
def test_matches_are_marked_in_a_terminal_and_text_cannot_steer_it(live: Path, typed: Callable[..., Any]) -> None:
    with SessionDB(live) as db:
        db.append_message("old", "user", "harbour \x1b]0;owned\x07 \x1b[2J \u202egnp")
    child = typed("search", "harbour", live)
    child.expect_exact("\x1b[33m\x1b[1mharbour\x1b[0m")
    child.expect_exact(EOF())
    assert "]0;owned" in child.before and "[2J" in child.before
    assert not set(child.before) & {"\x1b", "\x07", "\u202e"}
    elsewhere = run("search", "harbour", live, "--json")
    assert json.loads(elsewhere.stdout)["stores"][0]["hits"][0]["snippet"].startswith(">>>harbour<<<")


def EOF() -> Any:
    import pexpect

    return pexpect.EOF
