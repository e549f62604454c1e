"""Stored message content <-> what a person reads.

Content is plain text, or a NUL byte followed by `json:` and a JSON value, usually a list of parts
(accounting rule 16). SQLite's own string functions stop at the NUL, so decoding is done here.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from state_ledger.surrogates import scrub

PREFIX = "\x00json:"
"""What structured content begins with."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")

Part = dict[str, Any]


@dataclass(frozen=True)
class Decoded:
    """Content as a person reads it.

    text: parts joined by blank lines, an image as a placeholder with type and size; never a NUL
        from the prefix, never an exception whatever was stored.
    parts: the decoded parts of structured content, None for plain text.
    problem: a sentence when something is wrong with what is stored (broken JSON, bad UTF-8).
    """

    text: str
    parts: list[Part] | None = None
    problem: str | None = field(default=None)


def decode(value: object) -> Decoded:
    """Decodes one stored value: text, bytes that were meant as text, NULL, or a stray number."""
    if value is None:
        return Decoded("")
    problem = None
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        try:
            stored = raw.decode("utf-8")
        except UnicodeDecodeError:
            stored = raw.decode("utf-8", "replace")
            problem = "The stored text is not valid UTF-8; unreadable bytes are shown as �."
    else:
        stored = value if isinstance(value, str) else str(value)
    if not stored.startswith(PREFIX):
        return Decoded(stored, None, problem)
    body = stored[len(PREFIX) :]
    try:
        content = from_json(body, strict=True)
        parts = content if isinstance(content, list) else [content]
        return Decoded("\n\n".join(filter(None, map(_part_text, parts))), [_as_part(p) for p in parts], problem)
    except (ValueError, RecursionError):
        return Decoded(body, None, problem or "The structured content is not valid JSON; it is shown raw.")


def from_json(text: str | bytes, strict: bool = False) -> Any:
    r"""The value of a stored JSON text. Lone surrogates, which JSON spells `\ud83d` and UTF-8 cannot, become U+FFFD.

    strict: without `NaN` and `Infinity`, which Python writes and reads, and no other reader of JSON takes.

    Raises ValueError, RecursionError, and TypeError for what is neither text nor bytes.
    """
    value = json.loads(text, parse_constant=_no_number if strict else None)
    # Python takes the bytes of a surrogate for one, too.
    spelt = not isinstance(text, str) or _SURROGATE_ESCAPE.search(text)
    return _scrub_all(value) if spelt else value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON.")


def unescaped(stored: str) -> str:
    r"""JSON text with `\uXXXX` written out, also where JSON stands within JSON, at any depth."""
    plain = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), stored)
    # Characters beyond the first plane are written as two escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encode(value: object) -> str | int | float | bytes | None:
    """What is stored for a message's content.

    Text, bytes and numbers as they are (SQLite makes text of numbers), anything else as JSON behind
    the prefix, and as `str(value)` if JSON cannot say it. Lone surrogates, which no UTF-8 file can
    hold, become U+FFFD at any depth.
    """
    if value is None or isinstance(value, str):
        return value if value is None else scrub(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (int, float)):
        # SQLite has no integers beyond 64 bits and would make NULL of a NaN.
        fits = -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
        return value if fits else str(value)
    try:
        return PREFIX + json_text(value)
    except (TypeError, ValueError):
        return scrub(str(value))


def restore(stored: object, strict: bool = False) -> Any:
    """A message's content as it was given to `encode`: the opposite of `decode`, which is for reading.

    Text behind the prefix that is not JSON comes back as it is stored, prefix and all, so that
    writing it again stores the same bytes; strict: as in `from_json`, for what other programs read.
    """
    if isinstance(stored, str) and stored.startswith(PREFIX):
        try:
            return from_json(stored[len(PREFIX) :], strict)
        except (ValueError, RecursionError):
            return stored
    return stored


def json_text(value: object, default: Callable[[Any], Any] | None = None) -> str:
    """JSON in the form in which stores hold it, without lone surrogates at any depth.

    Raises TypeError or ValueError for what JSON cannot say, unless `default` makes something of it.
    """
    text = json.dumps(value, default=default)
    if "\\ud" in text:  # a surrogate, most often one of a pair
        text = json.dumps(_scrub_all(json.loads(text)))
    return text


def _scrub_all(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrub_all(item) for item in value]
    if isinstance(value, dict):
        return {scrub(key): _scrub_all(item) for key, item in value.items()}
    return value


def shown(part: Part) -> tuple[str, str]:
    """The type of a decoded part and its text as a person reads it; of an image, a placeholder."""
    return str(part.get("type", "")), _part_text(part)


def _as_part(part: object) -> Part:
    return part if isinstance(part, dict) else {"type": "text", "text": _plain(part)}


def _part_text(part: object) -> str:
    if not isinstance(part, dict):
        return _plain(part)
    kind = str(part.get("type", ""))
    for key in ("text", "input_text", "output_text", "refusal"):
        if isinstance(part.get(key), str):
            return str(part[key])
    if "image" in kind:
        return _image_text(part)
    if "content" in part and isinstance(part["content"], (str, list)):
        inner = part["content"]
        return inner if isinstance(inner, str) else "\n\n".join(filter(None, map(_part_text, inner)))
    return f"[{kind}]" if kind else json.dumps(part, ensure_ascii=False)


def _image_text(part: Part) -> str:
    """A placeholder with type and size, for instance `[image: image/png, 2,048 bytes]`."""
    source: Any = part.get("image_url", part.get("source", part.get("image", "")))
    if isinstance(source, dict):
        media = source.get("media_type")
        data = source.get("url", source.get("data", ""))
        if isinstance(media, str) and isinstance(data, str) and not data.startswith(("data:", "http")):
            return f"[image: {media}, {_base64_size(data):,} bytes]"
        source = data
    if isinstance(source, str) and source.startswith("data:"):
        head, _, data = source[5:].partition(",")
        return f"[image: {head.split(';')[0] or 'unknown type'}, {_base64_size(data):,} bytes]"
    if isinstance(source, str) and source:
        return f"[image: {source}]"
    return "[image]"


def _base64_size(data: str) -> int:
    try:
        return len(base64.b64decode(data, validate=False))
    except (binascii.Error, ValueError):
        return len(data) * 3 // 4


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
