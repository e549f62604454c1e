"""Every route of a running Datasette, ours and its own, asked with hostile names, parameters and bodies.

No answer is a fault of the server, shows a traceback, or repeats a visitor's text as HTML; what cannot be meant is
refused by name. The normal run asks a part, the same each time; STATE_LEDGER_STRESS=1 asks thousands, others for
each STATE_LEDGER_SEED.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from datasette.app import Datasette

from state_ledger.portability.formats import FORMATS
from state_ledger.questions.parameters import COMMON
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from state_ledger.transcript import KINDS
from tests.conftest import SCHEMA, fewer
from tests.fuzz import SEED, STRESS
from tests.fuzz.asking import BODIES, HOSTILE, MARK, Answer, ask, complaint, encoded, paths, said, value, watched
from tests.fuzz.weird import weird_store

T = TypeVar("T")

HOSTILE_NAMES = (
    b"nothing", b"%00", b"%ff", b"%ed%a0%80", b"~FF", b"~00", b"~", b"~2", b"%2e%2e", b"..~2F..~2Fetc", b"~3Cscript~3E",
    b"%3Cscript%3E", "\u202e桂".encode(), b"x" * 3000, b"1,2", b",", b"9" * 30, b"-1", b"'", b"~22", b"%0d%0aa:b",
    encoded(MARK),
)  # fmt: skip
"""What stands in a path where the name of a store, a table, a row, a session or a question is expected."""

QUERIES = ("cost_per_day", "search", "lineage_work")
"""Questions with parameters of every kind; the others are asked in `test_questions`."""

FURTHER: dict[str, Sequence[bytes]] = {
    "query": [name.encode() for name in QUERIES], "table": [b"messages", b"ledger_sessions", *map(str.encode, QUERIES)],
    "kind": [kind.encode() for kind in KINDS], "scope": [b"session", b"search", b"all"],
}  # fmt: skip
"""Names that lead to the same pages as others do: for the long runs."""


class Served:
    """An instance over several stores, asked on a loop of its own so that many tests can share it."""

    def __init__(self, *stores: Path) -> None:
        self.loop = asyncio.new_event_loop()
        metadata = {"plugins": {"state-ledger": {"metrics": True, "zone": "UTC"}}}
        self.datasette = Datasette([str(path) for path in stores], metadata=metadata)
        self.run(self.datasette.invoke_startup())
        self.app = self.datasette.app()
        self.names: dict[str, Sequence[bytes]] = {
            "database": [stores[0].stem.encode()],
            "table": [b"messages", *map(str.encode, QUERIES[:2])],
            "query": [name.encode() for name in QUERIES[:1]],
            "session": [b"first"], "kind": [KINDS[0].encode()], "scope": [b"all"],
            "format": [b"json", b"csv", b"html"], "pks": [b"1"], "path": [b"app.css"], "file": [b"ledger.css"],
            "version": [b"0"], "rest": [b""], **(FURTHER if STRESS else {}),
        }  # fmt: skip

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    def get(self, path: bytes, query: bytes = b"") -> Answer:
        return self.run(ask(self.app, path, query))

    def patterns(self) -> list[str]:
        return [pattern.pattern for pattern, _view in self.datasette._routes()]

    def addresses(self, **names: Sequence[bytes]) -> list[bytes]:
        found = [path for pattern in self.patterns() for path in paths(pattern, {**self.names, **names})]
        return list(dict.fromkeys(found))

    def close(self) -> None:
        for database in self.datasette.databases.values():
            database.close()
        self.datasette.executor.shutdown(wait=True)
        self.loop.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    """A store of today with one of an old schema and an empty one beside it."""
    with SessionDB(folder / "state.db") as db:
        for name in ("first", "second"):
            db.create_session(name, "cli", model="m")
            db.append_messages(name, [{"role": "user", "content": f"pier {n} of {name}"} for n in range(3)])
            db.update_token_counts(name, 700, 80, model="m", estimated_cost_usd=0.25, api_call_count=3)
    SessionDB(folder / "empty.db").close()
    with closing(sqlite3.connect(folder / "old.db")) as connection:
        connection.executescript(SCHEMA)
    served = Served(folder / "state.db", folder / "old.db", folder / "empty.db")
    yield served
    served.close()


def chosen(everything: list[T], normal: int, stress: int, what: str) -> list[T]:
    """Some of many, the same each time."""
    number = stress if STRESS else fewer(normal, 12)
    return everything if len(everything) <= number else random.Random(f"{SEED} {what}").sample(everything, number)


def complaints(asked: bytes, answer: Answer) -> list[str]:
    wrong = complaint(answer)
    return [f"{asked[:300].decode('latin-1')}: {wrong}"] if wrong else []


def ours(path: bytes) -> bool:
    """Whether a page of ours answers, which names what it refuses; Datasette's own words are its own."""
    return b"/-/" in path and not path.startswith(b"/-/") and path.endswith(
        (b"/cost", b"/money", b"/ops", b"/ops.json", b"/search", b"/search.json", b"/search-count.json", b"/first",
        b".json")
    ) and b"/messages/" not in path and b"/-/quer" not in path and b"/-/schema" not in path  # fmt: skip


@pytest.fixture(scope="module")
def known(served: Served) -> list[tuple[bytes, str]]:
    """Every address and each parameter that its page looks at; that they answer is tested on the way."""
    found, wrong = [], []
    for path in served.addresses():
        with watched() as names:
            wrong += complaints(path, served.get(path))
        found += [(path, name) for name in sorted(names)]
    assert not wrong
    return found


def test_no_value_of_any_parameter_breaks_a_page(served: Served, known: list[tuple[bytes, str]]) -> None:
    assert {("/state/-/cost", "since"), ("/state/messages", "_size")} <= {(p.decode(), name) for p, name in known}
    asked = [(path, name, text) for path, name in known for text in HOSTILE]
    wrong = []
    for path, name, text in chosen(asked, 60, 4_000, "parameters"):
        query = value(name.encode()) + b"=" + value(text)
        answer = served.get(path, query)
        wrong += complaints(path + b"?" + query, answer)
        if answer.status == 400 and ours(path) and name not in said(answer):
            wrong.append(f"{path!r}?{query[:99]!r} is refused without saying that it is {name}: {said(answer)[:200]}")
    assert not wrong


def test_no_bundle_of_parameters_breaks_a_page(served: Served) -> None:
    """Repeated, unknown, in arrays, or simply no query string at all."""
    chance = random.Random(f"{SEED} bundles")
    names = [*COMMON, "q", "id", "period", "group", "before", "after", "_size", "_next", "_sort", "a[]", "", "sql",
    "_shape"]
    wrong = []
    for path in chosen(served.addresses(), 30, 400, "bundles"):
        pairs = [(chance.choice(names), chance.choice(HOSTILE)) for _ in range(chance.randrange(1, 9))]
        query = b"&".join(value(name.encode()) + b"=" + value(text) for name, text in pairs)
        if chance.random() < 0.3:
            query = chance.choice((b"&&=&;", b"\xff\x00", b"?" * 99, b"%", query.replace(b"%", b"")))
        wrong += complaints(path + b"?" + query, served.get(path, query))
    assert not wrong


def test_no_name_in_a_path_breaks_a_page(served: Served) -> None:
    asked = []
    for group in ("database", "table", "query", "session", "format", "pks", "path", "file", "version", "rest"):
        known = set(served.addresses())
        asked += [path for path in served.addresses(**{group: HOSTILE_NAMES}) if path not in known]
    wrong = []
    for path in chosen(list(dict.fromkeys(asked)), 40, 2_000, "names"):
        wrong += complaints(path, served.get(path))
    assert not wrong


def test_no_body_and_no_method_breaks_a_page(served: Served) -> None:
    asked = [(path, kind, body) for path in served.addresses() for kind, body in BODIES]
    origin = [(b"sec-fetch-site", b"same-origin"), (b"origin", b"http://localhost")]
    wrong = []
    shown = served.get(b"/state/-/reconcile")
    mark = shown.body.partition(b'name="csrftoken" value="')[2].partition(b'"')[0]
    for path, kind, body in [*chosen(asked, 12, 800, "bodies"), *((b"/state/-/reconcile", *each) for each in BODIES)]:
        form = kind.startswith("application/x-www-form")
        headers = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *origin,
                   (b"cookie", b"ds_csrftoken=" + mark)]  # fmt: skip
        sent = body + (b"&csrftoken=" + mark if form else b"")
        answer = served.run(ask(served.app, path, method="POST", headers=headers, body=sent))
        wrong += complaints(f"{kind} {body[:40]!r} ".encode() + path, answer)
    for path in chosen(served.addresses(), 15, 400, "methods"):
        for method in ("HEAD", "OPTIONS", "PUT", "DELETE"):
            wrong += complaints(method.encode() + path, served.run(ask(served.app, path, method=method)))
    assert not wrong


def test_no_row_that_a_file_may_hold_breaks_a_page(folder: Path) -> None:
    """Wrong types, NULL, infinities, negative counters, text for moments, broken JSON, text that is not UTF-8."""
    path = weird_store(folder / "weird.db", share=11 if STRESS else 97)
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        ids = [row[0] for row in connection.execute("SELECT id FROM sessions WHERE typeof(id) = 'text' ORDER BY rowid")]
    served = Served(path)
    try:
        sessions = [encoded(each.decode()) for each in ids if 0 < len(each) < 3000 and _is_text(each)]
        asked = served.addresses(
            session=chosen(sessions, 6, 400, "sessions"),
            format=[b"json", b"csv", *(form.encode() for form in FORMATS if form != "parquet")],
        )
        everything = b"period=all&since=0001-01-01&limit=1000&q=pier&_size=max&check=full&plan=1&why=1&inactive=1"
        wrong = []
        for address in chosen(asked, 16, 1_000, "weird"):
            if address.endswith(b"/health.json"):  # says 503 where a store is damaged, as this one is
                continue
            wrong += complaints(address, served.get(address, everything))
    finally:
        served.close()
    assert not wrong


def _is_text(stored: bytes) -> bool:
    try:
        stored.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("address", "query", "status"),
    [
        # Each broke a page once.
        (b"/state/-/session/first", b"message=1000000000000000000000000", 400),
        (b"/state/-/session/first", b"before=" + b"1" * 5000, 400),
        (b"/state/-/session/first", b"size=0000000000000000000000000001", 400),
        (b"/state/cost_per_day.json", b"limit=%D9%A3&_shape=objects", 400),
        (b"/state/messages", b"_sort=x", 400),
        (b"/state/messages", b"_timelimit=x", 400),
        (b"/state/messages", b"_timelimit=-9", 400),
        (b"/state/messages.json", b"_through=1", 400),
        (b"/state/messages.json", b"_json_infinity=x", 400),
        (b"/state/messages", b"_where=a%00b", 400),
        (b"/state/search.json", b"_ttl=x", 400),
        (b"/state.csv", b"", 400),
    ],
)
def test_what_once_broke_a_page_is_refused(served: Served, address: bytes, query: bytes, status: int) -> None:
    answer = served.get(address, query)
    assert not complaint(answer)
    # Datasette's own pages read other parameters on each line.
    assert answer.status == status or (b"/-/" not in address and answer.status in (200, 302, 404))


def test_text_that_no_file_can_hold_and_json_can_spell_is_shown_and_exported(folder: Path) -> None:
    """Programs that write JSON as Python does spell a lone surrogate out, and store that."""
    path = folder / "spelt.db"
    with SessionDB(path) as db:
        db.create_session("first", "cli")
        db.append_messages("first", [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}])
    calls = '[{"id": "\\ud83d", "function": {"name": "\\ud83d", "arguments": "{}"}}]'
    with closing(sqlite3.connect(path)) as connection:
        spelt = '\x00json:[{"type": "text", "text": "before \\ud83d after"}]'
        connection.execute("UPDATE messages SET content = ?, tool_calls = ?", (spelt, calls))
        connection.commit()
    served = Served(path)
    try:
        forms = [form.encode() for form in FORMATS if form != "parquet"]
        asked = [b"/spelt/-/export/all." + form for form in forms]
        asked += [b"/spelt/-/session/first", b"/spelt/ledger_messages", b"/spelt/-/ask/session_messages.json"]
        wrong = [each for address in asked for each in complaints(address, served.get(address))]
        for form in forms:
            assert "before \ufffd after" in served.get(b"/spelt/-/export/all." + form).body.decode(), form
    finally:
        served.close()
    assert not wrong
