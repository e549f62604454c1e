"""The search page in a real Chromium: results while typing, the keyboard, a phone, no script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.test_browser import LINE, SCHEMES, Visit, browser, visit

pytestmark = pytest.mark.browser

__all__ = ["browser", "visit"]

WIDTHS = {"desk": 1280, "phone": 390}


@pytest.fixture
def address(demo_store: Path, serving: Callable[..., str]) -> str:
    return serving([demo_store])


def query_of(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.className"))


def test_results_come_while_typing_and_the_address_follows(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address)
    page = here.go("/demo/-/search")
    assert focused(page) == "finder"
    loads = page.evaluate("performance.timeOrigin")
    page.keyboard.type("error", delay=20)
    page.wait_for_selector(".hit mark")
    page.wait_for_url("**q=error")
    assert page.locator(".hit mark").first.inner_text().lower() == "error"
    assert page.title().startswith("Search: error")
    page.keyboard.type(" cycle", delay=20)
    page.wait_for_url("**q=error+cycle")
    page.wait_for_function("!document.querySelector('[aria-busy]')")
    assert page.evaluate("performance.timeOrigin") == loads, "the page was not loaded anew"
    page.fill("#finder", "")
    page.wait_for_selector("text=What you can type")
    here.check()
    page.fill("#finder", "error")
    page.wait_for_selector(".hit")
    page.click(".chip >> text=hide tool output")
    page.wait_for_selector(".chip.on")
    page.fill("#finder", "cycle")
    page.wait_for_url("**q=cycle**")
    assert query_of(page) == {"q": ["cycle"], "hide_tools": ["1"]}, "the box keeps the filters"
    page.reload()
    assert page.input_value("#finder") == "cycle"
    here.check()


def test_an_answer_that_a_later_one_has_overtaken_is_cancelled(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address)
    page = here.go("/demo/-/search")
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    held: list[Any] = []
    page.route("**/search?q=the", lambda route: held.append(route))  # not answered until the later one was
    page.fill("#finder", "the")
    page.wait_for_selector("[aria-busy]")
    page.fill("#finder", "zzzz nowhere")
    page.wait_for_selector("text=No message found.")
    assert held
    for route in held:
        route.continue_()
    page.wait_for_timeout(1300)
    assert query_of(page) == {"q": ["zzzz nowhere"]} and page.locator(".hit").count() == 0
    assert [url for url in failed if url.endswith("q=the")]


def test_half_a_syllable_is_not_looked_for(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address)
    page = here.go("/demo/-/search")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    keyboard = page.context.new_cdp_session(page)
    keyboard.send("Input.imeSetComposition", {"text": "qie", "selectionStart": 3, "selectionEnd": 3})
    page.wait_for_timeout(500)
    assert not [url for url in asked if "q=" in url]
    keyboard.send("Input.insertText", {"text": "茄子"})
    page.wait_for_selector(".hit mark >> text=茄子")
    here.check()


def test_the_keyboard_goes_to_the_box_from_hit_to_hit_and_opens_one(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address)
    page = here.go("/demo")
    page.keyboard.press("/")
    assert focused(page) == "finder" and page.input_value("#finder") == ""
    page.keyboard.type("a/b")
    assert page.input_value("#finder") == "a/b", "a slash that is typed is a slash"
    page.fill("#finder", "error")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    page.keyboard.press("/")
    reached = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        assert focused(page) == "hit-link"
        reached.append(page.evaluate("document.activeElement.href"))
        outline = page.evaluate("getComputedStyle(document.activeElement, '::after').outlineStyle")
        assert outline == "solid", "the hit that has the focus is seen"
    hits = page.eval_on_selector_all(".hit-link", "all => all.map(each => each.href)")
    assert reached == [hits[0], hits[1], hits[2], hits[1]]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "finder"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(hits[0])
    here.check()


def test_the_count_that_comes_later_is_filled_in(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address)
    page = here.go("/demo/-/search?q=error")
    whole = page.inner_text("#told strong")

    def not_counted_yet(route: Any) -> None:
        answer = route.fetch()
        later = '<span data-count="/demo/-/search-count.json?q=error">20 shown</span>'
        route.fulfill(response=answer, body=answer.text().replace(whole, later))

    page.route("**/-/search?q=error", not_counted_yet)
    page.goto(page.url)
    page.wait_for_selector(f"#told >> text={whole}")
    assert page.locator("[data-count]").count() == 1
    here.check()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_search_fits_every_screen(width: str, scheme: str, address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address, width=WIDTHS[width], scheme=scheme)
    for title, path in {
        "start": "/demo/-/search",
        "hits": "/demo/-/search?q=error",
        "filtered": "/demo/-/search?q=error&hide_tools=1&source=cli&exclude_source=cron&since=2026-01-01",
        "named": "/demo/-/search?q=the",
        "nothing": "/demo/-/search?q=zzzz+nowhere",
        "hint": "/demo/-/search?q=*",
        "long": "/demo/-/search?q=" + "x" * 400,
        "question": "/demo/search?q=error&limit=5",
    }.items():
        here.go(path)
        here.shoot(f"search-{title}-{WIDTHS[width]}-{scheme}-{LINE}")
        here.check()


def test_everything_works_without_script(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address, scripts=False)
    page = here.go("/demo")
    page.fill("#finder", "error")
    page.press("#finder", "Enter")
    page.wait_for_url("**/demo/-/search?q=error")
    first = page.locator(".hit-link").first.get_attribute("href")
    page.click(".chip >> text=hide tool output")
    page.click(".refine .choices >> text=Oldest first")
    page.wait_for_url("**sort=oldest**")
    assert query_of(page) == {"q": ["error"], "sort": ["oldest"], "hide_tools": ["1"]}
    assert page.locator(".hit-link").first.get_attribute("href") != first
    page.click("summary >> text=More filters")
    page.fill("form.filters input[name=source]", "cli, telegram")
    page.click("button >> text=Apply")
    page.wait_for_selector(".chip.on >> text=source: telegram")
    page.click(".chip.on >> text=source: telegram")
    page.wait_for_url("**source=cli**")
    assert query_of(page)["source"] == ["cli"] and query_of(page)["sort"] == ["oldest"]
    page.locator(".hit-link").first.click()
    page.wait_for_url("**/demo/-/session/*message=*")


def test_the_stock_page_of_a_store_has_a_box_too(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address, width=390)
    page = here.go("/demo/-/tables")
    page.fill(".ledger-search input[name=q]", "error")
    page.click(".ledger-search input[type=submit]")
    page.wait_for_url("**/demo/-/search?q=error")
    assert page.locator(".hit").count() > 1
    here.check()
