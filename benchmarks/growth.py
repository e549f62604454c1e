"""What each page and each canned query costs on stores of several sizes, beside how much it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import median
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from benchmarks import bare
from benchmarks.application import TIME_LIMIT_MS, Application, NotReached, serving
from benchmarks.bench import Bench
from benchmarks.clock import LONG_MS, cpu_ms_async
from benchmarks.figure import GROWTH, Figure
from state_ledger import questions
from state_ledger.pages.cost import GROUPS
from state_ledger.pages.links import Links
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection

TURNS = 3
QUERY, PAGE = "query ", "page "

WORDS = {
    "common word": "the",
    "word": "error",
    "phrase": '"of the"',
    "rare word": "zyzzyva",
    "Korean, two characters": "오류",
    "Korean, three characters": "데이터",
}


@dataclass(frozen=True)
class Sample:
    """Sessions to read, chosen alike on every store."""

    middle: str
    longest: str
    chain: str
    delegator: str


async def measure(bench: Bench) -> AsyncIterator[Figure]:
    """A figure for each page and each query."""
    path = bench.path
    async with serving(path) as application:
        settings = application.settings
        with closing(bare.connect(path, settings)) as connection:
            today = bare.last_day(connection, settings)
            sample = chosen(connection)
        asked = [
            *((QUERY + name, address) for name, address in queries(application.name, today, sample, settings)),
            *((PAGE + name, address) for name, address in pages(application.name, today, sample)),
        ]
        await application.settle()
        with patch("state_ledger.pages.home.today", lambda _zone: today):
            for name, address in asked:
                if bench.wants(name):
                    yield await _figure(application, name, address)


async def _figure(application: Application, name: str, address: str) -> Figure:
    answers: list[Any] = []

    async def job() -> None:
        answers[:] = [await application.get(address)]

    try:
        times = [await cpu_ms_async(job)]
        if times[0] < LONG_MS:
            times = [await cpu_ms_async(job) for _ in range(TURNS)]
    except NotReached:
        return Figure(name, None, None, "ms", f"no answer in {TIME_LIMIT_MS / 1000:g} s", of=GROWTH)
    answer = answers[0]
    out = len(answer.json()["rows"]) if name.startswith(QUERY) else len(answer.content)
    return Figure(name, median(times), None, "ms", "", of=GROWTH, out=out)


def chosen(connection: Connection) -> Sample:
    """A session of middle length, the longest, the first of the longest conversation, one with many delegates."""
    count = connection.execute("SELECT count(*) FROM main.sessions").fetchone()[0]
    by_length = "SELECT id FROM main.sessions ORDER BY message_count DESC, id LIMIT 1 OFFSET ?"
    middle, longest = (connection.execute(by_length, [at]).fetchone()[0] for at in (count // 2, 0))
    longest_chains = questions.ask(connection, "longest_conversations").records()
    chain = max(longest_chains, key=lambda row: (row["segments"], row["conversation_id"]))["conversation_id"]
    delegator = connection.execute(
        "SELECT parent_session_id FROM main.sessions WHERE source = 'subagent' AND parent_session_id IS NOT NULL"
        " GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
    ).fetchone()[0]
    return Sample(middle, longest, chain, delegator)


def queries(store: str, today: date, sample: Sample, settings: Settings) -> Iterator[tuple[str, str]]:
    """Every canned query: as a bare address asks it, with the store's own end for the present."""
    at = Links(f"/{store}")
    subject = {"session": sample.chain, "q": "error"}
    for question in questions.load().values():
        given = {}
        for parameter in question.for_settings(settings):
            if parameter.name in subject and question.name != "cost_drivers":
                given[parameter.name] = subject[parameter.name]
            elif parameter.default.endswith("days ago"):
                days = int(parameter.default.split()[0])
                given |= {parameter.name: (today - timedelta(days=days)).isoformat(), "until": today.isoformat()}
        if question.name == "cost_drivers":
            given = {"conversation": sample.chain}
        yield question.name, at.query(question.name, given, form="json")


def pages(store: str, today: date, sample: Sample) -> Iterator[tuple[str, str]]:
    """Every page of ours, and Datasette's own of the big tables."""
    at = Links(f"/{store}")
    month = {"since": (today - timedelta(days=29)).isoformat(), "until": today.isoformat()}
    always = {"period": "all"}
    yield "index", "/"
    yield "index with figures", "/?figures=1"
    yield "card", at.card
    yield "home", at.home
    for group in GROUPS:
        yield f"cost by {group}, 30 days", at.cost({**month, "group": group})
        yield f"cost by {group}, all time", at.cost({**always, "group": group})
    yield "money, 30 days", at.money(month)
    yield "money, all time", at.money(always)
    yield "reconcile", at.reconcile
    yield "ops", at.ops()
    yield "ops.json", at.ops(form="json")
    yield "prune planner", at.ops({"older_than": "30"})
    for label, word in WORDS.items():
        for sort in ("newest", "oldest", "best"):
            yield f"search {sort}: {label}", at.search({"q": word, "sort": sort})
        yield f"search count: {label}", at.search({"q": word}, form="count")
    yield "search.json", at.search({"q": "error"}, form="json")
    yield "search newest of a source", at.search({"q": "error", "source": "cli"})
    yield "search in a month", at.search({"q": "error", **month})
    for name, session in (("middle", sample.middle), ("longest", sample.longest)):
        yield f"transcript of the {name} session", at.session(session)
        yield f"transcript of the {name} session, last page", at.session(session, {"page": "last"})
    yield "transcript of the longest conversation", at.conversation(sample.chain)
    yield "transcript of a work with delegates", at.work(sample.delegator)
    yield "why a session was expensive", at.why({"session": sample.middle})
    yield "why a conversation was expensive", at.why({"conversation": sample.chain})
    yield "why a day was expensive", at.why({"day": today.isoformat()})
    yield "export page", at.export_page({})
    yield "export of the middle session", at.export("session", sample.middle, "jsonl")
    yield "export of a conversation", at.export("conversation", sample.chain, "html")
    yield "export of a search", at.export("search", "electricity bill", "jsonl")
    yield "live.json", at.live
    yield "health.json", "/-/ledger/health.json"
    yield "stock: tables", at.plain
    for table in ("sessions", "messages", "session_model_usage"):
        yield f"stock: {table}", f"/{store}/{table}"
        yield f"stock: {table}.json", f"/{store}/{table}.json?_shape=objects"
    yield "stock: a message", f"/{store}/messages/1"
    yield "stock: a session", f"/{store}/sessions/{quote(sample.middle)}"
    yield "stock: search", f"/{store}/messages?_search=error"
    yield "stock: next page of messages", f"/{store}/messages?_next=50000"
