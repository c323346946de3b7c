"""Runs workers, schedulers and callers at the same time, in threads of one process or in several processes.

Everything is at the top level of this module, so that a new process finds it by name.
"""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, TypeVar

from rota.testing.store_suite.builders import MINUTE, T0, a_job, a_line
from rota.testing.store_suite.steps import claim, fire_due, succeed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.context import BaseContext

    from rota.store.contract import Store

Result = TypeVar("Result")
DRIVERS = ("psycopg", "pymongo", "redis")  # drivers that a store may import; a missing one is skipped
PATIENCE = 60.0  # seconds within which all must have started


def in_threads(work: Callable[[Store, int], Result], stores: Sequence[Store]) -> list[Result]:
    """Do the same work in one thread per entry at once; each gets a handle (perhaps the same one) and a number."""
    start = Barrier(len(stores))
    patient = sys.getswitchinterval()

    def rival(store: Store, number: int) -> Result:
        start.wait(PATIENCE)
        return work(store, number)

    sys.setswitchinterval(1e-6)  # so that threads interrupt each other often
    try:
        with ThreadPoolExecutor(len(stores)) as pool:
            return [future.result() for future in [pool.submit(rival, store, n) for n, store in enumerate(stores)]]
    finally:
        sys.setswitchinterval(patient)


def in_processes(work: Callable[[Store, int], Result], make_store: Callable[[], Store], number: int) -> list[Result]:
    """Do the same work in so many new processes at once, each with a handle of its own."""
    context = _fresh_processes()
    start = context.Barrier(number)
    with ProcessPoolExecutor(number, mp_context=context, initializer=_meet_at, initargs=(start,)) as pool:
        rivals = [pool.submit(_in_this_process, work, make_store, n) for n in range(number)]
        return [rival.result() for rival in rivals]


def _fresh_processes() -> BaseContext:
    """Processes that never had a store open: forks of one that has only imported, if the system can fork.

    A process that imports all of this by itself takes half a second of CPU, and each store is tested with some twenty.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *DRIVERS])
    return context


_start: list[Barrier] = []


def _meet_at(start: Barrier) -> None:
    _start.append(start)


def _in_this_process(work: Callable[[Store, int], Result], make_store: Callable[[], Store], number: int) -> Result:
    store = make_store()
    store.open()
    try:
        _start[-1].wait(PATIENCE)
        return work(store, number)
    finally:
        store.close()


def claim_until_empty(store: Store, number: int) -> list[str]:
    """Claim three at a time and settle each; return what was claimed."""
    holder = f"rival-{number}"
    taken: list[str] = []
    while jobs := claim(store, 3, holder=holder):
        taken += [job.id for job in jobs]
        for job in jobs:
            assert succeed(store, job, holder=holder) == []
    return taken


def fire_for_ten_minutes(store: Store, number: int) -> list[str]:
    """Fire for ten minutes as a scheduler does; return the jobs that it made."""
    del number
    made: list[str] = []
    for minute in range(1, 11):
        for _ in range(3):
            made += [job for fired in fire_due(store, now=T0 + minute * MINUTE) for job in fired.jobs]
    return made


def add_twenty_jobs(store: Store, number: int) -> list[str]:
    """Add jobs one by one, without a given time, as callers do; return their ids in order."""
    del number
    return [store.add_jobs([a_job()])[0].id for _ in range(20)]


def add_under_ten_keys(store: Store, number: int) -> list[str]:
    """Add a job under each of ten keys; return those that were made."""
    del number
    made: list[str] = []
    for n in range(10):
        (added,) = store.add_jobs([a_job(key=f"key-{n}")])
        made += [] if added.existed else [added.id]
    return made


def write_twenty_lines(store: Store, number: int) -> list[str]:
    """Write to one job's log, line by line."""
    texts = [f"{number}:{n:02}" for n in range(20)]
    for text in texts:
        store.append_logs([a_line("job-with-logs", text)])
    return texts
