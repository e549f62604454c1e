"""Several stores as one: sums, copies, broken ones, families across files, searches."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.errors import ParameterError
from state_ledger.search import Request
from state_ledger.settings import Settings
from state_ledger.shelf import Member, NotOverStores, Reading, Shelf, ask_stores
from state_ledger.shelf import members as members_of
from state_ledger.shelf.catalogue import catalogue
from state_ledger.shelf.search import find, read_places
from state_ledger.sqlite import sqlite3
from tests import books
from tests.books import call, message, session
from tests.conftest import SHARED_STORES

UTC = Settings(zone="UTC")
NOON = 1780315200.0
TOTALS = ("api_call_count", "input_tokens", "cache_read_tokens", "cost_usd", "unknown_calls", "prompt_tokens")


@contextmanager
def reading(paths: Sequence[Path], only: Sequence[str] = ()) -> Iterator[Reading]:
    with closing(Shelf(UTC)) as shelf, shelf.reading(members_of(paths), only=only) as found:
        yield found


def store(folder: Path, name: str, number: int, **columns: Any) -> Path:
    """A store with one session of its own that cost `number` dollars, in the profile `name`."""
    path = folder / "profiles" / name / "state.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    return books.write(
        path,
        sessions=[session(f"s{number}", **columns)],
        usage=[call(f"s{number}", input_tokens=10**5, cache_read_tokens=3 * 10**5, cache_write_tokens=0,
                    api_call_count=number, estimated_cost_usd=float(number), cost_status="estimated",
                    cost_source="provider", last_seen=NOON)],
        messages=[message(f"s{number}", NOON + number, content=f"a harbour, number {number}")],
    )  # fmt: skip


def totals(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {name: sum(row[name] or 0 for row in rows) for name in TOTALS}


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(round(cell, 9) if isinstance(cell, float) else cell for cell in row)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("three")
    return [store(folder, name, number) for number, name in enumerate(("work", "home", "lab"), 1)]


def test_one_store_answers_every_question_as_it_does_alone(demo_store: Path) -> None:
    with closing(books.open_books(demo_store)) as alone, reading([demo_store]) as one:
        for name in catalogue():
            result = one.ask(name, {"tz": "UTC"} if "tz" in _names(name) else {})
            assert result.engine in ("stores", "store")
            if name not in questions.load():
                continue
            expected = questions.ask(alone, name, {"tz": "UTC"} if "tz" in _names(name) else {}, settings=UTC)
            rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
            told = [plain([row[column] for column in expected.columns]) for row in rows]
            assert told == [plain(row) for row in expected.rows], name
            assert all(row.get("store", "demo") in ("demo", None) for row in rows), name


def _names(question: str) -> set[str]:
    return {parameter.name for parameter in catalogue()[question].parameters}


@pytest.mark.parametrize("name", ["small-1.db", "schema-11.db", "schema-25.db", "small-30-handmade.db"])
def test_a_store_of_any_schema_is_read(name: str) -> None:
    path = SHARED_STORES / name
    if not path.is_file():
        pytest.skip(f"there is no {name} in ../shared/stores")
    with closing(books.open_books(path)) as alone, reading([path]) as one:
        assert not one.missing
        for question in ("cost_per_model", "ledger_audit", "longest_conversations"):
            assert list(map(plain, one.ask(question).rows)) and [
                plain(row[: len(each)]) for row, each in zip(
                    one.ask(question).rows, questions.ask(alone, question, settings=UTC).rows, strict=True
                )
            ] == list(map(plain, questions.ask(alone, question, settings=UTC).rows))  # fmt: skip


def test_sums_are_the_sums_of_the_stores_and_each_store_is_a_row(three: list[Path]) -> None:
    alone = [totals(questions.ask(books.open_books(path), "cost_per_model").records()) for path in three]
    with reading(three) as all_of_them:
        for name in ("cost_per_model", "cost_per_source", "cost_per_store", "cost_per_profile", "cost_per_day"):
            found = totals(all_of_them.ask(name).records()) if name != "cost_per_day" else None
            if found is not None:
                assert found == {key: sum(each[key] for each in alone) for key in TOTALS}, name
        by_store = {row["store"]: row["cost_usd"] for row in all_of_them.ask("cost_per_store").records()}
        assert by_store == {"work": 1.0, "home": 2.0, "lab": 3.0}
        assert [row["profile"] for row in all_of_them.ask("cost_per_profile").records()] == ["lab", "home", "work"]
        ratio = all_of_them.ask("cache_ratio_per_model").records()[0]
        assert ratio["cache_read_ratio"] == 0.75, "the ratio of the sums"
        assert [row["store"] for row in all_of_them.ask("cost_sessions").records()] == ["lab", "home", "work"]
    with reading(three, only=["home"]) as narrowed:
        assert totals(narrowed.ask("cost_per_model").records())["cost_usd"] == 2.0
    answer = ask_stores(three, "cost_per_profile", {"profile": "lab"}, settings=UTC)
    assert [row["cost_usd"] for row in answer.result.records()] == [3.0] and answer.notices == []


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = []
    for number, name in enumerate(("alpha", "beta"), 1):
        path = tmp_path / name / "state.db"
        path.parent.mkdir()
        paths.append(books.write(path, sessions=[session(f"s{number}")], usage=[call(f"s{number}")]))
    answer = ask_stores(paths, "stores", settings=UTC)
    assert [row["store"] for row in answer.result.records()] == ["alpha-state", "beta-state"]


def test_a_session_in_two_stores_counts_once_in_the_one_with_more_of_it(tmp_path: Path) -> None:
    ours = store(tmp_path, "work", 1)
    copy = tmp_path / "profiles" / "copy" / "state.db"
    copy.parent.mkdir()
    shutil.copyfile(ours, copy)
    with reading([copy, ours]) as same:
        assert totals(same.ask("cost_per_model").records())["cost_usd"] == 1.0 and same.copies == 1
        assert [r["store"] for r in same.ask("cost_per_store").records()] == ["copy"], "of equals, the first by path"
    with sqlite3.connect(ours) as connection:
        connection.execute("INSERT INTO messages (session_id, role, timestamp) VALUES ('s1', 'user', ?)", (NOON + 9,))
        connection.execute("UPDATE session_model_usage SET estimated_cost_usd = 5.0")
    connection.close()
    for order in ([copy, ours], [ours, copy]):
        with reading(order) as grown:
            assert totals(grown.ask("cost_per_model").records())["cost_usd"] == 5.0
            (told,) = grown.ask("duplicate_sessions").records()
            assert (told["store"], told["copy_in"]) == ("work", "copy")
            assert (told["messages"], told["messages_of_copy"], told["cost_usd_of_copy"]) == (2, 1, 1.0)
            assert grown.ask("activity_summary").records() == [{"sessions": 1, "sessions_started": 1, "messages": 2}]
            place = grown.place("s1")
            assert place is not None and place[0].name == "work"
    with reading([copy, ours], only=["copy"]) as narrowed:
        assert narrowed.ask("cost_per_model").rows == [], "what each store adds to the whole"


def test_two_sessions_that_only_share_an_id_both_count(tmp_path: Path) -> None:
    paths = [store(tmp_path, name, 1, started_at=NOON + at) for at, name in enumerate(("work", "home"))]
    with reading(paths) as both:
        assert totals(both.ask("cost_per_model").records())["cost_usd"] == 2.0 and both.copies == 0
        rows = both.ask("cost_sessions").records()
        assert sorted((row["session_id"], row["store"]) for row in rows) == [("home:s1", "home"), ("work:s1", "work")]
        place = both.place("home:s1")
        assert place is not None and (place[0].name, place[1]) == ("home", "s1")
        assert both.ask("session_messages", {"session": "home:s1"}).records()[0]["store"] == "home"


def test_a_conversation_whose_parts_stand_in_two_copies_is_one(tmp_path: Path) -> None:
    """The old copy has more of the first session, only the live store has the second."""
    first = session("first", ended_at=NOON + 5, end_reason="compression")
    old = books.write(tmp_path / "old.db", sessions=[first],
                      messages=[message("first", NOON), message("first", NOON + 1)], usage=[call("first")])  # fmt: skip
    new = books.write(
        tmp_path / "new.db", sessions=[first, session("second", parent_session_id="first", started_at=NOON + 9)],
        messages=[message("first", NOON), message("second", NOON + 10)], usage=[call("first"), call("second")],
    )  # fmt: skip
    with reading([old, new]) as both:
        rows = {row["session_id"]: row for row in both.ask("lineage_conversation", {"session": "second"}).records()}
        assert set(rows) == {"first", "second"}
        assert {name: row["store"] for name, row in rows.items()} == {"first": "old", "second": "new"}
        assert both.ask("longest_conversations").records()[0]["segments"] == 2


def test_fifty_stores_and_none_of_the_broken_ones_hides_them(tmp_path: Path) -> None:
    paths = [store(tmp_path, f"p{number:02}", number) for number in range(1, 51)]
    broken = tmp_path / "broken.db"
    broken.write_bytes(paths[0].read_bytes()[:4096] + b"\xff" * 8192)
    other = tmp_path / "library.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE books (title)")
    connection.close()
    with closing(Shelf(UTC)) as shelf:
        members = members_of([*paths[:25], broken, tmp_path / "gone.db", other, *paths[25:]])
        with shelf.reading(members) as found:
            assert totals(found.ask("cost_per_store").records())["cost_usd"] == sum(range(1, 51))
            assert set(found.missing) == {"broken", "gone", "library"} and len(found.notices) == 3
            assert len(found.ask("stores").rows) == 50
        with shelf.reading(members[:10]) as fewer:
            assert totals(fewer.ask("cost_per_store").records())["cost_usd"] == sum(range(1, 11)), "and no other store"


def test_a_locked_store_is_left_out_until_it_is_free(
    three: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state_ledger.connection.BUSY_TIMEOUT_S", 0.05)
    locked = Path(shutil.copy(three[0], tmp_path / "locked.db"))
    with closing(Shelf(UTC)) as shelf, closing(sqlite3.connect(locked, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("UPDATE sessions SET title = 'half'")
        members = members_of([locked, *three[1:]])
        with shelf.reading(members) as found:
            assert totals(found.ask("cost_per_store").records())["cost_usd"] == 5.0
            assert list(found.missing) == ["locked"] and "locked" in found.notices[0]
        writer.execute("COMMIT")
        with shelf.reading(members) as found:
            assert totals(found.ask("cost_per_store").records())["cost_usd"] == 6.0 and not found.missing


def test_only_stores_that_changed_are_read_again(three: list[Path], tmp_path: Path) -> None:
    paths = [Path(shutil.copy(path, tmp_path / f"{path.parent.name}.db")) for path in three]
    read: list[str] = []

    class Counting(Shelf):
        def read(self, member: Member, part: str, version: str) -> None:
            read.append(f"{member.name} {part}")
            super().read(member, part, version)

    with closing(Counting(UTC)) as shelf:
        members = members_of(paths)
        for _ in range(2):
            with shelf.reading(members) as found:
                found.ask("cost_per_store")
        assert read == ["work books", "home books", "lab books"]
        with sqlite3.connect(paths[1]) as connection:
            connection.execute("UPDATE session_model_usage SET estimated_cost_usd = 20.0")
        connection.close()
        with shelf.reading(members) as found:
            assert totals(found.ask("cost_per_store").records())["cost_usd"] == 24.0
        assert read[3:] == ["home books"]


def test_without_time_for_all_stores_the_others_are_named_and_read_the_next_time(three: list[Path]) -> None:
    with closing(Shelf(UTC)) as shelf:
        sums = []
        for _ in three:
            with shelf.reading(members_of(three), budget_s=0.0) as found:
                sums.append(totals(found.ask("cost_per_store").records())["cost_usd"])
                assert all("not read yet" in why for why in found.missing.values())
        assert sums == [1.0, 3.0, 6.0]


def test_a_question_that_needs_the_text_of_messages_says_so(three: list[Path]) -> None:
    with reading(three) as found:
        with pytest.raises(NotOverStores, match="one store"):
            found.prepare("SELECT count(*) FROM ledger_message_rows")
        with pytest.raises(questions.UnknownQuestion):
            found.ask("search")


# -- searching --------------------------------------------------------------------------------------


def all_pages(found: Reading, request: Request) -> list[tuple[str, int]]:
    hits: list[tuple[str, int]] = []
    after = ""
    while True:
        page = find(found, request, after=after, budget_s=5, limit_ms=5000)
        hits += [(each.store, each.hit.id) for each in page.hits]
        if page.after is None:
            return hits
        assert page.after != after
        after = page.after


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three stores whose messages lie between each other in time, and a copy of the second."""
    folder = tmp_path_factory.mktemp("talkative")
    paths = [
        books.write(
            folder / f"{name}.db", sessions=[session(f"of-{name}")],
            messages=[message(f"of-{name}", NOON + at, content=f"harbour {at}") for at in range(first, 40, step)],
        )
        for name, first, step in (("a", 0, 2), ("b", 1, 3), ("c", 0, 5))
    ]  # fmt: skip
    return [*paths, Path(shutil.copy(paths[1], folder / "z.db"))]


@pytest.mark.parametrize("sort", ["newest", "oldest", "best"])
def test_pages_of_a_search_put_together_are_the_whole_search(talkative: list[Path], sort: str) -> None:
    with reading(talkative) as found:
        whole = all_pages(found, Request("harbour", sort=sort, limit=200))
        assert len(whole) == len(set(whole)) == 20 + 13 + 8, "messages of the copy are shown once"
        for limit in (3, 7):
            assert all_pages(found, Request("harbour", sort=sort, limit=limit)) == whole
        moments = [
            each.hit.timestamp for each in find(
                found, Request("harbour", sort=sort, limit=200), budget_s=5, limit_ms=5000
            ).hits
        ]  # fmt: skip
        if sort != "best":
            assert moments == sorted(moments, reverse=sort == "newest")


@pytest.fixture(scope="module")
def shelf_of_three(talkative: list[Path]) -> Iterator[tuple[Shelf, list[tuple[str, int]]]]:
    """A shelf of the first three, and all their hits."""
    with closing(Shelf(UTC)) as shelf:
        with shelf.reading(members_of(talkative[:3])) as found:
            whole = all_pages(found, Request("harbour", limit=200))
        yield shelf, whole


@settings(max_examples=25)
@given(limits=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_pages_of_any_lengths_follow_each_other(
    talkative: list[Path], shelf_of_three: tuple[Shelf, list[tuple[str, int]]], limits: list[int]
) -> None:
    shelf, whole = shelf_of_three
    with shelf.reading(members_of(talkative[:3])) as found:
        seen: list[tuple[str, int]] = []
        after: str | None = ""
        for limit in limits:
            if after is None:
                break
            page = find(found, Request("harbour", limit=limit), after=after, budget_s=5, limit_ms=5000)
            seen += [(each.store, each.hit.id) for each in page.hits]
            after = page.after
        assert seen == whole[: sum(limits)]


def test_a_copy_is_searched_where_only_it_is_asked_and_a_broken_store_is_named(
    talkative: list[Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\x00" + b"\xff" * 8192)
    with reading([*talkative, broken], only=["z", "broken"]) as found:
        page = find(found, Request("harbour", limit=100), budget_s=5, limit_ms=5000)
        assert len(page.hits) == 13 and set(page.missing) == {"broken"}


@pytest.mark.parametrize("text", ["a", "a:", "a:-1", "a:1,,b:2", "a b:1", "a:1;b:2"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="next page"):
        read_places(text)
