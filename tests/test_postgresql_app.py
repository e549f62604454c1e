"""Commands and pages over a store in PostgreSQL: the same as over a file, and nothing that writes."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from state_ledger import postgresql
from state_ledger.cli import VERBS, main, serving
from state_ledger.postgresql.address import Address
from tests import prepared
from tests.conftest import fetch
from tests.postgres import OWNER, PASSWORD, Server, fit, postgres
from tests.test_companion_app import wait_until

__all__ = ["postgres"]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Copies are kept in a folder of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("HERMES_HOME", str(folder / "nowhere"))
        for variable in [name for name in os.environ if name.startswith("PG")]:
            patch.delenv(variable)
        yield


@pytest.fixture(scope="module")
def pair(postgres: Server, demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo store as a file and as the address of a database. Read them only."""
    store = fit(Path(shutil.copyfile(demo_store, tmp_path_factory.mktemp("pair") / "demo.db")))
    return store, postgres.holding(store)


@pytest.fixture
def small(postgres: Server, small_store: Callable[..., Path]) -> str:
    return postgres.holding(small_store())


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    "words",
    [
        ("query", "cost_per_model", "STORE", "--format", "csv"),
        ("search", "error", "STORE", "--limit", "3"),
        ("export", "STORE", "--source", "cron", "--output", "-"),
        ("export", "STORE", "--question", "cost_per_day", "--format", "csv", "--output", "-"),
        ("budget", "STORE", "--budget", "5/day", "--json"),
    ],
    ids=" ".join,
)
def test_a_verb_that_reads_says_the_same(pair: tuple[Path, str], words: tuple[str, ...]) -> None:
    store, address = pair
    of_file, of_database = (
        command(*(given if word == "STORE" else word for word in words)) for given in (store, address)
    )
    assert of_file.exit_code == of_database.exit_code == 0, of_database.output
    told = [each.stdout.splitlines() for each in (of_file, of_database)]
    if "--source" in words:  # the head says which store it was, and when
        heads = [json.loads(lines.pop(0)) for lines in told]
        assert heads[0]["counts"] == heads[1]["counts"]
    copy = str(Address.of(address).copy_path)
    assert [line.replace(copy, str(store)) for line in told[1]] == told[0]
    assert len(of_file.stdout) > 100


WRITERS = ("archive", "backup", "check", "delete", "demo", "import", "index", "migrate", "optimize", "plan", "prune",
           "repair", "restore", "sizes", "status", "sweep", "vacuum")  # fmt: skip


def test_every_verb_reads_an_address_or_refuses_it() -> None:
    readers = {"serve", "query", "search", "export", "profiles", "budget", "reconcile", "prices", "lake"}
    assert readers | set(WRITERS) == set(VERBS)


@pytest.mark.parametrize("verb", WRITERS)
def test_a_verb_for_files_refuses_a_database_and_its_copy(
    small: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    more = {"repair": ["new.db"], "restore": ["new.db"]}.get(verb, [])
    before = ["file"] if verb == "import" else []
    copy = postgresql.refresh(small)
    for given, word in ((small, "is in PostgreSQL"), (copy.path, "is a copy of localhost/books")):
        said = command(verb, *before, given, *more)
        assert said.exit_code == 1, said.output
        assert word in said.output and "is only read: by serve, query" in said.output
    assert postgresql.copy_at(copy.path) == copy


def test_what_a_database_refuses_ends_a_verb_with_its_sentence(postgres: Server, small: str) -> None:
    address = small.replace(f"{OWNER}@", "locked:wr-ong@")
    said = command("query", "cost_per_day", address)
    assert said.exit_code == 1 and "password authentication failed" in said.output and "wr-ong" not in said.output
    right = small.replace(f"{OWNER}@", f"locked:{PASSWORD}@")
    assert "GRANT SELECT" in command("query", "cost_per_day", right).output
    postgres.run(small, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO locked")
    assert command("query", "recent_sessions", right, "--format", "csv").stdout.count("\n") == 2


def test_without_the_driver_it_is_said_what_to_install(small: str) -> None:
    code = "import sys; sys.modules['psycopg'] = None\nfrom state_ledger.cli import main; main()"
    said = prepared.run("-c", code, "query", "cost_per_day", small)
    assert (said.returncode, said.stderr.count("Traceback")) == (1, 0)
    assert "pip install 'state-ledger[postgresql]'" in said.stderr


def test_a_push_to_a_lake_takes_a_database(postgres: Server, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra lake")
    from tests.lakes import make_store

    store = make_store(tmp_path / "state.db")
    totals = []
    for number, given in enumerate((store, postgres.holding(store))):
        said = command("lake", "push", given, "--to", tmp_path / f"lake{number}", "--host", "h", "--json")
        assert said.exit_code == 0, said.output
        totals.append(json.loads(said.stdout)[0]["totals"])
    assert totals[0] == totals[1] and totals[0]["sessions"] == 6


def test_serve_hands_the_address_over_where_nobody_sees_it(
    postgres: Server, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run(small, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO locked")
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(serving, "_become", lambda command, environment: started.append((command, environment)))
    address = small.replace(f"{OWNER}@", f"locked:{PASSWORD}@")
    said = command("serve", address, "--no-browser")
    assert said.exit_code == 0, said.output
    ((words, environment),) = started
    assert PASSWORD not in " ".join(words) + said.output
    assert str(Address.of(address).copy_path) in words
    assert environment[postgresql.VARIABLE] == address


async def test_pages_say_that_they_show_a_copy_and_of_when(
    pair: tuple[Path, str], make_datasette: Callable[..., Any]
) -> None:
    copy = postgresql.refresh(pair[1])
    datasette = await make_datasette([copy.path])
    (name,) = [each for each in datasette.databases if each.startswith("localhost-")]
    page = (await datasette.client.get(f"/{name}")).text
    assert "This is a copy of the PostgreSQL database" in page and copy.name in page
    assert "What was written to it since then is not shown" in page
    index = (await datasette.client.get("/")).text
    assert copy.name in index and "Copy</strong> of" in index
    of_file = await make_datasette([pair[0]])
    shown = [
        (await each.client.get(f"/{store}/-/cost?since=2026-01-01")).text
        for each, store in ((datasette, name), (of_file, "demo"))
    ]
    amounts = [[word for word in re.split(r"[\s<>]+", page) if word.startswith("$")] for page in shown]
    assert amounts[0] == amounts[1] and len(amounts[0]) > 20


def test_a_server_keeps_its_copy_up_to_date(
    postgres: Server, small: str, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = postgresql.refresh(small).path
    monkeypatch.setenv(postgresql.VARIABLE, small)
    postgres.run(small, "INSERT INTO sessions (id, source, started_at) VALUES ('the-second', 'cli', 1767225600)")
    address = served([path])
    wait_until(lambda: "the-second" in fetch(f"{address}/{path.stem}/recent_sessions.json")[1])
