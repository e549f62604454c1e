"""Appends: beside the same statements on bare SQLite, beside the real program, and eight writers at once.

`python -m benchmarks.storage_append`. Every side is a process of its own with a new file.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks.figure import Figure, table
from state_ledger.sqlite import sqlite3
from tests.hermes import StoreProcess, UnavailableError, environment, opened

HERMES = "0.19.0"
BLOCK = 400
ROUNDS = 4
TURN = 10
WRITERS = 8
CROWD_S = 6.0

OURS, BARE, REAL = "state_ledger", "benchmarks.bare_session_db", "hermes_state"

LEAST_OF_BARE = 0.9
LEAST_OF_CROWD = 0.8
LEAST_GAIN_OF_TURN = 1.3


def measure() -> list[Figure]:
    """All figures; those beside the real program only where it can be installed."""
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder:
        return [*_one_writer(Path(folder)), *_crowd(Path(folder))]


def _one_writer(folder: Path) -> list[Figure]:
    libraries = [OURS, BARE]
    try:
        environment(HERMES)
        libraries.append(REAL)
    except UnavailableError as error:
        print(f"not measured beside Hermes: {error}", file=sys.stderr)
    clock: dict[str, float] = dict.fromkeys([*libraries, "turns"], 0.0)
    cpu = dict(clock)
    with ExitStack() as stack:
        stores = {}
        for library in libraries:
            path = _new_store(folder / f"{library}.db", real=library == REAL)
            stores[library] = stack.enter_context(_open(library, path))
        stores["turns"] = stack.enter_context(_open(OURS, _new_store(folder / "turns.db")))
        for at in range(2 * ROUNDS):
            # A B C, C B A: whatever else the machine does falls on all of them alike.
            for name in list(stores) if at % 2 else list(stores)[::-1]:
                seconds, of_cpu = stores[name].append_many("s0", BLOCK, **({"turn": TURN} if name == "turns" else {}))
                clock[name] += seconds
                cpu[name] += of_cpu
    each = 1000 / (2 * ROUNDS * BLOCK)
    figures = []
    for unit, taken in (("ms of CPU", cpu), ("ms", clock)):
        ms = {name: seconds * each for name, seconds in taken.items()}
        figures += [
            Figure(
                "append_message beside bare SQLite", ms[OURS], ms[BARE] / LEAST_OF_BARE, unit,
                f"rate ≥ {LEAST_OF_BARE} × bare", ms[BARE],
            ),
            Figure(
                f"append_messages of {TURN} beside {TURN} appends", ms["turns"], ms[OURS] / LEAST_GAIN_OF_TURN, unit,
                f"rate ≥ {LEAST_GAIN_OF_TURN} × single", ms[OURS],
            ),
        ]  # fmt: skip
        if REAL in ms:
            figures.append(
                Figure(f"append_message beside Hermes {HERMES}", ms[OURS], ms[REAL], unit, "rate ≥ Hermes", ms[REAL])
            )
    return figures


def _crowd(folder: Path) -> list[Figure]:
    """Milliseconds per message of eight writers that never pause, all together."""
    done = {OURS: 0, BARE: 0}
    for turn, library in enumerate((OURS, BARE, BARE, OURS)):
        path = _new_store(folder / f"crowd-{turn}.db")
        with ExitStack() as stack:
            stores = [stack.enter_context(_open(library, path)) for _ in range(WRITERS)]
            for number, store in enumerate(stores):
                store.begin("append_for", f"s{number}", CROWD_S, str(folder / f"crowd-{turn}-{number}.log"))
            done[library] += sum(store.finish() for store in stores)
    ms = {library: 2 * CROWD_S * 1000 / count for library, count in done.items()}
    name = f"{WRITERS} writers beside BEGIN IMMEDIATE with 30 s of patience"
    target = f"rate ≥ {LEAST_OF_CROWD} × bare"
    return [Figure(name, ms[OURS], ms[BARE] / LEAST_OF_CROWD, "ms", target, ms[BARE])]


def _new_store(path: Path, *, real: bool = False) -> Path:
    """A new store with a session for each writer, made by the one who will write, or by us."""
    with _open(REAL if real else OURS, path) as store:
        for number in range(WRITERS):
            store.create_session(f"s{number}", "cli")
    return path


def _open(library: str, path: Path) -> AbstractContextManager[StoreProcess]:
    python = environment(HERMES) if library == REAL else Path(sys.executable)
    return opened(python, library, path)


def main() -> int:
    figures = measure()
    print(f"SQLite {sqlite3.sqlite_version}")
    print(table(figures))
    return int(any(figure.over for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
