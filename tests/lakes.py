"""What the tests of lakes share: stores to push, and what a lake holds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from state_ledger.lake.manifest import Options, StoreState
from state_ledger.lake.push import Pushed
from state_ledger.lake.push import push as push_store
from state_ledger.lake.reading import Lake
from state_ledger.lake.verification import Verified, compare, verify
from state_ledger.settings import Settings
from state_ledger.sqlite import sqlite3
from tests import books
from tests.books import call, message, session

UTC = Settings(zone="UTC")
MAY, JUNE, JULY = 1777636800.0, 1780315200.0, 1782907200.0
"""The first of each month of 2026, at noon."""


def make_store(path: Path) -> Path:
    """Six sessions in three months, two of them one conversation, with calls, messages and tool calls."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sessions, usage, messages = [], [], []
    for number, start in enumerate((MAY, MAY + 900, JUNE, JUNE + 86400, JULY, JULY + 3600)):
        name = f"s{number}"
        sessions.append(session(name, started_at=start, title=f"harbour {number}", model="m", cwd="/home/ada/pier",
                                user_id="ada", input_tokens=10, estimated_cost_usd=0.25, api_call_count=1))  # fmt: skip
        usage.append(call(name, input_tokens=100 * number + 7, output_tokens=5, cache_read_tokens=50,
                          cache_write_tokens=0, api_call_count=number + 1, estimated_cost_usd=0.01 * number + 0.3,
                          cost_status="estimated", cost_source="provider", last_seen=start + 1000))  # fmt: skip
        for turn in range(4):
            calls = '[{"id": "c", "function": {"name": "ls", "arguments": "{\\"path\\": \\"/secret\\"}"}}]'
            role = "assistant" if turn % 2 else "user"
            messages.append(message(name, start + 600 * turn, role=role, content=f"{name} says harbour {turn}",
                                    tool_calls=calls if turn % 2 else None))  # fmt: skip
    sessions[2] = {**sessions[2], "end_reason": "compression", "ended_at": JUNE + 5000}
    sessions[3] = {**sessions[3], "parent_session_id": "s2"}
    return books.write(path, sessions=sessions, usage=usage, messages=messages)


def change(path: Path, *statements: str) -> None:
    """What a program or a person does to a store."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def push(path: Path, lake: Path, *, options: Options | None = None, host: str = "h", **others: Any) -> Pushed:
    return push_store(path, lake, host=host, options=options or Options(), settings=UTC, **others)


def state_of(lake: Path, profile: str = "default", host: str = "h") -> StoreState:
    found = Lake.open(lake).store(host, profile)
    assert found is not None
    return found


def rows_of(lake: Path, table: str, profile: str = "default") -> list[dict[str, Any]]:
    """The rows of a table of one store."""
    opened, state = Lake.open(lake), state_of(lake, profile)
    return [row for file in state.of(table) for row in opened.table(file).to_pylist()]


def contents(lake: Path) -> dict[str, tuple[str, int]]:
    """Every file below a folder, with what is in it and when it was written."""
    return {
        str(file.relative_to(lake)): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in sorted(lake.rglob("*"))
        if file.is_file()
    }


def verified(lake: Path, against: Sequence[tuple[Path, str]] = ()) -> Verified:
    """What `verify` finds. against: stores, each with its profile."""
    opened = Lake.open(lake)
    found = verify(opened)
    compare(opened, [(path, "h", profile) for path, profile in against], UTC, found)
    return found


def assert_whole(lake: Path, *against: Path) -> None:
    """That a lake is whole and says what these stores of the default profile say."""
    findings = verified(lake, [(path, "default") for path in against]).findings
    assert not findings, "\n".join(map(str, findings))


@pytest.fixture(autouse=True)
def folders_of_our_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes and keys of the tests stand apart from those of this user. To be imported where it is needed."""
    folder = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    return folder
