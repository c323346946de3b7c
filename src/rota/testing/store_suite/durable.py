"""Tests stores with features.is_durable: everything is there when the store is opened again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from rota.errors import StoreSealed, StoreUnavailable
from rota.model.jobs.outcome import Failed
from rota.model.schedules.edit import pause
from rota.store.contract import Exchange, JobFilter, Refusal, Seal
from rota.store.memory import MemoryStore
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, WORKER, a_job, a_line, a_node
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.furnished import copy_all, furnish, movable
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    fire,
    ids,
    ledger,
    read_schedule,
    running_job,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Store

__all__ = ["TestDurableStore"]

READERS = 3
ROUNDS = 5


class TestDurableStore:
    def test_jobs_of_every_state_are_there_again(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            add(store, a_job(payload=b"\x00\xff"), a_job(), a_job(delay=HOUR))
            first, second = claim(store, 2)
            settle_job(store, first, Failed("boom"), retries=1)
            add_job(store, waits_for=second.id)
            before = all_jobs(store)
        with opened(make_store) as store:
            assert all_jobs(store) == before

    def test_a_lease_outlives_the_handle(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            job = running_job(store)
        with opened(make_store) as store:
            assert claim(store) == []
            assert succeed(store, job) == []
            assert succeed(store, job) == [Refusal(job.id, "lease")]

    def test_a_lease_of_the_stores_own_clock_outlives_the_handle(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            store.add_jobs([a_job()])
            store.exchange(Exchange(holder=WORKER, want=1, lease_for=HOUR))
        with opened(make_store) as store:
            assert store.expired_jobs(10) == []

    def test_keys_are_still_taken(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            first = add_job(store, key="k")
        with opened(make_store) as store:
            assert add_job(store, key="k") == first

    def test_new_jobs_stand_behind_the_old(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            old = add(store, a_job(), a_job())
        with opened(make_store) as store:
            new = add(store, a_job())
            assert ids(claim(store, 3)) == [*old, *new]

    def test_schedules_are_there_again(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            schedule = add_schedule(store, description="Zürich ☕")
            paused = change_schedule(store, pause(schedule, T0, reason="rest", by="ann", until=T0 + HOUR))
        with opened(make_store) as store:
            assert read_schedule(store) == paused

    def test_what_was_fired_is_not_fired_again(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            add_schedule(store)
            fire(store, now=T0 + MINUTE)
        with opened(make_store) as store:
            assert store.due_schedules(10, now=T0 + MINUTE).schedules == []

    def test_occurrences_are_there_again(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            add_schedule(store, catchup="skip")
            fire(store, now=T0 + 5 * MINUTE)
            before = ledger(store)
        with opened(make_store) as store:
            assert len(before) == 2
            assert ledger(store) == before

    def test_queues_and_counters_are_there_again(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            succeed(store, running_job(store))
            store.pause_queue("mail", paused=True)
            before = store.list_queues(now=T0)
        with opened(make_store) as store:
            assert store.list_queues(now=T0) == before
            check_store(store)

    def test_a_seal_outlives_the_handle(self, make_store: Callable[[], Store]) -> None:
        seal = Seal(target="elsewhere", id="move-1", at=T0)
        with opened(make_store) as store:
            store.seal(seal)
        with opened(make_store) as store:
            assert store.sealed() == seal
            with pytest.raises(StoreSealed):
                add_job(store)
            store.seal(None)
        with opened(make_store) as store:
            assert store.sealed() is None

    def test_what_was_loaded_is_there_again(self, make_store: Callable[[], Store]) -> None:
        source = MemoryStore()
        furnish(source)
        with opened(make_store) as store:
            copy_all(source, store)
        with opened(make_store) as store:
            assert movable(store) == movable(source)
            assert copy_all(source, store) == 0
            check_store(store)

    def test_logs_and_nodes_are_there_again(self, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as store:
            job_id = add_job(store)
            store.append_logs([a_line(job_id, "a"), a_line(job_id, "b")])
            store.record_heartbeat(a_node(), now=T0)
            before = (store.list_logs(job_id), store.list_nodes())
        with opened(make_store) as store:
            assert (store.list_logs(job_id), store.list_nodes()) == before

    def test_threads_that_read_while_the_handle_is_closed_are_refused(self, make_store: Callable[[], Store]) -> None:
        for _ in range(ROUNDS):
            begun = Barrier(READERS + 1)
            with ThreadPoolExecutor(READERS) as pool, opened(make_store) as store:
                add(store, *[a_job() for _ in range(100)])
                reads = [pool.submit(_read_until_closed, store, begun) for _ in range(READERS)]
                begun.wait()
                store.close()
                for read in reads:
                    assert "closed" in read.result()


def _read_until_closed(store: Store, begun: Barrier) -> str:
    """List jobs until the store is closed; return its error."""
    begun.wait()
    while True:
        try:
            store.list_jobs(JobFilter(), limit=100)
        except StoreUnavailable as err:
            return str(err)
