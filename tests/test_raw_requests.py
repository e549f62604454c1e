"""Requests that no browser and no client library would send, byte for byte, at a real server."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from state_ledger import SessionDB
from tests.conftest import THOROUGH, fetch

Serve = Callable[..., str]

CLOSING = b"Connection: close"
LAST = b"GET /-/versions.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
"""A request after which a server that has read the one before it closes the connection."""

HOSTILE_IDS = (
    "a\r\nSet-Cookie: stolen=1", "a\nX-Stolen: 1", 'a"; filename="evil.html', "../../etc/passwd", "..\\..\\evil",
    "/etc/passwd", "CON", ".bashrc", "한글 ключ", "a\u2028b", "a%0d%0aX-Stolen: 1", "\x7f\x1b[31m", "-rf", "a" * 300,
)  # fmt: skip


class Answer(NamedTuple):
    """What a server sent before it closed the connection: `status` of the first answer, 0 for none."""

    status: int
    head: str
    body: str
    whole: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with ids that mean something to a protocol, a folder to be served and a file beside it."""
    made = tmp_path_factory.mktemp("raw")
    with SessionDB(made / "state.db") as db:
        for id in HOSTILE_IDS:
            db.create_session(id, "cli", model="m")
            db.append_message(id, "user", "lighthousekeeper")
    (made / "open").mkdir()
    (made / "open" / "seen.txt").write_text("to be seen")
    (made / "kept.txt").write_text("out of bounds")
    return made


@pytest.fixture
def raw(serving: Serve, folder: Path) -> Callable[..., Answer]:
    """`raw(b"GET / HTTP/1.1", b"Host: localhost")` sends these lines and reads until the server closes."""
    address = urlsplit(serving([folder / "state.db"], "--static", f"open:{folder / 'open'}"))

    def send(*lines: bytes, body: bytes = b"", more: bytes = CLOSING) -> Answer:
        whole = b""
        with socket.create_connection((address.hostname, address.port), timeout=5) as connection:
            try:
                connection.sendall(b"\r\n".join((*lines, *((more,) if more == CLOSING else ()), b"", body)))
                if more != CLOSING:
                    connection.sendall(more)
                while piece := connection.recv(65536):
                    whole += piece
            except (BrokenPipeError, ConnectionResetError, TimeoutError):
                pass  # refused before all of it was read, or waiting for more of it
        head, _, rest = whole.decode("latin-1").partition("\r\n\r\n")
        begun = re.match(r"HTTP/1\.[01] (\d+)", head)
        return Answer(int(begun[1]) if begun else 0, head, rest, whole.decode("latin-1"))

    return send


Raw = Callable[..., Answer]
HERE = b"Host: localhost"
PAGES = ("/", "/state", "/state/-/home", "/state/-/export/all.json", "/state/messages.json", "/-/ledger/health.json",
         "/state.db", "/-/static/app.css", "/state/-/live.json")  # fmt: skip


def test_a_strange_name_is_answered_nothing(raw: Raw) -> None:
    for page in PAGES:
        path = page.encode()
        for lines in (
            (b"GET " + path + b" HTTP/1.1", b"Host: rebound.evil.example:8001"),
            (b"GET " + path + b" HTTP/1.1", b"Host: localhost", b"Host: evil.example"),
            (b"GET http://evil.example" + path + b" HTTP/1.1", HERE),
            (b"GET " + path + b" HTTP/1.0",),
            (b"POST " + path + b" HTTP/1.1", b"Host: evil.example", b"Content-Length: 0"),
        ):
            answer = raw(*lines)
            assert answer.status in (400, 403), lines
            assert "lighthousekeeper" not in answer.whole
            assert "location:" not in answer.head.lower()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND"])
def test_a_foreign_page_changes_nothing_by_any_method(raw: Raw, folder: Path, method: str) -> None:
    before = (folder / "state.db").read_bytes()
    form = b"csrftoken=x&bill=day%2Cusd&_method=DELETE"
    foreign = (HERE, b"Origin: https://evil.example", b"Sec-Fetch-Site: cross-site", b"Cookie: ds_csrftoken=x; a=b",
               b"X-Probe: echoed", b"Content-Type: application/x-www-form-urlencoded")  # fmt: skip
    for path in (*PAGES, "/state/-/reconcile", "/-/logout", "/state/messages/1", "/state/messages/1/-/delete"):
        answer = raw(f"{method} {path} HTTP/1.1".encode(), *foreign, b"Content-Length: %d" % len(form), body=form)
        assert 400 <= answer.status < 500, (method, path, answer.head)
        assert "lighthousekeeper" not in answer.whole
        assert "echoed" not in answer.whole
        assert "access-control-" not in answer.head.lower()
    assert (folder / "state.db").read_bytes() == before


@pytest.mark.parametrize("id", HOSTILE_IDS, ids=range(len(HOSTILE_IDS)))
def test_an_id_of_a_session_is_never_a_header_nor_a_path(raw: Raw, id: str) -> None:
    quoted = quote(id, safe="")
    for path in (
        f"/state/-/export/session.json?id={quoted}", f"/state/-/session/{quoted}", f"/-/find?q={quoted}",
        f"/-/ledger/all/session/{quoted}", f"/state/-/export?session={quoted}", f"/state?{quoted}={quoted}/",
        f"/state/{quoted}/", f"/{quoted}//",
    ):  # fmt: skip
        answer = raw(f"GET {path} HTTP/1.1".encode(), HERE)
        assert 200 <= answer.status < 500, (path, answer.head)
        names = {line.partition(":")[0].lower() for line in answer.head.split("\r\n")[1:]}
        assert not names & {"set-cookie", "x-stolen"}, answer.head
        assert answer.head.isascii() and "\n" not in answer.head.replace("\r\n", "")
        for location in re.findall(r"(?im)^location: (.*)$", answer.head):
            assert re.match(r"/(?![/\\])", location), location
        for filed in re.findall(r"(?im)^content-disposition: (.*?)\r?$", answer.head):
            assert re.fullmatch(r'attachment; filename="[\w][\w.-]*\.json"', filed, re.ASCII), filed
            assert ".." not in filed


UPWARDS = (
    "../kept.txt", "..%2fkept.txt", "%2e%2e/kept.txt", "%2e%2e%2fkept.txt", "..%5ckept.txt", "..%252fkept.txt",
    "..;/kept.txt", "x/../../kept.txt", "./../kept.txt", "....//kept.txt", "%c0%ae%c0%ae/kept.txt", "..%00/kept.txt",
    "seen.txt/../../kept.txt",
    "~2E~2E~2Fkept.txt", "/etc/passwd", "%2fetc%2fpasswd", "../../../../../../../../etc/passwd",
    "..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd", "seen.txt%00.html", "file:///etc/passwd",
)  # fmt: skip
BELOW = (
    "/open/", "/-/static/", "/-/state-ledger/static/0/", "/-/static-plugins/state_ledger/", "/state/-/export/",
    "/state/-/export/question/", "/", "/state/",
)  # fmt: skip


def test_no_path_leads_out_of_what_is_served(raw: Raw, folder: Path) -> None:
    for below in BELOW:
        for path in (*UPWARDS[:: 1 if THOROUGH else 3], str(folder / "kept.txt")):
            answer = raw(f"GET {below}{path} HTTP/1.1".encode(), HERE)
            assert "out of bounds" not in answer.body, path
            assert "root:" not in answer.body, path
            assert answer.status < 500, (below, path, answer.head)
    assert raw(b"GET /open/seen.txt HTTP/1.1", HERE).body == "to be seen"


SMUGGLED = b"GET /state/messages.json HTTP/1.1\r\nHost: evil.example\r\n\r\n"
ODD = {
    "two lengths": ((b"Content-Length: 0", b"Content-Length: 5"), SMUGGLED),
    "a length and chunks": ((b"Content-Length: 5", b"Transfer-Encoding: chunked"), b"0\r\n\r\n" + SMUGGLED),
    "a negative length": ((b"Content-Length: -1",), SMUGGLED),
    "a length of words": ((b"Content-Length: 0x5",), SMUGGLED),
    "a length with a plus": ((b"Content-Length: +5",), SMUGGLED),
    "chunks of chunks": ((b"Transfer-Encoding: chunked, chunked",), b"0\r\n\r\n" + SMUGGLED),
    "chunks by another name": ((b"Transfer-Encoding: xchunked",), SMUGGLED),
    "a space before the colon": ((b"Content-Length : 5",), SMUGGLED),
    "a folded line": ((b"X-A: b", b"  Content-Length: 5"), SMUGGLED),
    "a NUL in a header": ((b"X-A: b\x00c",), b""),
    "a line that ends early": ((b"X-A: b\nHost: evil.example",), b""),
    "too long a header": ((b"X-A: " + b"a" * 300_000,), b""),
    "too many headers": (tuple(b"X-%d: a" % number for number in range(20_000)), b""),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_request_that_can_be_read_in_two_ways_opens_nothing(raw: Raw, odd: str) -> None:
    lines, body = ODD[odd]
    answer = raw(b"POST /state/-/home HTTP/1.1", HERE, *lines, body=body, more=LAST)
    assert "lighthousekeeper" not in answer.whole
    statuses = [int(status) for status in re.findall(r"HTTP/1\.1 (\d+)", answer.whole)]
    assert len(statuses) <= 3 and all(status < 500 for status in statuses), answer.whole[:500]
    if SMUGGLED in body and len(statuses) == 3:
        assert statuses[1] == 403, "what is read as a request of its own is judged by its own host"


def test_what_is_no_request_for_a_page_is_refused_and_the_server_goes_on(
    raw: Raw, serving: Serve, folder: Path
) -> None:
    upgrade = (b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==")
    for lines in (
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1", HERE),
        (b"GET /state/messages.json?_where=" + b"a" * 60_000 + b" HTTP/1.1", HERE),
        (b"GET /state\x00/-/home HTTP/1.1", HERE),
        (b"GET /state%00/-/home HTTP/1.1", HERE),
        (b"GET /state/-/home%0d%0aX: y HTTP/1.1", HERE),
        (b"GET /state\r/-/home HTTP/1.1", HERE),
        (b"GET  /state HTTP/1.1", HERE),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", HERE),
        (b"PRI * HTTP/2.0", HERE),
    ):
        answer = raw(*lines)
        assert answer.status == 0 or 300 <= answer.status < 500, (lines[0][:60], answer.head)
        assert "lighthousekeeper" not in answer.whole
    answer = raw(b"GET /state/-/live.json HTTP/1.1", HERE, b"Connection: Upgrade, close", *upgrade)
    assert answer.status != 101
    address = serving([folder / "state.db"], "--static", f"open:{folder / 'open'}")
    assert fetch(f"{address}/state/-/home")[0] == 200
