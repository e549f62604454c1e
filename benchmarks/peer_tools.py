"""The public tools that read a `state.db`: how each is installed, pointed at a store and asked for its total."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INSTALL_PATIENCE_S = 600


@dataclass(frozen=True)
class Tool:
    """One tool.

    kind: the index that has it, `pip` or `npm`. commands: run one after another, `{bin}` stands for the folder
    of its programs; the last prints the answer. total: dollars out of what that printed. reads: how it is pointed
    at a store. fresh: a folder below the home to delete before a run, so that each run is a first one.
    """

    name: str
    kind: str
    version: str
    commands: tuple[tuple[str, ...], ...]
    total: Callable[[Any], float]
    reads: str
    runs: int = 5
    fresh: str = ""


TOOLS = (
    Tool(
        "ccusage", "npm", "20.0.24",
        (("{bin}/ccusage", "hermes", "daily", "--json", "--offline"),),
        lambda said: float(said["totals"]["totalCost"]),
        "`HERMES_HOME`; adds up tokens at list prices of its own where a session has no cost",
        runs=3,
    ),
    Tool(
        "agentburn", "pip", "0.14.0",
        (("{bin}/agentburn", "report", "--agent", "hermes", "--days", "0", "--json", "--no-cache"),),
        lambda said: float(said["total"]["cost"]),
        "`~/.hermes/state.db` or `--db`; session rows",
    ),
    Tool(
        "ai-spend-tracker", "pip", "0.2.2",
        (("{bin}/ai-spend", "--agent", "hermes", "--days", "0", "--format", "json"),),
        lambda said: float(sum(row["cost_usd"] or 0 for row in said)),
        "`~/.hermes/state.db`; a copy of the file, then the estimates of session rows",
    ),
    Tool(
        "hermesd", "pip", "2026.9.26",
        (("{bin}/hermesd", "--snapshot", "--snapshot-format", "json"),),
        lambda said: float(said["state"]["tokens_total"]["total_cost_usd"]),
        "`HERMES_HOME` or `--hermes-home`; the store among all else of the home",
    ),
    Tool(
        "agentsview", "pip", "0.46.1",
        (
            ("{bin}/agentsview", "sync"),
            ("{bin}/agentsview", "usage", "daily", "--agent", "hermes", "--all", "--json", "--offline", "--no-sync"),
        ),
        lambda said: said["totals"]["totalCost"]["microdollars"] / 1e6,
        "`~/.hermes/sessions/`, which must exist, and `state.db` beside it; takes all of it over into a store of its "
        "own first",
        runs=1,
        fresh="agentsview",
    ),
)  # fmt: skip


class NotThere(Exception):
    """A tool that cannot be installed or gives no total; the sentence says why."""


def environment(home: Path) -> dict[str, str]:
    """What a tool sees: a home of its own, no colour, no daemon, no report to anyone."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "HERMES_HOME": str(home / ".hermes"),
        "AGENTSVIEW_DATA_DIR": str(home / "agentsview"),
        "AGENTSVIEW_NO_DAEMON": "1",
        "AGENTSVIEW_TELEMETRY_ENABLED": "0",
        "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
        "NO_COLOR": "1",
    }


def install(tool: Tool, folder: Path) -> Path:
    """Installs a tool below a folder, once, and returns where its programs are. Raises NotThere."""
    if tool.kind == "npm":
        if shutil.which("npm") is None:
            raise NotThere("npm is not installed here")
        home = folder / tool.name
        command = ["npm", "install", "--silent", "--prefix", str(home), f"{tool.name}@{tool.version}"]
        return _installed(home / "node_modules" / ".bin", [command])
    return venv(folder / tool.name, f"{tool.name}=={tool.version}")


def venv(home: Path, *requirements: str) -> Path:
    """A Python environment of its own with what is required; its folder of programs. Raises NotThere."""
    make = [sys.executable, "-m", "venv", str(home)]
    return _installed(home / "bin", [make, [str(home / "bin" / "pip"), "install", "-q", *requirements]])


def _installed(programs: Path, commands: list[list[str]]) -> Path:
    done = programs.parent / ".installed"
    if not done.exists():
        for command in commands:
            # What pip installs it compiles, unless it is told that nothing may be.
            env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_PATIENCE_S, env=env)
            except subprocess.TimeoutExpired:
                raise NotThere(f"its installation did not end within {INSTALL_PATIENCE_S} s") from None
            if ran.returncode:
                raise NotThere(f"its installation failed: {last_line(ran.stderr or ran.stdout)}")
        done.touch()
    return programs


def total_of(tool: Tool, printed: str) -> float:
    """The dollars that a tool printed. Raises NotThere where it printed none."""
    try:
        return tool.total(json.loads(printed))
    except (ValueError, KeyError, TypeError):
        raise NotThere(f"it gave no total: {last_line(printed) or 'it printed nothing'}") from None


def last_line(text: str) -> str:
    """The last line that says something, short, without places of this machine."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"(?<![\w~.])/[\w./-]+", "…", lines[-1])[:200] if lines else ""
