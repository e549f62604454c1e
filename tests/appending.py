"""A process that appends messages to a store, and says on its output which of them it was told are stored.

`python -m tests.appending PATH NAME COUNT`: COUNT messages of the session NAME, of content `NAME 0`,
`NAME 1`, … Each acknowledged one is a line of its number, written before the next one is begun.
"""

from __future__ import annotations

import os
import sys

from state_ledger.session_db import SessionDB


def main(path: str, name: str, count: int) -> None:
    with SessionDB(path) as db:
        db.ensure_session(name, "cli")
        for number in range(count):
            db.append_message(name, "user", f"{name} {number}")
            # Straight to the pipe: what a killed process had buffered would be lost.
            os.write(sys.stdout.fileno(), f"{number}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
