"""What leaves a host with a push, and what does not."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from state_ledger.homes import data_folder
from state_ledger.lake import privacy
from state_ledger.lake.errors import LakeError
from state_ledger.lake.manifest import Options
from state_ledger.lake.names import MAY_BE_LEFT_OUT
from state_ledger.lake.reading import Lake
from state_ledger.lake.tables import tables
from tests.lakes import assert_whole, change, folders_of_our_own, make_store, push, rows_of  # noqa: F401

arrow = pytest.importorskip("pyarrow", reason="a lake needs the extra `lake`")

KEY = "sk-ant-api03-" + "Ab3" * 31
"""What redaction knows as a key; of no account."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which a title, a message, a tool call and a branch hold a secret."""
    found = make_store(tmp_path / "state.db")
    change(
        found, f"UPDATE sessions SET title = 'use {KEY}', git_branch = '{KEY}' WHERE id = 's1'",
        f"UPDATE messages SET content = 'my key is {KEY}', reasoning = 'so it is {KEY}' WHERE id = 1",
        f"UPDATE messages SET tool_calls = replace(tool_calls, '/secret', '{KEY}') WHERE id = 2",
    )  # fmt: skip
    return found


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def every_text(lake: Path) -> str:
    """All texts in all columns of all files, those that no manifest names included, and the manifests."""
    from pyarrow import parquet

    found = [file.read_text() for file in lake.rglob("*.json")]
    for file in lake.rglob("*.parquet"):
        table = parquet.read_table(arrow.BufferReader(file.read_bytes()))
        found += [str(cell) for name in table.column_names for cell in table.column(name).to_pylist()]
    return "\n".join(found)


def test_nothing_that_was_said_leaves_without_being_asked_for(path: Path, lake: Path) -> None:
    push(path, lake)
    told = every_text(lake)
    for secret in (KEY, "says harbour", "/secret", "my key", "so it is"):
        assert secret not in told
    for table in tables():
        for name in set(table.texts) - set(privacy.DIGESTED):
            assert {row[name] for row in rows_of(lake, table.name)} <= {None}, name
    titles = {row["session_id"]: row["title"] for row in rows_of(lake, "session_facts")}
    assert titles["s0"] == "harbour 0" and titles["s1"].startswith("use [redacted: ")
    assert_whole(lake, path)


def test_equal_arguments_have_equal_digests_which_tell_nothing_without_the_key_of_the_host(
    path: Path, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests(lake: Path) -> dict[int, str]:
        return {row["message_id"]: row["arguments"] for row in rows_of(lake, "tool_calls")}

    push(path, lake)
    here = digests(lake)
    assert len(here) == 12 and len(set(here.values())) == 2
    assert all(each.startswith("digest:") and len(each) == 39 for each in here.values())
    assert (data_folder() / "lake.key").stat().st_mode & 0o777 == 0o600
    assert (data_folder() / "lake.key").read_bytes().hex() not in every_text(lake)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of another host"))
    push(path, tmp_path / "other")
    assert not set(here.values()) & set(digests(tmp_path / "other").values())


def test_a_key_that_is_damaged_is_named(path: Path, lake: Path) -> None:
    privacy.key()
    (data_folder() / "lake.key").write_bytes(b"short")
    with pytest.raises(LakeError, match=r"lake\.key is damaged"):
        push(path, lake)
    assert not Lake.open(lake).stores()


@pytest.mark.parametrize("redacted", [True, False])
def test_texts_leave_when_they_are_asked_for_and_without_their_secrets(
    path: Path, lake: Path, redacted: bool
) -> None:
    push(path, lake, options=Options(with_messages=True, redacted=redacted))
    said = {row["id"]: row for row in rows_of(lake, "messages")}
    assert said[3]["text"] == "s0 says harbour 2"
    assert ("[redacted: " in said[1]["text"]) is redacted and ("[redacted: " in said[1]["reasoning"]) is redacted
    arguments = {row["message_id"]: row["arguments"] for row in rows_of(lake, "tool_calls")}
    assert arguments[4] == '{"path": "/secret"}'
    assert (KEY in every_text(lake)) is not redacted


def test_columns_can_stay_on_the_host(path: Path, lake: Path) -> None:
    push(path, lake, options=Options(left_out=("cwd", "git_branch", "title", "user_id")))
    rows = rows_of(lake, "session_facts")
    assert {row[name] for row in rows for name in MAY_BE_LEFT_OUT} == {None}
    assert "/home/ada" not in every_text(lake) and "harbour" not in every_text(lake)


@pytest.mark.parametrize("deleted", ["tombstone", "keep"])
def test_what_was_pushed_with_messages_is_without_them_after_a_push_without(
    path: Path, lake: Path, deleted: str
) -> None:
    """Also of sessions that are only in the lake any more; older files go with `compact`."""

    def all_said() -> set[Any]:
        return {row["text"] for row in rows_of(lake, "messages")}

    push(path, lake, options=Options(with_messages=True, deleted=deleted))
    change(path, "DELETE FROM sessions WHERE id = 's0'", "DELETE FROM messages WHERE session_id = 's0'")
    push(path, lake, options=Options(with_messages=True, deleted=deleted))
    assert len(all_said()) > 1
    pushed = push(path, lake, options=Options(deleted=deleted))
    assert pushed.why_full == "other options than before say what leaves the host" and all_said() == {None}
    assert ("s0" in {row["session_id"] for row in rows_of(lake, "messages")}) is (deleted == "keep")
    assert_whole(lake, path)


def test_a_lake_is_for_this_user_alone_unless_its_folder_is_for_others(path: Path, lake: Path, tmp_path: Path) -> None:
    push(path, lake)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2770)
    push(path, shared)
    for folder, rights in ((lake, 0o700), (shared, 0o2770)):
        made = [folder, *folder.rglob("*")]
        assert {stat.S_IMODE(each.stat().st_mode) for each in made if each.is_dir()} == {rights}
        assert {stat.S_IMODE(each.stat().st_mode) for each in made if each.is_file()} == {rights & 0o666}
