"""Markdown that strangers wrote, as HTML that can do no harm and takes no long time.

What comes out passes an allow-list: no images, no links but http, https and mailto, no attributes. Text
with so many marks that rendering it could take seconds is not rendered.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from html import escape
from typing import Any

from bleach.html5lib_shim import Filter
from bleach.linkifier import LinkifyFilter
from bleach.sanitizer import Cleaner
from markdown import markdown as to_html

EXTENSIONS = ["fenced_code", "tables"]
TAGS = frozenset(
    {
        "a", "abbr", "acronym", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6",
        "hr", "i", "li", "ol", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
    }
)  # fmt: skip
"""Every element that can come out of Markdown; the language of a block of code comes as `small`."""

MARKER_LIMITS: Mapping[str, int] = {
    "<": 200, ">": 600, "`": 600, "(": 1000, "=": 1000, "|": 1500, "\n": 1500,
}  # fmt: skip
"""How often a character may occur in text that is rendered. Beside `[`, whose limit is a setting, these
are the ones whose cost grows with the square of their number: 20,000 `(` or `<a ` took 4 to 6 s."""

RUN_LIMITS: Mapping[str, int] = {"*": 1000, "_": 1500}
"""How many runs of a mark of emphasis may occur; one run is cheap whatever its length. Each run may be
an element, at 50 to 120 µs: 20,000 characters of `***a` or `_a__*` took 0.4 to 1 s."""

CACHE_BYTES = 16_000_000
"""How much rendered text is kept; the least recently used goes first."""

_LINK_TARGET = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)
_LANGUAGE = re.compile(r"language-([A-Za-z0-9][\w+#.-]{0,29})", re.ASCII)
_LONG = re.compile(r"[^\s<>]{1000}")
_TAG = re.compile(r"(<[^<>]*>)")
_UNBROKEN = re.compile(r"[^\s<>&;]{200}(?=[^\s<>&;])")
_HEADING = re.compile(r"<(/?)h([1-6])>")


def too_costly(text: str, max_brackets: int) -> bool:
    """Whether text has so many Markdown marks that rendering it could take seconds."""
    return (
        text.count("[") > max_brackets
        or any(text.count(marker) > limit for marker, limit in MARKER_LIMITS.items())
        or any(len(re.findall(rf"\{marker}+", text)) > limit for marker, limit in RUN_LIMITS.items())
    )


def render(text: str, *, max_brackets: int) -> str | None:
    """Text as allow-listed HTML; None where it takes too long or is nested too deeply."""
    if too_costly(text, max_brackets):
        return None
    try:
        return str(_cleaner().clean(to_html(text, output_format="html", extensions=EXTENSIONS)))
    except RecursionError:  # deeply nested quotes and lists
        return None


def plain(text: str) -> str:
    """Text as it is, wrapped to the width it stands in."""
    return f'<pre class="ledger-plain">{escape(text)}</pre>'


def lowered(html: str, under: int) -> str:
    """Rendered HTML as part of a page, under a heading of a level: its headings are one and two levels lower.

    The first is one lower, whatever it was, so that no level of the page is left out.
    """
    first: list[int] = []

    def level(found: re.Match[str]) -> str:
        was = int(found[2])
        first.append(was)
        return f"<{found[1]}h{min(6, under + (1 if was <= first[0] else 2))}>"

    return _HEADING.sub(level, html)


def softened(html: str) -> str:
    """Rendered HTML whose endless words may be broken: laying out one of 20,000 letters takes seconds."""
    if _LONG.search(html) is None:
        return html
    parts = _TAG.split(html)
    return "".join(part if at % 2 else _UNBROKEN.sub(r"\g<0><wbr>", part) for at, part in enumerate(parts))


class Cache:
    """Rendered text by the hash of what was rendered; may be used by several threads."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._kept: OrderedDict[bytes, str | None] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._kept.clear()
            self.bytes = 0

    def find(self, text: str, *, max_brackets: int) -> tuple[bool, str | None]:
        """Whether this text was rendered before, and what came of it."""
        key = _key(text, max_brackets)
        with self._lock:
            if key not in self._kept:
                return False, None
            self._kept.move_to_end(key)
            return True, self._kept[key]

    def render(self, text: str, *, max_brackets: int) -> str | None:
        """As the function `render`, the second time from memory."""
        known, html = self.find(text, max_brackets=max_brackets)
        if known:
            return html
        html = render(text, max_brackets=max_brackets)
        with self._lock:
            key = _key(text, max_brackets)
            if key not in self._kept:
                self.bytes += _size(html)
            self._kept[key] = html
            while self.bytes > self.most_bytes and self._kept:
                self.bytes -= _size(self._kept.popitem(last=False)[1])
        return html


CACHE = Cache()
"""What the pages of this process share."""


class Page:
    """Renders the texts of one page, for so long as it may take; after that, as they are.

    spent_s: seconds of processor time spent so far. unrendered: texts for which there was no time left.
    """

    def __init__(self, *, max_brackets: int, budget_s: float, cache: Cache = CACHE) -> None:
        self.max_brackets = max_brackets
        self.budget_s = budget_s
        self.cache = cache
        self.spent_s = 0.0
        self.unrendered = 0

    def __call__(self, text: str) -> str:
        """A text as HTML, always harmless."""
        known, html = self.cache.find(text, max_brackets=self.max_brackets)
        if not known and self.spent_s > self.budget_s:
            self.unrendered += 1
        elif not known:
            # Processor time: a page must not come out otherwise because the machine does something else.
            began = time.thread_time()
            html = self.cache.render(text, max_brackets=self.max_brackets)
            self.spent_s += time.thread_time() - began
        return plain(text) if html is None else html


def _key(text: str, max_brackets: int) -> bytes:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20)
    return digest.digest() + max_brackets.to_bytes(4, "big")


def _size(html: str | None) -> int:
    # An entry itself takes some 200 bytes.
    return 200 + (4 if html and not html.isascii() else 1) * len(html or "")


class _Tame(Filter):  # type: ignore[misc]
    """An image becomes its description; a link that may lead nowhere is no link, another tells its target
    nothing; code says its language."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        links: list[bool] = []
        for token in Filter.__iter__(self):
            name, data = token.get("name"), token.get("data")
            if name == "img":
                alt = data.get((None, "alt"), "") if isinstance(data, dict) else ""
                yield {"type": "Characters", "data": f"[image: {alt}]" if alt else "[image]"}
                continue
            if name == "code" and token["type"] == "StartTag" and data:
                language = _LANGUAGE.fullmatch(data.pop((None, "class"), ""))
                if language:
                    yield {"type": "StartTag", "name": "small", "namespace": None, "data": {}}
                    yield {"type": "Characters", "data": language[1]}
                    yield {"type": "EndTag", "name": "small", "namespace": None, "data": {}}
            if name == "a" and token["type"] == "StartTag":
                links.append((None, "href") in data)
                if not links[-1]:
                    continue
                data[(None, "rel")] = "nofollow noopener noreferrer"
            if name == "a" and token["type"] == "EndTag" and links and not links.pop():
                continue
            yield token


def _cleaner() -> Cleaner:
    # Not kept between calls: a Cleaner holds its parser's state.
    return Cleaner(
        tags=TAGS | {"img"},
        attributes=_may_keep,
        protocols={"http", "https", "mailto"},
        filters=[partial(LinkifyFilter, callbacks=[_written_out], skip_tags={"pre"}), _Tame],
    )


def _written_out(attributes: dict[Any, str], new: bool = False) -> dict[Any, str] | None:
    """Makes a link of a whole address in text, and none of a word with a dot: main.py, README.md."""
    return None if new and _LINK_TARGET.match(attributes["_text"]) is None else attributes


def _may_keep(tag: str, name: str, value: str) -> bool:
    if tag == "a" and name == "href":
        # Bleach lets addresses without a scheme pass, which would lead into this instance.
        return _LINK_TARGET.match(value) is not None
    if tag == "code" and name == "class":
        return _LANGUAGE.fullmatch(value) is not None
    return tag == "img" and name == "alt"
