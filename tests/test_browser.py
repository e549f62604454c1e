"""The pages in a real Chromium: what a visitor sees, with the keyboard, on a phone, in the dark.

With `STATE_LEDGER_SCREENSHOTS=1` every page is pictured in `screenshots/`. With `STATE_LEDGER_README_IMAGE=1`
the demo's home is written to `docs/images/home.png`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from state_ledger.connection import open_for_reading
from state_ledger.demo import make_demo
from state_ledger.pages.links import Links
from state_ledger.plugins.stores_page import AT_ONCE_BYTES
from state_ledger.sqlite import sqlite3
from tests.conftest import copy_of_shared

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[1]
SCREENSHOTS = ROOT / "screenshots"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is the same Chromium without the windows that nobody sees: a third of the computing."""
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # fmt: skip
"""No name of another host resolves: what a page should not ask for, it does not get either."""
WIDTHS = {"desk": 1440, "phone": 390}
SCHEMES = ("light", "dark")
LINE = version("datasette").split(".")[0]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as runner:
        chromium = runner.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Visit:
    """A page that remembers everything that should not happen on it."""

    def __init__(
        self, browser: Any, address: str, width: int = 1440, scheme: str = "light", scripts: bool = True
    ) -> None:
        self.address = address
        self.trouble: list[str] = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        self.page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.trouble.append(f"script error: {error}"))
        self.page.on("request", self._requested)
        if not scripts:
            return
        self.page.expose_function("reportViolation", lambda said: self.trouble.append(f"policy: {said}"))
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation', event =>"
            " window.reportViolation(`${event.violatedDirective} ${event.blockedURI}`))"
        )

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.trouble.append(f"console {message.type}: {message.text}")

    def _requested(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.address).netloc and not request.url.startswith("data:"):
            self.trouble.append(f"request to {request.url}")

    def go(self, path: str) -> Any:
        answer = self.page.goto(self.address + path)
        assert answer is not None and answer.status == 200, f"{path}: {answer and answer.status}"
        return self.page

    def check(self) -> None:
        """Nothing untoward happened, and the page is no wider than the screen."""
        assert not self.trouble, self.trouble
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{self.page.url} is {wide} px too wide"

    def shoot(self, name: str) -> None:
        """A picture of the whole page for a person to look at, where one asked for pictures."""
        if not os.environ.get("STATE_LEDGER_SCREENSHOTS"):
            return
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def start(address: str, **options: Any) -> Visit:
        visits.append(Visit(browser, address, **options))
        return visits[-1]

    yield start
    for each in visits:
        each.close()


@pytest.fixture(scope="module")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "demo":
        path = tmp_path_factory.mktemp("demo") / "demo.db"
        make_demo(path, now=datetime.now(timezone.utc))
        return path
    return copy_of_shared(f"{request.param}.db", tmp_path_factory.mktemp("shared"))


STORES = pytest.mark.parametrize("store", ["demo", "schema-22", "schema-25"], indirect=True)


@STORES
def test_from_home_to_cost_to_a_question_to_its_json(
    store: Path, serving: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(serving([store]))
    page = here.go("/")
    page.click(f".card h2 a >> text={store.stem}")
    page.wait_for_selector("text=Needs attention")
    here.check()
    page.click("nav >> text=Cost")
    page.wait_for_selector("h1 >> text=Cost")
    page.click(".choices >> text=All time")
    page.wait_for_selector("#cost-table")
    here.check()
    amount = page.inner_text(".headline .amount")
    assert amount.startswith("$") and amount != "$0.00"
    page.click(".provenance >> text=Question")
    page.wait_for_selector("table.rows-and-columns")
    here.shoot(f"question-{store.stem}-{LINE}")
    here.check()
    with page.expect_navigation():
        page.click(".export-links >> text=json")
    assert '"rows"' in page.inner_text("body")
    here.check()


def largest_work(store: Path) -> tuple[str, int]:
    """The first session of the work with most sessions, and a message inside one of its delegates."""
    with closing(open_for_reading(store)) as connection:
        work = connection.execute(
            "SELECT work_id FROM ledger_lineage GROUP BY work_id ORDER BY max(depth) DESC, count(*) DESC LIMIT 1"
        ).fetchone()[0]
        inside = connection.execute(
            "SELECT max(m.id) FROM ledger_messages AS m JOIN ledger_lineage AS l ON l.session_id = m.session_id"
            " WHERE l.work_id = ? AND l.depth = (SELECT max(depth) FROM ledger_lineage WHERE work_id = ?)"
            " AND m.state = 'live'",
            [work, work],
        ).fetchone()[0]
    return work, inside


@pytest.mark.parametrize("store", ["demo", "schema-25"], indirect=True)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", {**WIDTHS, "laptop": 1280})
def test_transcripts_fit_every_screen(
    store: Path, width: str, scheme: str, serving: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(serving([store]), width={**WIDTHS, "laptop": 1280}[width], scheme=scheme)
    at = Links(f"/{store.stem}")
    work, _ = largest_work(store)
    for kind in ("session", "conversation", "work"):
        page = here.go(at.transcript(kind, work, {"inactive": "1"}))
        here.shoot(f"{store.stem}-transcript-{kind}-{width}-{scheme}-{LINE}")
        here.check()
        page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        here.check()
        rows = page.evaluate(
            "[...document.querySelectorAll('.lineage circle')].map((dot, at) => dot.getBoundingClientRect().top"
            " + dot.getBoundingClientRect().height / 2 - [...document.querySelectorAll('.tree .name')][at]"
            ".getBoundingClientRect().top)"
        )
        assert rows and all(abs(row - 23) < 1.5 for row in rows), "each dot stands beside its session"


@pytest.mark.parametrize("store", ["demo"], indirect=True)
def test_a_message_inside_a_folded_delegate_is_shown_where_its_link_leads(
    store: Path, serving: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(serving([store]))
    work, inside = largest_work(store)
    page = here.go(Links("/demo").work(work, {"message": str(inside)}) + f"#m{inside}")
    box = page.locator(f"#m{inside}").bounding_box()
    assert box is not None and 0 <= box["y"] < 900
    here.check()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("a.copy")
    page.wait_for_selector("text=Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith(f"message={inside}#m{inside}") and copied.startswith(here.address)


@pytest.mark.parametrize("store", ["demo"], indirect=True)
def test_a_transcript_is_read_without_script(
    store: Path, serving: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(serving([store]), scripts=False)
    page = here.go("/demo")
    page.locator("section:has(#work) tbody th a").first.click()
    page.wait_for_url("**/demo/-/work/**")
    fold = page.locator("details.call").first
    if fold.count():
        fold.locator("summary").click()
        assert fold.get_attribute("open") is not None
    page.click("a.copy")
    assert "tz=" in page.url


@pytest.mark.parametrize("store", ["demo"], indirect=True)
def test_a_bill_is_pasted_and_compared_without_script(
    store: Path, served: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(served([store]), width=WIDTHS["phone"], scripts=False)
    page = here.go("/demo/-/reconcile")
    page.fill("textarea", "date,model,amount\n2026-11-01,brand-new,1.25\n")
    page.click("form.paste button")
    page.wait_for_selector("#differences")
    assert page.url.endswith("/demo/-/reconcile") and "brand-new" in page.inner_text("[aria-labelledby=differences]")
    here.check()


@STORES
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_every_screen(
    store: Path, width: str, scheme: str, serving: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(serving([store]), width=WIDTHS[width], scheme=scheme)
    name = store.stem
    pages = {
        "stores": "/",
        "home": f"/{name}",
        "cost": f"/{name}/-/cost?period=all",
        "cost-days": f"/{name}/-/cost?period=all&group=day",
        "cost-work": f"/{name}/-/cost?period=all&group=work&limit=20",
        "ops": f"/{name}/-/ops?plan=1&idle_days=1",
        "money": f"/{name}/-/money?period=all",
    }
    for title, path in pages.items():
        page = here.go(path)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground.strip("rgb()").split(","))) < 384) == (scheme == "dark")
        smallest = page.evaluate(
            "Math.min(...[...document.querySelectorAll('svg.chart text')]"
            ".filter(text => text.getBBox().width > 0).map(text => text.getBoundingClientRect().height), 99)"
        )
        assert smallest >= 10, f"{title}: chart text is {smallest} px high"
        here.shoot(f"{name}-{title}-{WIDTHS[width]}-{scheme}-{LINE}")
        here.check()


@pytest.mark.parametrize("store", ["demo"], indirect=True)
def test_everything_works_without_script(store: Path, serving: Callable[..., str], visit: Callable[..., Visit]) -> None:
    here = visit(serving([store]), scripts=False)
    page = here.go("/demo/-/cost?period=90d&group=day")
    tall = max(page.locator("svg.chart a rect[class^='series-']").all(), key=lambda bar: bar.bounding_box()["height"])
    tall.click()
    page.wait_for_url("**/demo/cost_sessions?**")
    assert page.locator("table.rows-and-columns tbody tr").count() >= 1
    page = here.go("/demo/-/cost?period=90d")
    page.click("summary >> text=More filters")
    page.fill("input[name=source]", "telegram")
    page.click("button >> text=Show")
    page.wait_for_url("**source=telegram**")
    assert page.input_value("input[name=source]") == "telegram"
    assert page.locator(".choices [aria-current]").all_inner_texts() == ["Last 90 days", "Model"]


@pytest.mark.parametrize("scripts", [True, False])
def test_the_figures_of_a_large_store_come_after_the_index(
    demo_store: Path, tmp_path: Path, scripts: bool, served: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    path = tmp_path / "large.db"
    shutil.copyfile(demo_store, path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE ballast (filling BLOB)")
        connection.execute("INSERT INTO ballast VALUES (zeroblob(?))", (AT_ONCE_BYTES,))
    connection.close()
    here = visit(served([path]), scripts=scripts)
    page = here.go("/")
    if not scripts:
        assert page.locator(".card .amount").count() == 0
        page.click("text=Add up the last 30 days")
    page.wait_for_selector(".card .amount")
    assert "last activity" in page.inner_text(".card")
    assert page.locator("[data-figures]").count() == 0
    here.check()


@pytest.mark.skipif(not os.environ.get("STATE_LEDGER_README_IMAGE"), reason="only when the README's picture is due")
def test_write_the_picture_of_the_readme(
    served: Callable[..., str],
    visit: Callable[..., Visit],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = tmp_path / ".hermes" / "profiles" / "work" / "state.db"
    make_demo(store, now=datetime.now(timezone.utc))
    monkeypatch.setenv("HOME", str(tmp_path))
    here = visit(served([store]), width=1200)
    page = here.go("/work")
    box = page.locator("section:has(svg.chart-days)").bounding_box()
    target = ROOT / "docs" / "images" / "home.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    height = box["y"] + box["height"] + 18
    page.screenshot(path=target, full_page=True, clip={"x": 0, "y": 0, "width": 1200, "height": height})
    assert target.stat().st_size < 300_000
