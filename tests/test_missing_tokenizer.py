"""An index whose tokenizer is missing stops nothing but itself (both SQLites, whichever is linked)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from state_ledger.sqlite import sqlite3

QUERY = "/{name}.json" if version("datasette").startswith("0.") else "/{name}/-/query.json"
LINKED = "from state_ledger.sqlite import sqlite3"
PYTHONS_OWN = "import sys; sys.modules['pysqlite3'] = None"
SQLITES = pytest.mark.parametrize("which", [LINKED, PYTHONS_OWN], ids=["linked", "pythons-own"])


@pytest.fixture(params=["made-by-hand", "small-23-cjk.db"])
def store(request: pytest.FixtureRequest) -> Path:
    if request.param != "made-by-hand":
        return request.getfixturevalue("shared_store")(request.param)
    path = request.getfixturevalue("small_store")("cjk.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        """
        CREATE VIEW messages_fts_cjk_source AS SELECT id, content FROM messages WHERE role <> 'tool';
        CREATE VIRTUAL TABLE messages_fts_cjk USING fts5(
            content, content='messages_fts_cjk_source', content_rowid='id', tokenize='trigram');
        CREATE VIRTUAL TABLE messages_fts USING fts5(content, content='messages', content_rowid='id');
        INSERT INTO messages_fts(messages_fts) VALUES ('rebuild');
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(sql, 'trigram', 'cjk_unicode61')
        WHERE name = 'messages_fts_cjk';
        """
    )
    connection.close()
    return path


PAGES = """
import asyncio, json, sys
from datasette.app import Datasette

async def main(path, *pages):
    datasette = Datasette([path])
    await datasette.invoke_startup()
    for page in pages:
        answer = await datasette.client.get(page)
        print(json.dumps([page, answer.status_code, answer.json()]))

asyncio.run(main(*sys.argv[1:]))
"""


def _ask(which: str, path: Path, *pages: str) -> dict[str, tuple[int, Any]]:
    """Status and JSON of pages of an app that runs on one of the two SQLites."""
    done = subprocess.run(
        [sys.executable, "-c", f"{which}\n{PAGES}", str(path), *pages],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    answers = map(json.loads, done.stdout.splitlines())
    return {page: (status, body) for page, status, body in answers}


@SQLITES
def test_the_app_starts_and_answers(store, which):
    name = store.stem
    pages = [
        f"/{name}.json",
        f"/{name}/sessions.json?_shape=array",
        f"/{name}/messages.json?_shape=array",
        f"{QUERY}?sql=select+*+from+ledger_usage&_shape=array".format(name=name),
    ]
    count = "select+count(*)+as+n+from+messages_fts+where+messages_fts+match+'hello+OR+the+OR+a'"
    other = f"{QUERY}?sql={count}&_shape=array".format(name=name)
    its_own = f"/{name}/messages_fts_cjk.json"
    answers = _ask(which, store, *pages, other, its_own)
    for page in pages:
        assert answers[page][0] == 200, (page, answers[page])
    if _has(store, "messages_fts"):
        assert answers[other][0] == 200 and answers[other][1][0]["n"] >= 0
    assert answers[its_own][1], "an answer, and no traceback"


@SQLITES
def test_the_unreadable_index_is_named_with_the_reason(store, which):
    code = (
        f"{which}\n"
        "import sys; from state_ledger.connection import open_for_reading\n"
        "from state_ledger.shape import Shape\n"
        "connection = open_for_reading(sys.argv[1])\n"
        "print(Shape.read(connection).unreadable['messages_fts_cjk'])"
    )
    answer = subprocess.run([sys.executable, "-c", code, str(store)], capture_output=True, text=True)
    assert "no such tokenizer: cjk_unicode61" in answer.stdout, answer.stderr


def test_the_two_sqlites_are_really_two_where_both_are_installed():
    code = "from state_ledger.sqlite import sqlite3; print(sqlite3.__name__)"
    names = {
        subprocess.run(
            [sys.executable, "-c", f"{which}\n{code}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for which in (LINKED, PYTHONS_OWN)
    }
    assert any(name.startswith("sqlite3") for name in names)


def _has(path: Path, table: str) -> bool:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [table]).fetchone()
    connection.close()
    return found is not None


async def test_an_index_that_lost_its_parts_breaks_no_page(shared_store: Any, make_datasette: Any) -> None:
    path = shared_store("small-23.db")
    path.chmod(0o644)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA writable_schema = ON")
    writer.execute("DELETE FROM sqlite_master WHERE name LIKE 'messages_fts_%' AND name NOT LIKE '%trigram%'")
    writer.commit()
    writer.close()
    datasette = await make_datasette(path)
    for page in (
        "/",
        "/small-23",
        "/small-23/-/tables",
        "/small-23.json",
        "/small-23/messages",
        "/small-23/messages_fts",
    ):
        answer = await datasette.client.get(page)
        assert answer.status_code == 200, f"{page}: {answer.text[:400]}"
    answer = await datasette.client.get("/small-23/messages.json?_search=docker&_shape=objects")
    assert answer.status_code == 400 and "search" in answer.json()["error"].lower()
