"""A language model's client: what it is shown, what it is answered and what it is refused."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datasette_mcp", reason="the extra mcp is not installed (it needs Python 3.11)")

from state_ledger import questions
from state_ledger.connection import open_for_reading
from state_ledger.questions import answers
from state_ledger.session_db import SessionDB
from state_ledger.settings import Settings
from tests.conftest import Servers, names_in

SECRET = "sk-proj-" + "aB3dE5fG7hJ9kL2m" * 3
CONFIG = """
plugins:
  state-ledger:
    redact: true
databases:
  closed:
    allow:
      id: nobody-has-this
"""


def _make(path: Path, text: str) -> Path:
    path.parent.mkdir()
    with SessionDB(path) as db:
        for number in range(3):
            name = f"s{number}"
            db.create_session(name, "cli", model="a-model")
            db.append_messages(name, [{"role": "user", "content": f"harbour {text}"}])
            db.update_token_counts(name, 700, 80, model="a-model", estimated_cost_usd=0.25, api_call_count=3)
    return path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("stores")
    texts = {"open": f"key {SECRET}", "closed": "x"}
    return [_make(folder / f"{name}.db-of" / f"{name}.db", text) for name, text in texts.items()]


@pytest.fixture(scope="module")
def plain(stores: list[Path]) -> Iterator[str]:
    """A server of the open store as it comes."""
    servers = Servers()
    yield servers(stores[:1])
    servers.end()


def _configured(paths: list[Path], folder: Path, text: str) -> Iterator[str]:
    from state_ledger.plugins import compat

    config = folder / "metadata.yaml"
    config.write_text(text, encoding="utf-8")
    servers = Servers()
    yield servers(paths, "--config" if compat.IS_1 else "--metadata", str(config))
    servers.end()


@pytest.fixture(scope="module")
def careful(stores: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of both stores that redacts, and lets nobody see the second."""
    yield from _configured(stores, tmp_path_factory.mktemp("config"), CONFIG)


def ask(address: str, conversation: Callable[[Any], Awaitable[Any]]) -> Any:
    """Runs a conversation of a real client with a server."""
    from mcp import Client

    async def talk() -> Any:
        async with Client(f"{address}/-/mcp") as client:
            return await conversation(client)

    return asyncio.run(talk())


def call(address: str, tool: str, **arguments: Any) -> Any:
    """What one call is answered; raises AssertionError with the sentence of a refusal."""

    async def conversation(client: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content[0].text
        return json.loads(result.content[0].text)

    return ask(address, conversation)


def refusal(address: str, tool: str, **arguments: Any) -> str:
    """The sentence with which a call is refused."""

    async def conversation(client: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        assert result.is_error, result.content
        return result.content[0].text

    return str(ask(address, conversation))


def test_every_tool_of_a_server_says_that_it_only_reads(plain: str) -> None:
    async def conversation(client: Any) -> Any:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in ask(plain, conversation)}
    assert {"list_questions", "ask_question", "execute_sql"} <= set(tools)
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert set(tools["ask_question"].input_schema["properties"]) == {"store", "question", "parameters"}


def test_each_question_is_listed_with_its_description_and_typed_parameters(plain: str) -> None:
    (store,) = call(plain, "list_questions")["stores"]
    listed = {each["name"]: each for each in store["questions"]}
    known = questions.load()
    assert set(listed) == set(known)
    for name, each in listed.items():
        assert (each["title"], each["description"]) == (known[name].title, known[name].description)
    per_day = {each["name"]: each for each in listed["cost_per_day"]["parameters"]}
    assert per_day["since"]["type"] == "date"
    assert per_day["limit"] == {"name": "limit", "type": "integer", "default": per_day["limit"]["default"],
                                "meaning": "At most this many rows"}  # fmt: skip
    assert "activity" in per_day["day_rule"]["choices"]
    (some,) = call(plain, "list_questions", group="cost")["stores"]
    assert {each["group"] for each in some["questions"]} == {"cost"}


def test_an_answer_is_that_of_the_core(plain: str, stores: list[Path]) -> None:
    settings = Settings()
    with closing(open_for_reading(stores[0], settings=settings)) as connection:
        expected = questions.ask(connection, "cost_per_model", {"source": "cli"}, settings=settings)
    given = call(plain, "ask_question", store="open", question="cost_per_model", parameters={"source": "cli"})
    assert given["rows"] == expected.records()
    assert given["rows"][0]["cost_usd"] == pytest.approx(0.75)
    assert given["units"]["cost_usd"] == "dollars"
    none = call(plain, "ask_question", store="open", question="cost_per_model", parameters={"source": "telegram"})
    assert none["rows"] == []


def test_rows_beyond_a_limit_are_told_of(plain: str) -> None:
    arguments = {"store": "open", "question": "recent_sessions"}
    given = call(plain, "ask_question", **arguments, parameters={"limit": 2.0})
    assert (len(given["rows"]), given["truncated"]) == (2, True)
    given = call(plain, "ask_question", **arguments, parameters={"limit": 3})
    assert (len(given["rows"]), given["truncated"]) == (3, False)


@pytest.mark.parametrize(
    ("question", "parameters", "sentence"),
    [
        ("cost_per_day", {"since": "yesterday"}, "write a day as YYYY-MM-DD"),
        ("cost_per_day", {"sicne": "2026-01-01"}, "has no parameter 'sicne'"),
        ("cost_per_day", {"limit": 10**9}, "the largest value is"),
        ("no_such_question", {}, "list_questions names what there is"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    plain: str, question: str, parameters: dict[str, Any], sentence: str
) -> None:
    assert sentence in refusal(plain, "ask_question", store="open", question=question, parameters=parameters)


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM sessions", "PRAGMA query_only = 0", "ATTACH '/tmp/x.db' AS x", "SELECT writefile('/tmp/x', 'y')"],
)
def test_no_tool_writes(plain: str, stores: list[Path], sql: str) -> None:
    before = stores[0].read_bytes(), names_in(stores[0].parent)
    assert refusal(plain, "execute_sql", database="open", sql=sql)
    assert call(plain, "execute_sql", database="open", sql="SELECT count(*) AS n FROM sessions")["rows"] == [{"n": 3}]
    assert (stores[0].read_bytes(), names_in(stores[0].parent)) == before


def test_a_store_that_one_may_not_see_is_in_no_list_and_answers_as_if_it_were_not_there(careful: str) -> None:
    assert [each["store"] for each in call(careful, "list_questions")["stores"]] == ["open"]
    assert call(careful, "list_questions", store="closed")["stores"] == []
    assert "closed" not in call(careful, "list_databases")["databases"]
    sentences = {
        refusal(careful, "ask_question", store=name, question="cost_per_model").replace(name, "…")
        for name in ("closed", "absent")
    }
    assert len(sentences) == 1
    assert refusal(careful, "get_database_schema", database="closed")


def test_who_may_see_nothing_of_an_instance_is_shown_nothing_by_any_tool(stores: list[Path], tmp_path: Path) -> None:
    for address in _configured(stores, tmp_path, "allow:\n  id: nobody-has-this\n"):
        assert call(address, "list_questions")["stores"] == []
        assert call(address, "list_databases")["databases"] == []
        assert refusal(address, "ask_question", store="open", question="cost_per_model")
        assert refusal(address, "get_database_schema", database="open")
        assert refusal(address, "execute_sql", database="open", sql="SELECT 1")


def test_secrets_are_replaced_in_answers_and_own_sql_is_refused(careful: str, plain: str) -> None:
    arguments = {"store": "open", "question": "search", "parameters": {"q": "harbour"}}
    assert SECRET[:20] in json.dumps(call(plain, "ask_question", **arguments))
    shown = json.dumps(call(careful, "ask_question", **arguments))
    assert SECRET[:20] not in shown
    assert "[redacted: " in shown
    assert "permission" in refusal(careful, "execute_sql", database="open", sql="SELECT 1")


@pytest.mark.parametrize(
    ("name", "value"), [("Host", "evil.example"), ("Origin", "http://evil.example"), ("Origin", "null")]
)
def test_a_page_from_elsewhere_is_not_answered(plain: str, name: str, value: str) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", name: value}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{plain}/-/mcp", body, headers), timeout=20)
    assert refused.value.code == 403


def test_long_texts_are_cut_and_many_rows_end_with_truncated() -> None:
    question = questions.load()["cost_per_model"]
    rows: list[tuple[Any, ...]] = [("x" * 9_000, b"\xff", 1)] * 30
    given = answers.bounded(questions.Result(question, ["a", "b", "c"], rows))
    assert given["truncated"]
    assert 0 < len(given["rows"]) < 30
    assert len(json.dumps(given["rows"])) < 1.1 * answers.MOST_CHARACTERS
    assert given["rows"][0]["a"].endswith("… (1,000 characters more)")
    few = answers.bounded(questions.Result(question, ["a"], [("x",)]))
    assert (few["rows"], few["truncated"]) == ([{"a": "x"}], False)
