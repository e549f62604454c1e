"""Memory while all messages of a store are exported, by the command and by the app. Linux only."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.bench import Bench
from benchmarks.figure import Figure
from benchmarks.server import running
from state_ledger.pages.links import Links
from state_ledger.stores import name_stores

MOST_MB = 100.0
COMMAND = """
import pathlib, sys
from state_ledger.cli import main
try:
    main()
finally:
    print(pathlib.Path("/proc/self/status").read_text(), file=sys.stderr)
"""
TARGET = f"idle + {MOST_MB:g} MB"


def measure(bench: Bench) -> Iterator[Figure]:
    """Above a command that reads little, and above the server before it was asked."""
    path = str(bench.path)
    idle = _peak_mb(["status", path])
    whole = _peak_mb(["export", path, "--all", "--format", "jsonl", "--output", "-"])
    yield Figure("export of all by the command", whole - idle, MOST_MB, "MB", TARGET, of="export memory")
    at = Links(f"/{name_stores([bench.path])[0].name}")
    with running([path]) as server:
        server.wait_for("/-/versions.json")
        time.sleep(1)
        idle = server.memory_mb("VmRSS")
        server.drain(at.export("all", "", "jsonl"))
        highest = server.memory_mb("VmHWM") - idle
    yield Figure("export of all by the app", highest, MOST_MB, "MB", TARGET, of="export memory")


def _peak_mb(arguments: Sequence[str]) -> float:
    """The highest memory of our command, whose output goes nowhere; `wait` would tell that of its parent if higher."""
    command = [sys.executable, "-c", COMMAND, *arguments]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    told = re.search(r"^VmHWM:\s+(\d+) kB$", done.stderr, re.MULTILINE)
    if told is None or done.returncode not in (0, 1):
        raise RuntimeError(f"state-ledger {' '.join(arguments)} ended with status {done.returncode}: {done.stderr}")
    return int(told[1]) / 1024
