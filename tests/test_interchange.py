"""One file, two programs: stores go back and forth between us and the real Hermes Agent, and are shared live.

Every store here is opened by separate processes, ours with our SQLite and the real program's with its
own, as on a user's machine. STATE_LEDGER_STRESS=1 lets the live tests run for 30 s instead of 4.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from state_ledger.connection import open_for_reading
from state_ledger.demo import make_demo
from state_ledger.sqlite import sqlite3
from tests.conftest import STRESS, fewer
from tests.hermes import VERSIONS as RELEASES
from tests.hermes import StoreProcess, our_store, real_store
from tests.interchange_books import SEARCHED, STRUCTURED, Books, Snapshot, missing, write_books

SECONDS = 30.0 if STRESS else 4.0

COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")

pytestmark = pytest.mark.filterwarnings("error")

Opener = Callable[[Path], AbstractContextManager[StoreProcess]]

VERSIONS = RELEASES[-fewer(3) :]
every_version = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@every_version
def test_real_program_reads_and_extends_a_store_we_wrote(version: str, path: Path) -> None:
    with our_store(path) as ours:
        books = write_books(ours, "ours")
        assert missing(ours, books) == []
        assert ours.complaints() == []
    before = Snapshot.read(path)
    assert before.total("input_tokens") == books.tokens["input_tokens"]

    with real_store(version, path) as real:
        assert missing(real, books) == []
        assert before.lost_in(Snapshot.read(path)) == []
        assert _exported(real) == Counter(session for session, _, _ in books.messages.values())
        more = write_books(real, "real", structured=False)
        books.add(real, "ours-talk", "user", "One more from the other program.")
        books.spend(real, "ours-talk", 2.0, input_tokens=5)
        assert missing(real, books) == missing(real, more) == []
        assert _but_trigram(real.complaints()) == []

    after = Snapshot.read(path)
    assert before.lost_in(after, besides={"ours-talk"}) == _grown_usage(before, after, "ours-talk")
    _holds(after, books, more)
    with our_store(path) as ours:
        assert missing(ours, books) == missing(ours, more) == []
        assert ours.complaints() == []


@pytest.mark.parametrize("structured", [False, True], ids=["plain", "structured"])
@every_version
def test_we_migrate_and_extend_a_store_of_the_real_program(version: str, structured: bool, path: Path) -> None:
    with real_store(version, path) as real:
        books = write_books(real, "real", structured=structured)
        assert real.complaints() == []
    before = Snapshot.read(path)

    with our_store(path) as ours:
        assert before.lost_in(Snapshot.read(path)) == []
        assert missing(ours, books) == []
        more = write_books(ours, "ours", structured=False)
        books.add(ours, "real-talk", "user", "One more from the other program.")
        books.spend(ours, "real-talk", 2.0, input_tokens=5)
        assert missing(ours, books) == missing(ours, more) == []
        complaints = ours.complaints()

    with real_store(version, path) as real:
        assert missing(real, books) == missing(real, more) == []
        again = write_books(real, "again", structured=False)
        assert missing(real, again) == []
        # Trigrams of what follows a NUL are indexed or not, by the release of SQLite that did it: of
        # the two programs only one can find that index equal to its source.
        theirs = real.complaints()
    assert not (complaints and theirs) if structured else complaints == theirs == []
    assert _but_trigram(complaints) == _but_trigram(theirs) == []
    after = Snapshot.read(path)
    assert before.lost_in(after, besides={"real-talk"}) == _grown_usage(before, after, "real-talk")
    _holds(after, books, more, again)


@every_version
def test_real_program_reads_the_demo_store_with_all_its_troubles(version: str, path: Path) -> None:
    demo = make_demo(path, sessions=100, messages_per_session=8)
    connection = sqlite3.connect(path)
    # The real program refuses to read this text at all, also from a file of its own.
    connection.execute("UPDATE messages SET content = 'Caf' WHERE session_id = ?", [demo.troubles["not_utf8"]])
    connection.commit()
    troubles = [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    connection.close()
    before = Snapshot.read(path)
    with real_store(version, path) as real:
        assert real.message_count() == demo.messages
        # The oldest release knows no messages that were taken back or summarised: it exports them all.
        all_kinds = not real.accepts("get_messages", "include_inactive")
        shown = [row for row in before.tables["messages"].values() if row["active"] or all_kinds]
        assert sum(_exported(real).values()) == len(shown)
        books = write_books(real, "real", structured=False)
        assert missing(real, books) == []
        assert _but_trigram(real.complaints()) == troubles
    assert before.lost_in(Snapshot.read(path)) == []


@pytest.mark.parametrize("first", ["ours", "real"])
@every_version
def test_structured_message_leaves_no_trace_in_an_index_when_the_other_program_deletes_it(
    version: str, first: str, path: Path
) -> None:
    by_name: dict[str, Opener] = {"ours": our_store, "real": partial(real_store, version)}
    second = {"ours": "real", "real": "ours"}[first]
    with by_name["ours"](path) as store:
        store.create_session("kept", "cli")
        store.append_message("kept", "user", "kept")
    with by_name[first](path) as store:
        store.create_session("gone", "cli")
        store.append_message("gone", "user", STRUCTURED)
    with by_name[second](path) as store:
        assert store.get_messages("gone")[0]["content"] == STRUCTURED
        assert store.delete_session("gone") is True
        complaints = {second: store.complaints()}
    with by_name[first](path) as store:
        complaints[first] = store.complaints()
        assert store.search_messages("lighthouse") == []
        assert [hit["session_id"] for hit in store.search_messages("kept")] == ["kept"]
    assert complaints == {"ours": [], "real": []}


@pytest.mark.parametrize(("version", "maker"), [*((version, "ours") for version in VERSIONS), ("0.19.0", "real")])
def test_both_programs_append_to_one_live_file(version: str, maker: str, path: Path, tmp_path: Path) -> None:
    with our_store(path) if maker == "ours" else real_store(version, path) as store:
        for session in ("ours", "real"):
            store.create_session(session, "cli")
    logs = {name: tmp_path / f"{name}.log" for name in ("ours", "real")}
    with our_store(path) as ours, real_store(version, path) as real:
        for name, store in (("ours", ours), ("real", real)):
            store.begin("append_for", name, SECONDS, str(logs[name]))
        done = {"ours": ours.finish(), "real": real.finish()}
        assert min(done.values()) > 0
        assert {session["id"]: session["message_count"] for session in real.search_sessions()} == done
        assert ours.complaints() == real.complaints() == []

    rows = Snapshot.read(path).tables["messages"]
    stored = {key[0]: (row["session_id"], row["content"]) for key, row in rows.items()}
    acknowledged = {}
    for name, log in logs.items():
        lines = [line.split(" ", 1) for line in log.read_text("utf-8").splitlines()]
        ids = [int(number) for number, _ in lines]
        assert ids == sorted(set(ids))
        acknowledged |= {number: (name, content) for number, (_, content) in zip(ids, lines, strict=True)}
        assert len(ids) == done[name]
        # The n of each text counts up: stored order is the order of the calls.
        assert [row for row in stored.values() if row[0] == name] == [(name, content) for _, content in lines]
    assert stored == acknowledged


def test_ledger_totals_are_what_the_real_program_was_told(path: Path) -> None:
    told: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    with real_store("0.19.0", path) as real:
        for number in range(6):
            session = f"s{number}"
            real.create_session(session, "cli", model="a-model", parent_session_id="s0" if number == 5 else None)
            for call in range(4):
                counters = {name: 100 * at + 10 * number + call for at, name in enumerate(COUNTERS, start=1)}
                model, cost = "a-model" if call < 2 else "b-model", 0.01 * (call + 1)
                real.update_token_counts(
                    session, **counters, model=model, billing_provider="p", estimated_cost_usd=cost,
                    cost_status="estimated", cost_source="provider_models_api", api_call_count=1,
                )  # fmt: skip
                told[model, ""].update(counters | {"cost_usd": cost, "api_call_count": 1})
            counters = {"input_tokens": 31 + number, "output_tokens": 7}
            real.record_auxiliary_usage(session, "title_generation", model="c", **counters, estimated_cost_usd=0.005)
            told["c", "title_generation"].update(counters | {"cost_usd": 0.005, "api_call_count": 1})
        # A session reported in running totals has no usage rows, only its own counters.
        real.create_session("absolute", "acp", model="d-model")
        for part in (1, 2, 3):
            counters = dict.fromkeys(COUNTERS, 1000 * part)
            real.update_token_counts(
                "absolute", **counters, model="d-model", billing_provider="p", estimated_cost_usd=0.03 * part,
                cost_status="estimated", api_call_count=part, absolute=True,
            )  # fmt: skip
        told["d-model", ""].update(counters | {"cost_usd": 0.09, "api_call_count": 3})

    expected = {key: [pytest.approx(sums[name], abs=1e-9) for name in SUMMED] for key, sums in told.items()}
    assert _ledger_sums(path) == expected
    with our_store(path) as ours:
        assert ours.about["schema_version"] == 23
    assert _ledger_sums(path) == expected


SUMMED = (*COUNTERS, "cost_usd", "api_call_count")


def _ledger_sums(path: Path) -> dict[tuple[str, str], list[float]]:
    """What the ledger counts for each model and task."""
    connection = open_for_reading(path)
    sums = ", ".join(f"total({name})" for name in SUMMED)
    rows = connection.execute(f"SELECT model, task, {sums} FROM ledger_usage GROUP BY model, task").fetchall()
    connection.close()
    return {(row[0], row[1]): list(row)[2:] for row in rows}


def test_search_of_both_programs_finds_the_same_messages(path: Path) -> None:
    with our_store(path) as ours:
        write_books(ours, "ours", structured=False)
    with real_store("0.19.0", path) as real, our_store(path) as ours:
        write_books(real, "real", structured=False)
        for question in (*SEARCHED, "manifest AND pier", "harb*", "tide_table", "high NOT low"):
            found = [{hit["id"] for hit in store.search_messages(question, limit=100)} for store in (ours, real)]
            assert found[0] == found[1], question
            assert found[0], question


def _exported(store: StoreProcess) -> Counter[str]:
    """Messages of each session in `export_all`."""
    return Counter(message["session_id"] for session in store.export_all() for message in session["messages"])


def _but_trigram(complaints: list[str]) -> list[str]:
    """Complaints that no difference between SQLite releases explains."""
    return [complaint for complaint in complaints if not complaint.startswith("messages_fts_trigram: ")]


def _grown_usage(before: Snapshot, after: Snapshot, session: str) -> list[str]:
    """How the usage rows of a session that was extended differ, in the words of `lost_in`."""
    grown = Snapshot({"session_model_usage": _usage_of(before, session)})
    return grown.lost_in(Snapshot({"session_model_usage": _usage_of(after, session)}))


def _usage_of(snapshot: Snapshot, session: str) -> dict[object, dict[str, object]]:
    rows = snapshot.tables.get("session_model_usage", {})
    return {key: row for key, row in rows.items() if key[0] == session}


def _holds(after: Snapshot, *books: Books) -> None:
    """That a store holds these books and nothing else."""
    assert {key[0] for key in after.tables["messages"]} == {number for one in books for number in one.messages}
    for counter in COUNTERS:
        assert after.total(counter) == sum(one.tokens.get(counter, 0) for one in books)
    assert after.total("estimated_cost_usd") == pytest.approx(sum(one.cost for one in books), abs=1e-9)
    counts = Counter(session for one in books for session, _, _ in one.messages.values())
    for key, row in after.tables["sessions"].items():
        assert row["message_count"] == counts[key[0]], key
