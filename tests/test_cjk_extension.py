"""The CJK index with its real tokenizer: a loadable extension, built here, that comes and goes (case 04)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from state_ledger import full_text
from state_ledger.connection import open_for_reading
from state_ledger.full_text import CJK, cjk
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from tests.migrated import assert_sound

SOURCE = Path(__file__).with_name("extensions") / "cjk_unicode61.c"
OF_A_NEWER_SCHEMA = "UPDATE schema_version SET version = 30"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension's file."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to build the extension with")
    if sys.platform == "win32" or not hasattr(sqlite3.connect(":memory:"), "enable_load_extension"):
        pytest.skip("this Python cannot load extensions of SQLite")
    target = tmp_path_factory.mktemp("extension") / "libfts5_cjk.so"
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(target), str(SOURCE)], capture_output=True, text=True
    )
    if done.returncode and "sqlite3ext.h" in done.stderr:
        pytest.skip("sqlite3ext.h is not installed")
    assert done.returncode == 0 and not done.stderr, done.stderr
    return target


@pytest.fixture
def available(built: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """`available(True)`: from now on, connections find the extension; `available(False)`: they do not."""

    def choose(there: bool) -> None:
        monkeypatch.setenv("HERMES_FTS5_CJK_SO", str(built))
        monkeypatch.setenv("HERMES_CJK_FTS", "1" if there else "0")

    return choose


def state(db: SessionDB) -> tuple[int, str | None, bool]:
    """Triggers of the index, the mark that it is stale, and whether a search may use it here."""
    (triggers,) = db._conn.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'messages_fts_cjk%'"
    ).fetchone()
    return triggers, db.get_meta(cjk.STALE_KEY), cjk.serves(db._conn)


def found(connection: sqlite3.Connection, words: str) -> list[int]:
    rows = connection.execute("SELECT rowid FROM messages_fts_cjk WHERE messages_fts_cjk MATCH ?", (words,))
    return [row[0] for row in rows]


KEPT, ASIDE = (3, None, True), (0, "1", False)


@pytest.fixture
def spoken(path: Path, available: Callable[[bool], None]) -> Path:
    """A store made where the extension is, with one message that its index holds."""
    available(True)
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        assert db.append_message("s", "user", "桂林旅游 quagga") == 1
        assert state(db) == KEPT
    return path


def test_a_store_made_with_the_tokenizer_is_indexed_by_pairs(spoken: Path) -> None:
    with SessionDB(spoken) as db:
        second = db.append_message("s", "assistant", "東京タワー, 서울, x港y")
        for words, ids in (
            ("林旅", [1]), ("桂林旅游", [1]), ("quagga", [1]), ("桂", []), ("旅林", []),
            ("京タ", [second]), ("서울", [second]), ("港", [second]),
        ):  # fmt: skip
            assert found(db._conn, words) == ids, words
        db.append_message("s", "tool", "桂林 of a tool", tool_name="t")
        assert found(db._conn, "桂林") == [1]
        full_text.check(db._conn, CJK)


def test_without_it_messages_are_stored_and_with_it_the_index_is_filled_anew(
    spoken: Path, available: Callable[[bool], None]
) -> None:
    available(False)
    with SessionDB(spoken) as db:
        assert state(db) == ASIDE
        added = db.append_message("s", "user", "夜行列車")
        assert [row["id"] for row in db.search_messages("夜行")] == [added]
        assert db.optimize_fts() == 2
    assert_sound(spoken)
    available(True)
    with SessionDB(spoken) as db:
        assert state(db) == KEPT
        assert found(db._conn, "行列") == [added]
        assert db.optimize_fts() == 3
        full_text.check(db._conn, CJK)


@pytest.mark.parametrize("read_only", [True, False])
def test_every_connection_that_reads_loads_it(spoken: Path, available: Callable[[bool], None], read_only: bool) -> None:
    with SessionDB(spoken, read_only=read_only) as db:
        assert found(db._conn, "桂林") == [1] and cjk.serves(db._conn)
    connection = open_for_reading(spoken)
    assert found(connection, "桂林") == [1]
    connection.close()
    available(False)
    connection = open_for_reading(spoken)
    assert connection.execute("SELECT count(*) FROM messages").fetchone()[0] == 1
    connection.close()


async def test_pages_read_the_index_too(spoken: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(spoken)
    sql = "select rowid from messages_fts_cjk where messages_fts_cjk match '桂林'"
    address = "/state.json" if version("datasette").startswith("0.") else "/state/-/query.json"
    answer = await datasette.client.get(address, params={"sql": sql, "_shape": "array"})
    assert answer.json() == [{"rowid": 1}], answer.text


def test_a_newer_store_is_written_to_without_the_tokenizer(spoken: Path, available: Callable[[bool], None]) -> None:
    with SessionDB(spoken) as db:
        db._conn.execute(OF_A_NEWER_SCHEMA)
    available(False)
    with SessionDB(spoken, read_only=True) as db:
        assert state(db)[:2] == (3, None), "reading alters nothing"
    with SessionDB(spoken) as db:
        assert state(db)[:2] == (3, None), "nor does opening a store of a newer schema"
        added = db.append_message("s", "user", "夜行列車")
        assert state(db) == ASIDE
        db._execute_write(lambda connection: connection.execute("UPDATE messages SET content = '夜' WHERE id = 1"))
        db.delete_session("s")
        assert db.message_count() == 0 and added == 2
        assert db._conn.execute("SELECT version FROM schema_version").fetchone()[0] == 30
    assert_sound(spoken)


def test_a_failed_write_takes_nothing_aside(spoken: Path, available: Callable[[bool], None]) -> None:
    with SessionDB(spoken) as db:
        db._conn.execute(OF_A_NEWER_SCHEMA)
    available(False)
    with SessionDB(spoken) as db:
        with pytest.raises(sqlite3.IntegrityError):
            db.append_message("unknown", "user", "夜行列車")
        assert state(db)[:2] == (3, None)
        db.append_message("s", "user", "夜行列車")
        assert state(db) == ASIDE


def test_an_index_that_another_program_makes_meanwhile_is_not_in_the_way(
    path: Path, available: Callable[[bool], None]
) -> None:
    available(False)
    with SessionDB(path) as without:
        without.create_session("s", "cli")
        available(True)
        with SessionDB(path) as with_it:
            assert state(with_it) == KEPT
            added = without.append_message("s", "user", "夜行列車")
            assert state(without) == ASIDE
            with_it.append_message("s", "user", "桂林旅游")
            assert state(with_it) == ASIDE
            assert [row["id"] for row in with_it.search_messages("夜行")] == [added]
    with SessionDB(path) as db:
        assert state(db) == KEPT and found(db._conn, "夜行") == [added]
        full_text.check(db._conn, CJK)
