"""Stores with real damage in known places."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3


def root_of(path: Path, name: str) -> int:
    """The first page of a table or index."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        return int(connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0])


def leaf_of(path: Path, name: str, child: int = 0) -> int:
    """A leaf page of a table or index: the one under the numbered child of its first page, from 0 again after the last.
    """
    data, page = path.read_bytes(), root_of(path, name)
    size = int.from_bytes(data[16:18], "big")
    while data[(page - 1) * size] in (2, 5):  # an inner page of an index or of a table
        start = (page - 1) * size
        child %= int.from_bytes(data[start + 3 : start + 5], "big")
        cell = int.from_bytes(data[start + 12 + 2 * child : start + 14 + 2 * child], "big")
        page, child = int.from_bytes(data[start + cell : start + cell + 4], "big"), 0
    return page


def wipe(path: Path, name: str, child: int = 0) -> None:
    """Writes zeros over one leaf page of a table or index of a store that nobody has open."""
    page, size = leaf_of(path, name, child), int.from_bytes(path.read_bytes()[16:18], "big")
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


def run(path: Path, script: str) -> None:
    """Runs SQL on a store, foreign keys unchecked, and leaves nothing beside it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def make_full(path: Path) -> Path:
    """A small store with everything in it: every kind of session and of message, calls that cost, side tables.

    It is in write-ahead mode and nobody has it open: one file.
    """
    source = random.Random(7)
    words = ["harbour", "tide", "pier", "lantern", "桂林旅游", "데이터", "sextant", "café", "anchor", "rope"]

    def text(count: int) -> str:
        return " ".join(source.choices(words, k=count))

    with SessionDB(path) as db:
        for number, origin in enumerate(("cli", "telegram", "cron", "cli", "discord")):
            name = f"s{number}"
            db.create_session(
                name, origin, model=f"model-{number % 3}", model_config={"temperature": 0.5, "notes": text(30)},
                system_prompt=text(700), user_id="u", session_key=f"k{number}", chat_id="c", cwd="/work",
            )  # fmt: skip
            for turn in range(12):
                at = 1780000000 + number * 90_000 + turn * 60
                asked = {"name": "read_file", "arguments": json.dumps({"path": text(3)})}
                call = {"id": f"call{turn}", "function": asked}
                parts = [{"type": "text", "text": text(8)}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
                db.append_messages(
                    name,
                    [
                        {"role": "user", "content": parts if turn % 4 == 1 else text(20 + 300 * (turn == 5)),
                         "timestamp": at, "platform_message_id": f"p{turn}"},
                        {"role": "assistant", "content": f"# {text(3)}\n\n{text(40)}", "timestamp": at + 5,
                         "reasoning": text(12), "reasoning_details": [{"text": text(5)}], "token_count": 50,
                         "tool_calls": [call] if turn % 3 == 0 else None},
                        *([{"role": "tool", "content": text(60), "timestamp": at + 6, "tool_name": "read_file",
                            "tool_call_id": f"call{turn}"}] if turn % 3 == 0 else []),
                    ],
                )  # fmt: skip
            for model in ("model-0", "gpt-5", "claude-sonnet-4-5"):
                db.update_token_counts(
                    name, 700 + number, 80, model=model, cache_read_tokens=5000, cache_write_tokens=40,
                    estimated_cost_usd=0.25, api_call_count=3, billing_provider="openai",
                )  # fmt: skip
            db.set_session_title(name, f"{text(3)} {number}")
            if number != 1:
                db.end_session(name, "done")
        db.set_meta("note", text(10))
        assert db.try_acquire_compression_lock("s1", "me")
        db.publish_compression_child(
            parent_session_id="s1", child_session_id="s1b", source="telegram", compression_lock_holder="me",
            messages=[{"role": "user", "content": text(20)}, {"role": "assistant", "content": text(20)}],
        )  # fmt: skip
        db.create_session("delegate", "delegate", parent_session_id="s0")
        db.append_message("delegate", "user", text(20))
        db.rewind_to_message("s3", db.get_messages("s3")[-4]["id"])
    run(
        path,
        "INSERT INTO gateway_routing VALUES ('', 'k1', '{\"session_id\": \"s1b\"}', 1780000000);"
        "INSERT INTO async_delegations (delegation_id, origin_session, state, dispatched_at, updated_at, event_json)"
        " VALUES ('d', 's0', 'done', 1780000000, 1780000100, '{}')",
    )
    return path


def _bits(chance: random.Random, data: bytearray, start: int, end: int) -> str:
    places = [chance.randrange(start, end) for _ in range(chance.choice((1, 1, 3)))]
    for place in places:
        data[place] ^= 1 << chance.randrange(8)
    return f"bits at {places}"


def _page(chance: random.Random, data: bytearray) -> int:
    """Where a page begins that is not the first one."""
    return _PAGE * chance.randrange(1, max(2, len(data) // _PAGE))


_PAGE = 4096


def _a_bit_anywhere(chance: random.Random, data: bytearray) -> str:
    return _bits(chance, data, 0, len(data))


def _the_header(chance: random.Random, data: bytearray) -> str:
    return _bits(chance, data, 0, 108)


def _the_head_of_a_page(chance: random.Random, data: bytearray) -> str:
    page = _page(chance, data)
    return _bits(chance, data, page, page + 24)


def _garbage(chance: random.Random, data: bytearray) -> str:
    place, length = chance.randrange(len(data)), chance.choice((2, 16, 300))
    data[place : place + length] = chance.randbytes(len(data[place : place + length]))
    return f"{length} bytes of garbage at {place}"


def _a_zeroed_page(chance: random.Random, data: bytearray) -> str:
    page = _page(chance, data)
    data[page : page + _PAGE] = bytes(len(data[page : page + _PAGE]))
    return f"page {page // _PAGE + 1} zeroed"


def _a_page_of_garbage(chance: random.Random, data: bytearray) -> str:
    page = _page(chance, data)
    data[page : page + _PAGE] = chance.randbytes(len(data[page : page + _PAGE]))
    return f"page {page // _PAGE + 1} garbage"


def _a_page_of_another(chance: random.Random, data: bytearray) -> str:
    page, other = _page(chance, data), _page(chance, data)
    data[page : page + _PAGE] = data[other : other + _PAGE]
    return f"page {page // _PAGE + 1} is page {other // _PAGE + 1}"


def _cut(chance: random.Random, data: bytearray) -> str:
    del data[chance.randrange(len(data)) :]
    return f"cut off at {len(data)}"


def _cut_at_a_page(chance: random.Random, data: bytearray) -> str:
    del data[_page(chance, data) :]
    return f"cut off at {len(data)}"


BLOWS: tuple[Callable[[random.Random, bytearray], str], ...] = (
    _a_bit_anywhere, _the_header, _the_head_of_a_page, _garbage, _a_zeroed_page, _a_page_of_garbage,
    _a_page_of_another, _cut, _cut_at_a_page,
)  # fmt: skip
"""What happens to the bytes of a file; each says what it did."""


def strike(path: Path, number: int, *, only: tuple[str, ...] = ()) -> str:
    """Damages a file that nobody has open, as the number has it: the same number does the same. Says what it did.

    only: names of tables and indexes whose pages are hit, where it is a store; else any byte of it.
    """
    chance = random.Random(number)
    data = bytearray(path.read_bytes())
    blow = BLOWS[number % len(BLOWS)]
    if only:
        start = (leaf_of(path, chance.choice(only), chance.randrange(3)) - 1) * _PAGE
        said = _bits(chance, data, start, start + chance.choice((12, 200, _PAGE)))
    else:
        said = blow(chance, data)
    path.write_bytes(data)
    return said


STRANGE: tuple[Any, ...] = (
    None, "text", b"\xff\xfe\x00blob", math.inf, -math.inf, 2**63 - 1, -(2**63), 1e300, -1, 0, "", "[" * 3000,
    '{"a":' * 3000, "\0json:[1", "\0json:" + "[" * 3000, '{"a": 1e999}', '[1, {"function": 7}]', "\ud800",
)  # fmt: skip


def misplace(path: Path, number: int) -> str:
    """Puts a value into a row that does not belong there, as a program gone wrong or a flipped bit does; says what."""
    chance = random.Random(number)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        while True:
            table = chance.choice(("sessions", "messages", "session_model_usage"))
            column = chance.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
            value = chance.choice(STRANGE)
            stored = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
            given = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
            row = chance.randrange(1, 9)
            with suppress(sqlite3.IntegrityError):
                connection.execute(f"UPDATE {table} SET {column} = {given} WHERE rowid = {row}", (stored,))
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                return f"{table}.{column} of row {row} is {str(value)[:20]!r}"
