"""Writers and readers of one live store together: no write fails, no page fails, nobody changes what is not theirs.

STATE_LEDGER_STRESS=1 is the long form: eight writers, two of them the real program where it can be had, every
page there is, five minutes; it prints how long the appends took with readers and without.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from state_ledger.plugins.routes import FLEET
from state_ledger.sqlite import sqlite3
from tests import load
from tests.conftest import STRESS, Servers, names_in
from tests.hermes import StoreProcess, UnavailableError, environment, our_store, real_store
from tests.interchange_books import Snapshot, write_books
from tests.our_pages import pages

HERMES = "0.19.0"
CLIENTS = 16
WRITERS = 8 if STRESS else 2
SECONDS, QUIET_SECONDS = (300.0, 60.0) if STRESS else (1.0, 0.0)
PAUSE_S = 0.05
"""Between two appends of a writer: eight write 160 messages a second, more than any agent does."""


async def test_writers_and_readers_of_one_store_do_not_harm_each_other(
    tmp_path: Path, served: Servers
) -> None:
    path = tmp_path / "store" / "state.db"
    path.parent.mkdir()
    with ExitStack() as stack:
        writers = [stack.enter_context(our_store(path))]
        write_books(writers[0], "kept")
        settings = tmp_path / "settings.yaml"
        settings.write_text("plugins: {state-ledger: {metrics: true}}", encoding="utf-8")
        address = served([path], "--metadata", str(settings))
        writers += _real_program(stack, path) if STRESS else []
        writers += [stack.enter_context(our_store(path)) for _ in range(WRITERS - len(writers))]
        names = [f"writer-{number}" for number in range(len(writers))]
        for name in names:
            writers[0].create_session(name, "cli")
        before = Snapshot.read(path)
        asked = pages(path, "kept-talk", "harbourmaster", every=STRESS)
        every = [each for each in asked if not each.startswith(FLEET)]  # there is none here

        quiet = await _written(writers, names, QUIET_SECONDS, tmp_path, "quiet") if QUIET_SECONDS else None
        writing = asyncio.ensure_future(_written(writers, names, SECONDS, tmp_path, "loaded"))
        answers = await load.walking(address, every, writing.done, CLIENTS)
        taken = await writing

        assert not _failed(answers)
        after = Snapshot.read(path)
        assert before.lost_in(after, besides=names) == []
        acknowledged = _acknowledged(tmp_path)
        assert len(acknowledged) >= len(taken) > 0
        stored = {key[0]: (row["session_id"], row["content"]) for key, row in after.tables["messages"].items()}
        others = {key[0] for key in before.tables["messages"]}
        assert {number: row for number, row in stored.items() if number not in others} == acknowledged
        assert writers[0].complaints() == []

    # No reader keeps an old state of the file: the whole log can be brought back while the server is up.
    log = Path(f"{path}-wal")
    kept = log.stat().st_size if log.exists() else 0
    owner = sqlite3.connect(path, timeout=0, isolation_level=None)
    assert owner.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    assert not log.exists() or log.stat().st_size == 0
    rested, beside = _sha256(path), names_in(path.parent)
    assert not _failed(await load.walking(address, every, lambda: True, CLIENTS))
    assert (_sha256(path), names_in(path.parent)) == (rested, beside)
    assert owner.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    owner.close()
    if quiet is not None:
        print(f"{len(answers):,} pages, {len(taken):,} appends, log {kept:,} bytes when all had ended;"
              f" p99 {_p99(quiet):.1f} ms without readers, {_p99(taken):.1f} ms with them")  # fmt: skip


def _real_program(stack: ExitStack, path: Path) -> list[StoreProcess]:
    try:
        environment(HERMES)
    except UnavailableError:
        return [stack.enter_context(our_store(path)) for _ in range(2)]
    return [stack.enter_context(real_store(HERMES, path)) for _ in range(2)]


async def _written(
    writers: list[StoreProcess], names: list[str], seconds: float, folder: Path, phase: str
) -> list[float]:
    """Lets all writers append; the milliseconds of every append. Raises if one of them failed."""
    for name, writer in zip(names, writers, strict=True):
        writer.begin("append_timed", name, seconds, str(folder / f"{phase}-{name}.log"), PAUSE_S)
    taken = await asyncio.gather(*(asyncio.to_thread(writer.finish) for writer in writers))
    return [ms for each in taken for ms in each]


def _acknowledged(folder: Path) -> dict[int, tuple[str, str]]:
    """Session and content of every message that a writer was told is stored, by its id."""
    found: dict[int, tuple[str, str]] = {}
    for log in sorted(folder.glob("*-writer-*.log")):
        for line in log.read_text("utf-8").splitlines():
            number, _, content = line.partition(" ")
            assert int(number) not in found, "an id was given twice"
            found[int(number)] = (log.stem.partition("-")[2], content)
    return found


def _failed(answers: list[load.Answer]) -> Counter[tuple[str, int, bool]]:
    bad = [each for each in answers if each.status not in (200, 302) or not each.whole]
    return Counter((each.path, each.status, each.whole) for each in bad)


def _p99(milliseconds: list[float]) -> float:
    return sorted(milliseconds)[int(len(milliseconds) * 0.99)]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
