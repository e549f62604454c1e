"""Uses everything in a process that has no network but its own loopback, and writes down who tried to get out.

Run as a program, `python -m tests.cut_off STORE LOG`: it prints a JSON object of what happened (see `main`).
`STATE_LEDGER_ATTEMPTS` names the file to which each attempt is appended by this process and by the server it starts.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
VARIABLE = "STATE_LEDGER_ATTEMPTS"
SERVER = "import tests.cut_off; tests.cut_off.watch(); import datasette.cli; datasette.cli.cli()"
HERE = ("127.0.0.1", "::1", "localhost", "", None)


def leave_the_network() -> bool:
    """Moves this process into a network of its own, with a loopback; False where the system does not allow it."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        return False
    import fcntl
    import socket
    import struct

    with socket.socket() as any_socket:
        up = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, up)  # SIOCSIFFLAGS
    return True


def watch() -> None:
    """Every name that is looked up and every address that is connected to, other than this machine's, is written down
    and refused."""
    log = Path(os.environ[VARIABLE])

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo":
            host = arguments[0]
        elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
            host = arguments[1][0]
        elif event in ("socket.gethostbyname", "urllib.Request", "http.client.connect", "smtplib.connect"):
            host = str(arguments[0] if event == "socket.gethostbyname" else arguments[1] if event[0] == "h" else "")
        else:
            return
        if (host.decode() if isinstance(host, bytes) else host) not in HERE:
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{event} {host}\n")
            raise OSError("there is no network in this test")

    sys.addaudithook(hook)


VERBS: Sequence[Sequence[str]] = (
    ("profiles", "STORE"), ("search", "harbour", "STORE"), ("query", "cost_per_model", "STORE"),
    ("query", "--list"), ("prices", "claude-sonnet-4-5"), ("budget", "STORE", "--budget", "5/day"),
    ("export", "STORE", "--all", "--format", "html", "--output", "all.html"),
    ("export", "STORE", "--all", "--output", "all.jsonl"), ("import", "all.jsonl", "other.db", "--yes"),
    ("index", "STORE"), ("backup", "STORE", "--to", "backups"), ("check", "STORE"), ("status", "STORE"),
    ("sizes", "STORE"), ("plan", "STORE", "--older-than", "30"), ("optimize", "other.db", "--yes"),
    ("vacuum", "other.db", "--yes"), ("migrate", "other.db", "--yes"),
    ("archive", "other.db", "--older-than", "0", "--yes"),
    ("prune", "other.db", "--older-than", "0", "--yes", "--export", "gone.jsonl"),
    ("sweep", "other.db", "--idle-days", "1", "--yes"),
    *((("lake", "push", "STORE", "--to", "lake", "--with-messages"), ("lake", "status", "lake"),
       ("lake", "verify", "lake", "--against", "STORE"), ("lake", "compact", "lake", "--grace", "0"))
      if find_spec("pyarrow") else ()), ("repair", "STORE", "mended.db"), ("demo", "demo.db"),
)  # fmt: skip
"""Every verb but `serve`, `restore`, `delete` and `reconcile`, which these include or which need something at hand."""


def use_the_command(store: Path) -> dict[str, int]:
    """Every verb once; the exit code by what was called."""
    from state_ledger.cli import main as command

    codes: dict[str, int] = {}
    for words in VERBS:
        given = [str(store) if word == "STORE" else word for word in words]
        try:
            command(given)
        except SystemExit as end:
            codes[" ".join(words)] = int(end.code or 0)
    return codes


def use_the_app(address: str, paths: Sequence[str]) -> dict[str, int]:
    """Every page of the app once; the status by address."""
    from tests.conftest import fetch

    return {path: fetch(address + path)[0] for path in paths}


def use_a_browser(address: str, paths: Sequence[str]) -> list[str]:
    """Pages in Chromium with their scripts; what it asked of anybody but the server, and what it complained of."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return []
    from tests.test_browser import CHROMIUM, FLAGS

    if CHROMIUM is None:
        return []
    trouble: list[str] = []
    with sync_playwright() as runner:
        chromium = runner.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = chromium.new_page()
        page.on("request", lambda request: request.url.startswith(address) or trouble.append(request.url))
        page.on("requestfailed", lambda request: trouble.append(f"{request.url} {request.failure}"))
        page.on("console", lambda message: message.type == "error" and trouble.append(message.text))
        for path in paths:
            page.goto(address + path)
        chromium.close()
    return trouble


def main(store: Path, server_log: Path, paths: Sequence[str], in_browser: Sequence[str]) -> dict[str, Any]:
    """What happened: whether there was a network, exit codes of verbs, statuses of pages, trouble of the browser."""
    alone = leave_the_network()
    watch()
    codes = use_the_command(store)
    from tests.conftest import free_port, wait_for

    port = free_port()
    with server_log.open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, "serve", str(store), "--port", str(port)], stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(address, server)
        pages = use_the_app(address, paths)
        trouble = use_a_browser(address, in_browser)
    finally:
        server.terminate()
        server.wait(timeout=20)
    return {"alone": alone, "verbs": codes, "pages": pages, "browser": trouble}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    done = main(Path(asked["store"]), Path(asked["log"]), asked["paths"], asked["browser"])
    Path(asked["answer"]).write_text(json.dumps(done), encoding="utf-8")
