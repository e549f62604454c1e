"""The ops page: what it tells is what the command line tells, and it stands on any store."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from state_ledger import storage
from state_ledger.cli import main
from state_ledger.connection import open_for_reading
from state_ledger.health import checkup
from state_ledger.health.patient import LIVE, Patient
from state_ledger.pages import figures, planner
from state_ledger.pages.links import Links
from state_ledger.retention.plan import Criteria, make_plan
from state_ledger.settings import Settings
from state_ledger.shape import Shape
from state_ledger.writing.writer import Writer
from tests import damage
from tests.aged import add, ago, ended, household, lock
from tests.attacks import ATTACKS
from tests.page_checks import Page, check
from tests.test_browser import Visit, browser, visit

__all__ = ["browser", "visit"]

AT = Links("/state")
FOLDER = "a folder with blanks, 会話"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One session of every kind that a clean-up tells apart, a lock, a route, and titles of an attacker."""
    path = tmp_path_factory.mktemp("ops") / FOLDER / "state.db"
    path.parent.mkdir()
    writer = Writer(path)
    household(writer)
    add(writer, "compressing", "busy", at=ago(120), **ended(120))
    lock(writer, "compressing")
    hostile = ATTACKS["broken image"]
    add(writer, "hostile", "x", at=ago(300), started_at=ago(301), source=hostile, title=hostile)
    add(writer, "hostile too", "y", at=ago(300), source=hostile, title="'; rm -rf ~; '", **ended(299))
    writer.close()
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy to be written to, in a folder with blanks too."""
    return Path(shutil.copytree(made.parent, tmp_path / FOLDER)) / "state.db"


async def ask(datasette: Any, parameters: dict[str, str] | None = None, status: int = 200) -> tuple[str, Page]:
    answer = await datasette.client.get(AT.ops(parameters))
    assert answer.status_code == status, answer.text[-800:]
    return answer.text, check(answer.text)


def commands(text: str) -> list[str]:
    """What the page says to type."""
    found = re.findall(r'<div class="command"><code tabindex="0">(.*?)</code>', text, re.S)
    return [html.unescape(command) for command in found]


def typed(command: str) -> Any:
    """Runs a command as a shell would split it."""
    program, *words = shlex.split(command)
    assert program == "state-ledger"
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code in (0, 1), answer.output
    return answer


async def test_the_page_tells_what_the_core_tells(made: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(made)
    text, page = await ask(datasette, {"check": "full", "sizes": "estimate"})
    with closing(open_for_reading(made)) as connection:
        sizes = storage.measure(connection, exact=False)
    for name, taken in sizes.by_owner.items():
        assert f"{name}: {figures.size(taken)}" in text or f">{name}<" in text
        assert f'title="{taken:,} bytes"' in text, name
    for finding in checkup.check(made).findings:
        if not finding.kind.startswith(("sqlite", "log")):  # of the connection, and of its own log
            assert finding.sentence in page.text, finding
        if finding.remedy.startswith("state-ledger "):
            assert finding.remedy in commands(text)
    for said in ("Findings", "What can go", "What takes the room", "Who works on it", "This page only reads", "1 lock"):
        assert said in page.text
    assert page.text.count("messages_fts_trigram") >= 3, "as an index that answers, in the picture and in the table"
    current = [a for a in page.all("a") if a.get("aria-current") == "page"]
    assert [a["href"] for a in current] == [AT.ops()]


async def test_every_part_links_to_its_question_as_page_json_and_csv(
    made: Path, make_datasette: Callable[..., Any]
) -> None:
    datasette = await make_datasette(made)
    _text, page = await ask(datasette, {"plan": "1"})
    for name in ("prune_plan", "open_idle_sessions", "sessions_by_age", "storage_sizes", "orphans", "locks",
                 "delegations", "routing"):  # fmt: skip
        for form in ("", ".json", ".csv"):
            links = [href for href in page.hrefs() if re.match(rf"/state/{name}{form}(\?|$)", href)]
            assert links and (await datasette.client.get(links[0])).status_code == 200, (name, form)


FILTERS: list[dict[str, str]] = [
    {"plan": "1"},
    {"older_than": "100", "not_a_filter": "x"},
    {"source": ATTACKS["broken image"], "older_than": "10"},
    {"title": "'; rm", "pinned": "no", "archived": "no"},
    {"kind": "continuation", "compat": "yes"},
    {"min_messages": "1", "max_size": "1k", "active_before": "2026-01-01", "pinned": "yes"},
]


@pytest.mark.parametrize("number", range(len(FILTERS)))
async def test_the_printed_command_plans_the_same_sessions(
    number: int, made: Path, make_datasette: Callable[..., Any]
) -> None:
    datasette = await make_datasette(made)
    values = FILTERS[number]
    text, _page = await ask(datasette, values)
    body = (await datasette.client.get(AT.ops(values, form="json"))).json()
    planned = body["plan"]
    listed = next(command for command in commands(text) if command.startswith("state-ledger plan"))
    told = json.loads(typed(f"{listed} --json").stdout)
    assert told["delete"] == planned["delete"] and told["sentence"] == planned["sentence"]
    assert {each["reason"]: each["ids"] for each in told["stay"]} == {
        each["reason"]: each["ids"] for each in planned["stay"]
    }
    assert html.escape(planned["sentence"]) in text
    assert f"{listed.replace(' plan ', ' prune ', 1)}" == planned["commands"]["prune"]


async def test_the_printed_prune_and_sweep_do_what_the_page_planned(
    store: Path, make_datasette: Callable[..., Any]
) -> None:
    datasette = await make_datasette(store)
    text, _page = await ask(datasette, {"plan": "1", "idle_days": "30"})
    body = (await datasette.client.get(AT.ops({"plan": "1", "idle_days": "30"}, form="json"))).json()
    prune, sweep = (next(each for each in commands(text) if f" {verb} " in each) for verb in ("prune", "sweep"))
    assert set(body["plan"]["delete"]) == {"hostile too", "finished", "silent"}
    done = json.loads(typed(f"{prune} --yes --no-backup --json").stdout)["done"]
    assert sorted(done["deleted"]) == sorted(body["plan"]["delete"])
    swept = json.loads(typed(f"{sweep} --yes --no-backup --json").stdout)
    assert sorted(swept["swept"]) == sorted(body["open_sessions"]["sweep"]) == ["hostile", "left_open"]


async def test_an_address_with_its_moment_stays_the_same_plan(
    made: Path, make_datasette: Callable[..., Any]
) -> None:
    datasette = await make_datasette(made)
    _text, page = await ask(datasette, {"older_than": "100"})
    [link] = [a["href"] for a in page.all("a") if a.get("class") == "copy"]
    assert "now=" in link and "older_than=100" in link and "idle_days=30" in link
    later = (await datasette.client.get(AT.ops({"older_than": "100", "now": str(int(ago(-60)))}, form="json"))).json()
    with closing(open_for_reading(made)) as connection:
        plan = make_plan(connection, Criteria(100, now=ago(-60)), sizes=dict)
    assert later["plan"]["delete"] == list(plan.delete) and len(plan.delete) > 3


BAD = {
    "older_than": ("-1", "nan", "inf", "soon", "1e400"), "kind": ("cousin",), "min_cost": ("nan", "much"),
    "min_messages": ("9" * 30, "1.5"), "min_size": ("big",), "started_before": ("yesterday", "2026-13-45"),
    "title": ("a\x00b", "a\nb"), "pinned": ("maybe",), "check": ("deep",), "sizes": ("<i>",), "now": ("x", "-1"),
    "idle_days": ("many", "9" * 20), "plan": ("2",), "compat": ("<script>",),
}  # fmt: skip


async def test_what_cannot_be_meant_is_a_sentence_on_a_page_that_stands(
    made: Path, make_datasette: Callable[..., Any]
) -> None:
    datasette = await make_datasette(made)
    for name, values in BAD.items():
        for value in values:
            answer = await datasette.client.get(AT.ops({name: value, "source": "cli"}))
            assert answer.status_code == 400, (name, value)
            page = check(answer.text)
            assert f"{name}=" in page.text and "Findings" in page.text and "would be deleted" not in page.text, name
        refused = await datasette.client.get(AT.ops({name: values[0]}, form="json"))
        assert refused.status_code == 400 and name in refused.json()["error"]
    both, _page = await ask(datasette, {"older_than": "9", "active_before": "2026-01-01"}, 400)
    assert "not both" in both


async def test_hostile_filters_and_names_stay_text(made: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(made)
    for attack in list(ATTACKS.values())[::9]:
        given = {name: attack.replace("\x00", "")[:300] for name in ("source", "title", "cwd", "user")}
        answer = await datasette.client.get(AT.ops(given))
        assert answer.status_code in (200, 400)
        check(answer.text)
    text, page = await ask(datasette, {"plan": "1", "idle_days": "1"})
    assert ATTACKS["broken image"] in page.text and ATTACKS["broken image"] not in text
    long = await datasette.client.get(AT.ops({"title": "a" * 60_000}))
    assert long.status_code == 200 and "missing" in check(long.text).text


@pytest.mark.parametrize("kind", ["newer", "old", "no index", "damaged"])
async def test_the_page_stands_on_any_store(
    kind: str, store: Path, tmp_path: Path, make_datasette: Callable[..., Any], small_store: Callable[..., Path]
) -> None:
    said = {"newer": "newer than this program", "old": "this program writes 23", "no index": "is missing",
            "damaged": "damage"}[kind]  # fmt: skip
    if kind == "newer":
        damage.run(store, "UPDATE schema_version SET version = 99; ALTER TABLE sessions ADD COLUMN later TEXT")
    elif kind == "old":
        store = small_store()
    elif kind == "no index":
        damage.run(store, "DROP TABLE messages_fts; DROP TABLE messages_fts_trigram")
    else:
        damage.run(store, "PRAGMA journal_mode = delete")
        damage.wipe(store, "messages")
    datasette = await make_datasette(store)
    _text, page = await ask(datasette, {"check": "full", "plan": "1", "sizes": "exact"})
    assert said in page.text
    if kind == "damaged":
        assert "A part of this page is missing" in page.text and "Open and idle sessions" in page.text
    else:
        assert "would be deleted" in page.text


def test_a_look_that_takes_too_long_says_what_it_left_out(made: Path) -> None:
    with closing(open_for_reading(made)) as connection:
        patient = Patient(made, connection, Shape.read(connection), LIVE, Settings())
        found = checkup.examine(patient, budget_s=0.0)
        whole = checkup.examine(patient, budget_s=60.0)
    unchecked = [finding for finding in found if "ot checked" in finding.sentence]
    assert any("messages (" in each.sentence for each in unchecked) and all(each.remedy for each in unchecked)
    assert {each.severity for each in unchecked} == {"note"}
    assert not [finding for finding in whole if "ot checked" in finding.sentence]


async def test_a_store_that_is_gone_from_its_place_is_told_by_what_is_open(
    store: Path, make_datasette: Callable[..., Any]
) -> None:
    # A busy machine may need longer than a second for a part; and a further thread would open the file anew.
    datasette = await make_datasette(store, settings={"sql_time_limit_ms": 20_000, "num_sql_threads": 1})
    await ask(datasette)
    store.rename(store.with_name("elsewhere.db"))
    _text, page = await ask(datasette, {"plan": "1", "check": "full"})
    assert "A part of this page is missing" in page.text and "would be deleted" in page.text
    assert (await datasette.client.get("/state")).status_code == 200


async def test_only_who_may_see_the_store_sees_its_page(made: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(made, metadata={"databases": {"state": {"allow": {"id": "owner"}}}})
    for address in (AT.ops(), AT.ops({"plan": "1"}, form="json")):
        assert (await datasette.client.get(address)).status_code == 403
        cookies = {"ds_actor": datasette.sign({"a": {"id": "owner"}}, "actor")}
        assert (await datasette.client.get(address, cookies=cookies)).status_code == 200
    assert (await datasette.client.get("/nothing/-/ops")).status_code == 404


async def test_where_secrets_are_replaced_the_folder_is_not_told(
    made: Path, make_datasette: Callable[..., Any]
) -> None:
    datasette = await make_datasette(made, metadata={"plugins": {"state-ledger": {"redact": True}}})
    for address in (AT.ops({"plan": "1", "check": "full"}), AT.ops({"plan": "1"}, form="json")):
        text = html.unescape((await datasette.client.get(address)).text)
        assert str(made.parent.parent) not in text and "state-ledger prune state.db" in text


async def test_a_warning_on_the_home_page_leads_to_the_findings(
    store: Path, make_datasette: Callable[..., Any]
) -> None:
    damage.run(store, "DROP TABLE messages_fts_trigram")
    datasette = await make_datasette(store)
    page = check((await datasette.client.get("/state")).text)
    assert "The search index messages_fts_trigram is missing" in page.text
    assert f"{AT.ops()}#findings" in page.hrefs()


def test_fields_are_the_options_of_the_command() -> None:
    options = {option.name for option in planner._typed.params} | {"compat"}
    assert set(planner.NAMES) == options


@pytest.mark.browser
def test_a_plan_is_made_with_the_keyboard_on_a_phone_in_the_dark(
    made: Path, serving: Callable[..., str], visit: Callable[..., Visit]
) -> None:
    here = visit(serving([made]), width=390, scheme="dark")
    page = here.go(AT.ops())
    here.check()
    page.focus("input[name=older_than]")
    page.keyboard.type("100")
    page.keyboard.press("Enter")
    page.wait_for_url("**older_than=100**")
    assert "would be deleted" in page.inner_text(".sentence")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    prune = page.locator(".command", has_text="prune").first
    prune.locator("button").click()
    page.wait_for_selector("button >> text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == prune.locator("code").inner_text()
    page.click("text=Look closer")
    page.wait_for_url("**check=full**")
    assert "older_than=100" in page.url
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    here.shoot("ops-keyboard")
    here.check()
