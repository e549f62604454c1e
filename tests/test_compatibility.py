"""What programs written for the agent's own store module import from ours beside the class."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from state_ledger import session_db
from state_ledger.errors import StoreAccessError
from state_ledger.session_db import (
    DEFERRED_INDEX_SQL,
    FTS_SQL,
    FTS_TRIGRAM_SQL,
    SCHEMA_SQL,
    SessionDB,
    apply_wal_with_fallback,
    format_session_db_unavailable,
    get_last_init_error,
    is_malformed_db_error,
    is_sqlite_wal_reset_vulnerable,
    is_zeroed_state_db,
    quarantine_zeroed_state_db,
    repair_state_db_schema,
    sqlite_source_id,
    workspace_key,
)
from state_ledger.sqlite import sqlite3
from state_ledger.writing import journal


def shape(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {(row[0], row[1], "".join(row[2].split())) for row in rows if "_sqlite_migrations" not in row[1]}


def test_the_scripts_make_the_store_that_the_class_makes(db: SessionDB, tmp_path: Path) -> None:
    by_hand = sqlite3.connect(tmp_path / "by_hand.db")
    for _ in range(2):  # again does nothing
        for script in (SCHEMA_SQL, DEFERRED_INDEX_SQL, FTS_SQL, FTS_TRIGRAM_SQL):
            by_hand.executescript(script)
    assert shape(by_hand) == shape(db._conn)
    by_hand.close()


def test_every_name_of_the_seam_is_there() -> None:
    for name in session_db.__all__:
        assert getattr(session_db, name) is not None or name == "fts5_cjk_so_path"
    assert session_db.FTS_STORAGE_VERSION == 1 and session_db.FTS_CJK_STALE_KEY == "fts_cjk_stale"
    assert "cjk_unicode61" in session_db.FTS_CJK_TABLE_SQL
    assert session_db.FTS_CJK_TRIGGER_SQL.count("CREATE TRIGGER IF NOT EXISTS messages_fts_cjk_") == 3


def test_a_store_that_could_not_be_opened_is_explained(path: Path) -> None:
    path.write_bytes(b"this is a letter" * 100)
    with pytest.raises(StoreAccessError) as caught:
        SessionDB(path)
    assert get_last_init_error() == f"StoreAccessError: {caught.value}"
    said = format_session_db_unavailable("No history")
    assert said.startswith("No history: StoreAccessError: ") and said.endswith(".") and path.name in said


def test_a_file_made_by_hand_gets_the_journal_that_is_safe(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    mode = apply_wal_with_fallback(connection, db_label="x.db")
    assert mode == journal.mode_of(connection) == ("delete" if is_sqlite_wal_reset_vulnerable() else "wal")
    assert is_sqlite_wal_reset_vulnerable((3, 40, 1)) and not is_sqlite_wal_reset_vulnerable((3, 51, 3))
    assert connection.execute("SELECT sqlite_source_id()").fetchone()[0] == sqlite_source_id()
    connection.close()


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"git_repo_root": "/r", "cwd": "/r/c"}, "/r"),
        ({"git_repo_root": " ", "cwd": "/c "}, "/c"),
        ({"cwd": ""}, None),
        ({}, None),
    ],
)
def test_a_workspace_is_its_repository_or_its_folder(row: dict[str, str], key: str | None) -> None:
    assert workspace_key(row) == key


def test_a_zeroed_file_is_set_aside_only_when_asked(path: Path) -> None:
    path.write_bytes(bytes(8192))
    Path(f"{path}-wal").write_bytes(b"left over")
    with pytest.raises(StoreAccessError):
        SessionDB(path)
    assert path.read_bytes() == bytes(8192), "opening refuses and leaves it alone"
    assert is_zeroed_state_db(path)
    aside = quarantine_zeroed_state_db(path)
    assert aside is not None and aside.read_bytes() == bytes(8192) and not path.exists()
    assert aside.name.startswith("state.db.zeroed-") and aside.name.endswith(f"-{os.getpid()}.bak")
    assert Path(f"{aside}-wal").read_bytes() == b"left over"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        assert not is_zeroed_state_db(path) and quarantine_zeroed_state_db(path) is None
    assert not is_zeroed_state_db(path.parent / "absent.db")


def doubled(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "INSERT INTO sqlite_master SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master"
        " WHERE name = 'idx_sessions_source'"
    )


def index_behind(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET sql = replace(sql, '(source)', '(model)') WHERE name = 'idx_sessions_source'"
    )


DAMAGES = {
    "fts_rebuild": lambda c: c.execute("DROP TABLE messages_fts_config"),
    "reindex": index_behind,
    "schema_dedupe": doubled,
}


@pytest.mark.parametrize("strategy", DAMAGES)
def test_what_can_be_mended_without_losing_a_row_is_mended(path: Path, strategy: str) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli", model="a-model")
        db.append_message("s", "user", "zebra")
    connection = sqlite3.connect(path, isolation_level=None)
    DAMAGES[strategy](connection)
    connection.close()
    before = path.read_bytes()
    result = repair_state_db_schema(path)
    assert result == {"repaired": True, "strategy": strategy, "backup_path": result["backup_path"], "error": None}
    assert Path(result["backup_path"]).read_bytes() == before
    with SessionDB(path) as db:
        assert [row["content"] for row in db.get_messages("s")] == ["zebra"]
        assert [row["session_id"] for row in db.search_messages("zebra")] == ["s"]
    assert repair_state_db_schema(path) == {
        "repaired": True, "strategy": "already_healthy", "backup_path": None, "error": None,
    }  # fmt: skip


def test_what_cannot_be_mended_is_said_and_left(path: Path) -> None:
    path.write_bytes(b"this is a letter" * 100)
    result = repair_state_db_schema(path, backup=False)
    assert not result["repaired"] and "not a database" in result["error"] and result["backup_path"] is None
    assert path.read_bytes() == b"this is a letter" * 100
    assert "does not exist" in repair_state_db_schema(path.parent / "absent.db")["error"]


def test_errors_of_damage_are_told_from_others() -> None:
    assert is_malformed_db_error(sqlite3.DatabaseError("database disk image is malformed"))
    assert is_malformed_db_error(sqlite3.OperationalError("malformed database schema (x)"))
    assert not is_malformed_db_error(sqlite3.DatabaseError("file is not a database"))
    assert not is_malformed_db_error(ValueError("malformed"))
