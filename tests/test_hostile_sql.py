"""Own SQL of a stranger: nothing is written, loaded or read that is not of the store, and all of it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from state_ledger import SessionDB
from state_ledger.plugins import compat
from tests.conftest import STRESS, Servers, fetch, names_in
from tests.hostile_sql import CUT, EMPTY, ENDLESS, REFUSED, attempts, too_deep

OWN = "/state/-/query" if compat.IS_1 else "/state"
"""Where each line answers SQL of a visitor's own."""

WORD = "lighthousekeeper"
MEMORY_MB = 64


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "state.db"
    with SessionDB(path) as db:
        db.create_session("s1", "cli", model="m")
        db.append_messages("s1", [{"role": "user", "content": f"{number} {WORD}"} for number in range(120)])
    return path


def others_in(folder: Path) -> list[str]:
    """What is in a folder besides the store and the log that is open while somebody reads it."""
    return [name for name in names_in(folder) if not name.startswith("state.db")]


def asked(sql: str, folder: Path, form: str = ".json", **more: str) -> str:
    return f"{OWN}{form}?{urlencode({'sql': sql.replace('!', str(folder / 'made')), '_shape': 'objects', **more})}"


def test_there_are_enough_attempts_and_no_two_are_the_same() -> None:
    every = [*attempts(REFUSED), *attempts(CUT), *attempts(ENDLESS), *attempts(EMPTY), *(sql for _, sql in too_deep())]
    assert len(set(every)) == len(every) >= 150


async def test_what_would_do_something_is_refused(
    make_datasette: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, beside = store.read_bytes(), others_in(store.parent)
    datasette = await make_datasette(store)
    forms = (".json", ".csv", "")
    for number, sql in enumerate(attempts(REFUSED)):
        for form in forms if STRESS else (forms[number % 3],):
            more = {"_stream": "on", "_size": "max", "_timelimit": "99999999"} if form else {}
            answer = await datasette.client.get(asked(sql, tmp_path, form, **more))
            # A stream has begun before its SQL is read: then it ends without a row. The page of 1.0 keeps its form.
            refused = not answer.text.strip() or 'class="message-error"' in answer.text
            assert refused or answer.status_code in (400, 403, 404), (sql, form, answer.status_code, answer.text[:200])
            assert "Traceback" not in answer.text
            assert f"0 {WORD}" not in answer.text
    for kind, sql in too_deep():
        answer = await datasette.client.get(asked(sql, tmp_path))
        assert answer.status_code == (200 if kind == "empty" else 400), (sql[:40], answer.text[:200])
    for sql in attempts(EMPTY):
        answer = await datasette.client.get(asked(sql, tmp_path))
        assert answer.status_code == 200, answer.text
        assert [list(row.values()) for row in answer.json()["rows"]] in ([], [[0]]), sql
    assert store.read_bytes() == before
    assert (others_in(store.parent), names_in(tmp_path)) == (beside, [])


INJECTED = [
    "'; vacuum into '!'; --", "1); attach '!' as x; --", "') union select load_extension('!') --", "x' or '1'='1", "%",
    "\x00", '"; drop table messages; --', "1 union select 1", "../../!", "file:!?mode=rwc", "pragma writable_schema=1",
    "char(0)", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "[messages]; delete from messages",
]  # fmt: skip
"""Values for places that take no SQL."""

PLACES = [
    "/state/messages.json?_sort=!", "/state/messages.json?_sort_desc=!", "/state/messages.json?_facet=!",
    "/state/messages.json?_facet_array=!", "/state/messages.json?_facet_date=!", "/state/messages.json?_col=!",
    "/state/messages.json?_nocol=!", "/state/messages.json?_search=!", "/state/messages.json?_search=!&_searchmode=raw",
    "/state/messages.json?_search_content=!", "/state/messages.json?_fts_table=!&_search=a",
    "/state/messages.json?_fts_pk=!&_search=a", "/state/messages.json?_next=!", "/state/messages.json?_size=!",
    "/state/messages.json?_shape=!", "/state/messages.json?_labels=!", "/state/messages.json?_json=!",
    "/state/messages.json?_timelimit=!", "/state/messages.json?_through=!", "/state/messages.json?id__in=!",
    "/state/messages.json?content__like=!", "/state/messages.json?content__regexp=!", "/state/messages.json?!=!",
    "/state/messages.json?_where=!", "/state/messages.csv?_stream=on&_dl=!", "/state/search.json?q=!&sort=!&limit=!",
    "/state/recent_sessions.json?source=!&limit=!&tz=!", "/state/-/ask/search.json?q=!",
]  # fmt: skip


async def test_no_value_is_taken_for_sql(
    make_datasette: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before, beside = store.read_bytes(), others_in(store.parent)
    datasette = await make_datasette(store)
    for number, place in enumerate(PLACES):
        values = INJECTED if STRESS else INJECTED[number % 5 :: 5]
        for value in values:
            quoted = urlencode({"": value.replace("!", str(tmp_path / "made"))})[1:]
            answer = await datasette.client.get(place.replace("!", quoted))
            assert "Traceback" not in answer.text, (place, value)
    assert store.read_bytes() == before
    assert (others_in(store.parent), names_in(tmp_path)) == (beside, [])


@pytest.fixture(scope="module")
def limited(store: Path) -> Iterator[tuple[str, int]]:
    """Address and process of a server with little time and memory for a question."""
    settings = store.parent / "settings.yaml"
    settings.write_text(f"plugins:\n  state-ledger:\n    query_memory_mb: {MEMORY_MB}\n")
    servers = Servers()
    given = ("--config" if compat.IS_1 else "--metadata", str(settings), "--setting", "sql_time_limit_ms", "60",
             "--setting", "num_sql_threads", "1")  # fmt: skip
    address = servers([store], *given)
    yield address, servers.processes[-1].pid
    # It would wait at its end for the step that nothing can end.
    servers.processes[-1].kill()
    servers.end()


def highest_kb(process: int) -> int:
    """The most memory that a process ever had, in kilobytes."""
    status = Path(f"/proc/{process}/status")
    if not status.is_file():
        pytest.skip("this system does not tell how much memory a process had")
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1])


CUT_SHORT = ("took too long", "SQL Interrupted", "interrupted", "in its time", "more memory", "MB of text", "too big")


def test_what_would_exhaust_the_machine_is_cut(limited: tuple[str, int], store: Path, tmp_path: Path) -> None:
    address, process = limited
    before, at_rest = store.read_bytes(), highest_kb(process)
    for sql in attempts(CUT):
        status, text = fetch(address + asked(sql, tmp_path))
        assert status in (400, 503), (sql, status, text[:300])
        assert any(words in text for words in CUT_SHORT), (sql, text[:300])
    grown = (highest_kb(process) - at_rest) / 1000
    assert grown < 5 * MEMORY_MB, f"the server grew by {grown:.0f} MB"
    assert fetch(f"{address}/state/-/home")[0] == 200
    assert store.read_bytes() == before


def test_a_step_that_does_not_end_is_answered_and_keeps_nobody_else_waiting(
    limited: tuple[str, int], tmp_path: Path
) -> None:
    address, _process = limited
    for sql in attempts(ENDLESS)[: None if STRESS else 1]:
        status, text = fetch(address + asked(sql, tmp_path))
        assert status in (400, 503), text[:300]
        assert any(words in text for words in CUT_SHORT)
        # Datasette's only thread is still busy with it.
        assert json.loads(fetch(f"{address}/state/cost_per_model.json?_shape=objects")[1])["ok"] is True
