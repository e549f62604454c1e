"""Clients of a server, many at once, on one thread: ordinary ones, slow ones, and ones that vanish."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 120.0


@dataclass(frozen=True)
class Answer:
    """What a client got. whole: whether the transfer came to its end. seconds: from asking to the last byte."""

    path: str
    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool
    seconds: float


async def get(address: str, path: str, method: str = "GET") -> Answer:
    """Asks for a page over a connection of its own and reads all of it. Raises OSError, TimeoutError."""
    began = time.perf_counter()
    reader, writer = await _asked(address, path, method)
    try:
        received = await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    seconds = time.perf_counter() - began
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    whole = True
    if headers.get("transfer-encoding") == "chunked":
        body, whole = _unchunked(body)
    elif "content-length" in headers and method != "HEAD":
        whole = len(body) == int(headers["content-length"])
    return Answer(path, int(lines[0].split()[1]) if lines[0] else 0, headers, body, whole, seconds)


async def _asked(address: str, path: str, method: str = "GET") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 16)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
    return reader, writer


def _unchunked(body: bytes) -> tuple[bytes, bool]:
    pieces, at = [], 0
    while True:
        end = body.find(b"\r\n", at)
        if end < 0:
            return b"".join(pieces), False
        size = int(body[at:end], 16)
        if size == 0:
            return b"".join(pieces), True
        pieces.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2


class Idler:
    """A client that asked and has read nothing or little since: its kernel's buffer is as small as it can be."""

    def __init__(self, address: str, path: str) -> None:
        parts = urlsplit(address)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((parts.hostname, parts.port))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())

    def read(self, number: int = 1) -> bytes:
        """The next bytes, waited for; b"" where the server has closed the connection."""
        try:
            return self.socket.recv(number)
        except ConnectionError:
            return b""

    def vanish(self) -> None:
        """Breaks the connection off, as a machine does that lost its process: the server gets a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def leave(self) -> None:
        self.socket.close()


async def crowd(address: str, paths: Iterable[str]) -> list[Answer]:
    """Asks for all of these at the same time."""
    return list(await asyncio.gather(*(get(address, path) for path in paths)))


async def walking(address: str, paths: list[str], until: Callable[[], bool], clients: int) -> list[Answer]:
    """So many clients each load one page after another, beginning at different ones, until told to stop.

    Every page is loaded at least once. Bodies of good answers are not kept.
    """
    answers: list[Answer] = []
    left = set(paths)

    async def walk(start: int) -> None:
        at = start
        while left or not until():
            path = paths[at % len(paths)]
            answer = await get(address, path)
            left.discard(path)
            good = answer.status == 200 and answer.whole
            answers.append(Answer(path, answer.status, answer.headers, b"" if good else answer.body, answer.whole,
                                  answer.seconds))  # fmt: skip
            at += 1

    await asyncio.gather(*(walk(number * max(1, len(paths) // clients)) for number in range(clients)))
    return answers


async def awaited(condition: Callable[[], Any], patience_s: float = 20.0) -> Any:
    """The first true value that a condition gives; the last one where patience runs out."""
    deadline = time.monotonic() + patience_s
    while not (found := condition()) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return found


class Process:
    """What Linux tells of a server process."""

    def __init__(self, pid: int) -> None:
        self.folder = Path(f"/proc/{pid}")

    def memory_mb(self, field: str = "VmRSS") -> float:
        """VmRSS: now; VmHWM: at its highest."""
        [line] = [line for line in (self.folder / "status").read_text().splitlines() if line.startswith(f"{field}:")]
        return int(line.split()[1]) / 1024

    def threads(self) -> int:
        return len(list((self.folder / "task").iterdir()))

    def open_files(self) -> list[str]:
        """What its file descriptors are, sorted; a socket that listens and one that is connected look alike."""
        found = []
        for each in (self.folder / "fd").iterdir():
            with suppress(OSError):
                found.append(str(each.readlink()).partition(":")[0])
        return sorted(found)

    def cpu_s(self) -> float:
        after_name = (self.folder / "stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / 100


Job = Callable[[], Awaitable[Any]]
