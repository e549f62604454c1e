"""Whole journeys by the keyboard alone: what is pressed is pressed on what has the focus, which is always seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.test_browser import Visit, browser, visit

pytestmark = pytest.mark.browser

__all__ = ["browser", "visit"]

FOCUSED = """
() => {
  const element = document.activeElement;
  if (!element || element === document.body) return { text: "", tag: "BODY", seen: true, shown: true, place: -1 };
  const outlined = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const seen = outlined(getComputedStyle(element)) || outlined(getComputedStyle(element, "::after"));
  const box = element.getBoundingClientRect();
  const shown = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.height > 0;
  const label = element.labels?.[0]?.textContent ?? "";
  const text = (element.getAttribute("aria-label") || label || element.value || element.textContent).trim();
  return { text, tag: element.tagName, seen, shown, place: [...document.querySelectorAll("*")].indexOf(element) };
}
"""
"""What has the focus: its name, whether its outline can be seen and stands on the screen, its place on the page."""


class Keys:
    """Hands on a keyboard, in front of a page."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, key: str) -> dict[str, Any]:
        """Presses a key; what has the focus then, which is seen."""
        self.page.keyboard.press(key)
        stop: dict[str, Any] = self.page.evaluate(FOCUSED)
        assert stop["seen"] and stop["shown"], f"the focus is not seen: {stop}"
        return stop

    def go_to(self, text: str, tag: str = "", key: str = "Tab", most: int = 140) -> dict[str, Any]:
        """Presses a key until the focus is on what begins with a text."""
        passed = []
        for _ in range(most):
            stop = self.press(key)
            if stop["text"].startswith(text) and tag in ("", stop["tag"]):
                return stop
            passed.append(stop["text"][:25])
        raise AssertionError(f"{text} is not reached: {passed}")

    def follow(self, text: str, address: str, **options: Any) -> None:
        """Goes to a link and presses Enter, which leads to an address."""
        self.go_to(text, "A", **options)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(address)


@pytest.fixture
def here(demo_store: Path, serving: Callable[..., str], visit: Callable[..., Visit]) -> Visit:
    return visit(serving([demo_store]), width=1280)


@pytest.fixture
def keys(here: Visit) -> Keys:
    return Keys(here.page)


def test_every_stop_of_a_page_is_seen_in_the_order_of_the_page_and_none_is_a_trap(here: Visit, keys: Keys) -> None:
    page = here.go("/demo/-/ops?plan=1&idle_days=1")
    stops = [keys.press("Tab")]
    assert stops[0]["text"] == "Skip to the content"
    while (stop := keys.press("Tab"))["tag"] != "BODY":
        stops.append(stop)
        assert len(stops) < 300, "the keyboard comes round"
    places = [stop["place"] for stop in stops]
    assert places == sorted(set(places)), "downwards, and nowhere twice"
    can = "all => all.filter(each => each.tabIndex >= 0 && each.checkVisibility() && each.type !== 'hidden').length"
    reachable = "a[href], button, input, select, textarea, summary, [tabindex]"
    assert len(stops) == page.eval_on_selector_all(reachable, can) > 40
    assert keys.press("Shift+Tab")["place"] == places[-1] and keys.press("Shift+Tab")["place"] == places[-2]
    here.check()


def test_from_the_skip_link_to_cost_to_a_question_to_its_json(here: Visit, keys: Keys) -> None:
    page = here.go("/demo")
    keys.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    assert keys.press("Tab")["text"] == "Live", "what comes next is in the content"
    keys.follow("Cost", "**/demo/-/cost", key="Shift+Tab")
    keys.follow("All time", "**period=all**")
    box = keys.go_to("", "DIV")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region", "a table that scrolls"
    assert box["tag"] == "DIV"
    keys.follow("Question", "**/demo/cost_**")
    keys.go_to("json", "A")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert '"rows"' in page.inner_text("body")


def test_from_words_to_a_hit_to_its_message_to_its_link_and_on_to_the_next(here: Visit, keys: Keys) -> None:
    page = here.go("/demo")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    keys.press("/")
    page.keyboard.type("error")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    found = page.url
    hits = page.eval_on_selector_all(".hit-link", "all => all.map(each => each.href)")
    for number in (0, 1):
        keys.press("/")
        for _ in range(number + 1):
            keys.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(hits[number])
        (message,) = parse_qs(urlsplit(hits[number]).query)["message"]
        keys.press("Tab")
        inside = "id => document.getElementById(id).contains(document.activeElement)"
        assert page.evaluate(inside, f"m{message}"), "the keyboard goes on from the message"
        if number == 0:
            here.go(urlsplit(found).path + "?" + urlsplit(found).query)
    keys.go_to("Copy link", "A")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("document.activeElement.className") == "copy", "the focus stays"
    assert f"message={message}" in page.evaluate("navigator.clipboard.readText()")
    here.check()


def test_a_fold_that_scrolls_is_scrolled_and_closed_again(here: Visit, keys: Keys) -> None:
    page = here.go("/demo/-/search?q=error&role=tool")
    keys.press("ArrowDown") if page.evaluate("document.activeElement.id") == "finder" else keys.press("/")
    keys.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**message=**")
    keys.go_to("", "PRE")
    before = page.evaluate("document.activeElement.scrollTop + document.activeElement.scrollLeft")
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_function(
        "before => document.activeElement.scrollTop + document.activeElement.scrollLeft > before", arg=before
    )
    keys.go_to("", "SUMMARY", key="Shift+Tab")
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.parentElement.open") is False
    assert keys.press("Tab")["tag"] != "PRE", "what is folded away is no stop"


def test_a_plan_is_asked_for_and_its_sessions_are_taken_along(here: Visit, keys: Keys) -> None:
    page = here.go("/demo/-/ops")
    keys.go_to("Idle for days")
    page.keyboard.type("1")
    keys.go_to("More filters", "SUMMARY")
    page.keyboard.press("Space")
    assert keys.press("Tab")["tag"] in ("INPUT", "SELECT"), "what was folded is a stop now"
    keys.go_to("Plan", "BUTTON")
    with page.expect_navigation():
        page.keyboard.press("Space")
    assert parse_qs(urlsplit(page.url).query)["plan"] == ["1"]
    page.wait_for_selector(".sentence")
    keys.go_to("Plan", "BUTTON")
    keys.go_to("CSV", "A")
    with page.expect_download() as taken:
        page.keyboard.press("Enter")
    assert Path(taken.value.path()).read_text(encoding="utf-8").count(",") > 3
    here.check()


def test_a_page_that_renews_itself_is_switched_on_and_off(here: Visit, keys: Keys) -> None:
    page = here.go("/demo")
    keys.go_to("Live", "BUTTON")
    for pressed in ("true", "false"):
        page.keyboard.press("Space")
        assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == pressed
    here.check()


def test_the_list_of_stores_gives_the_focus_back(
    demo_store: Path, small_store: Callable[..., Path], served: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(served([demo_store, small_store("second.db")]), width=390)
    page, keys = here.go("/demo/-/cost"), Keys(here.page)
    keys.go_to("Store:", "SUMMARY")
    page.keyboard.press("Enter")
    assert keys.press("Tab")["text"] == "All stores"
    assert keys.press("Escape")["tag"] == "SUMMARY"
    listed = page.locator(".switcher ul")
    assert not listed.is_visible()
    page.keyboard.press("Enter")
    keys.go_to("Cost", "A")
    assert not listed.is_visible(), "left behind, it covers nothing"
    keys.go_to("Store:", "SUMMARY", key="Shift+Tab")
    page.keyboard.press("Enter")
    keys.follow("second", "**/second")
    here.check()
