"""The pages of money and of a bill: what they show, link and refuse, on real instances of Datasette."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import fsum
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from state_ledger.plugins import compat
from tests import books
from tests.page_checks import check

JUNE = 1780315200.0
BILL = "date,model,amount\n2026-06-01,m,5\n2026-06-01,<b>new</b>,1\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names of models that a page must not take for its own."""
    return books.write(
        tmp_path_factory.mktemp("pages") / "state.db",
        sessions=[books.session("s", title="<i>Title</i>")],
        usage=[
            books.call("s", "m", input_tokens=10**6, estimated_cost_usd=4.0, cost_status="estimated", last_seen=JUNE),
            books.call("s", "<script>x", input_tokens=5),
        ],
    )


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "mine.yaml"
    path.write_text("- {pattern: 'm*', input: 3, cache_read: 1, note: '<u>note</u>'}\n", encoding="utf-8")
    return {"metadata": {"plugins": {"state-ledger": {"prices": str(path), "zone": "UTC"}}}}


async def posted(datasette: Any, bill: str, **fields: str) -> Any:
    """Pastes a bill as a browser does: with the mark that the page put into its form."""
    shown = await datasette.client.get("/state/-/reconcile")
    mark = re.search(r'name="csrftoken" value="([^"]*)"', shown.text)
    assert mark and shown.status_code == 200
    fields = {"tz": "UTC", "csrftoken": mark[1], **fields}
    return await datasette.client.post(
        "/state/-/reconcile", data={"bill": bill, **fields}, cookies={"ds_csrftoken": mark[1]}
    )


class TestMoney:
    async def test_every_table_is_its_question_with_json_and_csv(
        self, demo_store: Path, make_datasette: Callable[..., Any]
    ) -> None:
        datasette = await make_datasette(demo_store)
        answer = await datasette.client.get("/demo/-/money?period=all&tz=UTC&by=source")
        assert answer.status_code == 200
        page = check(answer.text)
        for question in ("repriced", "cache_savings", "subscription_value", "cost_plausibility"):
            (asked,) = [href for href in page.hrefs(f"/demo/{question}?") or page.hrefs(f"/demo/{question}")
                        if ".json" not in href and ".csv" not in href]  # fmt: skip
            address, shape = asked.replace(question, f"{question}.json"), {"_shape": "objects"}
            rows = (await datasette.client.get(address, params={**shape, **_query(asked)})).json()["rows"]
            assert rows and page.hrefs(f"/demo/{question}.csv"), question
            if question == "repriced":
                total = fsum(row["repriced_usd"] or 0 for row in rows)
                assert f"${total:,.2f}" in page.text
        assert "genai-prices" in page.text and "price changes up to" in page.text
        assert page.hrefs("/demo/model_prices") and page.hrefs("/demo/-/reconcile")

    async def test_the_cost_page_leads_to_it_with_its_filters(
        self, store: Path, make_datasette: Callable[..., Any]
    ) -> None:
        datasette = await make_datasette(store)
        shown = check((await datasette.client.get("/state/-/cost?period=all&source=cli")).text)
        (href,) = shown.hrefs("/-/money")
        assert "source=cli" in href and "period=all" in href
        assert (await datasette.client.get(href)).status_code == 200

    async def test_what_is_stored_or_noted_is_text(
        self, store: Path, table: dict[str, Any], make_datasette: Callable[..., Any]
    ) -> None:
        datasette = await make_datasette(store, **table)
        answer = await datasette.client.get("/state/-/money?period=all")
        check(answer.text)
        assert "<script>x" not in answer.text and "&lt;script&gt;x" in answer.text
        assert "priced as m* (pattern)" in answer.text and "mine.yaml (your table)" in answer.text
        assert "$3.00" in answer.text and "-$1.00" in answer.text

    async def test_as_if_on_another_model(
        self, store: Path, table: dict[str, Any], make_datasette: Callable[..., Any]
    ) -> None:
        datasette = await make_datasette(store, **table)
        answer = await datasette.client.get("/state/-/money?period=all&as_model=claude-haiku-4-5&as_provider=anthropic")
        assert answer.status_code == 200 and "As claude-haiku-4-5" in answer.text and "$1.00" in answer.text

    @pytest.mark.parametrize(
        ("query", "says"),
        [
            ("by=week", "choose one of model, day"),
            ("prices=tomorrow", "choose one of day, now"),
            ("as_provider=x", "name the model"),
            ("tz=Nope", "no time zone"),
            ("since=yesterday", "YYYY-MM-DD"),
        ],
    )
    async def test_a_wrong_parameter_is_a_sentence(
        self, query: str, says: str, store: Path, make_datasette: Callable[..., Any]
    ) -> None:
        answer = await (await make_datasette(store)).client.get(f"/state/-/money?{query}")
        assert answer.status_code == 400 and says in check(answer.text).text

    async def test_who_may_not_see_the_store_sees_no_page(
        self, store: Path, make_datasette: Callable[..., Any]
    ) -> None:
        deny = {"databases": {"state": {"allow": False}}}
        datasette = await make_datasette(store, **{"config" if compat.IS_1 else "metadata": deny})
        for path in ("money", "reconcile"):
            assert (await datasette.client.get(f"/state/-/{path}")).status_code == 403


class TestBill:
    async def test_is_compared_and_explained(self, store: Path, make_datasette: Callable[..., Any]) -> None:
        datasette = await make_datasette(store)
        answer = await posted(datasette, BILL)
        assert answer.status_code == 200
        page = check(answer.text)
        for part in ("$6.00", "$4.00", "$2.00", "the books have no usage of this model on this day", "1 Jun 2026"):
            assert part in page.text, part
        assert "<b>new" not in answer.text and "<i>Title" not in answer.text
        (behind,) = page.hrefs("/state/cost_sessions?")
        rows = (await datasette.client.get("/state/cost_sessions.json", params={"_shape": "objects", **_query(behind)}))
        assert [row["session_id"] for row in rows.json()["rows"]] == ["s"]

    async def test_without_a_difference_it_says_so(self, store: Path, make_datasette: Callable[..., Any]) -> None:
        answer = await posted(await make_datasette(store), "date,model,amount\n2026-06-01,M,4.004\n")
        assert "No day and model differs by a cent." in answer.text

    @pytest.mark.parametrize(
        ("bill", "fields", "says"),
        [
            ("date;model;amount\n2026-06-01;m;1,5", {}, "line 2: '1,5' could be a decimal comma"),
            ("", {}, "it is empty"),
            (BILL, {"tz": "Nope"}, "no time zone named"),
            (BILL, {"day_rule": "nope"}, "choose one of activity"),
        ],
        ids=["comma", "empty", "zone", "rule"],
    )
    async def test_what_cannot_be_compared_is_a_sentence_and_stays_in_the_form(
        self, bill: str, fields: dict[str, str], says: str, store: Path, make_datasette: Callable[..., Any]
    ) -> None:
        answer = await posted(await make_datasette(store), bill, **fields)
        assert answer.status_code == 400
        page = check(answer.text)
        assert says in page.text and bill.partition("\n")[0] in page.text

    async def test_one_that_is_too_long_is_sent_to_the_command(
        self, store: Path, make_datasette: Callable[..., Any]
    ) -> None:
        answer = await posted(await make_datasette(store), "date,model,amount\n" + "2026-06-01,m,1\n" * 90_000)
        assert answer.status_code == 413 and "state-ledger reconcile" in answer.text

    async def test_another_site_cannot_post_one(self, store: Path, make_datasette: Callable[..., Any]) -> None:
        datasette = await make_datasette(store)
        answer = await datasette.client.post(
            "/state/-/reconcile", data={"bill": BILL, "csrftoken": "guessed"}, cookies={"ds_csrftoken": "other"},
            headers={"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"},
        )  # fmt: skip
        assert answer.status_code == 403


def _query(href: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(href).query).items()}
