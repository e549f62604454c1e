"""The companion of a store: made, refreshed, interrupted, damaged, of another store."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from state_ledger import SessionDB
from state_ledger.companion import building
from state_ledger.companion.building import refresh
from state_ledger.companion.identity import companion_path
from state_ledger.companion.reading import CompanionDamaged, open_for_search
from state_ledger.companion.report import Pace
from state_ledger.companion.status import status
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import sqlite3
from tests.companions import append, change, contents, ids, opened, text
from tests.conftest import names_in

SMALL_STEPS = Pace(rows=7)

STORES = pytest.mark.parametrize("journal", ["wal", "delete"])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def store(small_store: Callable[..., Path]) -> Path:
    path = small_store("state.db", "wal")
    source = random.Random(1)
    append(path, [text(source) for _ in range(300)])
    return path


def test_a_store_without_companion_has_none_and_gets_none_by_looking(store: Path, cache: Path) -> None:
    assert open_for_search(store) is None
    assert not status(store).usable
    assert not cache.exists()


def test_it_finds_tool_rows_structured_content_and_escaped_tool_calls(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", source="cli")
        tool = db.append_message("s", "tool", "결과: 데이터베이스 오류", tool_name="검색")
        parts = db.append_message("s", "user", [{"type": "text", "text": "桂林旅游攻略"}])  # type: ignore[arg-type]
        call = db.append_message(
            "s", "assistant", "", tool_calls=[{"id": "c", "function": {"name": "f", "arguments": '{"q": "東京都ab"}'}}]
        )
        glued = db.append_message("s", "user", "修改Youer服务端，CAFÉ的")
    refresh(path)
    assert ids(path, "데이터베이스") == [tool]
    assert ids(path, "검색") == [tool]
    assert ids(path, "桂林旅游") == [parts]
    assert ids(path, "京都") == [call]
    assert ids(path, "youer") == [glued]
    assert ids(path, "you") == []
    assert ids(path, "you", prefix=True) == [glued]
    assert ids(path, "cafe") == [glued]
    assert ids(path, "改youer服") == [glued]
    assert ids(path, "改youer务") == [glued]  # may hold it; the text decides
    assert ids(path, "改yoer服") == []
    assert ids(path, "端，") == [glued]
    assert ids(path, "ab") == [call]


def test_ids_come_in_order_within_bounds_and_none_above_what_is_covered(store: Path) -> None:
    refresh(store)
    found = ids(store, "데이터")
    assert found == sorted(found, reverse=True)
    assert len(found) > 20
    assert ids(store, "데이터", newest=False) == found[::-1]
    assert ids(store, "데이터", before=found[4]) == found[5:]
    assert ids(store, "데이터", after=found[4]) == found[:4]
    with opened(store) as companion:
        append(store, ["데이터"])
        refresh(store)
        assert list(companion.ids("데이터")) == found
        with pytest.raises(ValueError, match="neither one word"):
            companion.ids("two words")
        with pytest.raises(ValueError, match="neither one word"):
            companion.ids("...")


def test_a_refresh_reads_only_what_is_new(store: Path) -> None:
    first = refresh(store)
    assert (first.read, first.finished) == (301, True)
    append(store, ["새로운 메시지", "nothing"])
    assert [(r.read, r.added, r.reread) for r in [refresh(store, reread=0)]] == [(2, 1, 0)]
    assert ids(store, "새로운") == [302]
    assert status(store).behind == 0


@STORES
def test_deleted_messages_are_dropped(small_store: Callable[..., Path], journal: str) -> None:
    store = small_store("state.db", journal)
    append(store, ["삭제될 것", "남을 것", "삭제될 것"])
    refresh(store)
    change(store, "DELETE FROM messages WHERE content = '삭제될 것'")
    report = refresh(store, reread=0)
    assert (report.dropped, report.began_anew) == (2, "")
    assert ids(store, "삭제될") == []
    assert ids(store, "남을") == [3]
    assert status(store).dropped == 2


def test_a_message_put_in_under_an_old_id_is_read(store: Path) -> None:
    change(store, "DELETE FROM messages WHERE id = 100")
    refresh(store)
    append(store, ["뒤늦은 것"], first=100)
    refresh(store, reread=0)
    assert ids(store, "뒤늦은") == [100]


def test_a_store_without_messages_and_one_with_odd_ids_are_covered_too(small_store: Callable[..., Path]) -> None:
    store = small_store("state.db", "wal")
    change(store, "DELETE FROM messages")
    refresh(store)
    with opened(store) as companion:
        assert (companion.covered_up_to, list(companion.ids("데이터"))) == (0, [])
    append(store, ["데이터"], first=-5)
    append(store, ["데이터"], first=1 << 40)
    refresh(store)
    assert ids(store, "데이터") == [1 << 40, -5]
    refresh(store, rebuild=True)
    assert ids(store, "데이터") == [1 << 40, -5]
    change(store, "DELETE FROM messages")
    refresh(store)
    assert ids(store, "데이터") == []


def test_changed_text_is_found_by_its_new_words_after_it_was_read_again(store: Path) -> None:
    append(store, ["이전 내용", "ascii only", "그대로 내용"])
    refresh(store)
    change(store, "UPDATE messages SET content = '이후 내용' WHERE id = 302")
    change(store, "UPDATE messages SET content = '갑자기 나타난' WHERE id = 303")
    change(store, "UPDATE messages SET content = 'no more' WHERE id = 304")
    report = refresh(store)
    assert (report.changed, report.added, report.dropped) == (1, 1, 1)
    assert ids(store, "이후 내용") == [302]
    assert ids(store, "갑자기") == [303]
    assert 304 not in ids(store, "내용")
    assert refresh(store).changed == 0


def test_one_range_at_a_time_every_range_is_read_again(store: Path) -> None:
    append(store, ["먼 곳"], first=3 << building.SHIFT)
    refresh(store)
    change(store, "UPDATE messages SET content = '바뀐 것' WHERE id IN (5, 3 << 14)")
    reports = [refresh(store, reread=1) for _ in range(2)]
    assert [report.changed + report.added for report in reports] == [1, 1]
    assert ids(store, "바뀐 것") == [3 << building.SHIFT, 5]


def test_the_companion_and_its_folder_are_for_this_user_only(store: Path, cache: Path) -> None:
    before = os.umask(0)
    try:
        refresh(store)
        with opened(store):
            folder = companion_path(store).parent
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
            assert len(names_in(folder)) == 3
    finally:
        os.umask(before)
    companion_path(store).chmod(0o644)
    refresh(store)
    assert stat.S_IMODE(companion_path(store).stat().st_mode) == 0o600


def test_the_store_is_only_read(store: Path) -> None:
    shutil.copyfile(store, store.with_name("copy.db"))
    names = names_in(store.parent)
    bytes_before = store.read_bytes()
    with closing(sqlite3.connect(store)) as writer:
        writer.execute("SELECT count(*) FROM messages").fetchone()
        refresh(store)
        refresh(store)
        opened(store).close()
    assert store.read_bytes() == bytes_before
    assert [name for name in names_in(store.parent) if name != "cache"] == names


def test_it_takes_turns_with_a_writer_of_the_store(store: Path) -> None:
    with closing(sqlite3.connect(store, timeout=0, isolation_level=None)) as writer:

        def write(_done: int, _total: int) -> None:
            writer.execute("INSERT INTO messages (session_id, role, timestamp) VALUES ('first', 'user', 1)")
            writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

        refresh(store, pace=Pace(rows=50), progress=lambda done, total: write(done, total) if done < 290 else None)
    assert status(store).behind == 0


# -- another store in its place ------------------------------------------------------------------


def test_a_replaced_store_has_no_companion_until_the_next_refresh(
    store: Path, small_store: Callable[..., Path]
) -> None:
    refresh(store)
    other = small_store("other.db", "wal")
    append(other, ["다른 저장소"] * 400)
    other.replace(store)
    for leftover in ("-wal", "-shm"):
        store.with_name(store.name + leftover).unlink(missing_ok=True)
    assert open_for_search(store) is None
    assert "another file" in status(store).problem
    report = refresh(store)
    assert report.began_anew == "the store is another file now"
    assert ids(store, "데이터") == []
    assert len(ids(store, "다른")) == 400


def test_a_backup_copied_over_the_store_is_recognised_by_its_messages(store: Path) -> None:
    """The file keeps its inode; ids that were read are given anew to other messages."""
    with closing(sqlite3.connect(store)) as now, closing(sqlite3.connect(store.with_name("backup.db"))) as backup:
        now.backup(backup)
    append(store, ["잃어버린 것"] * 30)
    refresh(store)
    with closing(sqlite3.connect(store)) as now, closing(sqlite3.connect(store.with_name("backup.db"))) as backup:
        backup.backup(now)
    assert open_for_search(store) is None  # fewer ids were given than were read
    change(store, "UPDATE messages SET timestamp = timestamp")
    append(store, [f"새 것 {number}" for number in range(100)])
    change(store, "UPDATE messages SET timestamp = timestamp + 100 WHERE id > 301")
    assert open_for_search(store) is None
    assert refresh(store).began_anew == "the store holds other messages now"
    assert ids(store, "잃어버린") == []
    assert len(ids(store, "새 것")) == 100


def test_a_vacuumed_store_keeps_its_companion(store: Path) -> None:
    change(store, "DELETE FROM messages WHERE id % 3 = 0")
    refresh(store)
    before = contents(store)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("VACUUM")
    assert open_for_search(store) is not None
    assert refresh(store).began_anew == ""
    assert contents(store) == before


def test_two_names_of_one_store_share_a_companion(store: Path) -> None:
    link = store.with_name("link.db")
    link.symlink_to(store)
    refresh(store)
    assert ids(link, "데이터") == ids(store, "데이터")


def test_another_version_of_the_rules_makes_another_index(store: Path) -> None:
    refresh(store)
    with closing(sqlite3.connect(companion_path(store))) as connection, connection:
        connection.execute("UPDATE note SET value = 'older' WHERE key = 'rules'")
    assert open_for_search(store) is None
    assert status(store).problem == "It was made by another version."
    assert refresh(store).read == 301
    assert len(ids(store, "데이터")) > 20


def test_much_that_was_deleted_makes_the_index_anew(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "STALE_LEAST", 20)
    refresh(store)
    change(store, "DELETE FROM messages WHERE id > 50 AND id < 290")
    assert refresh(store).dropped > 100
    report = refresh(store)
    assert report.began_anew == "much of it was of deleted messages"
    tokens = contents(store)["tokens"]
    assert {doc for _, doc, _, _ in tokens}.isdisjoint(range(51, 290))
    assert status(store).dropped == 0


# -- damage and interruption ---------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["zeros", "text", "cut", "empty", "tables", "pages"])
def test_a_damaged_companion_is_no_companion_and_is_made_anew(store: Path, damage: str) -> None:
    refresh(store)
    expected = contents(store)
    path = companion_path(store)
    size = path.stat().st_size
    if damage == "zeros":
        path.write_bytes(bytes(size))
    elif damage == "text":
        path.write_text("this is no database" * 1000)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[: size // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "tables":
        change(path, "DROP TABLE found")
    else:
        with path.open("r+b") as file:
            for page in range(3, size // 4096):
                file.seek(page * 4096)
                file.write(random.Random(page).randbytes(4096))
    companion = open_for_search(store)
    if companion is not None:
        with pytest.raises(CompanionDamaged), companion:
            list(companion.ids("데이터"))
    status(store)
    refresh(store)
    assert contents(store) == expected


def test_processes_that_build_at_once_make_one_companion(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = random.Random(6)
    append(store, [text(source) for _ in range(3000)])
    code = "import sys\nfrom state_ledger.companion.building import *\nrefresh(sys.argv[1], pace=Pace(rows=30))"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(store)]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    made = contents(store)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    refresh(store)
    assert made == contents(store)


def test_a_reader_is_not_held_up_by_a_builder(store: Path) -> None:
    refresh(store)
    path = companion_path(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as builder:
        builder.execute("BEGIN IMMEDIATE")
        builder.execute("INSERT INTO found(rowid, pairs) VALUES (9999, '데이')")
        assert len(ids(store, "데이터")) > 20
        builder.execute("ROLLBACK")


def test_a_refresh_can_be_told_to_stop_and_goes_on_later(store: Path) -> None:
    asked = iter([False, False, True])
    report = refresh(store, pace=SMALL_STEPS, stop=lambda: next(asked))
    assert (report.finished, report.read) == (False, 21)
    assert opened(store).covered_up_to == 21
    assert refresh(store).read == 280


def test_threads_share_the_work_without_losing_any(store: Path) -> None:
    threads = [threading.Thread(target=refresh, args=(store,), kwargs={"pace": SMALL_STEPS}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert status(store).behind == 0
    with closing(sqlite3.connect(companion_path(store))) as connection:
        assert connection.execute("SELECT sum(messages) FROM chunk").fetchone()[0] == 301


# -- stores that cannot be read ------------------------------------------------------------------


def test_what_is_no_store_is_refused_and_leaves_no_companion(tmp_path: Path) -> None:
    for name, content in (("text.db", b"not a database at all"), ("empty.db", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(StoreAccessError):
            refresh(tmp_path / name)
        assert open_for_search(tmp_path / name) is None
    with pytest.raises(StoreAccessError, match="no file"):
        refresh(tmp_path / "absent.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY)")
    with pytest.raises(StoreAccessError, match="no Hermes store"):
        refresh(tmp_path / "other.db")
    assert open_for_search(tmp_path / "absent.db") is None


@pytest.mark.parametrize("name", ["small-1.db", "schema-11.db", "schema-23.db", "schema-25.db", "small-30-handmade.db"])
def test_stores_of_every_schema_get_one(shared_store: Callable[[str], Path], name: str) -> None:
    path = shared_store(name)
    assert refresh(path).finished
    assert status(path).behind == 0
