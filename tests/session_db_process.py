"""A program that owns one store: `session_db_process.py LIBRARY PATH`, driven by lines of JSON.

LIBRARY is the module whose `SessionDB` opens the store: `hermes_state` in an environment that has the
real program, `state_ledger` in ours. It runs in both, so it imports nothing of the tests.

Each line of standard input is `[job, arguments, named arguments]`, each line of output `{"answer": …}`
or `{"error": [type, text]}`. A job is a method of the store or one of JOBS. The first line of output
tells what the process is made of.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import time
from typing import Any

TURN = (
    ("user", "Please look at the harbour log of pier {n} once more, {who}."),
    ("assistant", "Pier {n} holds the grain barge; the tide turns at noon ({who})."),
)


def open_store(library: str, path: str) -> Any:
    from pathlib import Path

    return importlib.import_module(library).SessionDB(Path(path))


def description(store: Any) -> dict[str, Any]:
    """What runs here: the module of its SQLite, that one's version, and the store's journal mode."""
    module = sys.modules[type(store._conn).__module__.partition(".")[0]]
    return {
        "sqlite": store._conn.execute("SELECT sqlite_version()").fetchone()[0],
        "module": module.__name__,
        "journal_mode": store._conn.execute("PRAGMA journal_mode").fetchone()[0],
        "schema_version": store._conn.execute("SELECT version FROM schema_version").fetchone()[0],
    }


def parameters(store: Any, method: str) -> list[str]:
    """Names of the arguments a method takes; none if there is no such method."""
    found = getattr(store, method, None)
    return [] if found is None else list(inspect.signature(found).parameters)


def rows(store: Any, sql: str, values: Any = ()) -> list[list[Any]]:
    return [list(row) for row in store._conn.execute(sql, values)]


def complaints(store: Any) -> list[str]:
    """All that SQLite finds wrong with the file, each index held against its source: nothing if sound."""
    connection = store._conn
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    found += [f"foreign key: {tuple(row)}" for row in connection.execute("PRAGMA foreign_key_check")]
    tables = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'").fetchall()
    for (name,) in map(tuple, tables):
        try:
            connection.execute(f"INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)")
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found


def append_for(store: Any, session: str, seconds: float, log: str, pause_s: float = 0.0) -> int:
    """Appends with a pause after each, by default none; writes `id content` of each acknowledged message to `log`."""
    return len(append_timed(store, session, seconds, log, pause_s))


def append_timed(store: Any, session: str, seconds: float, log: str, pause_s: float = 0.0) -> list[float]:
    """As `append_for`; the milliseconds that each took."""
    end = time.monotonic() + seconds
    taken: list[float] = []
    with open(log, "w", encoding="utf-8", buffering=1) as acknowledged:  # noqa: PTH123
        while time.monotonic() < end:
            role, text = TURN[len(taken) % 2]
            content = text.format(n=len(taken), who=session)
            began = time.perf_counter()
            number = store.append_message(session, role, content)
            taken.append((time.perf_counter() - began) * 1000)
            acknowledged.write(f"{number} {content}\n")
            if pause_s:
                time.sleep(pause_s)
    return taken


def append_many(store: Any, session: str, count: int, turn: int = 1) -> tuple[float, float]:
    """Seconds, by the clock and of CPU, of so many appends; `turn` messages at once if more than one."""
    messages = [
        {"role": role, "content": text.format(n=n, who=session)} for n in range(count // 2) for role, text in TURN
    ]
    began, cpu = time.perf_counter(), time.process_time()
    if turn > 1:
        for at in range(0, count, turn):
            store.append_messages(session, messages[at : at + turn])
    else:
        for message in messages:
            store.append_message(session, message["role"], message["content"])
    return time.perf_counter() - began, time.process_time() - cpu


def timed(store: Any, method: str, times: int, arguments: Any, named: Any) -> list[float]:
    """CPU milliseconds of each of several equal calls."""
    call = getattr(store, method)
    taken = []
    for _ in range(times):
        began = time.process_time()
        call(*arguments, **named)
        taken.append((time.process_time() - began) * 1000)
    return taken


JOBS = {
    job.__name__: job
    for job in (parameters, rows, complaints, append_for, append_timed, append_many, timed, description)
}


def main() -> None:
    library, path = sys.argv[1:3]
    sys.path.pop(0)  # this folder, whose modules are none of the library's business
    # What a library prints must not come between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    store: Any = None

    def answer(line: dict[str, Any]) -> None:
        answers.write(json.dumps(line, default=repr) + "\n")
        answers.flush()

    try:
        store = open_store(library, path)
        answer({"answer": description(store)})
    except Exception as error:
        answer({"error": [type(error).__name__, str(error)]})
        return
    for line in sys.stdin:
        job, arguments, named = json.loads(line)
        try:
            work = JOBS.get(job)
            result = work(store, *arguments, **named) if work else getattr(store, job)(*arguments, **named)
            answer({"answer": result})
        except Exception as error:
            answer({"error": [type(error).__name__, str(error)]})
    store.close()


if __name__ == "__main__":
    main()
