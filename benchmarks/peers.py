"""`python -m benchmarks.peers`: other tools that read the same store, their totals and their time to an answer.

Installs them from the package indexes into environments of their own below a folder, asks each for the total of
two stores, and writes benchmarks/peers.md. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import every_call_once, peer_report, peer_tools
from benchmarks.peer_tools import TOOLS, NotThere, Tool
from benchmarks.server import running
from state_ledger.demo import make_demo

OURS = ("query", "cost_per_model", "--json", "--param", "limit=1000")
"""What our command is asked; the store comes after it."""

SESSIONS, MESSAGES_PER_SESSION = 3_000, 42
PATIENCE_S = 900
WARM_REQUESTS = 20


@dataclass
class Asked:
    """How one tool did on one store: dollars, or why there are none; CPU and wall seconds of each run."""

    name: str
    dollars: float | None = None
    reason: str = ""
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)

    @property
    def cpu(self) -> float | None:
        return median(self.cpu_s) if self.cpu_s else None

    @property
    def wall(self) -> float | None:
        return median(self.wall_s) if self.wall_s else None


def sum_of_ours(said: Mapping[str, Any]) -> float:
    """The dollars in what our command printed."""
    return float(sum(row["cost_usd"] or 0 for row in said["rows"]))


def main() -> int:
    given = _arguments()
    given.folder.mkdir(parents=True, exist_ok=True)
    homes = {"known": given.folder / "known", "big": given.folder / "big"}
    _make_home(homes["known"], every_call_once.make_known)
    _make_home(homes["big"], _make_big)
    programs: dict[str, Path | NotThere] = {}
    for tool in TOOLS:
        try:
            programs[tool.name] = peer_tools.install(tool, given.folder)
        except NotThere as reason:
            programs[tool.name] = reason
    # Anew: what an earlier run installed is of an earlier state of this folder.
    shutil.rmtree(given.folder / "state-ledger", ignore_errors=True)
    ours = peer_tools.venv(given.folder / "state-ledger", str(Path(__file__).resolve().parents[1]))
    results = {name: _measured(home, programs, ours, given.runs) for name, home in homes.items()}
    text = peer_report.written(results, _made_with(homes["big"]))
    given.report.write_text(text, encoding="utf-8")
    print(text)
    return 0


def _measured(home: Path, programs: Mapping[str, Path | NotThere], ours: Path, runs: int) -> dict[str, Asked]:
    path = home / ".hermes" / "state.db"
    found = {"sql": Asked("every call once, in SQL", every_call_once.total(path))}
    for tool in TOOLS:
        where = programs[tool.name]
        if isinstance(where, NotThere):
            found[tool.name] = Asked(f"{tool.name} {tool.version}", reason=str(where))
        else:
            found[tool.name] = _ask(tool, where, home)
    found["python"] = _ask_ours("bare `python -c pass`", [str(ours / "python"), "-c", "pass"], home, runs)
    command = [str(ours / "state-ledger"), *OURS, str(path)]
    found["cold"] = _ask_ours("state-ledger query", command, home, runs)
    indexed = [str(ours / "state-ledger"), "index", str(path)]
    subprocess.run(indexed, env=peer_tools.environment(home), capture_output=True, check=True)
    found["indexed"] = _ask_ours("state-ledger query, with a companion", command, home, runs)
    found["warm"] = _warm(path, home)
    return found


def _ask(tool: Tool, programs: Path, home: Path) -> Asked:
    asked = Asked(f"{tool.name} {tool.version}")
    for _run in range(tool.runs):
        if tool.fresh:
            shutil.rmtree(home / tool.fresh, ignore_errors=True)
        cpu = wall = 0.0
        printed = complaint = ""
        for command in tool.commands:
            filled = [part.replace("{bin}", str(programs)) for part in command]
            printed, complaint, used, took = _run_once(filled, home)
            cpu, wall = cpu + used, wall + took
        try:
            asked.dollars = peer_tools.total_of(tool, printed)
        except NotThere as reason:
            asked.reason = f"{reason} {peer_tools.last_line(complaint)}".strip()
            return asked
        asked.cpu_s.append(cpu)
        asked.wall_s.append(wall)
    return asked


def _ask_ours(name: str, command: Sequence[str], home: Path, runs: int) -> Asked:
    asked = Asked(name)
    for _run in range(runs):
        printed, complaint, cpu, wall = _run_once(command, home)
        if printed:
            asked.dollars = sum_of_ours(json.loads(printed))
        elif complaint:
            raise RuntimeError(complaint)
        asked.cpu_s.append(cpu)
        asked.wall_s.append(wall)
    return asked


def _run_once(command: Sequence[str], home: Path) -> tuple[str, str, float, float]:
    """What one process printed and complained, and its CPU and wall seconds, children included."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, env=peer_tools.environment(home), stdout=out, stderr=err)
        timer_end = began + PATIENCE_S
        while True:
            ended, _status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.perf_counter() > timer_end:
                process.kill()
            time.sleep(0.002)
        wall = time.perf_counter() - began
        process.returncode = 0  # waited for above
        out.seek(0)
        err.seek(0)
        return out.read(), err.read(), usage.ru_utime + usage.ru_stime, wall


def _warm(path: Path, home: Path) -> Asked:
    """The same total from a server that runs and has the companion, by request."""
    asked = Asked("state-ledger, an answer that is served")
    with running([str(path)], home=home) as server:
        server.wait_for("/")
        database = json.loads(server.get("/-/databases.json")[1])
        names = [each["name"] for each in (database if isinstance(database, list) else database["databases"])]
        name = next(each for each in names if not each.startswith("_"))
        page = f"/{name}/cost_per_model.json?_shape=objects&limit=1000"
        asked.dollars = sum_of_ours(json.loads(server.get(page)[1]))
        before = server.cpu_s()
        for _request in range(WARM_REQUESTS):
            began = time.perf_counter()
            server.get(page)
            asked.wall_s.append(time.perf_counter() - began)
        asked.cpu_s.append((server.cpu_s() - before) / WARM_REQUESTS)
    return asked


def _make_home(home: Path, make: Any) -> None:
    path = home / ".hermes" / "state.db"
    if not path.exists():
        (home / ".hermes" / "sessions").mkdir(parents=True, exist_ok=True)
        make(path)


def _make_big(path: Path) -> None:
    make_demo(path, sessions=SESSIONS, messages_per_session=MESSAGES_PER_SESSION)
    # The generator plants one session whose start is in milliseconds; ai-spend-tracker then gives nothing at all.
    with closing(sqlite3.connect(path)) as connection, connection:
        for column in ("started_at", "ended_at"):
            connection.execute(f"UPDATE sessions SET {column} = {column} / 1000 WHERE {column} > 1e11")


def _made_with(home: Path) -> dict[str, str]:
    path = home / ".hermes" / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        sessions, messages = (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                              for table in ("sessions", "messages"))  # fmt: skip
    return {
        "sessions": f"{sessions:,}",
        "messages": f"{messages:,}",
        "size": f"{path.stat().st_size / 1e6:,.0f} MB",
        "Python": platform.python_version(),
        "cores": str(os.cpu_count()),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    folder = Path(tempfile.gettempdir(), "state-ledger-peers")
    parser.add_argument("--folder", type=Path, default=folder, metavar="PATH", help="of tools and stores, kept")
    parser.add_argument("--report", type=Path, default=Path(__file__).with_suffix(".md"), metavar="FILE")
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="runs of our own commands (default 7)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
