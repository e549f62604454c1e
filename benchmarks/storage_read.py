"""Reading a store of 130,000 messages: beside the real program on a copy of the same file.

`python -m benchmarks.storage_read`. Each side is a process with its own SQLite; calls alternate.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import store
from benchmarks.figure import Figure, table
from benchmarks.storage_append import HERMES, OURS, REAL
from state_ledger.sqlite import read_only_uri, sqlite3
from tests.hermes import UnavailableError, environment, opened

SESSIONS = 1_860
MESSAGES_PER_SESSION = 70
ROUNDS = 6

Call = tuple[str, str, tuple[Any, ...], dict[str, Any], int]
"""What is measured: its name, the method, its arguments, the times it is called in a row."""


def calls(path: Path) -> list[Call]:
    """The reads a program does: one session, the list of them, and searches for rare and common words."""
    connection = sqlite3.connect(read_only_uri(path), uri=True)
    longest, middle = (
        connection.execute(
            "SELECT session_id FROM messages GROUP BY session_id ORDER BY count(*) DESC LIMIT 1 OFFSET ?", [offset]
        ).fetchone()[0]
        for offset in (0, SESSIONS // 2)
    )
    connection.close()
    return [
        ("get_messages, longest session", "get_messages", (longest,), {}, 3),
        ("get_messages, session of middle length", "get_messages", (middle,), {}, 30),
        ("list_sessions_rich", "list_sessions_rich", (), {}, 5),
        ("list_sessions_rich, 200 rows", "list_sessions_rich", (), {"limit": 200}, 1),
        ("list_sessions_rich, by last activity", "list_sessions_rich", (), {"order_by_last_active": True}, 1),
        ("search_messages, common word", "search_messages", ("the",), {}, 1),
        ("search_messages, common word, newest first", "search_messages", ("the",), {"sort": "newest"}, 1),
        ("search_messages, two words", "search_messages", ("electricity bill",), {}, 3),
        ("search_messages, prefix", "search_messages", ("cheap*",), {}, 3),
        ("search_messages, one source", "search_messages", ("error",), {"source_filter": ["cli"]}, 1),
        ("search_messages, trigram", "search_messages", ("請求書",), {}, 3),
        ("search_messages, no hit", "search_messages", ("zyzzyva",), {}, 5),
    ]


def measure(path: Path) -> list[Figure]:
    """One figure for each call: CPU milliseconds, ours beside the real program's."""
    with tempfile.TemporaryDirectory(prefix="state-ledger-benchmark-") as folder, ExitStack() as stack:
        sides = {}
        for library, python in ((OURS, Path(sys.executable)), (REAL, environment(HERMES))):
            copy = Path(folder) / f"{library}.db"
            shutil.copyfile(path, copy)
            _mend(copy)
            sides[library] = stack.enter_context(opened(python, library, copy))
        figures = []
        for name, method, arguments, named, times in calls(path):
            taken: dict[str, list[float]] = {library: [] for library in sides}
            for side in sides.values():
                side.ask("timed", method, 1, arguments, named)
            for at in range(ROUNDS):
                for library in (OURS, REAL) if at % 2 else (REAL, OURS):
                    taken[library] += sides[library].ask("timed", method, times, arguments, named)
            ours, real = median(taken[OURS]), median(taken[REAL])
            figures.append(Figure(name, ours, real, "ms", f"≤ Hermes {HERMES}", real))
    return figures


def _mend(path: Path) -> None:
    """Takes out of a copy the two troubles of the demo store that the real program fails on."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    connection.execute("UPDATE sessions SET model_config = NULL WHERE NOT json_valid(model_config)")
    for number, content in connection.execute("SELECT id, content FROM messages WHERE content IS NOT NULL").fetchall():
        if isinstance(content, bytes) and content.decode("utf-8", "replace").encode() != content:
            connection.execute("UPDATE messages SET content = '' WHERE id = ?", [number])
    connection.commit()
    connection.close()


def main() -> int:
    path = store.find_or_make(None, SESSIONS, MESSAGES_PER_SESSION)
    try:
        environment(HERMES)
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    figures = measure(path)
    print(f"SQLite {sqlite3.sqlite_version}, {path.stat().st_size / 1e6:,.0f} MB")
    print(table(figures))
    return int(any(figure.over for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
