"""Who may ask, and what a browser may do with the answer: host check and response headers.

A page that the user visits can point its own host name at 127.0.0.1 and then read what is served
there (DNS rebinding), so only loopback names and the ones in the setting `allowed_hosts` are answered.
Stores hold text of strangers, so every answer tells the browser to run, load and frame as little as
possible.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from datasette import hookimpl
from jinja2.ext import Extension

from state_ledger.plugins.address import App, Scope
from state_ledger.plugins.stores import registry
from state_ledger.settings import Host, parse_allowed_host, parse_host

if TYPE_CHECKING:
    from datasette.app import Datasette
    from jinja2 import Environment

Headers = list[tuple[bytes, bytes]]

STRICT_CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The policy of our own pages, which set it themselves: nothing inline, nothing from elsewhere."""

DATA_CSP = "default-src 'none'; frame-ancestors 'none'"
"""The policy of JSON, CSV, plain text and everything else that is not a page."""

FIXED_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""What every answer carries, errors and redirects included."""

PRIVATE = b"private, no-cache"
"""The cache rule of answers that may hold text of a store: not in a cache that others use, and asked for
anew each time, since stores change. Datasette's own rule lets any cache keep them for five seconds."""

STATIC_TYPES = (b"text/css", b"text/javascript", b"application/javascript", b"image/", b"font/")
"""What only static files are. Anything else may come from a store: 0.65 sends CSV as plain text, and
blobs and whole databases have types of their own."""

FORMS = (b"multipart/form-data", b"application/x-www-form-urlencoded")
"""Content types of forms."""

# Datasette 1.0's table page has one handler in an attribute; its SHA-256 lets it, and no other, run.
_HANDLER = "openColumnChooser()"
_HANDLER_HASH = base64.b64encode(hashlib.sha256(_HANDLER.encode()).digest()).decode("ascii")
_SCRIPT_TAG = re.compile(r"<script(?=[\s>{])")

METHODS = ("GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE")
"""What Datasette and its plugins know; 0.65 calls any other an error of its own."""

_log = logging.getLogger(__name__)
_nonce: ContextVar[str] = ContextVar("state_ledger_script_nonce", default="")


class Refusal(NamedTuple):
    """Why a request is not answered. status: of HTTP; reason: sentences for the visitor."""

    status: int
    reason: str


def stock_csp(nonce: str) -> str:
    """The policy of Datasette's own pages: scripts of their templates run, scripts in data do not.

    Their inline styles cannot be told from others, so those stay allowed.
    """
    return (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; "
        f"script-src 'self' 'nonce-{nonce}' 'unsafe-hashes' 'sha256-{_HANDLER_HASH}'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def host_allowed(host: Host, allowed: Iterable[str], scheme: str = "http") -> bool:
    """Whether a request to `host` is answered: loopback, or one of `allowed`.

    An allowed host is a name (`books.example.org`), a name with a port, or `*.example.org`, which
    stands for every name below it but not for itself.
    """
    return _is_loopback(host.name) or any(_matches(host, entry, scheme) for entry in allowed)


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        if name.startswith("["):
            return ipaddress.IPv6Address(name[1:-1]) == ipaddress.IPv6Address("::1")
        return ipaddress.IPv4Address(name).is_loopback
    except ValueError:
        return False


def _matches(host: Host, entry: str, scheme: str) -> bool:
    parsed = parse_allowed_host(entry)
    if parsed is None:
        return False
    below, wanted = parsed
    if wanted.port is not None:
        asked = host.port if host.port is not None else {"http": 80, "https": 443}.get(scheme)
        if asked != wanted.port:
            return False
    return host.name.endswith("." + wanted.name) if below else host.name == wanted.name


def refusal(scope: Scope, allowed: Iterable[str]) -> Refusal | None:
    """Why a request is not answered; None if it is.

    Only `Host` counts: a page can make a browser send `X-Forwarded-Host` with any value.
    """
    given = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
    if len(given) != 1:
        return Refusal(403, "The request must name its host exactly once.")
    if scope.get("method", "GET") not in METHODS:
        return Refusal(405, f"The request's method is none of {', '.join(METHODS)}.")
    host = parse_host(given[0])
    if host is not None and host_allowed(host, allowed, scope.get("scheme", "http")):
        # A whole address after GET is for proxies; it names a host of its own, and Datasette sends it elsewhere.
        raw = scope.get("raw_path") or b"/"
        if not (scope["path"].startswith("/") and raw.startswith(b"/")):
            return Refusal(400, "The request must ask for a path, which begins with a slash.")
        if not raw.isascii():
            return Refusal(400, "The path must be written in ASCII: other characters as %XX or ~XX.")
        return None
    shown = re.sub(r"[^\w.:\[\]-]", "?", given[0], flags=re.ASCII)[:100]
    return Refusal(
        403,
        f"This server was asked under the name {shown}, which it does not know as its own. "
        "It answers to localhost, 127.0.0.1 and [::1]. If the name is yours, add it to the setting "
        "allowed_hosts under plugins: state-ledger: in the metadata or configuration file.",
    )


def secured(headers: Iterable[tuple[bytes, bytes]], *, nonce: str, cors: bool, unchanged: bool = False) -> Headers:
    """Response headers with ours added; a policy that is there already is kept, as is a stricter cache rule.

    unchanged: whether this is a 304, which says that the rule of the answer that the browser has still holds.
    """
    ours = {name for name, _value in FIXED_HEADERS}
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in ours and (cors or not name.lower().startswith(b"access-control-"))
    ]
    present = {name.lower(): value for name, value in kept}
    kind = present.get(b"content-type", b"").lower()
    kept.extend(FIXED_HEADERS)
    if b"content-security-policy" not in present:
        policy = stock_csp(nonce) if kind.startswith(b"text/html") else DATA_CSP
        kept.append((b"content-security-policy", policy.encode("ascii")))
    if kind and not unchanged and not kind.startswith(STATIC_TYPES) and not _is_private(present):
        kept = [(name, value) for name, value in kept if name.lower() != b"cache-control"]
        kept.append((b"cache-control", PRIVATE))
    return kept


def _is_private(present: Mapping[bytes, bytes]) -> bool:
    rules = {rule.strip() for rule in present.get(b"cache-control", b"").lower().split(b",")}
    return not rules.isdisjoint({b"private", b"no-store"})


# Last, because each wrapper goes around the ones before it: nothing answers outside this one.
@hookimpl(trylast=True)
def asgi_wrapper(datasette: Datasette) -> Callable[[App], App]:
    def wrap(app: App) -> App:
        async def guarded(scope: Scope, receive: Any, send: Any) -> None:
            if scope["type"] not in ("http", "websocket"):
                await app(scope, receive, send)
                return
            settings = registry(datasette).settings
            nonce = secrets.token_urlsafe(16)
            _nonce.set(nonce)

            async def send_secured(message: MutableMapping[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    given, unchanged = message.get("headers", ()), message["status"] == 304
                    headers = secured(given, nonce=nonce, cors=settings.cors, unchanged=unchanged)
                    message = {**message, "headers": headers}
                await send(message)

            refused = refusal(scope, settings.allowed_hosts)
            if refused is None:
                refused = await _answered(app, scope, receive, send_secured)
            if refused is not None:
                await _refuse(scope, send_secured, refused)

        return guarded

    return wrap


async def _answered(app: App, scope: Scope, receive: Any, send: Any) -> Refusal | None:
    """Has a request answered; what to say instead where it cannot be read, None where there is an answer.

    Pages word their own errors. What raises here is what Datasette 0.65 puts in front of them to look for the mark
    of a form: it cannot read one that is not UTF-8, nor, with newer releases of a library of its, one in parts.
    """
    begun = False

    async def sending(message: MutableMapping[str, Any]) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive, sending)
    except Exception:
        kind = next((value for name, value in scope["headers"] if name.lower() == b"content-type"), b"")
        if begun or scope["type"] != "http" or not kind.lower().startswith(FORMS):
            raise
        _log.info("A form could not be read.", exc_info=True)
        return Refusal(400, "This form cannot be read. Send it as application/x-www-form-urlencoded, in UTF-8.")
    return None


async def _refuse(scope: Scope, send: Any, refused: Refusal) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = (refused.reason + "\n").encode("utf-8")
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


class ScriptNonce(Extension):
    """Marks every script tag that stands in a template with the nonce of the answer.

    Works on the template's own text before anything is filled in, so a script tag that comes from
    data is never marked and does not run.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return _SCRIPT_TAG.sub('<script nonce="{{ state_ledger_script_nonce() }}"', source)


@hookimpl
def prepare_jinja2_environment(env: Environment) -> None:
    env.add_extension(ScriptNonce)
    env.globals["state_ledger_script_nonce"] = _nonce.get
