"""Stores pushed to a lake: the same rows, only what has changed, nothing twice; what is gone; what is odd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger.cli import main, output
from state_ledger.connection import open_for_reading
from state_ledger.lake.errors import LakeError
from state_ledger.lake.manifest import Options
from state_ledger.lake.names import checked, data_path, month_of, part, read_manifest_name
from state_ledger.lake.push import push as push_store
from state_ledger.lake.reading import Lake
from state_ledger.lake.tables import Column, tables
from state_ledger.lake.tables import rows as rows_of_view
from state_ledger.lake.verification import totals_of
from state_ledger.sqlite import sqlite3
from tests import books
from tests.books import call, message, session
from tests.conftest import SHARED_STORES, STRESS
from tests.lakes import (
    JULY,
    JUNE,
    MAY,
    UTC,
    assert_whole,
    change,
    contents,
    folders_of_our_own,  # noqa: F401
    make_store,
    push,
    rows_of,
    state_of,
    verified,
)

pytest.importorskip("pyarrow", reason="a lake needs the extra `lake`")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_store(tmp_path / "state.db")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def rounded(row: Sequence[Any], columns: Sequence[Column]) -> tuple[Any, ...]:
    """Cells as a lake can hold them, to 12 digits."""
    return tuple(
        float(f"{cell:.12g}") if isinstance(cell, (int, float)) else cell if column.kind == "text" else None
        for cell, column in zip(row, columns, strict=True)
    )


# The same rows


def test_every_table_holds_the_rows_of_its_view(demo_store: Path, lake: Path) -> None:
    push(demo_store, lake, options=Options(with_messages=True, redacted=False))
    with closing(open_for_reading(demo_store, settings=UTC, profile="default")) as connection:
        for table in tables():
            # Between which buckets a row may be looked for need not be told alike; where it is has to be.
            at = [at for at, each in enumerate(table.columns) if each.name not in ("first_bucket", "last_bucket")]
            columns = [table.columns[place] for place in at]
            stored = ([row[place] for place in at] for row in rows_of_view(connection, table))
            pushed = ([row[each.name] for each in columns] for row in rows_of(lake, table.name))
            found = Counter(rounded(row, columns) for row in pushed)
            assert found and found == Counter(rounded(row, columns) for row in stored), table.name
    assert_whole(lake, demo_store)


def test_rows_lie_in_the_month_in_which_their_session_began(path: Path, lake: Path) -> None:
    push(path, lake)
    opened = Lake.open(lake)
    begun = {row["session_id"]: month_of(row["started_at"]) for row in rows_of(lake, "session_facts")}
    assert set(begun.values()) == {"2026-05", "2026-06", "2026-07"}
    for file in state_of(lake).files:
        assert f"/host=h/profile=default/month={file.month}/" in file.path
        if file.month != "all":
            assert {begun[name] for name in opened.table(file).column("session_id").to_pylist()} == {file.month}


@pytest.mark.parametrize("name", [f"small-{number}.db" for number in ((1, 11, 25) if not STRESS else
                                  (1, 2, *range(4, 26)))] + ["small-30-handmade.db"])  # fmt: skip
def test_stores_of_all_schemas_look_alike(name: str, lake: Path) -> None:
    if not (SHARED_STORES / name).is_file():
        pytest.skip(f"there is no {name} in ../shared/stores")
    pushed = push(SHARED_STORES / name, lake)
    assert pushed.state.totals.sessions
    assert_whole(lake, SHARED_STORES / name)
    for file in pushed.state.files:
        declared = next(table for table in tables() if table.name == file.table)
        assert Lake.open(lake).table(file).column_names == [column.name for column in declared.columns]


# Only what has changed


def test_pushing_twice_changes_not_one_byte(path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = push(path, lake)
    before = contents(lake)
    again = push(path, lake)
    monkeypatch.setenv("XDG_CACHE_HOME", str(lake.with_name("elsewhere")))  # where nobody noted how the store was
    once_more = push(path, lake)
    assert first.changed and not again.changed and not once_more.changed
    assert contents(lake) == before and once_more.state == first.state


def test_a_change_touches_only_the_files_of_its_month(path: Path, lake: Path) -> None:
    before = {file.path for file in push(path, lake).state.files}
    change(path, f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s4', 'user', 'x', {JULY + 9})")
    pushed = push(path, lake)
    new = [file for file in pushed.state.files if file.path not in before]
    assert pushed.changed and not pushed.why_full and {file.month for file in new} == {"2026-07", "all"} - (
        set() if any(file.month == "all" for file in new) else {"all"}
    )
    assert {"messages", "message_times", "message_sizes", "session_facts"} <= {file.table for file in new}
    assert_whole(lake, path)


def test_a_session_whose_kind_another_month_decides_is_read_again(path: Path, lake: Path) -> None:
    change(path, f"UPDATE sessions SET started_at = {JULY} WHERE id = 's3'")
    push(path, lake)
    change(path, "UPDATE sessions SET end_reason = 'done' WHERE id = 's2'")
    push(path, lake)
    kinds = {row["session_id"]: row["kind"] for row in rows_of(lake, "session_facts")}
    assert kinds["s3"] == "other" and {row["kind"] for row in rows_of(lake, "lineage")} == {"root", "other"}


CHANGES = {
    "message": "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s{0}', 'user', '{1}', {2})",
    "taken back": "UPDATE messages SET active = 0 WHERE session_id = 's{0}' AND id % 3 = {1} % 3",
    "call": "INSERT INTO session_model_usage (session_id, model, task, input_tokens, estimated_cost_usd, cost_status)"
    " VALUES ('s{0}', 'm{1}', 't', {1}, 0.1, 'estimated')",
    "cost": "UPDATE session_model_usage SET estimated_cost_usd = {1} / 7.0 WHERE session_id = 's{0}'",
    "title": "UPDATE sessions SET title = '{1}' WHERE id = 's{0}'",
    "compressed": "UPDATE sessions SET end_reason = 'compression', ended_at = {2} WHERE id = 's{0}'",
    "child": "INSERT OR IGNORE INTO sessions (id, source, parent_session_id, started_at)"
    " VALUES ('s{1}', 'cli', 's{0}', {2})",
    "moved": "UPDATE sessions SET started_at = {2} WHERE id = 's{0}'",
    "deleted": "DELETE FROM sessions WHERE id = 's{0}'",
    "forgotten": "DELETE FROM messages WHERE session_id = 's{0}'",
    "unbilled": "DELETE FROM session_model_usage WHERE session_id = 's{0}'",
}
"""What can happen to a store: {0} and {1} are numbers, {2} an instant."""

happening = st.tuples(
    st.sampled_from(sorted(CHANGES)), st.integers(0, 9), st.integers(0, 9),
    st.sampled_from([MAY - 9e6, MAY + 5000, JUNE + 50, JULY + 86400]),
)  # fmt: skip


@settings(max_examples=200 if STRESS else 3)
@given(rounds=st.lists(st.lists(happening, min_size=1, max_size=4), min_size=1, max_size=3))
def test_pushes_of_changes_come_to_what_one_full_push_does(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, int, int, float]]]
) -> None:
    folder = tmp_path_factory.mktemp("law")
    path, lake, fresh = make_store(folder / "state.db"), folder / "lake", folder / "fresh"
    push(path, lake)
    for happened in rounds:
        change(path, *(CHANGES[kind].format(*numbers) for kind, *numbers in happened))
        push(path, lake)
        assert_whole(lake, path)
    push(path, fresh)
    mine, anew = state_of(lake), state_of(fresh)
    assert [file for file in mine.files if file.table != "gone"] == list(anew.files)
    assert (mine.totals, mine.periods) == (anew.totals, anew.periods)


# What is gone


def test_a_deleted_session_is_taken_out_and_named(path: Path, lake: Path) -> None:
    push(path, lake)
    with_all = state_of(lake).totals
    change(path, *(f"DELETE FROM {table} WHERE {key} IN ('s0', 's4')"
                   for table, key in (("sessions", "id"), ("messages", "session_id"),
                                      ("session_model_usage", "session_id"))))  # fmt: skip
    pushed = push(path, lake)
    assert pushed.gone == 2 and pushed.state.totals.sessions == with_all.sessions - 2
    gone = rows_of(lake, "gone")
    assert [(row["session_id"], row["month"], row["kept"]) for row in gone] == [
        ("s0", "2026-05", 0.0), ("s4", "2026-07", 0.0)
    ]  # fmt: skip
    for table in ("session_facts", "usage", "messages", "time"):
        assert not {"s0", "s4"} & {row["session_id"] for row in rows_of(lake, table)}
    assert_whole(lake, path)
    assert not push(path, lake).changed and rows_of(lake, "gone") == gone


@pytest.mark.parametrize("left", ["usage rows", "nothing"])
def test_a_deleted_session_can_be_kept(path: Path, lake: Path, left: str) -> None:
    """Also where the store still has its usage rows, which then count once."""
    keep = Options(deleted="keep")
    push(path, lake, options=keep)
    before = {table.name: rows_of(lake, table.name) for table in tables() if table.session}
    totals = state_of(lake).totals
    change(path, "DELETE FROM sessions WHERE id IN ('s0', 's1', 's4')",
           "DELETE FROM messages WHERE session_id IN ('s0', 's1', 's4')")  # fmt: skip
    if left == "nothing":
        change(path, "DELETE FROM session_model_usage WHERE session_id IN ('s0', 's1', 's4')")
    assert push(path, lake, options=keep).gone == 3
    state = state_of(lake)
    assert state.totals.sessions == totals.sessions and state.totals.cost_usd == pytest.approx(totals.cost_usd)
    assert state.kept.sessions == 3
    for name, rows in before.items():
        assert Counter(map(repr, rows_of(lake, name))) == Counter(map(repr, rows)), name
    assert_whole(lake, path)
    # They stay through what happens later, and through a full push.
    change(path, f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s5', 'user', 'x', {JULY})")
    push(path, lake, options=keep, full=left == "nothing")
    assert state_of(lake).kept.sessions == 3 and len(rows_of(lake, "session_facts")) == 6
    assert_whole(lake, path)
    assert not push(path, lake, options=keep).changed


def test_a_kept_session_that_comes_back_counts_once(path: Path, lake: Path) -> None:
    keep = Options(deleted="keep")
    push(path, lake, options=keep)
    change(path, "CREATE TABLE aside AS SELECT * FROM sessions WHERE id = 's1'", "DELETE FROM sessions WHERE id = 's1'")
    push(path, lake, options=keep)
    change(path, "INSERT INTO sessions SELECT * FROM aside", "DROP TABLE aside")
    push(path, lake, options=keep)
    assert state_of(lake).kept.sessions == 0 and not rows_of(lake, "gone")
    assert_whole(lake, path)


def test_what_was_kept_goes_when_it_is_to_be_a_tombstone(path: Path, lake: Path) -> None:
    push(path, lake, options=Options(deleted="keep"))
    change(path, "DELETE FROM sessions WHERE id = 's1'", "DELETE FROM session_model_usage WHERE session_id = 's1'",
           "DELETE FROM messages WHERE session_id = 's1'")  # fmt: skip
    push(path, lake, options=Options(deleted="keep"))
    pushed = push(path, lake)
    assert pushed.why_full and state_of(lake).kept.sessions == 0
    assert [(row["session_id"], row["kept"]) for row in rows_of(lake, "gone")] == [("s1", 0.0)]
    assert "s1" not in {row["session_id"] for row in rows_of(lake, "session_facts")}
    assert_whole(lake, path)


# What is odd


def test_values_that_their_column_cannot_hold(tmp_path: Path, lake: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[session("plain", started_at=JUNE, title="nul\0inside"), session("no start", started_at="soon"),
                  session("far", started_at=9e13)],
        usage=[call("plain", input_tokens="about two thousand", estimated_cost_usd=1.0, task="t"),
               call("plain", input_tokens=2**62, task="u"), call("plain", input_tokens=5, estimated_cost_usd=0.5),
               call("nobody", input_tokens=3, estimated_cost_usd=0.25)],
        messages=[message("plain", JUNE, content="a\0b \ud83d".encode("utf-8", "replace").decode()),
                  message("nowhere", JUNE)],
    )  # fmt: skip
    change(path, "UPDATE sessions SET model = CAST(x'6dff' AS TEXT) WHERE id = 'plain'",
           f"INSERT INTO sessions (id, source, started_at) VALUES (CAST(x'73ff' AS TEXT), 'cli', {JUNE})")  # fmt: skip
    push(path, lake, options=Options(with_messages=True, redacted=False))
    tokens = {row["task"]: row["input_tokens"] for row in rows_of(lake, "usage_rows") if row["session_id"] == "plain"}
    assert tokens == {"t": None, "u": 2.0**62, "": 5.0}
    assert {row["reason"] for row in rows_of(lake, "set_aside")} >= {"input_tokens is text"}
    titles = {row["session_id"]: row["title"] for row in rows_of(lake, "session_facts")}
    assert titles == {"plain": "nul\0inside", "no start": None, "far": None, "s�": None}
    assert {row["model"] for row in rows_of(lake, "session_facts")} >= {"m�"}
    months = {file.month for file in state_of(lake).files}
    assert {"2026-06", "unknown"} <= months
    assert {row["session_id"] for row in rows_of(lake, "usage")} == {"plain", "nobody"}
    assert {row["session_id"] for row in rows_of(lake, "messages")} == {"plain", "nowhere"}
    assert_whole(lake, path)
    assert not push(path, lake, options=Options(with_messages=True, redacted=False)).changed


def test_any_name_of_a_host_is_one_part_of_a_path(tmp_path: Path, lake: Path) -> None:
    path = books.write(tmp_path / "one.db", sessions=[session("s", started_at=JUNE)])
    names = ["a/b", "..", ".hidden", "größer", "50%", "x y", "A~1", "-"]
    for name in names:
        assert "/" not in part(name) and not part(name).startswith(".")
        push(path, lake, host=name, profile=name)
    states = Lake.open(lake).stores()
    assert sorted((state.host, state.profile) for state in states) == sorted((name, name) for name in names)
    assert all((lake / file.path).is_file() for state in states for file in state.files)


@given(name=st.text(min_size=1))
def test_names_of_paths_can_be_read_back(name: str) -> None:
    try:
        name = checked("host", name)
    except LakeError:
        return
    path = f"stores/{part(name)}/p/{7:010}-{'a' * 24}.json"
    found = read_manifest_name(path)
    assert found is not None and (found.host, found.path) == (name, path)
    assert data_path("t", name, "p", "2026-01", "f" * 64).count("/") == 5


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 200, "\ud800"])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(LakeError, match="cannot be the name of a host"):
        checked("host", name)


def test_another_store_does_not_take_a_place_unasked(path: Path, tmp_path: Path, lake: Path) -> None:
    push(path, lake)
    other = make_store(tmp_path / "other" / "state.db")
    change(other, "DELETE FROM sessions WHERE id = 's1'")
    before = contents(lake)
    with pytest.raises(LakeError, match="pushed from another store"):
        push(other, lake)
    assert contents(lake) == before
    assert push(other, lake, replace_other=True).changed
    assert_whole(lake, other)


def test_a_store_that_was_moved_is_known_by_its_own_id(path: Path, tmp_path: Path, lake: Path) -> None:
    change(path, "CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)",
           "INSERT INTO state_meta VALUES ('store_instance_id', 'one')")  # fmt: skip
    push(path, lake)
    moved = path.rename(tmp_path / "moved.db")
    assert not push(moved, lake).changed or state_of(lake).sequence == 2  # storage_sizes name no path
    change(moved, "UPDATE state_meta SET value = 'two'")
    with pytest.raises(LakeError, match="another store"):
        push(moved, lake)


def test_other_rules_lead_to_a_full_push(path: Path, lake: Path) -> None:
    from state_ledger.settings import Settings

    push(path, lake)
    stricter = Settings(zone="UTC", max_cost_per_1000_tokens=0.001, implausible_from_usd=0.01)
    pushed = push_store(path, lake, host="h", settings=stricter)
    assert pushed.why_full == "the rules are of another version than before"
    assert rows_of(lake, "set_aside") and pushed.state.totals == totals_of(path, "default", stricter)


# On the command line


def run(*words: Any) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_verbs_in_a_row(path: Path, lake: Path, tmp_path: Path) -> None:
    work = make_store(tmp_path / "profiles" / "work" / "state.db")
    done = run("lake", "push", path, work, "--to", lake, "--host", "pier")
    assert done.exit_code == 0, done.output
    assert "pier/default: pushed, 6 sessions" in done.stdout and "pier/work: pushed, 6 sessions" in done.stdout
    again = run("lake", "push", path, work, "--to", lake, "--host", "pier", "--json")
    assert [each["changed"] for each in json.loads(again.stdout)] == [False, False]
    told = json.loads(run("lake", "status", lake, "--json").stdout)
    assert (told["hosts"], told["sessions"]) == (1, 12)
    assert [each["profile"] for each in told["stores"]] == ["default", "work"]
    assert run("lake", "status", lake).exit_code == 0
    assert run("lake", "status", lake, "--stale-after", "0").exit_code == output.NOT_WELL
    sound = run("lake", "verify", lake, "--against", path, "--against", work, "--host", "pier")
    assert (sound.exit_code, "All is well" in sound.stdout) == (0, True)
    change(work, "UPDATE session_model_usage SET estimated_cost_usd = 9 WHERE session_id = 's3'")
    behind = run("lake", "verify", lake, "--against", work, "--host", "pier")
    assert behind.exit_code == output.NOT_WELL and "pier/work: cost_usd is" in behind.stdout
    assert "There is nothing to clear" in run("lake", "compact", lake).stdout


def test_one_store_that_cannot_be_pushed_does_not_keep_the_others(path: Path, lake: Path, tmp_path: Path) -> None:
    broken = tmp_path / "profiles" / "broken" / "state.db"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"SQLite format 3\0" + bytes(500))
    done = run("lake", "push", broken, path, "--to", lake, "--host", "h")
    assert done.exit_code == output.NOT_WELL and "broken: " in done.stderr and "h/default: pushed" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("push", "STORE", "OTHER", "--to", "LAKE"), "push each with a --profile of its own"),
        (("push", "STORE", "--to", "LAKE", "--leave-out", "model"), "it can be any of title, cwd"),
        (("push", "STORE", "OTHER", "--to", "LAKE", "--profile", "p"), "of one PATH"),
        (("push", "STORE", "--to", "ftp://x/y"), "cannot be a lake"),
        (("push", "STORE", "--to", "s3://"), "cannot be"),
        (("status", "LAKE"), "There is no lake at"),
        (("verify", "LAKE"), "Make one with"),
        (("compact", "LAKE"), "There is no lake at"),
    ],
)
def test_what_cannot_be_meant_is_said(
    path: Path, lake: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    other = make_store(tmp_path / "other" / "state.db")
    names = {"STORE": path, "OTHER": other, "LAKE": lake}
    done = run("lake", *(names.get(word, word) for word in words))
    assert done.exit_code in (output.NOT_WELL, output.USAGE) and said in done.stderr, done.output
    assert not lake.exists()


def test_a_folder_of_something_else_is_left_alone(path: Path, lake: Path) -> None:
    lake.mkdir()
    (lake / "lake.json").write_text('{"kind": "boats", "format": 1}')
    with pytest.raises(LakeError, match="something else"):
        push(path, lake)
    assert [file.name for file in lake.iterdir()] == ["lake.json"]


def test_without_pyarrow_it_is_said_what_to_install(path: Path, lake: Path) -> None:
    code = (
        "import sys\nsys.modules['pyarrow'] = None\nfrom state_ledger.cli import main\n"
        f"main(['lake', 'push', {str(path)!r}, '--to', {str(lake)!r}, '--host', 'h'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == output.NOT_WELL and "pip install 'state-ledger[lake]'" in ended.stderr


def test_the_store_is_not_written_to(path: Path, lake: Path) -> None:
    before = path.read_bytes(), sorted(file.name for file in path.parent.iterdir())
    push(path, lake, options=Options(with_messages=True))
    after = path.read_bytes(), sorted(file.name for file in path.parent.iterdir() if file != lake)
    assert after == before
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not verified(lake).findings
