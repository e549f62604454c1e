"""Pages that renew themselves, in a real Chromium, while another process writes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger.session_db import SessionDB
from tests.test_browser import Visit, browser, visit

pytestmark = pytest.mark.browser

__all__ = ["browser", "visit"]

ALL = "/-/ledger/all"

SPEND = """
import sys
from state_ledger.session_db import SessionDB
with SessionDB(sys.argv[1]) as db:
    db.append_message("talk", "user", "and more")
    db.update_token_counts("talk", input_tokens=1000, output_tokens=100, model="a-model", estimated_cost_usd=1.25,
                           cost_status="estimated", cost_source="provider", api_call_count=1)
"""
"""Python code: a message and a call of 1.25 dollars in the store argv[1]."""


def spend(path: Path) -> None:
    subprocess.run([sys.executable, "-c", SPEND, str(path)], check=True, timeout=60)


def polls(page: Any) -> list[int]:
    """The status of every look for changes from now on."""
    seen: list[int] = []
    page.on("response", lambda answer: seen.append(answer.status) if answer.url.endswith("live.json") else None)
    return seen


def await_polls(page: Any, seen: list[int], count: int) -> None:
    while len(seen) < count:
        with page.expect_response("**/live.json"):
            pass


def test_a_page_shows_what_is_written_while_it_is_looked_at_and_asks_for_nothing_else(
    tmp_path: Path, served: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    paths = [tmp_path / "profiles" / name / "state.db" for name in ("work", "home")]
    for path in paths:
        path.parent.mkdir(parents=True)
        with SessionDB(path) as db:
            db.create_session("talk" if path == paths[0] else "other", "cli", model="a-model")
            db.append_message("talk" if path == paths[0] else "other", "user", "hello")
    spend(paths[0])
    here = visit(served(paths))
    page = here.go("/work")
    assert page.inner_text(".headline .amount >> nth=0") == "$1.25"
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    button = page.locator("[data-live] button")
    assert button.get_attribute("aria-pressed") == "false" and requests == [], "off until it is pressed"
    page.click("summary >> text=The same figures as a table")
    page.evaluate("window.scrollTo(0, 300)")
    seen = polls(page)
    button.focus()
    page.keyboard.press("Enter")
    await_polls(page, seen, 2)
    assert set(seen) == {304} and {url.rpartition("/")[2] for url in requests} == {"live.json"}
    place = page.evaluate("window.scrollY")
    spend(paths[0])
    page.wait_for_selector(".headline .amount >> text=$2.50")
    page.wait_for_selector("[data-live] [role=status] >> text=Renewed at")
    assert page.evaluate("document.activeElement.textContent") == "Live", "the focus stays"
    assert page.evaluate("window.scrollY") == place
    assert page.locator("details.more[open]").count() == 1, "what was opened stays open"
    assert page.locator("#daily-table").is_visible() and "$2.50" in page.inner_text("section:has(#daily-table)")
    here.check()

    page.clock.install()
    page = here.go(f"{ALL}/cost?period=all")
    assert button.get_attribute("aria-pressed") == "true", "remembered"
    assert page.inner_text(".headline .amount") == "$2.50"
    spend(paths[0])
    page.wait_for_selector(".headline .amount >> text=$3.75")
    here.check()
    button.click()
    asked = len(seen)
    page.clock.fast_forward(20_000)
    assert len(seen) == asked, "switched off, it asks no more"
    page = here.go(ALL)
    assert button.get_attribute("aria-pressed") == "false"
    page.set_viewport_size({"width": 390, "height": 800})
    for path in (ALL, f"{ALL}/cost", f"{ALL}/cache", f"{ALL}/search?q=hello", f"{ALL}/recent_sessions", "/"):
        here.go(path)
        here.check()


def test_without_script_there_is_no_switch_and_the_page_is_whole(
    tmp_path: Path, served: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("talk", "cli")
    here = visit(served([path]), scripts=False)
    page = here.go(ALL)
    assert page.locator("[data-live] button").is_hidden()
    assert page.locator("h1").inner_text() == "All stores"
