"""What every page of ours promises, checked on its HTML."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

OUR_SCRIPT = re.compile(r"/-/state-ledger/static/[0-9a-f]{12}/\w+\.js$")
VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """The tags of a page in order; raises if they do not nest (SVG included)."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def hrefs(self, part: str = "") -> list[str]:
        return [a["href"] for a in self.all("a") if part in a.get("href", "")]


def check(html: str) -> Page:
    """Well-formed, accessible, nothing inline, nothing from elsewhere."""
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag not in ("style", "iframe", "object", "img"), tag
        if tag == "script":  # one file of ours; what stands between its tags would be read as words
            assert OUR_SCRIPT.search(attributes["src"]) and attributes.keys() <= {"src", "defer", "nonce"}, attributes
        assert "style" not in attributes and not any(name.startswith("on") for name in attributes), attributes
        for name in ("href", "src", "action"):
            assert not re.match(r"(?i)\s*(javascript|data|https?|//)", attributes.get(name, "")), attributes
    assert len(page.all("script")) <= 1
    ids = Counter(a["id"] for _, a in page.tags if "id" in a)
    assert not [name for name, count in ids.items() if count > 1], "ids are unique"
    for _, attributes in page.tags:
        for name in attributes.get("aria-labelledby", "").split():
            assert name in ids, f"{name} labels something and is not there"
    assert page.all("html")[0].get("lang") == "en"
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("footer")) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in zip([0, *levels], levels, strict=False)), levels
    assert page.hrefs()[0] == "#content", "the skip link comes first"
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(th.get("scope") in ("col", "row") for th in page.all("th"))
    return page


def exact_amount(html: str) -> float:
    """The headline's amount with all its digits, from its title; 0.0 where it is a word for nothing."""
    match = re.search(r'class="amount[^"]*" title="([^"]*)"', html)
    assert match, "a headline amount"
    digits = match.group(1).replace("$", "").replace(",", "")
    return 0.0 if digits == "unknown" else float(digits)
