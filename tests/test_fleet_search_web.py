"""The search of a fleet as people meet it: the page and its JSON, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from state_ledger.cli import main
from state_ledger.plugins.routes import FLEET
from tests.fleet_books import SECRET, needs_engine
from tests.page_checks import check
from tests.test_fleet_pages import cache, lake, started  # noqa: F401  (fixtures)

SEARCH = f"{FLEET}/search"


@needs_engine
async def test_a_hit_is_marked_and_leads_to_its_message(started: Any) -> None:  # noqa: F811
    client = await started()
    answer = await client.get(f"{SEARCH}?q=keeper")
    page = check(answer.text)
    assert answer.status_code == 200 and "<mark>keeper</mark>" in answer.text and "web-01/default" in page.text
    leads = next(href for href in page.hrefs(f"{FLEET}/session/") if "#m" in href)
    opened = await client.get(leads.split("#")[0])
    assert opened.status_code == 200 and f'id="{leads.split("#")[1]}"' in opened.text


@needs_engine
async def test_the_page_of_nothing_says_what_can_be_typed(started: Any) -> None:  # noqa: F811
    client = await started()
    page = check((await client.get(SEARCH)).text)
    assert "What you can type" in page.text and page.hrefs(f"{SEARCH}?q=")
    home = check((await client.get(FLEET)).text)
    assert SEARCH in home.hrefs()


@needs_engine
async def test_a_page_is_narrowed_and_says_who_is_silent(started: Any) -> None:  # noqa: F811
    client = await started()
    found = (await client.get(f"{SEARCH}.json?q=keeper+OR+far")).json()
    assert [(hit["host"], hit["store"]) for hit in found["hits"]] == [("web-01", "web-01/default")]
    assert "Not searched, since pushed without messages: db.example.org/default" in " ".join(found["notices"])
    narrowed = (await client.get(f"{SEARCH}.json?q=keeper&host=db.example.org")).json()
    assert narrowed["hits"] == [] and "--with-messages" in " ".join(narrowed["notices"])
    refused = await client.get(f"{SEARCH}?q=keeper&host=nowhere")
    assert refused.status_code == 400 and "choose among" in refused.text
    wrong = await client.get(f"{SEARCH}.json?q=keeper&after=nonsense")
    assert wrong.status_code == 400 and "link to the next page" in wrong.text
    assert (await client.get(f"{SEARCH}?q=keeper&since=nonsense")).status_code == 400


@needs_engine
async def test_pages_go_on_and_titles_are_found(started: Any) -> None:  # noqa: F811
    client = await started()
    first = (await client.get(f"{SEARCH}.json?q=kept+OR+keeper&limit=1")).json()
    second = (await client.get(f"{SEARCH}.json?q=kept+OR+keeper&limit=1&after={first['after']}")).json()
    assert [hit["id"] for hit in first["hits"] + second["hits"]] == [2, 1] and second["after"] is None
    page = check((await client.get(f"{SEARCH}?q=kept+OR+keeper&limit=1")).text)
    assert any("after=" in href for href in page.hrefs(SEARCH))
    named = (await client.get(f"{SEARCH}.json?q=Coder")).json()
    assert [row["session_id"] for row in named["sessions"]] == ["c1"]


@needs_engine
async def test_what_a_page_shows_is_text_and_secrets_are_hidden_where_wanted(started: Any) -> None:  # noqa: F811
    client = await started()
    said = (await client.get(f"{SEARCH}?q=kept")).text
    assert "&lt;b&gt;<mark>kept</mark>&lt;/b&gt;" in said and "<b>" not in said
    redacting = await started(redact=True)
    assert SECRET not in (await redacting.get(f"{SEARCH}?q=keeper")).text


@needs_engine
async def test_only_who_may_see_the_fleet_may_search_it(started: Any) -> None:  # noqa: F811
    client = await started(fleet_allow={"id": "root"})
    for address in (f"{SEARCH}?q=keeper", f"{SEARCH}.json?q=keeper"):
        answer = await client.get(address)
        assert answer.status_code == 403 and "keeper" not in answer.text.replace("q=keeper", "")


def told(*arguments: str) -> tuple[int, str, str]:
    answer = CliRunner().invoke(main, ["search", *arguments])
    return answer.exit_code, answer.stdout, answer.stderr


@needs_engine
def test_the_command_names_host_and_store(lake: Path) -> None:  # noqa: F811
    code, out, said = told("keeper OR kept", "--lake", str(lake), "--limit", "1")
    assert code == 0 and out.startswith("web-01/default  ") and ">>>kept<<<" in out
    after = said.split("--after ")[1].split()[0]
    code, out, said = told("keeper OR kept", "--lake", str(lake), "--limit", "1", "--after", after)
    assert code == 0 and ">>>keeper<<<" in out and "--after" not in said and "Not searched" in said
    code, out, _ = told("keeper", "--lake", str(lake), "--json", "--host", "web-01", "--profile", "default")
    [hit] = json.loads(out)["hits"]
    assert (hit["host"], hit["store"], hit["id"]) == ("web-01", "web-01/default", 1)


@needs_engine
@pytest.mark.parametrize(
    "arguments",
    [("--host", "web-01"), ("--after", "fw_1"), ("--lake", "x", "--before", "3"), ("--lake", "x", "--sort", "best"),
     ("--lake", "x", "state.db"), ("--clickhouse", "a", "--postgresql", "b")],
)  # fmt: skip
def test_options_that_do_not_go_together_are_told(arguments: tuple[str, ...]) -> None:
    code, out, said = told("keeper", *arguments)
    assert code == 2 and not out and "Error" in said


@needs_engine
def test_a_lake_that_is_none_and_a_host_that_is_none_are_told(tmp_path: Path, lake: Path) -> None:  # noqa: F811
    code, _, said = told("keeper", "--lake", str(tmp_path))
    assert code == 1 and "lake" in said
    code, _, said = told("keeper", "--lake", str(lake), "--host", "nowhere")
    assert code == 1 and "choose among" in said
    code, _, said = told("keeper", "--lake", str(lake), "--after", "nonsense")
    assert code == 1 and "next page" in said
