"""One way to kill: a verb in a process of its own, ended by SIGKILL at an instant of its course.

An instant is told in the processor time of the process, and the kernel kills it then, by a timer of its own: so
instants are spread over the whole course of a verb however busy the machine is, and nothing waits for them. The
processes are forks of one that has imported everything (`python -m tests.killing` is that one), as a start takes
longer than most verbs.
"""

from __future__ import annotations

import ctypes
import json
import os
import pkgutil
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from state_ledger import full_text
from state_ledger.sqlite import sqlite3
from tests.conftest import ROOT


class Ended(NamedTuple):
    """killed: whether it was before its end. code: of its exit, None for one that was killed. said: the lines that it
    wrote to its output, whole ones only. errors: what it wrote to the other. seconds: of processor time.
    """

    killed: bool
    code: int | None
    said: list[str]
    errors: str
    seconds: float


Job = tuple[Sequence[Any], float | None]
"""The arguments of a verb of `state-ledger`, or of one of `OWN`, and after how many seconds it is killed."""


class Killer:
    """Runs verbs in processes of their own. environment: what is set for all of them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killing"], cwd=ROOT, env={**os.environ, **environment}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *jobs: Job) -> list[Ended]:
        """Runs verbs at the same time, and returns when all of them have ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([(list(map(str, given)), after) for given, after in jobs]) + "\n")
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
        self.attempts = self.at_work = 0

    def killed(self, number: int, seed: str) -> Iterator[tuple[Path, Ended]]:
        """`number` times a folder in which the verb was killed in its midst, the instants spread over its course.

        at_work is then how often it had already changed something in the folder.
        """
        chance = random.Random(seed)
        whole = self._fresh(0)
        (ended,) = self.killer.run((self.arguments(whole), None))
        assert ended.code == 0, ended.errors
        took, done = ended.seconds, 0
        while done < number:
            self.attempts += 1
            assert self.attempts <= 4 * number + 8, "the verb ends before it can be killed"
            folder = self._fresh(self.attempts)
            before = _listing(folder)
            (ended,) = self.killer.run((self.arguments(folder), took * (done + chance.random()) / number))
            if not ended.killed:
                # It was quicker than the first time.
                assert ended.code == 0, ended.errors
                took = min(took, ended.seconds)
                continue
            done += 1
            self.at_work += _listing(folder) != before
            yield folder, ended

    def again(self, folder: Path) -> Ended:
        """The verb run once more where it was killed."""
        return self.killer.run((self.arguments(folder), None))[0]

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
            found[str(file.relative_to(folder))] = (file.stat().st_size, file.stat().st_mtime_ns if file.is_file() else 0)
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
    _fields_ = (("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_byte * 48))


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


def _begin(given: list[str], after: float | None) -> tuple[int, int, Path]:
    """Process, the end of its output to read from, and the file of its errors."""
    reading, writing = os.pipe()
    errors = Path(os.environ["KILLING_ERRORS"]) / f"{time.monotonic_ns()}.txt"
    number = os.fork()
    if number:
        os.close(writing)
        return number, reading, errors
    code = 1
    try:
        os.dup2(writing, 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if after is not None:
            _be_killed_after(after)
        code = _work(given)
    except BaseException as error:
        print(type(error).__name__, error, getattr(error, "message", ""), file=sys.stderr, flush=True)
    finally:
        os._exit(code)
    raise AssertionError


def _serve() -> None:
    import state_ledger

    for module in pkgutil.walk_packages(state_ledger.__path__, "state_ledger."):
        if not module.name.startswith(("state_ledger.plugins", "state_ledger.migrations")):
            import_module(module.name)
    import datasette.app  # noqa: F401

    for line in sys.stdin:
        begun = [_begin(given, after) for given, after in json.loads(line)]
        answers = []
        for number, reading, errors in begun:
            with os.fdopen(reading, "rb") as file:
                said = file.read()
            _number, status, used = os.wait4(number, 0)
            answers.append(
                (
                    os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
                    os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    [part.decode() for part in said.split(b"\n")[:-1]],
                    errors.read_text("utf-8", "replace") if errors.exists() else "",
                    used.ru_utime + used.ru_stime,
                )
            )
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    _serve()
