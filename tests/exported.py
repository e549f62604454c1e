"""What the tests of export and import share: stores to export, and files read back without our own code."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from state_ledger import SessionDB
from state_ledger.connection import open_for_reading
from state_ledger.portability.export import Export, Options
from state_ledger.portability.formats import FORMATS
from state_ledger.portability.scope import Scope
from state_ledger.portability.source import Source
from state_ledger.sqlite import sqlite3


def write(path: Path, statements: str) -> Path:
    """Runs SQL on a new store of schema 23."""
    SessionDB(path).close()
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()
    return path


def exported(path: Path, form: str, scope: Scope | None = None, **options: Any) -> str:
    """An export as text."""
    return exported_bytes(path, form, scope, **options).decode("utf-8")


def exported_bytes(path: Path, form: str, scope: Scope | None = None, **options: Any) -> bytes:
    connection = open_for_reading(path)
    try:
        made = Export.open(Source(connection), scope or Scope("all"), Options(**options), store=path.stem)
        return b"".join(FORMATS[form].write(made))
    finally:
        connection.close()


def strict_json(text: str) -> Any:
    """JSON as programs other than Python read it, who know no NaN and no Infinity."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refused)


def lines(text: str, kind: str | None = None) -> list[dict[str, Any]]:
    """The lines of a JSON Lines export, or those of one type."""
    found = [strict_json(line) for line in text.split("\n") if line]
    return found if kind is None else [line for line in found if line["type"] == kind]


def cells(text: str) -> list[dict[str, str]]:
    """The rows of a CSV export."""
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


CASE_16 = """
INSERT INTO sessions(id,source,started_at) VALUES('s1','cli',1);
INSERT INTO messages(session_id,role,content,timestamp) VALUES
 ('s1','user',CAST(x'006A736F6E3A' AS TEXT)||'[{"type":"text","text":"harbour photo"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":"\\u6842\\u6797\\u65c5\\u6e38"}]',1),
 ('s1','user','plain harbour text',2),
 ('s1','user',CAST(x'006A736F6E3A' AS TEXT)||'[broken',3),
 ('s1','user','json:[1]',4);
"""  # noqa: E501

CASE_20 = """
INSERT INTO sessions(id,source,started_at,title,model) VALUES
 ('s1','cli',1,'<svg onload=alert(1)>','m"><img src=x onerror=alert(2)>');
INSERT INTO messages(session_id,role,content,timestamp) VALUES
 ('s1','user','kite <img src=x onerror=alert(3)> and >>>fake<<< marks',1),
 ('s1','assistant','# T

[go](javascript:alert(4)) <script>alert(5)</script> ![p](https://tracker.example/p.png) kite & co',2);
INSERT INTO messages(session_id,role,content,tool_name,tool_calls,timestamp) VALUES
 ('s1','assistant',NULL,'<img src=x onerror=alert(6)>','[{"id":"c1","type":"function","function":{"name":"<img src=x onerror=alert(7)>","arguments":"{\\"q\\":\\"kite\\"}"}}]',3);
"""  # noqa: E501
