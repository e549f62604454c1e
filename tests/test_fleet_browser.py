"""The pages of a fleet in a real Chromium: wide and narrow, light and dark, with scripts and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from state_ledger.plugins.routes import FLEET
from tests import fleet_books
from tests.conftest import STRESS
from tests.fleet_books import needs_engine
from tests.pages_seen import LINE_1, awaited
from tests.test_browser import SCHEMES, WIDTHS, Visit, browser, visit

pytestmark = [pytest.mark.browser, needs_engine]

__all__ = ["browser", "visit"]

PAGES = {"home": "", "cost": "/cost?period=all", "lineage": "/lineage?session=s1", "ops": "/ops"}
LOOKS = [(device, scheme) for device in WIDTHS for scheme in SCHEMES]
USUAL = [("desk", "light"), ("phone", "dark")]


@pytest.fixture(scope="module")
def address(serving: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("fleet")
    settings = folder / "settings.json"
    lake = fleet_books.lake(folder)
    settings.write_text(json.dumps({"plugins": {"state-ledger": {"lake": str(lake), "zone": "UTC"}}}), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        served = serving([], "--config" if LINE_1 else "--metadata", str(settings))
    return awaited(served, f"{FLEET}/hosts")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_screen_and_asks_for_nothing_from_elsewhere(
    address: str, visit: Callable[..., Visit], name: str
) -> None:
    for device, scheme in LOOKS if STRESS else USUAL:
        here = visit(address, width=WIDTHS[device], scheme=scheme)
        page = here.go(FLEET + PAGES[name])
        assert page.locator("h1").count() == 1 and page.locator("table").count() > 0
        here.check()
        here.shoot(f"fleet-{name}-{device}-{scheme}")


def test_without_scripts_a_visitor_narrows_the_fleet_and_goes_on(address: str, visit: Callable[..., Visit]) -> None:
    here = visit(address, width=WIDTHS["phone"], scripts=False)
    page: Any = here.go("/")
    page.click("h2 a")
    page.click("text=Choose hosts and profiles")
    page.fill("input[name=host]", "web-01")
    page.click("form.short button")
    assert "Only host web-01" in page.inner_text(".fleet") and "Stores of web-01" in page.inner_text("main")
    page.click("nav >> text=Lineage")
    assert "host=web-01" in page.url and "Only host web-01" in page.inner_text(".fleet")
    page.fill("input[name=session]", "s1")
    page.click("form:has(input[name=session]) button")
    page.click("text=Its messages")
    assert "host=web-01" in page.url and "the keeper's key" in page.inner_text("#messages + article, .messages")
    here.check()
