"""CPU time of jobs that take turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import Any

ENOUGH_S = 0.3
"""A job that has been measured for this long in all needs no more turns than the asked ones."""

MOST_TURNS = 15


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


async def beside(job: Callable[[], Awaitable[Any]], raw: Callable[[], Any], turns: int) -> tuple[float, float]:
    """Median CPU milliseconds of a job and of its raw counterpart, measured A B B A after a warm-up.

    Cheap jobs get more turns than `turns`, up to MOST_TURNS.
    """
    await job()
    raw()
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
