"""The real program, Hermes Agent, in environments of its own, and stores held open by other processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from state_ledger.homes import cache_folder

VERSIONS = ("0.13.0", "0.16.0", "0.19.0")
"""Releases whose stores have the schemas 11, 14 and 22."""

PYTHONS = ((3, 11), (3, 12), (3, 13))
"""The Pythons that all of them run on."""

PATHS = {"benchmarks.bare_session_db": str(Path(__file__).resolve().parents[1])}
"""Where libraries are that no environment has installed."""

PROGRAM = Path(__file__).with_name("session_db_process.py")

UNREACHABLE = re.compile(
    r"NewConnectionError|Max retries exceeded|timed out|Temporary failure in name resolution"
    r"|Network is unreachable|Connection refused|ProxyError|ConnectionError|--no-index",
    re.IGNORECASE,
)
"""What pip says when there is no package index to ask, as against one that does not have the package."""


class UnavailableError(Exception):
    """The real program cannot be had here; the text says why."""


class StoreProcessError(Exception):
    """A call failed in the other process; `kind` is the name of the exception's class."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class StoreProcess:
    """A `SessionDB` in another process: its methods can be called as if it were here.

    Answers come through JSON: tuples are lists. `about` says which SQLite it has, the journal mode and
    the schema's version after opening. Raises StoreProcessError where the call raised.
    """

    def __init__(self, python: Path, library: str, path: Path, home: Path) -> None:
        inherited = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TEMP", "LANG") if name in os.environ}
        self.log = home / "stderr.txt"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(python), str(PROGRAM), library, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
                cwd=home,
                env={**inherited, "HERMES_HOME": str(home), "HOME": str(home), "PYTHONPATH": PATHS.get(library, "")},
            )
        try:
            self.about: dict[str, Any] = self._answer()
        except BaseException:
            self.leave()
            raise

    def ask(self, job: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of the store, or one of the program's own jobs."""
        self.begin(job, *arguments, **named)
        return self._answer()

    def begin(self, job: str, *arguments: Any, **named: Any) -> None:
        """Starts a call whose answer `finish` waits for."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([job, arguments, named]) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Any:
        return self._answer()

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *arguments, **named: self.ask(method, *arguments, **named)

    def accepts(self, method: str, argument: str | None = None) -> bool:
        """Whether this release has a method, or a method has an argument."""
        found = self.ask("parameters", method)
        return bool(found) if argument is None else argument in found

    def leave(self) -> None:
        """Closes the store and ends the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._process.stdout.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(f"the process ended: {self.log.read_text('utf-8', 'replace')[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise StoreProcessError(*answer["error"])
        return answer["answer"]


@contextmanager
def real_store(version: str, path: Path) -> Iterator[StoreProcess]:
    """A store opened by the real program of a version; closed when the context ends.

    Skips the running test where that program cannot be had.
    """
    try:
        python = environment(version)
    except UnavailableError as error:
        import pytest

        pytest.skip(str(error))
    with opened(python, "hermes_state", path) as process:
        yield process


@contextmanager
def our_store(path: Path) -> Iterator[StoreProcess]:
    """A store opened by state-ledger in another process; closed when the context ends."""
    with opened(Path(sys.executable), "state_ledger", path) as process:
        yield process


@contextmanager
def opened(python: Path, library: str, path: Path) -> Iterator[StoreProcess]:
    """A store opened by the `SessionDB` of any library that this Python has, with an empty HERMES_HOME."""
    home = Path(tempfile.mkdtemp(prefix="state-ledger-hermes-home-"))
    try:
        process = StoreProcess(python, library, path, home)
        try:
            yield process
        finally:
            process.leave()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def environment(version: str) -> Path:
    """The Python of an environment with that release and nothing else; made if it is not in the cache.

    Raises UnavailableError where no package index can be reached, or no Python can run the program.
    """
    python = _python()
    folder = cache_folder() / "hermes-agent" / f"{version}-python{python[0][0]}.{python[0][1]}"
    if not _python_of(folder).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Made aside and renamed, so that two runs at once, or one cut short, leave no half environment.
        # A renamed environment is good for its Python, which is all that is used of it.
        made = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=folder.parent))
        try:
            _install(python[1], version, made)
            if not _python_of(folder).exists():
                made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return _python_of(folder)


def _install(python: str, version: str, folder: Path) -> None:
    subprocess.run([python, "-m", "venv", str(folder)], check=True, capture_output=True)
    done = subprocess.run(
        [
            str(_python_of(folder)), "-m", "pip", "install", "--no-deps", "--disable-pip-version-check",
            "--retries", "1", "--timeout", "20", f"hermes-agent=={version}",
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    if done.returncode and UNREACHABLE.search(done.stdout + done.stderr):
        raise UnavailableError(f"the package index cannot be reached to install hermes-agent {version}")
    assert done.returncode == 0, done.stdout + done.stderr


def _python() -> tuple[tuple[int, int], str]:
    """A Python that runs every release: this one, or another on the path."""
    mine = sys.version_info[:2]
    if mine in PYTHONS:
        return mine, sys.executable
    for candidate in PYTHONS:
        found = shutil.which(f"python{candidate[0]}.{candidate[1]}")
        # A shim on the path may stand for a Python that is not there.
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return candidate, found
    raise UnavailableError("hermes-agent needs a Python from 3.11 to 3.13")


def _python_of(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
