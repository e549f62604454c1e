"""Files are kept where the user's home is, and everything works for a user who has none or may not write to it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from state_ledger import homes
from state_ledger.errors import NoHomeError, StateLedgerError
from state_ledger.full_text import cjk
from state_ledger.homes import cache_folder, data_folder
from state_ledger.stores import find_stores
from state_ledger.writing import opening


@pytest.mark.parametrize(
    ("platform", "environ", "ends"),
    [
        ("linux", {}, ".cache/state-ledger"),
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/state-ledger"),
        ("darwin", {}, "Library/Caches/state-ledger"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/state-ledger"),
    ],
)
def test_the_cache_is_where_the_system_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, platform: str, environ: Mapping[str, str], ends: str
) -> None:
    monkeypatch.setattr("state_ledger.homes.sys.platform", platform)
    assert cache_folder(environ).as_posix().endswith(ends)


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without a home; the folder for temporary files."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.setattr(homes.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_without_a_home_the_cache_is_a_folder_of_ones_own_among_temporary_files(homeless: Path) -> None:
    folder = cache_folder({})
    assert folder.parent == homeless and folder == cache_folder({})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/state-ledger")


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
@pytest.mark.parametrize("how", ["open to others", "a link", "a file"])
def test_a_folder_that_another_user_could_have_laid_out_is_not_used(homeless: Path, how: str) -> None:
    folder = homeless / f"state-ledger-{os.getuid()}"
    if how == "open to others":
        folder.mkdir()
        folder.chmod(0o777)
    elif how == "a link":
        folder.symlink_to(homeless)
    else:
        folder.touch()
    with pytest.raises(NoHomeError, match="HOME"):
        cache_folder({})


def test_without_a_home_nothing_lasting_is_kept_in_a_place_that_is_emptied(homeless: Path) -> None:
    with pytest.raises(NoHomeError, match="XDG_DATA_HOME"):
        data_folder({})
    assert list(homeless.iterdir()) == []


def test_without_a_home_nothing_of_the_agent_is_found_and_the_default_store_says_why(homeless: Path) -> None:
    assert find_stores({}) == [] and cjk.extension_path({}) is None
    assert homes.expanded("~nobody-of-that-name/state.db") == Path("~nobody-of-that-name/state.db")
    with pytest.raises(StateLedgerError, match="HERMES_HOME"):
        opening.default_path({})
    assert opening.default_path({"HERMES_HOME": "/h"}) == Path("/h/state.db")


IMPORTED = """
import importlib, os, pkgutil, sys
for module in pkgutil.iter_modules(importlib.import_module("encodings").__path__, "encodings."):
    if module.name.split(".")[1] in ("utf_32_le", "utf_16_le", "ascii", "latin_1", "utf_8_sig", "unicode_escape"):
        importlib.import_module(module.name)
import contextlib, io, json, traceback
from click.testing import CliRunner
from datasette.cli import cli as datasette_command
from state_ledger.cli import VERBS, main
for module in VERBS.values():
    importlib.import_module(module)
import state_ledger.plugins, uvicorn
for name in ("httpx", "httpx2", "httpcore", "httpcore2"):  # Datasette's client, under the name its line has
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
"""
"""Imported before the process gives up root, who alone may read this Python."""
USE = """
store, others, home = sys.argv[1:]
for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HERMES_HOME"):
    os.environ.pop(name, None)
if home:
    os.environ["HOME"] = home
os.setgroups([]); os.setgid(54321); os.setuid(54321); os.chdir(others)
told = {}
def use(name, command, *words):
    done = CliRunner().invoke(command, words)
    trace = "" if done.exception is None or isinstance(done.exception, SystemExit) else repr(done.exception)
    told[name] = [done.exit_code, done.output[-4000:], trace]
use("query", main, "query", "cost_per_model", store)
use("search", main, "search", "pier", store)
use("status", main, "status", store)
use("check", main, "check", store)
use("profiles", main, "profiles", store)
use("own", main, "profiles")
use("plan", main, "plan", store, "--older-than", "9")
use("backup", main, "backup", store)
use("backup to", main, "backup", store, "--to", "kept")
use("export", main, "export", store, "--all", "--output", "all.jsonl")
use("index", main, "index", store)
use("page", datasette_command, "serve", store, "--get", "/state/-/cost")
print(json.dumps(told))
"""


@pytest.mark.parametrize("home", ["none", "read-only"])
def test_every_verb_and_page_works_for_a_user_without_a_home(filled: Path, open_folder: Path, home: str) -> None:
    """As in a container that runs as a number without a name, or with a home that is read-only."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can run a process as another user")
    others = open_folder / "others"
    store = others / "state.db"
    others.mkdir()
    store.write_bytes(filled.read_bytes())
    for path in (others, store):
        os.chown(path, 54321, 54321)
    named = "" if home == "none" else str(open_folder)
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED + USE, str(store), str(others), named],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert {name: trace for name, (_, _, trace) in told.items() if trace} == {}
    fine = {name for name, (code, _, _) in told.items() if code == 0}
    assert fine >= {"query", "search", "status", "profiles", "plan", "backup to", "export", "page"}, told
    for name in ("own", "backup", "index") if home != "none" else ("own", "backup"):
        code, said, _ = told[name]
        assert code == 1 and "Error: " in said, (name, said)
    assert "pages of tables and indexes are sound" in told["check"][1]
