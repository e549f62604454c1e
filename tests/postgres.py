"""A PostgreSQL server of the test's own, and stores put into it."""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from state_ledger import content
from state_ledger.sqlite import sqlite3

try:
    import psycopg
except ImportError:
    psycopg = None  # type: ignore[assignment]

OWNER = "hermes"
"""Owns the databases that stores are put into."""

PASSWORD = "harbour-9-lantern"
"""That of the role `locked`, the only one that is asked for one."""

TYPES = {"INTEGER": "bigint", "REAL": "double precision", "TEXT": "text", "": "text", "BLOB": "bytea"}

TABLES_OF_A_STORE = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts%' AND name NOT LIKE 'sqlite%'"
)

NATIVE: dict[str, str] = {
    **dict.fromkeys(("archived", "pinned", "active", "compacted", "observed", "expiry_finalized"), "boolean"),
    **dict.fromkeys(("started_at", "ended_at", "timestamp", "first_seen", "last_seen"), "timestamptz"),
    **dict.fromkeys(("estimated_cost_usd", "actual_cost_usd", "input_tokens", "output_tokens"), "numeric"),
    "source": "varchar(200)",
}
"""Types that another hand would have chosen for the same columns."""

JSON = dict.fromkeys(("tool_calls", "model_config", "entry_json", "reasoning_details"), "json")
"""The same, for stores in which no JSON is broken."""


class Server:
    """A server on a socket in a private folder. `address(database)` is how it is reached as its superuser."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0

    def start(self) -> None:
        """Returns when it answers."""
        log = (self.folder / "log").open("ab")
        settings = ("listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=20")
        command = [self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder]
        command += [word for setting in settings for word in ("-c", setting)]
        with log:
            self._process = subprocess.Popen([*_as_another(), *map(str, command)], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.address("postgres")).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, "PostgreSQL did not answer"
                time.sleep(0.02)

    def stop(self) -> None:
        """Ends it at once, as `pg_ctl stop -m immediate` does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=30)
            self._process = None

    def address(self, database: str, user: str = "postgres", rest: str = "") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}{rest}"

    def database(self) -> str:
        """The address of a new, empty database of OWNER's."""
        self._made += 1
        name = f"books{self._made}"
        self.run("postgres", f"CREATE DATABASE {name} OWNER {OWNER}")
        return self.address(name, OWNER)

    def run(self, database: str, *statements: str) -> None:
        """Runs statements as the superuser; `database` may be an address."""
        address = database if "://" in database else self.address(database)
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def holding(self, store: Path, **options: Any) -> str:
        """The address of a new database with a store in it, see `load`."""
        address = self.database()
        load(store, address, **options)
        return address


def fit(store: Path, types: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Changes in a store what no column of PostgreSQL could hold: words for a number, bytes that are no text, NULs.

    types: as of `load`; moments are rounded to what a timestamp holds, amounts to what `numeric` is given of them.
    """
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.text_factory = bytes
        connection.execute("BEGIN")
        for (table,) in connection.execute(TABLES_OF_A_STORE).fetchall():
            table = table.decode()
            for column in connection.execute(f"PRAGMA table_info({table})").fetchall():
                name, declared = column[1].decode(), column[2].decode().upper()
                if declared in ("INTEGER", "REAL"):
                    connection.execute(f"UPDATE {table} SET {name} = 0 WHERE typeof({name}) = 'text'")
                    places = {"timestamptz": 3, "numeric": 9}.get(types.get(name, ""))
                    if places:
                        rounded = f"round({name}, {places})"
                        connection.execute(f"UPDATE {table} SET {name} = {rounded} WHERE {name} <> {rounded}")
                    continue
                for rowid, value in connection.execute(
                    f"SELECT rowid, {name} FROM {table} WHERE typeof({name}) = 'text'"
                ).fetchall():
                    text = value.decode("utf-8", "replace")
                    head = content.PREFIX if name == "content" and text.startswith(content.PREFIX) else ""
                    text = head + text.removeprefix(head).replace("\x00", "\ufffd")
                    if text.encode() != value:
                        connection.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (text, rowid))
        connection.execute("COMMIT")
    return store


def load(
    store: Path,
    address: str,
    *,
    types: Mapping[str, str] = MappingProxyType({}),
    schema: str = "public",
    search: bool = False,
) -> None:
    """Makes the tables of a store in PostgreSQL and fills them.

    types: of columns by name, where they are not the ones that fit SQLite's. search: with the column in which a
    server keeps the words of a message.
    """
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as source, psycopg.connect(address) as target:
        target.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        target.execute(f'SET LOCAL search_path TO "{schema}"')
        for (table,) in source.execute(TABLES_OF_A_STORE).fetchall():
            columns = source.execute(f"PRAGMA table_info({table})").fetchall()
            kinds = [types.get(column[1], TYPES[column[2].upper()]) for column in columns]
            lines = [f'"{column[1]}" {kind}' for column, kind in zip(columns, kinds, strict=True)]
            key = [f'"{column[1]}"' for column in sorted(columns, key=lambda column: column[5]) if column[5]]
            lines += [f"PRIMARY KEY ({', '.join(key)})"] if key else []
            if search and table == "messages":
                lines.append("fts_content tsvector GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED")
            target.execute(f"CREATE TABLE {table} ({', '.join(lines)})")
            names = ", ".join(f'"{column[1]}"' for column in columns)
            places = ", ".join(_place(kind) for kind in kinds)
            with target.cursor() as cursor:
                rows = [
                    tuple(_value(value, kind, (table, column[1])) for value, column, kind in
                          zip(row, columns, kinds, strict=True))
                    for row in source.execute(f"SELECT {names} FROM {table}")
                ]  # fmt: skip
                cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)


def _place(kind: str) -> str:
    return "to_timestamp(%s)" if kind == "timestamptz" else "%s"


def _value(value: Any, kind: str, column: tuple[str, str]) -> Any:
    if isinstance(value, str) and column == ("messages", "content") and value.startswith(content.PREFIX):
        value = "\x01json:" + value.removeprefix(content.PREFIX)
    if value is None or kind == "bytea":
        return value
    if kind == "boolean":
        return bool(value)
    return str(value) if kind in ("text", "json", "jsonb") or kind.startswith("varchar") else value


@pytest.fixture(scope="session")
def postgres() -> Server:
    """The server of this process; skips where there is none to start."""
    return running()


@functools.cache
def running() -> Server:
    """A server that ends with this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(server())


@contextmanager
def server() -> Iterator[Server]:
    if psycopg is None:
        pytest.skip("psycopg is not installed (extra postgresql)")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed")
    folder = Path(tempfile.mkdtemp(prefix="state-ledger-pg-"))  # short: the name of a socket has at most 107 bytes
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, *_other_user())
        made = Server(folder, programs)
        command = [programs / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8",
                   "--locale=C", "--no-sync", "--no-instructions"]  # fmt: skip
        subprocess.run([*_as_another(), *map(str, command)], check=True, capture_output=True, cwd=folder)
        (folder / "data" / "pg_hba.conf").write_text("local all locked scram-sha-256\nlocal all all trust\n")
        try:
            made.start()
            made.run("postgres", f"CREATE ROLE {OWNER} LOGIN", "CREATE ROLE plain LOGIN",
                     f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'")  # fmt: skip
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of the newest server of this machine."""
    if sys.platform == "win32":
        return None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    newest = found[-1] if found else Path(on_path) if on_path else None
    return newest.parent if newest is not None and (newest.parent / "postgres").exists() else None


def _other_user() -> tuple[str, str]:
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return "nobody", "nogroup"
    return "postgres", "postgres"


def _as_another() -> list[str]:
    """The server does not run as root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no setpriv")
    user, group = _other_user()
    # Whatever ends the tests ends the server, at once.
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--pdeathsig=QUIT"]
