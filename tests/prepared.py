"""Processes of Python that have imported Datasette and us already, for tests whose subject is not their start.

They are forked from a process that did nothing but import: each has its own descriptors, connections and signals,
as one that was started anew, without the second or two of computing that every start costs.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORKED = sys.platform.startswith("linux")
"""Elsewhere a fork may inherit what does not stand it: there, processes are started as ever."""
IMPORTED = ["datasette.app", "datasette.cli", "state_ledger.cli", "state_ledger.session_db", "uvicorn", __name__]
CONTEXT = multiprocessing.get_context("forkserver" if FORKED else "spawn")
COMMAND = ("-c", "from state_ledger.cli import main; main()")
"""Our command, as words after `python`."""


class Process(CONTEXT.Process):  # type: ignore[misc, name-defined]
    """As much of `subprocess.Popen` as servers of tests need."""

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired(self.name, timeout or 0)
        return self.exitcode


def start(*words: str) -> Any:
    """Starts `python *words` (`-m module …` or `-c code …`), saying nothing, and does not wait for it."""
    if not FORKED:
        return subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return _started(words, os.devnull, os.devnull, dict(os.environ), None)


def run(
    *words: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
    text: bool = True,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run((sys.executable, *words), capture_output=True, text=True)`, with nothing to read as its input."""
    given = tuple(map(str, words))
    if not FORKED:
        return subprocess.run(
            [sys.executable, *given],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=env,
            cwd=cwd,
            timeout=timeout,
            text=text,
        )
    with tempfile.TemporaryDirectory(prefix="state-ledger-run-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        process = _started(given, str(out), str(err), dict(os.environ if env is None else env), cwd)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.join()
            raise
        said = [path.read_text("utf-8") if text else path.read_bytes() for path in (out, err)]
        return subprocess.CompletedProcess(given, code, *said)


def _started(words: tuple[str, ...], out: str, err: str, env: dict[str, str], cwd: Path | None) -> Process:
    CONTEXT.set_forkserver_preload(IMPORTED)
    process = Process(target=_become, args=(words, out, err, env, str(cwd or Path.cwd())), daemon=True)
    process.start()
    return process


def _become(words: tuple[str, ...], out: str, err: str, env: dict[str, str], cwd: str) -> None:
    """What `python *words` does, in the process that was forked for it."""
    for descriptor, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    kind, what, *arguments = words
    sys.argv = [kind, *arguments]
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            module = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(what, "<string>", "exec"), module.__dict__)
    finally:
        atexit._run_exitfuncs()
