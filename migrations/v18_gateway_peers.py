"""Version 18: what `sessions/sessions.json` beside the store says of messaging peers goes into the rows.

Source: store-format, 3.3. Only NULLs are filled; the file is left as it is.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from state_ledger.migrate.migration_set import MIGRATIONS

_log = logging.getLogger(__name__)


@MIGRATIONS(name="v18_gateway_peers")
def fill_peers(db: Database) -> None:
    """Fills session_key, chat_id, thread_id, chat_type, display_name, origin_json and expiry_finalized."""
    for key, entry in _entries(db).items():
        if key.startswith("_") or not isinstance(entry, dict) or not _text(entry.get("session_id")):
            continue
        origin = entry.get("origin")
        origin = origin if isinstance(origin, dict) else {}
        filled = {
            "session_key": _text(entry.get("session_key")) or key,
            "chat_id": _text(origin.get("chat_id")),
            "thread_id": _text(origin.get("thread_id")),
            "chat_type": _text(entry.get("chat_type")) or _text(origin.get("chat_type")),
            "display_name": _text(entry.get("display_name")),
            "origin_json": json.dumps(origin) if origin else None,
        }
        done = bool(entry.get("expiry_finalized") or entry.get("memory_flushed"))
        assignments = ", ".join(f"{column} = coalesce({column}, ?)" for column in filled)
        db.conn.execute(
            f"UPDATE sessions SET {assignments}, expiry_finalized = max(coalesce(expiry_finalized, 0), ?) WHERE id = ?",
            (*filled.values(), int(done), _text(entry["session_id"])),
        )


def _entries(db: Database) -> dict[str, Any]:
    (file,) = (row[2] for row in db.conn.execute("PRAGMA database_list").fetchall() if row[1] == "main")
    if not file:
        return {}
    path = Path(file).parent / "sessions" / "sessions.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s cannot be read (%s); the messaging peers in it are not taken over.", path, error)
        return {}
    return content if isinstance(content, dict) else {}


def _text(value: object) -> str | None:
    """A name or number as text, which a lone surrogate must not keep from being stored."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        return None
    return str(value).encode("utf-8", "replace").decode("utf-8")
