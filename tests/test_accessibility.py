"""Every page with axe-core, in light and dark, at every width, with a reader's own spacing, without movement; and
whole journeys by the keyboard alone.

The pages are looked at one after the other in one browser. `STATE_LEDGER_STRESS=1` looks at all of them in both
schemes and at every width; otherwise one of each kind is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests import axe
from tests.conftest import EXAMPLES_DIVISOR, STRESS, fetch
from tests.fleet_books import HAS_ENGINE
from tests.pages_seen import LAID_OUT, OWN, SPACED, STOCK, Seen, Site, site
from tests.pressing import Keys
from tests.test_browser import Visit, browser, visit

pytestmark = pytest.mark.browser

__all__ = ["browser", "visit"]

WIDTHS = (640, 390, 320) if STRESS else (640, 320)
"""CSS pixels: a screen of 1280 at 200 %, a phone, and the least that a page has to bear (WCAG 2, 1.4.10)."""
IN_DARK = ("home", "cost-wrong", "ops", "search-hits", "work")
"""What is looked at in the dark, too: between them they have every kind of text. Datasette's own have no dark."""
USUAL = ("index", "home", "cost", "cost-wrong", "money", "reconcile", "ops", "search", "search-hits", "search-nothing",
         "work", "session-missing", "export", "all-question", "fleet", "fleet-ops", "fleet-session")  # fmt: skip
USUAL_STOCK = ("tables", "question", "table", "messages", "row", "sql", "error-404", "error-503")
"""A page of each template, and each that has something which no other has."""
SECOND_LINE = EXAMPLES_DIVISOR > 1 and not STRESS
"""Whether another Datasette is under the same pages: its own are looked at, ours do not differ."""
NAMES = (*OWN, *STOCK) if STRESS else USUAL_STOCK if SECOND_LINE else (*USUAL, *USUAL_STOCK)
ours = pytest.mark.skipif(SECOND_LINE, reason="ours alone, which a second line of Datasette does not change")
ALLOWED: dict[str, str] = {}
"""Rules of axe-core that a page may break, with the reason. There is none."""

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
         "rules": {"target-size": {"enabled": True}}, "resultTypes": ["violations"]}  # fmt: skip
CONTRAST = {"runOnly": ["color-contrast", "link-in-text-block"], "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def looker() -> str:
    try:
        return axe.script()
    except axe.Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def served_site(
    serving: Callable[..., str], demo_store: Path, tmp_path_factory: pytest.TempPathFactory
) -> Site:
    return site(serving, demo_store, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def window(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 1024}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def opened(page: Any, here: Site, seen: Seen) -> None:
    """Goes to a page and opens every fold of it but the list of stores, which would cover it."""
    if seen.status == 503:
        here.breaks.with_suffix(".zeros").write_bytes(bytes(10_000))
        here.breaks.with_suffix(".zeros").replace(here.breaks)
        while fetch(here.address + seen.path)[0] == 200:  # until the server has seen it
            pass
    answer = page.goto(here.address + seen.path)
    assert answer.status == seen.status, (seen.path, answer.status)
    page.evaluate("document.querySelectorAll('details:not(.switcher)').forEach(fold => { fold.open = true })")


def broken(page: Any, rules: dict[str, Any]) -> list[str]:
    """What axe-core finds: a line for each rule, with the first places that break it."""
    found = page.evaluate("rules => axe.run(document, rules)", rules)["violations"]
    return [
        f"{rule['impact']}: {rule['id']} at {[node['target'][0] for node in rule['nodes']][:4]}"
        for rule in found
        if rule["id"] not in ALLOWED
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_used_by_everybody(name: str, looker: str, served_site: Site, window: Any) -> None:
    if name.startswith("fleet") and not HAS_ENGINE:
        pytest.skip("pyarrow, duckdb or sqlglot is not installed")
    seen = served_site.pages[name]
    opened(window, served_site, seen)
    window.evaluate(looker)
    found = broken(window, RULES)
    if STRESS or name in IN_DARK:
        window.emulate_media(color_scheme="dark")
        found += [f"dark, {line}" for line in broken(window, CONTRAST)]
        window.emulate_media(color_scheme="light")
    for width in WIDTHS:
        window.set_viewport_size({"width": width, "height": 512})
        found += [f"at {width} px, {line}" for line in window.evaluate(LAID_OUT)]
    window.evaluate(SPACED)
    found += [f"spaced, {line}" for line in window.evaluate(LAID_OUT)]
    window.set_viewport_size({"width": 1280, "height": 1024})
    assert not found, "\n".join([seen.path, *found])


@ours
def test_every_section_of_the_navigation_is_looked_at(served_site: Site, window: Any) -> None:
    paths = {seen.path.partition("?")[0] for seen in served_site.pages.values()}
    for path in ("/", "/demo", "/-/ledger/all", *(["/-/ledger/fleet"] if HAS_ENGINE else [])):
        window.goto(served_site.address + path)
        links = window.eval_on_selector_all(
            "header a, footer a, .page-head a", "all => all.map(link => new URL(link.href).pathname)"
        )
        assert set(links) - paths - {"/family", "/closed", "/breaks"} == set(), path


@ours
def test_what_is_chosen_is_told_from_what_is_not_in_the_colours_of_the_system(served_site: Site, window: Any) -> None:
    window.emulate_media(forced_colors="active")
    opened(window, served_site, served_site.pages["cost"])
    ground = "getComputedStyle({}).backgroundColor"
    chosen = window.evaluate(ground.format("document.querySelector('.choices [aria-current]')"))
    other = window.evaluate(ground.format("document.querySelector('.choices a:not([aria-current])')"))
    assert chosen != other
    words = "[...document.querySelectorAll('.chart text')].map(text => getComputedStyle(text).fill)"
    assert set(window.evaluate(words)) == {window.evaluate("getComputedStyle(document.body).color")}
    window.emulate_media(forced_colors="none")


@ours
def test_a_transcript_on_paper_has_its_messages_and_no_controls(served_site: Site, window: Any) -> None:
    opened(window, served_site, served_site.pages["work"])
    window.emulate_media(media="print")
    shown = "all => all.filter(each => each.checkVisibility()).length"
    assert window.eval_on_selector_all(".message, .result", shown) == window.locator(".message, .result").count() > 10
    assert window.eval_on_selector_all(".masthead, .pager, .skip, .choices", shown) == 0
    window.emulate_media(media="screen")


@ours
def test_words_of_a_message_are_in_the_ink_of_the_page(served_site: Site, window: Any) -> None:
    """Its states are classes, too, and one of them was once also that of a button."""
    opened(window, served_site, served_site.pages["work"])
    said = "[...document.querySelectorAll('.message .ledger-markdown > p')].map(text => getComputedStyle(text).color)"
    assert set(window.evaluate(said)) == {window.evaluate("getComputedStyle(document.body).color")}


@pytest.mark.parametrize("sheet", ["ledger.css", "transcript.css", "export.css"])
def test_what_moves_does_so_only_for_who_lets_it(sheet: str) -> None:
    from state_ledger.assets import folder

    css = (folder("static") / sheet).read_text(encoding="utf-8")
    assert not re.findall(r"transition|animation|scroll-behavior", css), "or it stands in a rule for no-preference"


# -- by the keyboard alone --------------------------------------------------------------------------------


@pytest.fixture
def here(served_site: Site, visit: Callable[..., Visit]) -> Visit:
    return visit(served_site.address, width=1280)


@pytest.fixture
def keys(here: Visit) -> Keys:
    return Keys(here.page)


@ours
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
    page.wait_for_function("scrollY > 0")
    # What a script would do once the address has changed is done after two frames.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    top = page.evaluate("document.getElementById('content').getBoundingClientRect().top")
    assert 0 <= top < 50, "the content begins at the top"
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


@ours
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


@ours
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


@ours
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


@ours
def test_a_page_that_renews_itself_is_switched_on_and_off(here: Visit, keys: Keys) -> None:
    page = here.go("/demo")
    keys.go_to("Live", "BUTTON")
    for pressed in ("true", "false"):
        page.keyboard.press("Space")
        assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == pressed
    here.check()


@ours
def test_the_list_of_stores_gives_the_focus_back(here: Visit, keys: Keys) -> None:
    page = here.go("/demo/-/cost")
    page.set_viewport_size({"width": 390, "height": 900})
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
    keys.follow("family", "**/family")
    here.check()
