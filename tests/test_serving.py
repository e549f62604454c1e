"""Served to others as docs/serving.md says, nothing is reachable without logging in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from state_ledger import SessionDB, questions
from state_ledger.plugins import compat
from state_ledger.portability.formats import FORMATS
from state_ledger.portability.scope import KINDS
from tests import pages_seen

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "serving.md"
SECRET_WORD = "lighthousekeeper"


def configuration() -> dict[str, Any]:
    """The block of the document, without the plugins that are not ours."""
    blocks = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    [block] = [text for text in blocks if "serving.yaml" in text]
    given: dict[str, Any] = yaml.safe_load(block)
    given["plugins"] = {"state-ledger": given["plugins"]["state-ledger"]}
    return given


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s1", "cli", model="m")
        db.set_session_title("s1", f"about {SECRET_WORD}")
        db.append_message("s1", "user", f"the {SECRET_WORD} is away")
        db.update_token_counts("s1", input_tokens=5, model="m", api_call_count=1, estimated_cost_usd=0.5)
    return tmp_path / "state.db"


async def serve(make_datasette: Callable[..., Any], store: Path) -> Any:
    given = configuration()
    if compat.IS_1:
        return await make_datasette(store, config=given)
    return await make_datasette(store, metadata=given)


def addresses(datasette: Any) -> list[str]:
    """Every address of the app: pages, JSON, CSV, exports, searches, rows, own SQL, the file itself."""
    found = [
        "/", "/.json", "/-/stores", "/-/datasette", "/-/home", "/state",
        "/state.json", "/state/-/home",
        "/state/-/tables", "/state/-/cost", "/state/-/search", f"/state/-/search?q={SECRET_WORD}",
        "/state/-/session/s1", "/state/-/conversation/s1", "/state/-/work/s1", "/state/-/card",
        "/state/-/why.json?session=s1", "/state/-/session?id=s1", "/state/-/ops", "/state/-/ops.json",
        "/state/-/export", "/state/-/export?session=s1", "/state.db", "/-/ledger/health.json", "/-/ledger/metrics",
        "/state/messages", "/state/messages.json", "/state/messages.csv?_stream=on", "/state/messages/1",
        "/state/messages/1.json", f"/state/messages?_search={SECRET_WORD}", "/state/sessions", "/state/sessions/s1",
        "/state/sessions.json?_shape=array", "/state?sql=select+*+from+messages",
        "/state.json?sql=select+*+from+messages", f"/state/-/search.json?q={SECRET_WORD}",
        f"/state/-/search-count.json?q={SECRET_WORD}", f"/-/find?q={SECRET_WORD}",
        "/state/-/query?sql=select+*+from+messages", "/state/-/query.json?sql=select+*+from+messages",
        "/state/ledger_messages", "/state/-/schema", "/-/databases.json", "/-/search?q=x",
    ]  # fmt: skip
    together = ("", "/cost", "/cache", "/live.json", f"/search?q={SECRET_WORD}", f"/search.json?q={SECRET_WORD}",
                "/session/s1", "/recent_sessions", "/recent_sessions.json", "/recent_sessions.csv")  # fmt: skip
    found += ["/state/-/live.json", "/state/-/money", "/state/-/reconcile"]
    found += [f"/-/ledger/all{path}" for path in together]
    found += [f"/-/ledger/fleet{path}" for path in (*together, "/lineage", "/ops")]
    for name in questions.load():
        found += [f"/state/{name}{end}" for end in ("", ".json", ".json?_shape=objects", ".csv")]
        found += [f"/state/-/ask/{name}.json", *(f"/state/-/export/question/{name}.{form}" for form in ("csv", "json"))]
    found += [f"/state/-/export/{kind}.{form}?id=s1" for kind in KINDS for form in FORMATS]
    return found


async def test_nothing_is_reachable_without_logging_in(make_datasette: Callable[..., Any], store: Path) -> None:
    datasette = await serve(make_datasette, store)
    for address in addresses(datasette):
        answer = await datasette.client.get(address, follow_redirects=True)
        assert answer.status_code in (401, 403, 404), (address, answer.status_code)
        text = answer.text.replace(f"q={SECRET_WORD}", "").replace(f"_search={SECRET_WORD}", "")
        for word in (SECRET_WORD, "$0.50"):
            assert word not in text, address


def our_routes(datasette: Any) -> list[re.Pattern[str]]:
    """The patterns of all addresses of ours but those of static files."""
    return [
        pattern
        for pattern, view in datasette._routes()
        if "state_ledger.plugins" in str(getattr(view, "__module__", "")) or "/-/export" in pattern.pattern
        if "/static/" not in pattern.pattern
    ]


async def test_every_route_of_the_app_is_asked(make_datasette: Callable[..., Any], store: Path) -> None:
    """A route that is added has to be added above, or to be harmless."""
    datasette = await serve(make_datasette, store)
    asked = [address.partition("?")[0] for address in addresses(datasette)]
    ours = our_routes(datasette)
    unasked = [pattern.pattern for pattern in ours if not any(pattern.match(address) for address in asked)]
    assert unasked == []


async def test_every_route_with_a_page_is_looked_over_for_accessibility(
    make_datasette: Callable[..., Any], store: Path, demo_store: Path
) -> None:
    """A route that is added has to be among the pages of that test, or to answer with something other than a page."""
    seen = pages_seen.pages(demo_store)
    assert [*seen] == [*pages_seen.OWN, *pages_seen.STOCK]
    paths = [page.path.partition("?")[0] for page in seen.values()]
    ours = [pattern for pattern in our_routes(await serve(make_datasette, store))
            if not any(part in pattern.pattern for part in pages_seen.NO_PAGES)]  # fmt: skip
    missed = {each.pattern for each in ours if not any(map(each.match, paths))}
    assert len(ours) > 10 and missed == pages_seen.OTHER_ADDRESSES


async def test_who_is_allowed_sees_it(make_datasette: Callable[..., Any], store: Path) -> None:
    datasette = await serve(make_datasette, store)
    cookies = {"ds_actor": datasette.sign({"a": {"id": "ada"}}, "actor")}
    for address in ("/state", "/state/messages", "/state/-/export/session.csv?id=s1", "/state/cost_per_day.csv"):
        answer = await datasette.client.get(address, cookies=cookies)
        assert answer.status_code == 200, address
    others = {"ds_actor": datasette.sign({"a": {"id": "eve"}}, "actor")}
    assert (await datasette.client.get("/state/-/export/session.csv?id=s1", cookies=others)).status_code == 403


async def test_the_name_in_the_document_is_answered_and_no_other(
    make_datasette: Callable[..., Any], store: Path
) -> None:
    datasette = await serve(make_datasette, store)
    for host, status in (("books.example.org", (401, 403)), ("evil.example", (403,))):
        answer = await datasette.client.get("/state", headers={"host": host})
        assert answer.status_code in status
    assert "allowed_hosts" in answer.text
