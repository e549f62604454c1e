"""Files that are being made: they have names of their own until they are whole, and what killed processes left goes."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from state_ledger import processes

_ENDING = ".part"


def place(name: str, folder: Path) -> Path:
    """Where a file is made that will be called `name`, or will have a name that begins so, when it is whole.

    What killed processes left of theirs in the folder is removed, where this user may.
    """
    with suppress(OSError):
        for left in folder.iterdir():
            if left.name.startswith(f".{name}.") and left.name.endswith(_ENDING):
                number = left.name.removeprefix(f".{name}.").partition("-")[0]
                if number.isdigit() and processes.surely_ended(int(number)):
                    remove(left)
    return folder / f".{name}.{os.getpid()}-{secrets.token_hex(4)}{_ENDING}"


def remove(path: Path) -> None:
    """Removes a file, if it is there, and what SQLite keeps beside it. Raises OSError."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()

