"""Appends: beside the same statements on bare SQLite, beside the real program, and eight writers at once.

Every side is a process of its own with a new file.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.figure import Figure
from benchmarks.targets import TARGETS
from state_ledger.sqlite import read_only_uri, sqlite3
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


def measure(_bench: Bench) -> Iterator[Figure]:
    """All figures; those beside the real program only where it can be installed."""
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder:
        yield from _one_writer(Path(folder))
        yield from _crowd(Path(folder))


def _one_writer(folder: Path) -> Iterator[Figure]:
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
    for kind, taken in (("CPU", cpu), ("wall", clock)):
        ms = {name: seconds * each for name, seconds in taken.items()}
        promises = [
            ("append_message beside bare SQLite", OURS, BARE, LEAST_OF_BARE, "append bare"),
            (f"append_messages of {TURN} beside {TURN} appends", "turns", OURS, 1 / LEAST_GAIN_OF_TURN, "append turn"),
            (f"append_message beside Hermes {HERMES}", OURS, REAL, 1.0, "append hermes"),
        ]
        for name, ours, other, least, of in promises:
            if other not in ms:
                continue
            allowed, raw = ms[other] * (least if of == "append turn" else 1 / least), ms[other]
            promised = kind == "CPU"
            yield Figure(
                f"{name}, {kind}", ms[ours], allowed if promised else None, "ms", TARGETS[of].text if promised else "",
                raw, of=of if promised else "",
            )  # fmt: skip


def _crowd(folder: Path) -> Iterator[Figure]:
    """Milliseconds per message of eight writers that never pause, all together; wall, as they wait for each other."""
    done = {OURS: 0, BARE: 0}
    lost = 0
    for turn, library in enumerate((OURS, BARE, BARE, OURS)):
        path = _new_store(folder / f"crowd-{turn}.db")
        with ExitStack() as stack:
            stores = [stack.enter_context(_open(library, path)) for _ in range(WRITERS)]
            for number, store in enumerate(stores):
                store.begin("append_for", f"s{number}", CROWD_S, str(folder / f"crowd-{turn}-{number}.log"))
            acknowledged = sum(store.finish() for store in stores)  # raises for one that failed
        done[library] += acknowledged
        if library == OURS:
            with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
                lost += acknowledged - connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    ms = {library: 2 * CROWD_S * 1000 / count for library, count in done.items()}
    name = f"{WRITERS} writers beside BEGIN IMMEDIATE with 30 s of patience, wall"
    yield Figure(name, ms[OURS], ms[BARE] / LEAST_OF_CROWD, "ms", TARGETS["crowd"].text, ms[BARE], of="crowd")
    yield Figure(f"lost of {done[OURS]:,} acknowledged messages", lost, 0, "", "0", of="crowd lost")


def _new_store(path: Path, *, real: bool = False) -> Path:
    """A new store with a session for each writer, made by the one who will write, or by us."""
    with _open(REAL if real else OURS, path) as store:
        for number in range(WRITERS):
            store.create_session(f"s{number}", "cli")
    return path


def _open(library: str, path: Path) -> AbstractContextManager[StoreProcess]:
    python = environment(HERMES) if library == REAL else Path(sys.executable)
    return opened(python, library, path)
