"""Tests stores with features.is_shared: several handles on the same data, in this process and in others."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from rota.errors import StoreSealed
from rota.model.schedules.edit import disable
from rota.store.contract import Refusal, Seal
from rota.testing.store_suite.builders import MINUTE, RIVAL, T0, a_job
from rota.testing.store_suite.fixtures import opened
from rota.testing.store_suite.notify import is_woken, listener_on
from rota.testing.store_suite.rivals import (
    add_under_ten_keys,
    claim_until_empty,
    fire_for_ten_minutes,
    in_processes,
    in_threads,
    write_twenty_lines,
)
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    fire,
    ids,
    new_schedule,
    read,
    read_schedule,
    running_job,
    succeed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.store.contract import Store

__all__ = ["TestListenersBetweenHandles", "TestRacesOfHandles", "TestRacesOfProcesses", "TestSharedStore"]

PROCESSES = 3


class TestSharedStore:
    def test_a_job_added_by_one_is_claimed_by_another(self, store: Store, make_store: Callable[[], Store]) -> None:
        job_id = add_job(store, payload=b"\x00", key="k")
        with opened(make_store) as other:
            assert ids(claim(other, holder=RIVAL)) == [job_id]
        assert read(store, job_id).holder == RIVAL

    def test_a_key_holds_for_everybody(self, store: Store, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as other:
            first = add_job(store, key="k")
            assert add_job(other, key="k") == first

    def test_order_is_one_over_all_handles(self, store: Store, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as other:
            made = [add_job(handle) for handle in (store, other, other, store, other)]
            assert ids(claim(store, 5)) == made

    def test_a_settled_lease_is_refused_to_everybody(self, store: Store, make_store: Callable[[], Store]) -> None:
        job = running_job(store)
        with opened(make_store) as other:
            assert succeed(other, job) == []
        assert succeed(store, job) == [Refusal(job.id, "lease")]

    def test_a_queue_paused_by_one_is_paused_for_all(self, store: Store, make_store: Callable[[], Store]) -> None:
        add_job(store)
        with opened(make_store) as other:
            store.pause_queue("default", paused=True)
            assert claim(other) == []

    def test_a_schedule_fired_by_one_is_not_fired_by_another(
        self, store: Store, make_store: Callable[[], Store]
    ) -> None:
        add_schedule(store)
        with opened(make_store) as other:
            fire(store, now=T0 + MINUTE)
            assert other.due_schedules(10, now=T0 + MINUTE).schedules == []

    def test_counters_of_all_handles_are_summed(self, store: Store, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as other:
            add(store, a_job(), a_job())
            add(other, a_job())
            succeed(other, claim(other)[0])
            assert (store.recount(), other.recount()) == ({}, {})
            assert store.list_queues(now=T0) == other.list_queues(now=T0)
        assert store.list_queues(now=T0)[0].totals == {"succeeded": 1}

    def test_a_store_sealed_by_one_is_sealed_for_all(self, store: Store, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as other:
            add_job(other)
            store.seal(Seal(target="elsewhere"))
            with pytest.raises(StoreSealed):
                claim(other)
            other.seal(None)
        assert len(claim(store)) == 1

    def test_a_namespace_is_listed_by_every_handle(self, store: Store, make_store: Callable[[], Store]) -> None:
        """Also by a handle that is not open: listing namespaces creates nothing."""
        assert store.namespace in store.namespaces()
        assert make_store().namespaces() == store.namespaces() == sorted(store.namespaces())

    def test_closing_one_handle_leaves_the_others_open(self, store: Store, make_store: Callable[[], Store]) -> None:
        with opened(make_store) as other:
            add_job(other)
        assert len(all_jobs(store)) == 1


class TestListenersBetweenHandles:
    def test_a_listener_is_woken_by_a_job_from_another_handle(
        self, store: Store, make_store: Callable[[], Store]
    ) -> None:
        with opened(make_store) as other, listener_on(store, "jobs") as listener:
            assert is_woken(listener, lambda: add_job(other))

    def test_a_listener_is_woken_by_a_job_from_another_process(
        self, store: Store, make_store: Callable[[], Store]
    ) -> None:
        with listener_on(store, "jobs") as listener:
            assert is_woken(listener, lambda: in_processes(add_under_ten_keys, make_store, 1))

    def test_a_listener_is_woken_by_an_edit_from_another_handle(
        self, store: Store, make_store: Callable[[], Store]
    ) -> None:
        add_schedule(store)
        with opened(make_store) as other, listener_on(store, "schedules") as listener:
            assert is_woken(listener, lambda: change_schedule(other, disable(read_schedule(other), T0)))


class TestRacesOfHandles:
    def test_a_job_claimed_through_many_handles_runs_once(self, store: Store, make_store: Callable[[], Store]) -> None:
        made = add(store, *[a_job() for _ in range(60)])
        with ExitStack() as stack:
            handles = [stack.enter_context(opened(make_store)) for _ in range(3)]
            taken = in_threads(claim_until_empty, [store, *handles])
        assert sorted(job for rival in taken for job in rival) == sorted(made)


class TestRacesOfProcesses:
    def test_a_job_claimed_by_many_processes_runs_once(self, store: Store, make_store: Callable[[], Store]) -> None:
        made = add(store, *[a_job() for _ in range(100)])
        taken = in_processes(claim_until_empty, make_store, PROCESSES)
        assert sorted(job for rival in taken for job in rival) == sorted(made)

    def test_many_processes_make_each_occurrence_once(self, store: Store, make_store: Callable[[], Store]) -> None:
        store.edit_schedules([new_schedule(f"s{n}", overlap="allow") for n in range(5)], now=T0)
        made = in_processes(fire_for_ten_minutes, make_store, PROCESSES)
        fired = Counter((job.schedule_id, job.fire_at) for job in all_jobs(store))
        assert fired == {(f"s{n}", T0 + minute * MINUTE): 1 for n in range(5) for minute in range(1, 11)}
        assert sum(len(mine) for mine in made) == 50

    def test_one_key_makes_one_job_in_all_processes(self, store: Store, make_store: Callable[[], Store]) -> None:
        made = in_processes(add_under_ten_keys, make_store, PROCESSES)
        assert Counter(job.key for job in all_jobs(store)) == {f"key-{n}": 1 for n in range(10)}
        assert sum(len(mine) for mine in made) == 10

    def test_lines_of_many_processes_are_all_kept(self, store: Store, make_store: Callable[[], Store]) -> None:
        add_job(store, id="job-with-logs")
        written = in_processes(write_twenty_lines, make_store, PROCESSES)
        kept = [line.text for line in store.list_logs("job-with-logs")]
        assert [[text for text in kept if text in mine] for mine in written] == written
