"""What the tests share: stores to read, users to be, and Datasette instances to ask."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from state_ledger import sessions
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests import prepared

# Machines that run the tests are shared: a slow example says nothing about the code.
settings.register_profile("state-ledger", deadline=None, max_examples=60)
settings.load_profile("state-ledger")

EXAMPLES_VARIABLE = "STATE_LEDGER_EXAMPLES_DIVISOR"
"""Divides the number of examples of every law: for a second run of the suite on other libraries."""
EXAMPLES_DIVISOR = int(os.environ.get(EXAMPLES_VARIABLE, "1"))

STRESS = os.environ.get("STATE_LEDGER_STRESS") == "1"
"""The nightly mode: long forms, and every combination instead of a part of them."""


LONG = ("test_transcript_page", "test_accessibility", "test_stock_pages", "test_code_blocks", "test_export_page",
        "test_permissions", "test_browser", "test_kills", "test_reading_harmless", "test_privacy")  # fmt: skip
"""Files that take longest. They come first: the last one to begin is waited for by workers with nothing left to do."""


OF_ENGINES = ("test_engine_equality", "test_fleet_books", "test_fleet_days", "test_fleet_file", "test_fleet_search",
              "test_lake", "test_lake_faults", "test_lake_privacy", "test_lake_s3", "test_postgresql",
              "test_postgresql_warehouse", "test_rollups")  # fmt: skip
"""Files in which there is nothing of Datasette: a second run on another version of it leaves them out."""


def fewer(number: int, least: int = 1) -> int:
    """A number of repetitions or rows that proves something of ours: divided as the examples of laws are."""
    return max(least, number // EXAMPLES_DIVISOR)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem not in LONG)
    divisor = EXAMPLES_DIVISOR
    for item in items if divisor > 1 else ():
        if item.path.stem in OF_ENGINES:
            item.add_marker(pytest.mark.skip(reason="has nothing of Datasette, and was tried in the first run"))
        law = getattr(item, "obj", None)
        if getattr(law, "is_hypothesis_test", False):
            law = getattr(law, "__func__", law)
            held = getattr(law, "_hypothesis_internal_use_settings", settings.default)
            law._hypothesis_internal_use_settings = settings(held, max_examples=max(5, held.max_examples // divisor))


# Datasette asks for the version of each plugin at every start, which reads the metadata of the package
# it comes with: dozens of times the same text, and two thirds of what an instance of a test costs.
importlib.metadata.Distribution.metadata = property(functools.cache(importlib.metadata.Distribution.metadata.fget))

ROOT = Path(__file__).resolve().parents[1]
unix = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be killed like this there")
SHARED_STORES = Path(__file__).resolve().parents[2] / "shared" / "stores"
NOBODY = 65534

SCHEMA = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (5);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, parent_session_id TEXT,
  started_at REAL NOT NULL, ended_at REAL, input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0
);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
  content TEXT, timestamp REAL NOT NULL
);
INSERT INTO sessions VALUES ('first', 'cli', 'a-model', NULL, 1767225600, 1767226600, 100, 50);
INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'user', 'hello', 1767225600);
"""
"""A store of an old schema, small enough to be made anew for each test."""


def pytest_report_header() -> list[str]:
    return [f"datasette {version('datasette')}, SQLite {sqlite3.sqlite_version} ({sqlite3.__name__})"]


def drop_triggers(connection: sqlite3.Connection) -> None:
    """So that many rows are written without their indexes, which take longer than all else."""
    for trigger in [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]:
        connection.execute(f'DROP TRIGGER "{trigger}"')


@pytest.fixture
def small_store(tmp_path: Path) -> Callable[..., Path]:
    """`small_store(name="state.db", journal="delete")` makes a store with one session and one message."""

    def make(name: str = "state.db", journal: str = "delete", folder: Path | None = None) -> Path:
        path = (folder or tmp_path) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()
        connection.executescript(SCHEMA)
        connection.close()
        return path

    return make


@pytest.fixture
def shared_store(tmp_path: Path) -> Callable[[str], Path]:
    """`shared_store("schema-23.db")` copies a store made by the real program, or skips if there is none."""

    return lambda name: copy_of_shared(name, tmp_path)


def copy_of_shared(name: str, folder: Path) -> Path:
    """A copy in a folder of a store made by the real program; skips the test if there is none."""
    source = SHARED_STORES / name
    if not source.is_file():
        pytest.skip(f"there is no {name} in ../shared/stores")
    target = folder / name
    shutil.copyfile(source, target)
    return target


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Writer]:
    """A new store with the session `s`, open to write."""
    writer = Writer(tmp_path / "state.db")
    sessions.create_session(writer, "s", "cli")
    yield writer
    writer.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test may make a store."""
    return tmp_path / "state.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    """A new, empty store, open to write."""
    opened = Writer(path)
    yield opened
    opened.close()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    """A new store behind its public face."""
    with SessionDB(tmp_path / "state.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo store, made once for all tests. Copy it before writing to it."""
    from state_ledger.demo import make_demo

    path = tmp_path_factory.mktemp("demo") / "demo.db"
    make_demo(path)
    return path


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of some megabytes with calls that cost something. Copy it before use."""
    path = tmp_path_factory.mktemp("filled") / "state.db"
    with SessionDB(path) as db:
        for name in ("a", "b"):
            db.create_session(name, "cli", model="a-model")
            db.append_messages(
                name, [{"role": "user", "content": f"{number} {'pier ' * 600}"} for number in range(150)]
            )
            db.update_token_counts(name, 700, 80, model="a-model", estimated_cost_usd=0.25, api_call_count=3)
    return path


@pytest.fixture
def make_datasette() -> Iterator[Callable[..., Any]]:
    """`await make_datasette([path], settings=…)`: a started instance with the installed plugins."""
    from datasette.app import Datasette

    made: list[Any] = []

    async def make(paths: Sequence[str | Path] | str | Path, **options: Any) -> Any:
        paths = [paths] if isinstance(paths, (str, Path)) else paths
        datasette = Datasette([str(path) for path in paths], **options)
        made.append(datasette)
        # Its client on the 1.0 line makes the whole application anew for every request; a server makes it once.
        datasette.app = functools.cache(datasette.app)
        await datasette.invoke_startup()
        return datasette

    yield make
    for datasette in made:
        for database in datasette.databases.values():
            database.close()
        if datasette.executor is not None:
            datasette.executor.shutdown(wait=False)


class Servers:
    """Calling it with stores and options starts a real `datasette serve` and returns its address once it answers.

    `end()` ends what it started.
    """

    def __init__(self) -> None:
        self.processes: list[Any] = []

    def __call__(self, paths: Sequence[str | Path], *options: str) -> str:
        port = free_port()
        arguments = [*map(str, paths), "--port", str(port), *options]
        self.processes.append(prepared.start("-m", "datasette", "serve", *arguments))
        address = f"http://127.0.0.1:{port}"
        wait_for(address, self.processes[-1])
        return address

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait(timeout=20)
        self.processes.clear()


@pytest.fixture
def served() -> Iterator[Servers]:
    """`served([path], *options)`: the address of a server that ends with the test."""
    servers = Servers()
    yield servers
    servers.end()


@pytest.fixture(scope="module")
def serving() -> Iterator[Callable[..., str]]:
    """As `served`, for stores that nothing changes: one server for all tests of a file that ask for the same."""
    servers, known = Servers(), dict[tuple[object, ...], str]()

    def serve(paths: Sequence[str | Path], *options: str) -> str:
        asked = (*paths, None, *options)
        if asked not in known:
            known[asked] = servers(paths, *options)
        return known[asked]

    yield serve
    servers.end()


def names_in(folder: Path) -> list[str]:
    """The names of what is in a folder, sorted."""
    return sorted(file.name for file in folder.iterdir())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(address: str, process: Any, patience_s: float = 120.0) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        try:
            fetch(f"{address}/-/versions.json")
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"{address} did not answer in {patience_s} s")


def fetch(address: str) -> tuple[int, str]:
    """Status and text of a page, asked over the network but never through a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=30) as answer:
            return answer.status, answer.read().decode("utf-8")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode("utf-8")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike pytest's own; they may not write to it."""
    path = Path(tempfile.mkdtemp(prefix="state-ledger-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """`disk(4)` makes a file system of 4 MB and returns its folder; skips where that cannot be."""
    folders: list[Path] = []

    def make(megabytes: int) -> Path:
        if not sys.platform.startswith("linux") or os.geteuid() != 0 or not shutil.which("mount"):
            pytest.skip("only root can mount a small disk, and only on Linux this way")
        folder = tmp_path / f"disk-{len(folders)}"
        folder.mkdir()
        options = ("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
        if subprocess.run(options, capture_output=True).returncode:
            pytest.skip("no file system may be mounted here")
        folders.append(folder)
        return folder

    yield make
    for folder in folders:
        # Lazily: the descriptor that a store's header was read by stays open (see state_ledger.access).
        subprocess.run(("umount", "-l", str(folder)), check=True)


def filling(ballast: Path) -> Callable[[int, int], None]:
    """What fills the rest of a disk when it is told of progress."""

    def fill(_done: int, _total: int) -> None:
        with ballast.open("ab") as file, suppress(OSError):
            while True:
                os.write(file.fileno(), bytes(1 << 16))

    return fill


@pytest.fixture
def as_nobody() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`as_nobody(code, *arguments)` runs Python code as another user; skips where we cannot."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can run a process as another user")
    return run_as_nobody


BECOME_NOBODY = f"""
import os, sys
import difflib, encodings.idna, stringprep, zoneinfo, uuid, hashlib, json, sqlite3, tempfile, shutil, asyncio
import state_ledger.access, state_ledger.connection, state_ledger.snapshot, state_ledger.cli
import datasette.app, datasette.cli
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); os.chdir("/")
"""


def run_as_nobody(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a process that gives up root after its imports: the Python itself may be root's own."""
    with tempfile.TemporaryDirectory(prefix="state-ledger-nobody-") as home:
        os.chown(home, NOBODY, NOBODY)
        environment = {**os.environ, "HOME": home, "XDG_CACHE_HOME": home, "PYTHONDONTWRITEBYTECODE": "1"}
        return prepared.run("-c", BECOME_NOBODY + code, *arguments, env=environment)
