"""CPU time of jobs that take turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

ENOUGH_S = 0.3
"""A job that has been measured for this long in all needs no more turns than the asked ones."""

MOST_TURNS = 15

LOOK_S = 0.5

LONG_MS = 800.0
"""A page that takes longer than this is measured once: what a first call costs more is small beside it."""


class Expired(BaseException):
    """A time box ended. Not an Exception: what is measured must not take it for one of its own."""


@contextmanager
def box(seconds: float) -> Iterator[None]:
    """Raises Expired in the main thread once this process has used so many seconds of CPU in the context.

    Work inside of SQLite is ended when it returns. Without end where a thread cannot be sent a signal. The system's
    own timer of CPU time would do without a thread, but while one runs, Linux tells the CPU time of a process in steps
    of some milliseconds, and what is measured here is often shorter.
    """
    if not hasattr(signal, "pthread_kill"):
        yield
        return

    def end(_number: int, _frame: Any) -> None:
        raise Expired

    over, began, main = threading.Event(), time.process_time(), threading.get_ident()

    def watch() -> None:
        while not over.wait(min(LOOK_S, seconds / 4)):
            # Again at every look, because the first may be raised where nobody passes it on.
            if time.process_time() - began > seconds:
                signal.pthread_kill(main, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, end)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        signal.signal(signal.SIGALRM, before)


def cpu_ms(job: Callable[[], Any]) -> float:
    """CPU milliseconds of this process, all threads, for one call."""
    began = time.process_time()
    job()
    return (time.process_time() - began) * 1000


async def cpu_ms_async(job: Callable[[], Awaitable[Any]]) -> float:
    """As `cpu_ms`, for a job that is awaited; the threads it uses are counted."""
    began = time.process_time()
    await job()
    return (time.process_time() - began) * 1000


def alternating(jobs: Sequence[Callable[[], Any]], turns: int) -> list[float]:
    """Median CPU milliseconds of each of several jobs, measured A B B A after a warm-up."""
    for job in jobs:
        job()
    taken: list[list[float]] = [[] for _ in jobs]
    for turn in range(turns):
        for at in range(len(jobs)) if turn % 2 else reversed(range(len(jobs))):
            taken[at].append(cpu_ms(jobs[at]))
    return [median(times) for times in taken]


async def beside(job: Callable[[], Awaitable[Any]], raw: Callable[[], Any], turns: int) -> tuple[float, float]:
    """Median CPU milliseconds of a job and of its raw counterpart, measured A B B A after a warm-up.

    Cheap jobs get more turns than `turns`, up to MOST_TURNS; of one that takes longer than LONG_MS the warm-up counts.
    """
    warm, raw_warm = await cpu_ms_async(job), cpu_ms(raw)
    if warm > LONG_MS:
        return warm, raw_warm
    jobs: list[float] = []
    raws: list[float] = []
    while len(jobs) < turns or (sum(jobs) < ENOUGH_S * 1000 and len(jobs) < MOST_TURNS):
        if len(jobs) % 2:
            raws.append(cpu_ms(raw))
            jobs.append(await cpu_ms_async(job))
        else:
            jobs.append(await cpu_ms_async(job))
            raws.append(cpu_ms(raw))
    return median(jobs), median(raws)


def least_and_median(values: Sequence[float]) -> tuple[float, float]:
    """The two numbers that say most about a short job."""
    return min(values), median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all values do not exceed; the greatest one of few values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
