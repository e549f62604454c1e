"""health.json and metrics: what monitors get, whom they are given to, and that they stay cheap."""

from __future__ import annotations

import asyncio
import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state_ledger.health import checkup, metrics
from state_ledger.plugins import compat
from state_ledger.sqlite import sqlite3
from tests import books, damage
from tests.conftest import names_in

HEALTH, METRICS = "/-/ledger/health.json", "/-/ledger/metrics"
ON = {"plugins": {"state-ledger": {"metrics": True}}}
LINE = re.compile(
    r"(?P<name>[a-z_]+)\{(?P<labels>(?:[a-z_]+=\"(?:[^\"\\\n]|\\[\\\"n])*\",?)+)\} (?P<value>-?[0-9.e+-]+)"
)


@pytest.fixture
def live(tmp_path: Path, demo_store: Path) -> Path:
    folder = tmp_path / "private folder"
    folder.mkdir()
    return Path(shutil.copy(demo_store, folder / "state.db"))


async def test_a_store_that_is_well_is_200_and_one_with_an_error_503(live: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(live)
    answer = await datasette.client.get(HEALTH)
    body = answer.json()
    assert answer.status_code == 200 and body["ok"] is True and body["stores"]["state"]["severity"] == "ok"
    assert answer.headers["cache-control"] == "no-store"
    assert names_in(live.parent) == ["state.db"] or {"state.db", "state.db-shm", "state.db-wal"} == set(
        names_in(live.parent)
    ), "what Datasette's own connection needs, and nothing else"
    for database in datasette.databases.values():
        database.close()

    damage.run(live, "DELETE FROM messages_fts_data WHERE id > 10")
    broken = await make_datasette(live)
    answer = await broken.client.get(HEALTH)
    assert answer.status_code == 503 and answer.json()["ok"] is False
    assert "private folder" not in answer.text


async def test_from_which_severity_on_it_is_503(live: Path, make_datasette: Any) -> None:
    damage.run(live, "DROP TABLE messages_fts_trigram")
    datasette = await make_datasette(live)
    for query, status in (("", 200), ("?fail=error", 200), ("?fail=warning", 503), ("?fail=sometimes", 400)):
        assert (await datasette.client.get(HEALTH + query)).status_code == status, query


async def test_metrics_are_off_until_they_are_turned_on(live: Path, make_datasette: Any) -> None:
    assert (await (await make_datasette(live)).client.get(METRICS)).status_code == 404


async def test_metrics_are_text_that_prometheus_takes_and_the_figures_of_the_ledger(
    live: Path, make_datasette: Any
) -> None:
    datasette = await make_datasette(live, metadata=ON)
    answer = await datasette.client.get(METRICS)
    assert answer.status_code == 200 and answer.headers["content-type"] == metrics.CONTENT_TYPE
    values: dict[tuple[str, str], float] = {}
    declared: list[str] = []
    for line in answer.text.splitlines():
        if line.startswith("#"):
            _hash, word, name, rest = line.split(" ", 3)
            assert word in ("HELP", "TYPE") and (word == "HELP" or rest == "gauge")
            declared.append(name)
            continue
        match = LINE.fullmatch(line)
        assert match is not None and match["name"] == declared[-1], line
        values[match["name"], match["labels"].rstrip(",")] = float(match["value"])
    without_budgets = [name for name in metrics.METRICS if "_budget_" not in name]
    assert declared == [name for name in without_budgets for _word in ("HELP", "TYPE")] and answer.text.endswith("\n")
    with closing(books.open_books(live)) as connection:
        (actual, estimated, cached, output) = connection.execute(
            "SELECT sum(actual_usd), sum(estimated_usd), sum(cache_read_tokens), sum(output_tokens) FROM ledger_usage"
        ).fetchone()
        sessions, open_ones, messages = connection.execute(
            "SELECT count(*), sum(ended_at IS NULL), (SELECT count(*) FROM messages) FROM sessions"
        ).fetchone()
    expected = {
        ("cost_usd", 'store="state",basis="actual"'): actual,
        ("cost_usd", 'store="state",basis="estimated"'): estimated,
        ("tokens", 'store="state",bucket="cache_read"'): cached,
        ("tokens", 'store="state",bucket="output"'): output,
        ("sessions", 'store="state"'): sessions,
        ("open_sessions", 'store="state"'): open_ones,
        ("messages", 'store="state"'): messages,
        ("file_bytes", 'store="state"'): live.stat().st_size,
        ("up", 'store="state"'): 1,
    }
    assert {key: values[f"state_ledger_{key[0]}", key[1]] for key in expected} == pytest.approx(expected)
    assert 0 < values["state_ledger_cache_read_ratio", 'store="state"'] < 1


def test_labels_are_escaped() -> None:
    text = metrics.render({'a"b\\c\nd': [metrics.Sample("state_ledger_up", (), 1)]})
    assert 'store="a\\"b\\\\c\\nd"' in text and text.count("\n") == 3


@pytest.mark.parametrize("address", [HEALTH, METRICS])
async def test_only_what_the_visitor_may_see(live: Path, tmp_path: Path, make_datasette: Any, address: str) -> None:
    other = Path(shutil.copy(live, tmp_path / "other.db"))
    where = "config" if compat.IS_1 else "metadata"
    deny: dict[str, Any] = {"databases": {"state": {"allow": False}}}
    rules = {where: {**deny, **ON}} if where == "metadata" else {"config": deny, "metadata": ON}
    answer = await (await make_datasette([live, other], **rules)).client.get(address)
    assert answer.status_code == 200 and "other" in answer.text and '"state"' not in answer.text
    nobody: dict[str, Any] = {"allow": False}
    rules = {where: {**nobody, **ON}} if where == "metadata" else {"config": nobody, "metadata": ON}
    assert (await (await make_datasette([live, other], **rules)).client.get(address)).status_code == 403


async def test_many_who_ask_at_once_make_one_look(
    live: Path, make_datasette: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasette = await make_datasette(live)
    looks = []
    glance = checkup.glance
    monkeypatch.setattr(checkup, "glance", lambda patient: looks.append(patient) or glance(patient))
    answers = await asyncio.gather(*(datasette.client.get(HEALTH) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200} and len(looks) == 1


async def test_a_store_that_vanished_is_an_error_and_down(live: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(live, metadata=ON)
    for name in names_in(live.parent):
        (live.parent / name).unlink()
    answer = await datasette.client.get(HEALTH)
    assert answer.status_code == 503 and "private folder" not in answer.text
    assert 'state_ledger_up{store="state"} 0' in (await datasette.client.get(METRICS)).text


def test_a_glance_reads_no_message(live: Path) -> None:
    from state_ledger.connection import furnish
    from state_ledger.health.patient import LIVE, Patient
    from state_ledger.settings import Settings

    with closing(sqlite3.connect(f"{live.as_uri()}?immutable=1", uri=True)) as connection:
        shape = furnish(connection, live)
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        connection.set_progress_handler(count, 100)
        checkup.glance(Patient(live, connection, shape, LIVE, Settings()))
        assert steps < 50, "look-ups by key only"
