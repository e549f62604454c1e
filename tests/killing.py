"""One way to kill: a verb in a process of its own, ended by SIGKILL at an instant of its course.

An instant is told in the processor time of the process, and the kernel kills it then, by a timer of its own: so
instants are spread over the whole course of a verb however busy the machine is, and nothing waits for them. The
processes are forks of one that has imported everything (`python -m tests.killing` is that one), as a start takes
longer than most verbs.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import pkgutil
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from state_ledger import full_text
from state_ledger.sqlite import sqlite3
from tests.conftest import ROOT


class Ended(NamedTuple):
    """killed: whether it was before its end. code: of its exit, negative for one that was killed. said: the lines
    that it wrote to its output, whole ones only. errors: what it wrote to the other. seconds: of processor time, if
    it ended.
    """

    killed: bool
    code: int
    said: list[str]
    errors: str
    seconds: float


class Job(NamedTuple):
    """given: the arguments of a verb of `state-ledger`, or of one of `OWN`. after: how many seconds it is killed, if it
    is. folder: where it keeps what is no store, in `cache` and `data`.
    """

    given: Sequence[Any]
    folder: Path
    after: float | None = None


class Killer:
    """Runs verbs in processes of their own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killing"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *jobs: Job) -> list[Ended]:
        """Runs verbs at the same time, and returns when all of them have ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = [(list(map(str, job.given)), str(job.folder), job.after) for job in jobs]
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process that verbs are forked from has ended"
        return [Ended(*ended) for ended in json.loads(line)]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()


class World:
    """A folder as a verb finds it, made anew for every kill. arguments: of the verb, in a folder."""

    def __init__(self, killer: Killer, template: Path, arguments: Callable[[Path], Sequence[Any]]) -> None:
        self.killer, self.template, self.arguments = killer, template, arguments
        self.at_work = 0

    def killed(self, number: int, seed: str) -> Iterator[tuple[Path, Ended]]:
        """`number` times a folder in which the verb was killed in its midst, the instants spread over its course.

        Some anywhere, most after the latest instant at which nothing had been changed yet: many verbs look around
        for long before they write. at_work is in the end how often something had been changed, which is not never.
        """
        chance = random.Random(seed)
        whole = self._fresh(0)
        ended = self.again(whole)
        assert ended.code == 0, ended.errors
        idle, took, done, attempts = 0.0, ended.seconds, 0, 0
        while done < number or not self.at_work:
            attempts += 1
            assert attempts <= 4 * number + 200, "the verb cannot be met at work"
            if took - idle < took / 20:
                # No run takes exactly as long as another: what both ends have come together at is only near it.
                idle, took = idle * 0.9, took * 1.05
            folder = self._fresh(attempts)
            before = _listing(folder)
            earliest = 0.0 if done % 4 == 3 else idle
            after = chance.uniform(earliest, took)
            (ended,) = self.killer.run(Job(self.arguments(folder), folder, after))
            if not ended.killed:
                # It was quicker than the first time.
                assert ended.code == 0, ended.errors
                took = max(idle, min(took, after))
                continue
            done += 1
            if _listing(folder) == before:
                idle = max(idle, after)
            else:
                self.at_work += 1
            yield folder, ended

    def again(self, folder: Path) -> Ended:
        """The verb run once more where it was killed."""
        return self.killer.run(Job(self.arguments(folder), folder))[0]

    def _fresh(self, number: int) -> Path:
        folder = self.template.with_name(f"{self.template.name}-{number}")
        shutil.rmtree(folder.with_name(f"{self.template.name}-{number - 1}"), ignore_errors=True)
        shutil.copytree(self.template, folder)
        return folder


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """What lies in a folder, with the size and the time of each file; folders of ours that are new count too."""
    found = {}
    for file in folder.rglob("*"):
        # The index of a log is no work yet: whoever reads makes one.
        if not file.name.endswith("-shm") and (not file.name.endswith("-wal") or file.stat().st_size):
            status = file.stat()
            found[str(file.relative_to(folder))] = (status.st_size, status.st_mtime_ns if file.is_file() else 0)
    return found


def assert_clean(path: Path) -> None:
    """That a store is whole, its indexes agree with their tables, and its counts with its rows."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for index in (full_text.WORDS, full_text.TRIGRAMS):
            full_text.check(connection, index)
        assert connection.execute("SELECT count(*) FROM schema_version").fetchone() == (1,)
        wrong = connection.execute(
            "SELECT id FROM sessions WHERE message_count <> "
            "(SELECT count(*) FROM messages WHERE session_id = sessions.id)"
        ).fetchall()
        assert wrong == []


# The process that verbs are forked from


class _Event(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_byte * 48),
    )  # fmt: skip


class _Span(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "first_s", "first_ns"))  # type: ignore[assignment]


_PROCESSOR_TIME_OF_THIS_PROCESS, _BY_SIGNAL = 2, 0


def _be_killed_after(seconds: float) -> None:
    """See timer_create(2): Python has timers of processor time, but none that nothing can catch."""
    library = ctypes.CDLL(None, use_errno=True)
    event, timer = _Event(signal=signal.SIGKILL, notify=_BY_SIGNAL), ctypes.c_void_p()
    span = _Span(first_s=int(seconds), first_ns=max(1, int(seconds % 1 * 1e9)))
    if library.timer_create(_PROCESSOR_TIME_OF_THIS_PROCESS, ctypes.byref(event), ctypes.byref(timer)) or (
        library.timer_settime(timer, 0, ctypes.byref(span), None)
    ):
        raise OSError(ctypes.get_errno(), "no timer")


def _append(path: str, name: str, count: str) -> None:
    from tests import appending

    appending.main(path, name, int(count))


def _open_all(path: str) -> None:
    """Brings a store up to date by opening it, then its indexes in steps of a few rows."""
    from state_ledger import migrate
    from state_ledger.full_text import rewrite
    from state_ledger.writing.writer import Writer

    migrate.LARGE_MESSAGES, rewrite.ROWS_PER_STEP = 0, 10
    writer = Writer(path)
    rewrite.optimize_fts_storage(writer)
    writer.close()


def _show(path: str) -> None:
    """What the app does of its own: a snapshot and compiled templates, while it answers."""
    import asyncio

    from datasette.app import Datasette

    async def ask() -> None:
        datasette = Datasette([path], metadata={"plugins": {"state-ledger": {"snapshot": True}}})
        await datasette.invoke_startup()
        for page in ("/", "/-/datasette", f"/{next(iter(datasette._state_ledger.stores))}/-/cost"):
            assert (await datasette.client.get(page, follow_redirects=True)).status_code == 200

    asyncio.run(ask())


OWN: dict[str, Callable[..., None]] = {"append": _append, "open": _open_all, "show": _show}
"""What is killed besides the verbs of the command line."""


def _work(given: list[str]) -> int:
    """Its exit code."""
    from state_ledger.cli import main

    if given[0] in OWN:
        OWN[given[0]](*given[1:])
        return 0
    return main(given, standalone_mode=False) or 0


def _begin(given: list[str], folder: str, after: float | None) -> tuple[int, int, IO[bytes]]:
    """Process, the end of its output to read from, and the file of its errors, whose last line is the time it took."""
    reading, writing = os.pipe()
    errors = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    number = os.fork()
    if number:
        os.close(writing)
        return number, reading, errors
    code = 1
    try:
        os.dup2(writing, 1)
        os.dup2(errors.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ |= {"XDG_CACHE_HOME": f"{folder}/cache", "XDG_DATA_HOME": f"{folder}/data"}
        if after is not None:
            _be_killed_after(after)
        code = _work(given)
        atexit._run_exitfuncs()
    except BaseException as error:
        print(type(error).__name__, error, getattr(error, "message", ""), file=sys.stderr, flush=True)
    finally:
        os.write(2, f"\n{time.process_time()}".encode())
        os._exit(code)
    raise AssertionError


def _serve() -> None:
    import state_ledger

    for module in pkgutil.walk_packages(state_ledger.__path__, "state_ledger."):
        if not module.name.startswith(("state_ledger.plugins", "state_ledger.migrations")):
            import_module(module.name)
    import datasette.app  # noqa: F401

    with suppress(ImportError):
        import pyarrow.parquet  # noqa: F401

    for line in sys.stdin:
        begun = [_begin(*asked) for asked in json.loads(line)]
        answers = []
        for number, reading, errors in begun:
            with os.fdopen(reading, "rb") as file:
                said = file.read()
            code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
            errors.seek(0)
            told, _, took = errors.read().decode("utf-8", "replace").rpartition("\n" if code >= 0 else "\0")
            errors.close()
            lines = [part.decode() for part in said.split(b"\n")[:-1]]
            answers.append((code == -signal.SIGKILL, code, lines, told or took, float(took) if code >= 0 else 0.0))
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    _serve()
