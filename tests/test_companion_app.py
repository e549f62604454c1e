"""The companion on the command line and in the app."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger.companion.background import Keeper
from state_ledger.companion.identity import companion_path
from state_ledger.companion.reading import open_for_search
from state_ledger.companion.status import status
from state_ledger.plugins import compat
from tests import prepared
from tests.companions import append, change, ids
from tests.conftest import fetch

LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STATE_LEDGER_COMPANION", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def store(small_store: Callable[..., Path]) -> Path:
    path = small_store("state.db", "wal")
    append(path, ["데이터 오류"] * 40)
    return path


def index(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return prepared.run(*prepared.COMMAND, "index", *arguments, timeout=120)


def wait_until(holds: Callable[[], Any]) -> None:
    """Returns when something holds; fails after a minute."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_command_says_what_it_did_in_numbers(store: Path) -> None:
    first = index(store)
    assert first.returncode == 0
    assert first.stderr == "", "no bar where nobody watches"
    assert "41 new messages were read, 40 of them into the index" in first.stdout
    append(store, ["새 것"])
    change(store, "DELETE FROM messages WHERE id IN (2, 3)")
    change(store, "UPDATE messages SET content = '바뀐 것' WHERE id = 4")
    report = json.loads(index(store, "--json").stdout)
    told = {name: report[name] for name in ("read", "added", "dropped", "changed", "covered_up_to", "finished")}
    assert told == {"read": 1, "added": 1, "dropped": 2, "changed": 1, "covered_up_to": 42, "finished": True}
    again = index(store, "--rebuild")
    assert "begun anew: it was asked for" in again.stdout
    assert "40 new messages were read" in again.stdout


def test_the_command_tells_the_state(store: Path) -> None:
    before = index(store, "--status")
    assert (before.returncode, "There is none. Run: state-ledger index" in before.stdout) == (0, True)
    assert not companion_path(store).exists()
    index(store)
    append(store, ["새 것"] * 3)
    assert "covers messages up to 41; 3 came after" in index(store, "--status").stdout
    state = json.loads(index(store, "--status", "--json").stdout)
    assert (state["usable"], state["behind"], state["indexed"]) == (True, 3, 40)


def test_what_cannot_be_done_is_an_error_in_a_sentence(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = index(tmp_path / "absent.db")
    assert (missing.returncode, missing.stderr.count("Traceback")) == (1, 0)
    assert "There is no file" in missing.stderr
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    refused = index(store)
    assert (refused.returncode, refused.stderr.count("Traceback")) == (1, 0)
    assert "could not be written: Not a directory" in refused.stderr


def test_a_keeper_follows_the_store_until_it_is_stopped(store: Path) -> None:
    keeper = Keeper([store], round_s=0.05)
    keeper.start()
    wait_until(lambda: open_for_search(store) and len(ids(store, "오류")) == 40)
    append(store, ["오류 하나 더"])
    wait_until(lambda: len(ids(store, "오류")) == 41)
    change(store, "DELETE FROM messages WHERE id < 20")
    wait_until(lambda: len(ids(store, "오류")) == 23)
    change(store, "UPDATE messages SET content = '고쳐진 것' WHERE id = 30")
    wait_until(lambda: ids(store, "고쳐진") == [30])
    keeper.stop()
    append(store, ["오류 뒤"])
    assert status(store).behind == 1


def test_a_keeper_says_once_what_is_wrong_and_goes_on(
    store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = Keeper([tmp_path / "absent.db", store], round_s=0.02)
    keeper.start()
    wait_until(lambda: open_for_search(store) is not None)
    time.sleep(0.3)
    keeper.stop()
    assert caplog.text.count("There is no file") == 1


def test_the_app_makes_one_when_it_is_asked_to(
    store: Path, served: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served([store])
    time.sleep(0.5)
    assert not companion_path(store).exists()
    served.end()  # type: ignore[attr-defined]
    monkeypatch.setenv("STATE_LEDGER_COMPANION", "1")
    address = served([store])
    wait_until(lambda: status(store).behind == 0)
    assert fetch(f"{address}/state")[0] == 200


async def test_the_setting_does_the_same(store: Path, make_datasette: Callable[..., Any]) -> None:
    given = {"plugins": {"state-ledger": {"companion": True}}}
    datasette = await make_datasette(store, **({"config": given} if compat.IS_1 else {"metadata": given}))
    wait_until(lambda: status(store).behind == 0)
    datasette._state_ledger_keeper.stop()


async def test_without_it_there_is_no_keeper(store: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(store)
    assert not hasattr(datasette, "_state_ledger_keeper")


def test_serve_takes_the_option(store: Path) -> None:
    """`--get` answers one page and ends: the option is ours and does not reach Datasette."""
    code = "from state_ledger.cli import main; main()"
    arguments = ["serve", str(store), "--companion", "--no-browser", "--get", "/state.json"]
    served = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert served.returncode == 0, served.stderr
