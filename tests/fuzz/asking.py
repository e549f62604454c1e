"""Asking a Datasette everything: its routes filled with names, its parameters found by watching, its answers judged."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote_from_bytes, unquote

from datasette.utils import MultiParams, asgi, tilde_encode

try:
    from re import _constants as constants  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as constants
    import sre_parse as parser

MARK = "<zq onzq=1>'\"&"
"""Text that must never stand in a page as it is."""

PATIENCE_S = 120.0
"""After which an answer is taken for one that never comes; far beyond what a busy machine needs."""

HOSTILE: tuple[bytes, ...] = tuple(
    text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    for text in (
        "", " ", "0", "-1", "+1", "1", "00", "1e999", "1.5", "NaN", "Infinity", "null", "true", "None",
        str(2**31), str(2**63 - 1), str(2**63), str(2**64), "-" + str(2**63), "1" + "0" * 24, "9" * 5000, "٣", "１２",
        "²",
        "0000-00-00", "0001-01-01", "9999-12-31", "9999-99-99", "2026-02-30", "2026-1-1", "20260101", "2026-W01-1",
        "2026-01-01T00:00:00", "-0001-01-01", "Etc/UTC", "../../etc/passwd", "Europe", "utc", "Asia/Seoul\x00",
        "x" * 3000, "é", "👍🏽", "桂林", "\u202e\u2066abc", "\u2028", "\x00", "a\x00b",
        "\r\nSet-Cookie: a=b", "\x1b[31m",
        "\ud83d", b"\xff", b"\xed\xa0\x80", b"\xc3", "%00", "%", "%ff", "~", "~2", "~FF", "~00", "/", "//", "..",
        ".", "?", "#", "a b",
        MARK, "{{7*7}}", "' OR 1=1 --", "'", '"', "`", ";", "\\", "1; DROP TABLE sessions", "select 1", "select", "(",
        "[]", "{}", "[1", '{"a":1}', "[" * 900, '["role"]', "a,b", ",", ",,,", "*", '"', "-", "NOT", "a OR",
        "AND AND", "NEAR(",
        "w1", "s1", "first", "cli", "day", "all", "newest", "model", "full", "yes", "no", "1,2", "w1,2", "2,w1",
        "sort:1:2",
    )
)  # fmt: skip
"""What is written where a page expects a number, a day, a zone, a word, a name or a place to go on from."""

BODIES: tuple[tuple[str, bytes], ...] = (
    ("", b""),
    ("application/x-www-form-urlencoded", b""),
    ("application/x-www-form-urlencoded",
    b"bill=date%2Cmodel%2Camount%0A2026-06-01%2CM%2C1&tz=" + quote_from_bytes(MARK.encode()).encode()),
    ("application/x-www-form-urlencoded", b"bill=%ff%fe%00&provider=%ed%a0%80&tz=%00"),
    ("application/x-www-form-urlencoded", b"&&&==&=&;;" + b"a=b&" * 400),
    ("application/x-www-form-urlencoded; charset=no-such", b"bill=\xff\xfe"),
    ("multipart/form-data", b"--x\r\n\r\n"),
    ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=\"bill\"\r\n\r\nabc"),
    ("multipart/form-data; boundary=", b"--\r\n"),
    ("application/json", b""),
    ("application/json", b"{"),
    ("application/json", b"[" * 20_000),
    ("application/json", b'{"rows": [{"id": NaN, "\xff": 1}], "sql": "select 1", "row": 3}'),
    ("application/json", b'{"rows": [{"role": "<zq onzq=1>"}], "update": {"role": 1}, "confirm": true}'),
    ("text/csv", b"a,b\n1"),
    ("application/x-www-form-urlencoded", b"bill=" + b"%2C" * 600_000),
)  # fmt: skip
"""(content type, body) of requests that send something."""


class Answer(NamedTuple):
    """headers: names in lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def kind(self) -> bytes:
        return self.headers.get(b"content-type", b"").partition(b";")[0]


async def ask(
    app: Any, path: bytes, query: bytes = b"", *, method: str = "GET", headers: Iterable[tuple[bytes, bytes]] = (),
    body: bytes = b"",
) -> Answer:  # fmt: skip
    """The answer to a request with exactly these bytes, as a server hands it to the application."""
    sent: list[dict[str, Any]] = []
    given = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in given:
            return message
        await asyncio.Event().wait()
        raise AssertionError("nothing more is sent")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(path.decode("latin-1")), "raw_path": path, "query_string": query,
        "headers": [(b"host", b"localhost"), *headers], "server": ("127.0.0.1", 8001), "client": ("127.0.0.1", 5000),
    }  # fmt: skip
    await asyncio.wait_for(app(scope, receive, send), PATIENCE_S)
    assert sent and sent[0]["type"] == "http.response.start", "no answer"
    assert not sent[-1].get("more_body"), "the answer broke off"
    found = {name.lower(): value for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))


def complaint(answer: Answer) -> str:
    """What is wrong with an answer to anybody about anything; "" for nothing."""
    if answer.status >= 500:
        return f"status {answer.status}: {said(answer)[:300]}"
    if b"Traceback (most recent call last)" in answer.body:
        return "a traceback"
    if answer.kind == b"text/html" and MARK.encode()[:11] in answer.body:
        return "text of the visitor stands in the page as it is"
    if answer.kind not in (b"text/html", b"") and answer.headers.get(b"x-content-type-options") != b"nosniff":
        return "a browser may guess what this is"
    if any(b"\r" in value or b"\n" in value for value in answer.headers.values()):
        return "a header of more than one line"
    return ""


def said(answer: Answer) -> str:
    """The words of an answer."""
    text = re.sub(r"(?s)<(style|script|header|nav|footer).*?</\1>|<[^>]*>", " ", answer.body.decode("utf-8", "replace"))
    return re.sub(r"\s+", " ", text).strip()


def value(text: bytes) -> bytes:
    """A value as it stands in an address."""
    return quote_from_bytes(text, safe="").encode()


# -- routes --------------------------------------------------------------------------------------------


def paths(pattern: str, names: Mapping[str, Sequence[bytes]]) -> Iterator[bytes]:
    """Addresses that a route answers to: each name that its groups may have, each optional part with and without."""
    yield from _fill(parser.parse(pattern), names)


def _fill(items: Any, names: Mapping[str, Sequence[bytes]]) -> Iterator[bytes]:
    parts = [list(_part(kind, argument, names, items.state)) for kind, argument in items]
    return (b"".join(each) for each in itertools.product(*parts))


def _part(kind: Any, argument: Any, names: Mapping[str, Sequence[bytes]], state: Any) -> Iterator[bytes]:
    if kind is constants.LITERAL:
        yield chr(argument).encode()
    elif kind is constants.ANY:
        yield b"x"
    elif kind is constants.AT:
        yield b""
    elif kind is constants.BRANCH:
        for branch in argument[1]:
            yield from _fill(branch, names)
    elif kind is constants.SUBPATTERN:
        number, inner = argument[0], argument[3]
        named = next((name for name, group in state.groupdict.items() if group == number), None)
        known = names.get(str(named))
        yield from known if known is not None else _fill(inner, names)
    elif kind is constants.MAX_REPEAT and argument[0] == 0 and argument[1] == 1:
        yield b""
        yield from _fill(argument[2], names)
    else:
        raise AssertionError(f"a route has {kind}: give its name a value")


def encoded(text: str | bytes) -> bytes:
    """A name in a path as Datasette writes it."""
    return tilde_encode(text).encode() if isinstance(text, str) else quote_from_bytes(text).encode()


# -- parameters ----------------------------------------------------------------------------------------


class _Watched(MultiParams):  # type: ignore[misc]
    asked: ClassVar[set[str]] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)

    def getlist(self, name: str) -> Any:
        self.asked.add(name)
        return super().getlist(name)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)


@contextmanager
def watched() -> Iterator[set[str]]:
    """The names of parameters that pages look at while this lasts: what they know, without a list of it."""
    before, _Watched.asked = asgi.MultiParams, set()
    asgi.MultiParams = _Watched
    try:
        yield _Watched.asked
    finally:
        asgi.MultiParams = before
