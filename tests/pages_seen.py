"""Every page that a visitor can come to, on one server, and what a script can see of how it is laid out."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from state_ledger.pages.links import AllLinks, FleetLinks, Links
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests import books, fleet_books
from tests.conftest import fetch
from tests.test_browser import largest_work
from tests.test_transcript_messages import family_rows

LINE_1 = version("datasette").startswith("1.")
BOOKS, FAMILY, ALL = Links("/demo"), Links("/family"), AllLinks("/-/ledger/all")
FLEET = FleetLinks("/-/ledger/fleet")


class Seen(NamedTuple):
    """A page: its address on the server, the status it answers with, whether its template is Datasette's own."""

    path: str
    status: int = 200
    stock: bool = False


class Site(NamedTuple):
    """A server and the pages on it by name; `breaks` is the store whose page answers 503 once it is broken."""

    address: str
    breaks: Path
    pages: dict[str, Seen]


OWN = (
    "index", "home", "home-empty", "cost", "cost-days", "cost-why", "cost-wrong", "cost-empty", "money", "money-empty",
    "reconcile", "ops", "ops-checked", "ops-empty", "search", "search-hits", "search-filtered", "search-nothing",
    "search-hint", "session", "conversation", "work", "delegates", "session-missing", "export", "export-session",
    "export-missing", "all", "all-cost", "all-cache", "all-search", "all-question", "all-missing",
    "fleet", "fleet-host", "fleet-cost", "fleet-cache", "fleet-lineage", "fleet-ops", "fleet-session", "fleet-unread",
    "fleet-question", "fleet-search", "fleet-missing",
)  # fmt: skip
STOCK = ("datasette", "tables", "question", "question-shown", "table", "messages", "row", "sql", "other",
         "error-400", "error-403", "error-404", "error-503")  # fmt: skip
"""The names, which are the same in every process of a run; `pages` gives each its address."""


def pages(demo: Path) -> dict[str, Seen]:
    """Every page by name; `demo` is the demo store."""
    work, _inside = largest_work(demo)
    with sqlite3.connect(f"file:{demo}?mode=ro", uri=True) as connection:
        longest = "SELECT session_id FROM messages GROUP BY 1 ORDER BY count(*) DESC"
        long = str(connection.execute(longest).fetchone()[0])
        day = "SELECT date(max(timestamp), 'unixepoch'), date(max(timestamp), 'unixepoch', '-60 days') FROM messages"
        last, first = connection.execute(day).fetchone()
    connection.close()
    why = {"since": last, "until": last, "why": "1"}
    own_sql = "/demo/-/query?sql=select+1+as+one" if LINE_1 else "/demo?sql=select+1+as+one"
    return {
        "index": Seen("/"),
        "home": Seen(BOOKS.home),
        "home-empty": Seen("/empty"),
        "cost": Seen(BOOKS.cost({"since": first, "until": last})),
        "cost-days": Seen(BOOKS.cost({"since": first, "until": last, "group": "day"})),
        "cost-why": Seen(BOOKS.cost(why)),
        "cost-wrong": Seen(BOOKS.cost({"since": "yesterday"}), 400),
        "cost-empty": Seen("/empty/-/cost"),
        "money": Seen(BOOKS.money({"since": first, "until": last})),
        "money-empty": Seen("/empty/-/money"),
        "reconcile": Seen(BOOKS.reconcile),
        "ops": Seen(BOOKS.ops({"plan": "1", "idle_days": "1"})),
        "ops-checked": Seen(BOOKS.ops({"check": "full"})),
        "ops-empty": Seen("/empty/-/ops"),
        "search": Seen(BOOKS.search()),
        "search-hits": Seen(BOOKS.search({"q": "error"})),
        "search-filtered": Seen(BOOKS.search({"q": "error", "hide_tools": "1", "source": "cli", "role": "tool"})),
        "search-nothing": Seen(BOOKS.search({"q": "zzzz nowhere"})),
        "search-hint": Seen(BOOKS.search({"q": "*"})),
        "session": Seen(BOOKS.session(long, {"inactive": "1", "why": "1", "size": "20"})),
        "conversation": Seen(BOOKS.conversation(work, {"size": "20"})),
        "work": Seen(BOOKS.work(work, {"inactive": "1", "size": "20"})),
        "delegates": Seen(FAMILY.work("r1")),
        "session-missing": Seen(BOOKS.session("nobody"), 404),
        "export": Seen(BOOKS.export_page({})),
        "export-session": Seen(BOOKS.export_page({"session": long})),
        "export-missing": Seen(BOOKS.export_page({"session": "nobody"}), 404),
        "all": Seen(ALL.home),
        "all-cost": Seen(ALL.cost()),
        "all-cache": Seen(ALL.cache),
        "all-search": Seen(ALL.search({"q": "error"})),
        "all-question": Seen(ALL.query("recent_sessions", {"limit": "5"})),
        "all-missing": Seen(ALL.session("nobody"), 404),
        "fleet": Seen(FLEET.home),
        "fleet-host": Seen(f"{FLEET.home}?host=web-01"),
        "fleet-cost": Seen(FLEET.cost({"period": "all"})),
        "fleet-cache": Seen(FLEET.cache),
        "fleet-lineage": Seen(FLEET.lineage("s1")),
        "fleet-ops": Seen(FLEET.ops()),
        "fleet-session": Seen(FLEET.session("s1")),
        "fleet-unread": Seen(FLEET.session("c1")),
        "fleet-question": Seen(FLEET.query("hosts")),
        "fleet-search": Seen(FLEET.search({"q": "keeper"})),
        "fleet-missing": Seen(f"{FLEET.home}?host=nowhere", 400),
        "datasette": Seen("/-/datasette", stock=True),
        "tables": Seen(BOOKS.plain, stock=True),
        "question": Seen(BOOKS.query("cost_per_day", {"limit": "5"}), stock=True),
        "question-shown": Seen(BOOKS.query("search", {"q": "error", "limit": "3", "_show_sql": "1"}), stock=True),
        "table": Seen("/demo/sessions?_size=5&source__contains=c&_sort=source", stock=True),
        "messages": Seen("/demo/messages?_size=5&_facet=role", stock=True),
        "row": Seen(BOOKS.row("sessions", long), stock=True),
        "sql": Seen(own_sql, stock=True),
        "other": Seen("/other/things", stock=True),
        "error-400": Seen(BOOKS.query("cost_per_day", {"since": "yesterday"}), 400, stock=True),
        "error-403": Seen("/closed", 403, stock=True),
        "error-404": Seen("/nowhere", 404, stock=True),
        "error-503": Seen("/breaks/sessions", 503, stock=True),
    }


NO_PAGES = (
    r"\.json$", r"(?P<format>json))?$", r"\.csv$", r"\.(?P<format>[a-z]+)$", "/metrics$", "/-/card$", "/-/find$",
)  # fmt: skip
"""How the routes end that answer with something other than a page: data, files, a piece of a page, the way to one."""
OTHER_ADDRESSES = {r"/-/stores$", r"/(?P<database>[^/.]+)/-/home$"}
"""The routes behind the addresses / and /NAME."""


def site(serve: Callable[..., str], demo: Path, folder: Path) -> Site:
    """Starts a server with the demo, a family of sessions, and what makes every kind of error."""
    made = {name: folder / f"{name}.db" for name in ("family", "empty", "closed", "breaks", "other")}
    books.write(made["family"], **family_rows())
    for name in ("closed", "breaks"):
        shutil.copyfile(made["family"], made[name])
    with SessionDB(made["empty"]):
        pass
    with sqlite3.connect(made["other"]) as connection:
        connection.execute("CREATE TABLE things (name, size)")
        connection.execute("INSERT INTO things VALUES ('a', 1)")
    connection.close()
    rules = folder / "rules.json"
    given: dict[str, Any] = {"databases": {"closed": {"allow": False}}}
    if fleet_books.HAS_ENGINE:
        given["plugins"] = {"state-ledger": {"lake": str(fleet_books.lake(folder / "fleet"))}}
    rules.write_text(json.dumps(given), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        address = serve([demo, *made.values()], "--config" if LINE_1 else "--metadata", str(rules))
    if fleet_books.HAS_ENGINE:
        awaited(address, FLEET.query("hosts"))
    return Site(address, made["breaks"], pages(demo))


def awaited(address: str, path: str) -> str:
    """The address of a server once a page of its fleet can be shown: the books are read in the background."""
    deadline = time.monotonic() + 120
    while fetch(f"{address}{path}")[0] == 503:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return address


LAID_OUT = """
() => {
  const wide = document.documentElement.clientWidth, found = [], said = (what, element) =>
    found.push(`${what}: ${element.tagName.toLowerCase()}.${element.getAttribute("class") || ""} ` +
               `${JSON.stringify((element.textContent || "").trim().slice(0, 40))}`);
  if (document.documentElement.scrollWidth > wide) found.push(`the page is ${document.documentElement.scrollWidth} px`);
  const walk = (element, left, right) => {
    if (element.classList.contains("visually-hidden") || element.classList.contains("skip")) return;
    const style = getComputedStyle(element);
    if (style.display === "none") return;
    if (parseFloat(style.transitionDuration) > 0 || style.animationName !== "none") said("moves", element);
    const box = element.getBoundingClientRect(), out = style.position === "absolute" || style.position === "fixed";
    if (box.width > 0 && box.height > 0 && !out) {
      if (box.left < left - 1) return said("cut off on the left", element);
      if (box.right > right + 1) return said("cut off on the right", element);
    }
    if (out) return;
    const cut = style.overflowY === "hidden" && element.scrollHeight > element.clientHeight + 2;
    if (cut && style.maxHeight === "none" && element.childElementCount === 0) said("cut off below", element);
    if (element instanceof SVGElement) return;
    const scrolls = style.overflowX !== "visible";
    for (const child of element.children)
      walk(child, scrolls ? box.left : left, scrolls ? Infinity : right);
  };
  walk(document.body, 0, wide);
  return found;
}
"""
"""What on a page cannot be reached by reading it downwards: to the left of where scrolling begins, to the right
of a page that does not scroll there, or below the edge of a box; and what moves."""

SPACED = """
() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important } p { margin-bottom: 2em !important }`);
  document.adoptedStyleSheets = [sheet];
}
"""
"""The spacing that a reader may set without losing anything (WCAG 2, 1.4.12)."""
