"""README and docs say what there is: every verb and option, query and column, address, setting, variable; and links
lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger.cli import documentation as command_line
from state_ledger.questions import documentation as queries

CHECKOUT = Path(__file__).resolve().parents[1]
DOCS = CHECKOUT / "docs"
PAGES = sorted([CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "CHANGELOG.md", *DOCS.glob("*.md")])


@pytest.mark.parametrize(("name", "made"), [("command-line", command_line), ("queries", queries)])
def test_a_page_that_is_made_is_as_it_would_be_made_now(name: str, made: Any) -> None:
    page = DOCS / f"{name}.md"
    assert page.read_text("utf-8") == made.render(), f"run: python -m {made.__name__} > docs/{name}.md"


async def test_every_route_is_documented(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    """An address of the table fits a pattern when its placeholders are filled in; each pattern needs one."""
    datasette = await make_datasette(demo_store)
    written = re.findall(r"`(/[^`]*)`", (DOCS / "addresses.md").read_text("utf-8"))
    filled = {"store": "demo", "id": "s1", "query": "cost_per_day", "scope": "session", "format": "csv",
              "version": "0a", "file": "ledger.css"}  # fmt: skip
    addresses = [re.sub(r"<(\w+)>", lambda found: filled.get(found[1], "x"), each) for each in written]
    ours = [
        pattern
        for pattern, view in datasette._routes()
        if "state_ledger" in str(getattr(view, "__module__", "")) or "/-/export" in pattern.pattern
    ]
    assert len(ours) > 25
    assert [each.pattern for each in ours if not any(each.match(address) for address in addresses)] == []


def test_every_variable_of_the_environment_is_documented() -> None:
    sources = [*(CHECKOUT / "state_ledger").rglob("*.py"), *(CHECKOUT / "plugins").glob("*.py")]
    pattern = re.compile(r"\b(?:STATE_LEDGER|HERMES|XDG)_[A-Z0-9_]+|\bSQLITE_TMPDIR|\bLOCALAPPDATA")
    read = {name for path in sources for name in pattern.findall(path.read_text("utf-8"))}
    written = set(pattern.findall((DOCS / "settings.md").read_text("utf-8")))
    assert read == written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_documents_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), f"{page.name} leads to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", there.read_text("utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}, target


def test_the_readme_leads_to_every_document() -> None:
    text = (CHECKOUT / "README.md").read_text("utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f"docs/{page.name}" not in text] == []
