"""Who is answered, and what every answer tells the browser."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.plugins import assets
from state_ledger.plugins.security import (
    DATA_CSP,
    FIXED_HEADERS,
    STRICT_CSP,
    host_allowed,
    secured,
)
from state_ledger.settings import Host, parse_host

LOOPBACK = [
    "localhost", "localhost:8001", "LOCALHOST", "localhost.", "books.localhost:1", "127.0.0.1",
    "127.0.0.1:8001", "127.8.9.10", "[::1]", "[::1]:8001",
]  # fmt: skip
STRANGE = [
    "evil.example", "evil.example:8001", "localhost.evil.example", "127.0.0.1.evil.example", "evillocalhost",
    "127.0.0.1@evil.example", "", ":8001", "[::2]", "[::]", "0.0.0.0", "192.168.1.5:8001", "10.0.0.1", "127.1",
    "2130706433", "0x7f.1", "localhost evil", "localhost,evil", "localhost/evil", "[::1", "::1", "localhost:x",
    "[::ffff:127.0.0.1]", "localhost:8001:80", "localhost:65536", "localhost:99999", "localhost:0",
]  # fmt: skip


async def ask(datasette: Any, path: str, headers: list[tuple[bytes, bytes]], method: str = "GET") -> Any:
    """Status, headers and body of a request with exactly these headers."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    name, _, query = path.partition("?")
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": name,
        "raw_path": name.encode(), "query_string": query.encode(), "headers": headers,
        "server": ("127.0.0.1", 8001), "client": ("127.0.0.1", 5000),
    }  # fmt: skip
    await datasette.app()(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], sent[0]["headers"], body.decode("utf-8", "replace")


def settings(**given: Any) -> dict[str, Any]:
    return {"metadata": {"plugins": {"state-ledger": given}}}


@pytest.mark.parametrize("name", LOOPBACK)
async def test_loopback_names_are_answered(make_datasette: Any, small_store: Any, name: str) -> None:
    datasette = await make_datasette(small_store())
    status, _, _ = await ask(datasette, "/state/messages", [(b"host", name.encode())])
    assert status == 200


@pytest.mark.parametrize("name", STRANGE)
async def test_any_other_name_is_refused_with_the_setting_to_change(
    make_datasette: Any, small_store: Any, name: str
) -> None:
    datasette = await make_datasette(small_store())
    status, headers, body = await ask(datasette, "/state/messages", [(b"host", name.encode())])
    assert status == 403
    assert dict(headers)[b"content-type"] == b"text/plain; charset=utf-8"
    assert "allowed_hosts" in body
    assert "hello" not in body


@pytest.mark.parametrize(
    "path",
    ["/", "/-/datasette", "/state", "/state.db", "/state/messages.json", "/state/messages/1", "/-/static/app.css",
     "/-/versions.json", "/no-such-page", "/state?sql=select+1", "/-/state-ledger/static/0/ledger.css"],
)  # fmt: skip
async def test_no_path_answers_a_strange_host(make_datasette: Any, small_store: Any, path: str) -> None:
    datasette = await make_datasette(small_store())
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        status, _, _ = await ask(datasette, path, [(b"host", b"evil.example")], method)
        assert status == 403


@pytest.mark.parametrize(
    "headers",
    [[], [(b"host", b"localhost"), (b"host", b"localhost")], [(b"host", b"localhost"), (b"Host", b"evil.example")]],
)
async def test_a_missing_or_repeated_host_is_refused(
    make_datasette: Any, small_store: Any, headers: list[tuple[bytes, bytes]]
) -> None:
    datasette = await make_datasette(small_store())
    status, _, body = await ask(datasette, "/", headers)
    assert (status, body) == (403, "The request must name its host exactly once.\n")


async def test_a_forwarded_host_neither_opens_nor_closes(make_datasette: Any, small_store: Any) -> None:
    datasette = await make_datasette(small_store())
    forged = [(b"host", b"evil.example"), (b"x-forwarded-host", b"localhost")]
    assert (await ask(datasette, "/", forged))[0] == 403
    honest = [(b"host", b"localhost"), (b"x-forwarded-host", b"evil.example")]
    assert (await ask(datasette, "/", honest))[0] == 200


async def test_a_refusal_shows_nothing_but_plain_characters_of_the_name(
    make_datasette: Any, small_store: Any
) -> None:
    datasette = await make_datasette(small_store())
    _, _, body = await ask(datasette, "/", [(b"host", b"<script>\x1b[31m" + b"a" * 500)])
    assert "<" not in body
    assert "\x1b" not in body
    assert len(body) < 500


@pytest.mark.parametrize(
    ("entry", "host", "answered"),
    [
        ("books.example.org", "books.example.org", True),
        ("books.example.org", "BOOKS.example.org:8001", True),
        ("books.example.org", "more.books.example.org", False),
        ("books.example.org:8001", "books.example.org:8001", True),
        ("books.example.org:8001", "books.example.org", False),
        ("books.example.org:80", "books.example.org", True),
        ("*.example.org", "books.example.org", True),
        ("*.example.org", "a.b.example.org:9", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("*.example.org:8001", "books.example.org:8001", True),
        ("*.example.org:8001", "books.example.org:8002", False),
        ("192.168.1.5", "192.168.1.5:8001", True),
        ("[fe80::1]", "[fe80::1]:8001", True),
    ],
)
async def test_allowed_hosts_are_answered(
    make_datasette: Any, small_store: Any, entry: str, host: str, answered: bool
) -> None:
    datasette = await make_datasette(small_store(), **settings(allowed_hosts=[entry]))
    status, _, _ = await ask(datasette, "/-/versions.json", [(b"host", host.encode())])
    assert status == (200 if answered else 403)


@given(st.text())
def test_no_text_is_taken_for_loopback_unless_it_is(text: str) -> None:
    host = parse_host(text)
    if host is not None and host_allowed(host, ()):
        assert host.name.endswith("localhost") or host.name.startswith("127.") or host.name == "[::1]"


def test_a_host_is_read_with_its_port() -> None:
    assert parse_host("Example.org.:81") == Host("example.org", 81)
    assert parse_host("[FE80::1]") == Host("[fe80::1]", None)


LOCAL = [(b"host", b"localhost")]
ANSWERS = [
    ("/", "GET"), ("/", "HEAD"), ("/-/datasette", "GET"), ("/state/messages", "GET"), ("/state/messages", "HEAD"),
    ("/state/messages.json", "GET"), ("/state/messages.csv", "GET"), ("/state/messages/1", "GET"),
    ("/state/messages/99", "GET"), ("/nothing", "GET"), ("/state?sql=select+nonsense", "GET"),
    ("/state/messages?_filter_column=role&_filter_op=exact&_filter_value=user", "GET"), ("/state/", "GET"),
    ("/-/static/app.css", "GET"), ("/state/messages", "POST"), ("/state/messages", "OPTIONS"), ("/-/logout", "GET"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "method"), ANSWERS)
async def test_every_answer_carries_the_headers_once(
    make_datasette: Any, small_store: Any, path: str, method: str
) -> None:
    datasette = await make_datasette(small_store(), cors=True)
    _, headers, _ = await ask(datasette, path, LOCAL, method)
    names = [name.lower() for name, _ in headers]
    for name, value in FIXED_HEADERS:
        assert [v for n, v in headers if n.lower() == name] == [value]
    assert names.count(b"content-security-policy") == 1
    assert names.count(b"cache-control") <= 1
    assert not [name for name in names if name.startswith(b"access-control-")]


async def test_a_refusal_and_an_exception_carry_the_headers_too(
    make_datasette: Any, small_store: Any
) -> None:
    datasette = await make_datasette(small_store())
    _, headers, _ = await ask(datasette, "/", [(b"host", b"evil.example")])
    assert set(FIXED_HEADERS) <= set(headers)
    assert dict(headers)[b"content-security-policy"] == DATA_CSP.encode()


async def test_cors_headers_pass_when_the_setting_says_so(make_datasette: Any, small_store: Any) -> None:
    datasette = await make_datasette(small_store(), cors=True, **settings(cors=True))
    _, headers, _ = await ask(datasette, "/state/messages.json", LOCAL)
    assert (b"access-control-allow-origin") in {name.lower() for name, _ in headers}


@pytest.mark.parametrize("path", ["/state/messages.json", "/state/messages.csv", "/-/versions.json"])
async def test_data_may_load_nothing(make_datasette: Any, small_store: Any, path: str) -> None:
    datasette = await make_datasette(small_store())
    _, headers, _ = await ask(datasette, path, LOCAL)
    assert dict((n.lower(), v) for n, v in headers)[b"content-security-policy"] == DATA_CSP.encode()


@pytest.mark.parametrize("path", ["/-/datasette", "/state/-/tables", "/state/messages", "/state/messages/1"])
async def test_every_script_of_a_stock_page_is_one_of_its_template(
    make_datasette: Any, small_store: Any, path: str
) -> None:
    datasette = await make_datasette(small_store())
    nonces = set()
    for _ in range(2):
        _, headers, body = await ask(datasette, path, LOCAL)
        policy = dict((n.lower(), v) for n, v in headers)[b"content-security-policy"].decode()
        assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
        nonce = policy.partition("'nonce-")[2].partition("'")[0]
        assert body.count("<script") == body.count(f'<script nonce="{nonce}"') > 0
        nonces.add(nonce)
    assert len(nonces) == 2


async def test_our_own_pages_keep_the_strict_policy(make_datasette: Any, small_store: Any) -> None:
    datasette = await make_datasette(small_store())
    _, headers, _ = await ask(datasette, "/", LOCAL)
    assert dict((n.lower(), v) for n, v in headers)[b"content-security-policy"] == STRICT_CSP.encode()


def cache_rules(headers: Any) -> list[bytes]:
    return [value for name, value in headers if name.lower() == b"cache-control"]


def test_only_what_may_come_from_a_store_is_kept_out_of_shared_caches() -> None:
    def rules(*headers: tuple[bytes, bytes], **said: bool) -> list[bytes]:
        return cache_rules(secured(headers, nonce="x", cors=False, **said))

    for kind in (b"text/html; charset=utf-8", b"application/json", b"text/csv; charset=utf-8", b"text/plain",
                 b"application/binary", b"application/octet-stream"):  # fmt: skip
        assert rules((b"content-type", kind)) == [b"private, no-cache"]
        for lax in (b"max-age=5", b"no-cache", b"public, max-age=3600", b"max-age=5, x-private"):
            assert rules((b"Content-Type", kind), (b"Cache-Control", lax)) == [b"private, no-cache"]
        for strict in (b"no-store", b"private", b"Private, max-age=60", b"private, no-store"):
            assert rules((b"Content-Type", kind), (b"Cache-Control", strict)) == [strict]
    for kind in (b"text/css; charset=utf-8", b"text/javascript", b"image/png", b"font/woff2"):
        assert rules((b"content-type", kind)) == []
        assert rules((b"content-type", kind), (b"cache-control", b"public, immutable")) == [b"public, immutable"]
    assert rules((b"location", b"/elsewhere")) == []
    assert rules((b"content-type", b"text/plain"), unchanged=True) == []


@pytest.mark.parametrize(
    "path",
    ["/-/datasette", "/state/-/tables", "/state/messages", "/state/messages.json", "/state/messages.csv",
     "/state/messages.csv?_stream=1", "/state/messages.json?_ttl=3600", "/state/messages?_ttl=0", "/state/messages/1",
     "/state/messages/1.json", "/state/messages/1.blob?_blob_column=content", "/state.db",
     "/state.json?sql=select+content+from+messages", "/state.csv?sql=select+content+from+messages"],
)  # fmt: skip
async def test_no_shared_cache_may_keep_what_a_store_holds(make_datasette: Any, small_store: Any, path: str) -> None:
    datasette = await make_datasette(small_store())
    _, headers, _ = await ask(datasette, path, LOCAL)
    (rule,) = cache_rules(headers)
    assert rule in (b"private, no-cache", b"private, no-store", b"no-store")


async def test_static_files_keep_their_cache_rules(make_datasette: Any, small_store: Any) -> None:
    datasette = await make_datasette(small_store())
    _, page, _ = await ask(datasette, "/-/static/app.css", LOCAL)
    assert cache_rules(page) == []
    for tag in [value for name, value in page if name.lower() == b"etag"]:  # 1.0 sends one
        status, again, _ = await ask(datasette, "/-/static/app.css", [*LOCAL, (b"if-none-match", tag)])
        assert (status, cache_rules(again)) == (304, [])
    _, ours, _ = await ask(datasette, assets.static_path("ledger.css"), LOCAL)
    assert cache_rules(ours) == [b"public, max-age=31536000, immutable"]


@pytest.mark.parametrize(
    "target", ["http://evil.example/", "http://localhost/state/messages", "*", "state/messages", ""]
)
async def test_a_request_for_something_other_than_a_path_is_refused(
    make_datasette: Any, small_store: Any, target: str
) -> None:
    datasette = await make_datasette(small_store())
    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        status, headers, body = await ask(datasette, target, LOCAL, method)
        assert status == 400
        assert "location" not in {name.decode().lower() for name, _ in headers}
        assert set(FIXED_HEADERS) <= set(headers)
        assert body == ("" if method == "HEAD" else "The request must ask for a path, which begins with a slash.\n")


@pytest.mark.parametrize("target", ["http://evil.example/", "http://evil.example/state/messages/", "evil"])
def test_a_server_sends_nobody_elsewhere(small_store: Any, served: Any, target: str) -> None:
    address = urlsplit(served([small_store()]))
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"evil" not in answer
