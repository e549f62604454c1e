"""Real server processes, and what the kernel says about them. Linux only: it reads /proc."""

from __future__ import annotations

import http.client
import importlib.metadata
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 120.0

PLAIN = """
import sys, pluggy
names = set(sys.argv.pop(1).split(","))
pluggy.PluginManager.is_blocked = lambda self, name: name in names
from datasette.cli import cli
cli(prog_name="datasette")
"""
"""Datasette as it is where no plugin is installed: entry points are looked through, none is loaded.

Only Datasette 1.0 has a setting for this (`DATASETTE_LOAD_PLUGINS`), so pluggy is told for both.
"""


class Server:
    """One process that serves, by its port."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a page, by one connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def drain(self, path: str) -> int:
        """Reads a page to its end without keeping it; returns its bytes. Raises RuntimeError for an error."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            read = 0
            while piece := answer.read(1 << 20):
                read += len(piece)
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}")
        return read

    def wait_for(self, path: str) -> None:
        """Returns when a page has been answered; raises RuntimeError if it will not be."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                assert self.process.stderr is not None
                said = self.process.stderr.read().decode("utf-8", "replace")
                raise RuntimeError(f"The server ended with status {self.process.returncode}: {said[-500:]}")
            try:
                status, body = self.get(path)
            except ConnectionError:
                time.sleep(0.005)
                continue
            if status != 200:
                raise RuntimeError(f"{path} answered {status}: {body[-300:]!r}")
            return
        raise RuntimeError(f"{path} was not answered in {PATIENCE_S:g} s.")

    def cpu_s(self) -> float:
        """User and system CPU seconds that the process has used so far."""
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, field: str) -> float:
        """A memory figure of the process in MB: `VmRSS` now, `VmHWM` at its highest."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        raise KeyError(field)


def command(*, plain: bool) -> list[str]:
    """How Datasette is started, with the installed plugins or without any."""
    if not plain:
        return [sys.executable, "-m", "datasette"]
    names = ",".join(entry.name for entry in importlib.metadata.entry_points(group="datasette"))
    return [sys.executable, "-c", PLAIN, names]


@contextmanager
def running(arguments: Sequence[str], *, plain: bool = False, home: Path | None = None) -> Iterator[Server]:
    """Starts `datasette serve …` on a free port and ends it in the end; does not wait for it.

    home: the user's home that the process sees, by default the real one.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # What pip installs is compiled; a checkout is by its first start, if that may write what it compiled.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if home is not None:
        environment["HOME"] = str(home)
    process = subprocess.Popen(
        [*command(plain=plain), "serve", *arguments, "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        # A pipe that nobody reads holds 64 kB; a server that is left alone says far less.
        stderr=subprocess.PIPE,
    )
    try:
        yield Server(process, port)
    finally:
        process.terminate()
        process.communicate(timeout=30)
