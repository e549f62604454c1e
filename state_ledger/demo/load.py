"""Loading planned sessions into the tables of a store, in the order in which they would have been written."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from state_ledger.demo import messages, session, usage
from state_ledger.demo.messages import Transcript
from state_ledger.demo.prose import Voices
from state_ledger.demo.session import Session
from state_ledger.demo.tools import Toolbox
from state_ledger.demo.usage import Book
from state_ledger.sqlite import Connection

Progress = Callable[[str, int, int], None]
"""Called with what is being done (`messages`, `indexes`, `full text`), sessions done, and sessions in all."""

_BATCH = 2000


def load(
    connection: Connection,
    planned: list[Session],
    rng: Random,
    voices: Voices,
    toolbox: Toolbox,
    report: Progress,
) -> None:
    """Writes sessions, messages and usage, the messages of all sessions in the order of their writing.

    So ids rise with time across sessions as in a store that grew, and only the sessions that are
    open at one moment are in memory.
    """
    batch = _Batch(connection)
    prompts: dict[tuple[str, str | None], str] = {}
    waiting: list[tuple[float, int, tuple[Any, ...], Iterator[messages.Written], _Open]] = []
    done = 0

    def step(order: int, rows: Iterator[messages.Written], open_session: _Open) -> None:
        nonlocal done
        following = next(rows, None)
        if following is None:
            batch.add_session(*open_session.finish())
            done += 1
            report("messages", done, len(planned))
        else:
            heapq.heappush(waiting, (following[0], order, following[1], rows, open_session))

    def write_until(moment: float) -> None:
        while waiting and waiting[0][0] < moment:
            _, order, row, rows, open_session = heapq.heappop(waiting)
            batch.add_message(row)
            step(order, rows, open_session)

    for order, one in enumerate(planned):
        write_until(one.started)
        own = Random(rng.getrandbits(64))
        voice = voices.voice(one.topic)
        key = (one.source, one.profile)
        prompts[key] = prompts.get(key) or _system_prompt(own, voices, one)
        book = Book(one.id, own)
        transcript = Transcript(one, voice, toolbox, own, book)
        step(order, transcript.rows(), _Open(one, transcript, book, prompts[key]))
    write_until(float("inf"))
    batch.flush()


@dataclass(frozen=True)
class _Open:
    """A session whose messages are being written."""

    session: Session
    transcript: Transcript
    book: Book
    system_prompt: str

    def finish(self) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
        """Its session row and its usage rows, once all messages are written."""
        last = self.book.last_route or self.session.route
        total = self.book.main_total()
        return session.row(
            self.session, self.transcript.counts, total, last, self.system_prompt
        ), self.book.rows()


class _Batch:
    """Rows on their way to the file, a few thousand at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._messages: list[tuple[Any, ...]] = []
        self._sessions: list[tuple[Any, ...]] = []
        self._usage: list[tuple[Any, ...]] = []

    def add_message(self, row: tuple[Any, ...]) -> None:
        self._messages.append(row)
        if len(self._messages) >= _BATCH:
            self.flush()

    def add_session(self, row: tuple[Any, ...], usage_rows: list[tuple[Any, ...]]) -> None:
        self._sessions.append(row)
        self._usage.extend(usage_rows)

    def flush(self) -> None:
        for table, columns, rows in (
            ("sessions", session.COLUMNS, self._sessions),
            ("messages", messages.COLUMNS, self._messages),
            ("session_model_usage", usage.COLUMNS, self._usage),
        ):
            places = ", ".join("?" * len(columns))
            self._connection.executemany(f"INSERT INTO {table}({', '.join(columns)}) VALUES ({places})", rows)
            rows.clear()


def _system_prompt(rng: Random, voices: Voices, one: Session) -> str:
    """A system prompt of the usual length; sessions of one source and profile share it."""
    voice = voices.voice(replace(one.topic, language="en"))
    rules = "\n".join(f"- {voice.thought(rng)}" for _ in range(24))
    return (
        f"You are Hermes, a helpful assistant. This conversation takes place on {one.source}.\n\n"
        f"# What you remember\n\n{rules}\n\n# Profile\n\n{one.profile or 'default'}\n"
    )
