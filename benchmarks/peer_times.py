"""The times of other tools, as the last run of `python -m benchmarks.peers` wrote them down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench, NotMeasured
from benchmarks.figure import Figure
from benchmarks.peer_report import WANTED
from benchmarks.peer_tools import TOOLS

REPORT = Path(__file__).with_name("peers.md")
ROW = re.compile(r"^\| (?P<who>[^|]+?) \| \d+ \| (?P<cpu>[\d.]+) \|", re.MULTILINE)
OURS = {"state-ledger query": "a cold process", "state-ledger, an answer that is served": "a server that runs"}


def measure(_bench: Bench) -> Iterator[Figure]:
    """CPU seconds of ours beside each tool's; nothing is run, since it installs what it measures."""
    text = REPORT.read_text(encoding="utf-8") if REPORT.exists() else ""
    cpu = {row["who"]: float(row["cpu"]) for row in ROW.finditer(text)}
    tools = [who for who in cpu if any(who.startswith(f"{tool.name} ") or who == tool.name for tool in TOOLS)]
    if not tools or not set(OURS) <= set(cpu):
        raise NotMeasured(f"{REPORT.name} holds no times. Run `python -m benchmarks.peers`.")
    for ours, how in OURS.items():
        for tool in tools:
            told = f"1/{WANTED} of {tool}"
            yield Figure(f"{how}, beside {tool}", cpu[ours], cpu[tool] / WANTED, "s", told, cpu[tool], of="peers")
