"""Nothing of a store leaves the machine, lies open to other users, or gets into a log."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from state_ledger import SessionDB
from tests.test_serving import addresses

CHECKOUT = Path(__file__).resolve().parents[1]
WORD = "lighthousekeeper"
"""What stands in a message and in no address that is asked."""


class Use:
    """What came of using everything: see `tests.cut_off.main`; folder: where it was used, with its homes."""

    def __init__(self, folder: Path, told: dict[str, Any]) -> None:
        self.folder = folder
        self.told = told
        self.attempts = (folder / "attempts").read_text("utf-8")
        self.log = (folder / "server.log").read_text("utf-8")


@pytest.fixture(scope="module")
def use(tmp_path_factory: pytest.TempPathFactory) -> Use:
    from datasette.app import Datasette

    folder = tmp_path_factory.mktemp("use")
    store = folder / "theirs" / "state.db"
    store.parent.mkdir()
    with SessionDB(store) as db:
        db.create_session("s1", "cli", model="claude-sonnet-4-5")
        db.append_messages("s1", [{"role": "user", "content": f"the {WORD} of the harbour {n}"} for n in range(4)])
        db.update_token_counts("s1", 500, 50, model="claude-sonnet-4-5", estimated_cost_usd=0.5, api_call_count=1)
    datasette = Datasette([str(store)])
    asyncio.run(datasette.invoke_startup())
    # Every route, but each of the canned queries by its page and one more address only: they share the others.
    several = re.compile(r"/(?:state|-/ledger/all)/\w+\.(?:json|csv)|/-/export/question/|\.parquet|^/state/-/ask/[d-z]")
    paths = sorted({path.replace(WORD, "harbour") for path in addresses(datasette) if not several.search(path)})
    asked = {
        "store": str(store), "log": str(folder / "server.log"), "answer": str(folder / "answer.json"), "paths": paths,
        "browser": ["/state", "/state/-/cost", "/state/-/search?q=harbour", "/state/-/session/s1", "/state/-/ops",
                    "/state/messages", "/-/ledger/all"],
    }  # fmt: skip
    (folder / "attempts").touch()
    (folder / "work").mkdir()
    subprocess.run(
        [sys.executable, "-c", "import os; os.umask(0); import runpy; "
         "runpy.run_module('tests.cut_off', run_name='__main__')"],
        input=json.dumps(asked), text=True, check=True, cwd=folder / "work", timeout=900,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "STATE_LEDGER_ATTEMPTS": str(folder / "attempts"), "PYTHONPATH": str(CHECKOUT),
             "HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache"),
             "XDG_DATA_HOME": str(folder / "data"), "HERMES_HOME": str(folder / "theirs")},
    )  # fmt: skip
    return Use(folder, json.loads((folder / "answer.json").read_text("utf-8")))


def test_everything_works_without_a_network(use: Use) -> None:
    """Where the system lets a test leave the network it is gone; everywhere what is asked of it is refused."""
    bad = {verb: code for verb, code in use.told["verbs"].items() if code not in (0, 1)}
    assert bad == {} and use.told["verbs"]["query cost_per_model STORE"] == 0
    broken = {path: status for path, status in use.told["pages"].items() if status >= 500}
    assert broken == {} and use.told["pages"]["/state"] == 200
    assert sum(status == 200 for status in use.told["pages"].values()) > 100
    assert use.told["browser"] == []
    if sys.platform.startswith("linux") and os.geteuid() == 0:
        assert use.told["alone"]


def test_nobody_tries_to_reach_another_machine(use: Use) -> None:
    assert use.attempts == ""


def test_what_is_made_is_for_this_user_alone(use: Use) -> None:
    """Even by a user whose files are for everybody by default."""
    made = [path for place in ("cache", "data", "work") for path in (use.folder / place).rglob("*")]
    wide = [
        f"{oct(stat.S_IMODE(path.lstat().st_mode))} {path.relative_to(use.folder)}"
        for path in made
        if stat.S_IMODE(path.lstat().st_mode) & 0o077
    ]
    assert wide == [] and len(made) > 10


def test_the_log_of_the_server_holds_no_text_of_a_message(use: Use) -> None:
    assert "GET /state" in use.log and WORD not in use.log and "Traceback" not in use.log
