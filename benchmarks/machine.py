"""What a run was made with."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from state_ledger.sqlite import sqlite3


def made_with() -> dict[str, str]:
    """The day, the machine and the versions; the load is what else it does, per processor."""
    made = {
        "day": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "machine": f"{os.cpu_count()} × {_processor()}, {_memory()}, {platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "Datasette": version("datasette"),
        "state-ledger": version("state-ledger"),
    }
    if hasattr(os, "getloadavg"):
        made["load"] = f"{os.getloadavg()[1] / (os.cpu_count() or 1):.1f} for each processor"
    return made


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "memory unknown"
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
