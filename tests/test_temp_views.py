"""Making many TEMP views at once: the same views either way, whatever this SQLite allows, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from state_ledger import ledger
from state_ledger.ledger import temp_views
from state_ledger.sqlite import sqlite3
from tests import books

VIEWS = [
    ("first", "SELECT id AS \"the 'id'\", 'it''s' AS word FROM main.sessions"),
    ('odd "name"', "SELECT count(*) AS number FROM first"),
]
SELECT = 'SELECT f."the \'id\'", word, number FROM "odd ""name""", first AS f'


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return books.write(tmp_path / "state.db", sessions=[books.session("s")])


def make(connection: Any) -> None:
    temp_views.make(connection, temp_views.at_once(VIEWS), temp_views.one_by_one(VIEWS), sign="first")


def refusing(*refused: str) -> Any:
    """An authorizer that lets everything pass but setting one of these pragmas to 1."""

    def authorize(action: int, name: Any, value: Any, *_rest: Any) -> int:
        return 1 if action == 19 and name in refused and value == "1" else 0  # SQLITE_PRAGMA, SQLITE_DENY

    return authorize


@pytest.mark.parametrize("refused", [(), ("writable_schema",), ("schema_version",)])
@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_views_are_made_whatever_the_connection_allows(store: Path, mode: str, refused: tuple[str, ...]) -> None:
    before = store.read_bytes()
    connection = sqlite3.connect(f"file:{store}?mode={mode}", uri=True)
    connection.execute("CREATE TEMP TABLE of_others (number)")
    connection.execute("INSERT INTO of_others VALUES (7)")
    connection.commit()
    connection.set_authorizer(refusing(*refused))
    make(connection)
    make(connection)
    connection.set_authorizer(None)
    assert connection.execute(SELECT).fetchall() == [("s", "it's", 1)]
    assert connection.execute("SELECT number FROM of_others").fetchall() == [(7,)]
    assert not connection.in_transaction
    assert connection.execute("PRAGMA writable_schema").fetchone() == (0,)
    assert connection.execute("SELECT count(*) FROM temp.sqlite_master WHERE type = 'view'").fetchone() == (2,)
    connection.close()
    assert store.read_bytes() == before


def test_the_views_of_the_ledger_are_the_same_made_at_once_and_one_by_one(store: Path) -> None:
    made = []
    for refused in ((), ("writable_schema",)):
        connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        connection.set_authorizer(refusing(*refused))
        ledger.install(connection)
        names = connection.execute("SELECT name FROM temp.sqlite_master ORDER BY name").fetchall()
        made.append([(name, connection.execute(f"PRAGMA temp.table_info({name})").fetchall()) for (name,) in names])
        connection.close()
    assert made[0] == made[1] != []


def test_a_view_that_cannot_be_parsed_is_an_error(store: Path) -> None:
    connection = sqlite3.connect(store)
    broken = [("broken", "SELECT FROM")]
    with pytest.raises(sqlite3.DatabaseError):
        temp_views.make(connection, temp_views.at_once(broken), temp_views.one_by_one(broken), sign="broken")
