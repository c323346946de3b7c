"""Tests races within one process: whatever threads do at the same time, each job and each occurrence happens once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Succeeded
from rota.model.jobs.settle import rescue, settle
from rota.model.schedules.edit import pause, register
from rota.store.contract import LARGEST_PAGE, Exchange, JobFilter
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, WORKER, a_job, a_policy, a_spec, fresh_id
from rota.testing.store_suite.rivals import (
    add_twenty_jobs,
    add_under_ten_keys,
    claim_until_empty,
    fire_for_ten_minutes,
    in_threads,
    write_twenty_lines,
)
from rota.testing.store_suite.steps import (
    add,
    add_job,
    add_schedule,
    all_jobs,
    claim,
    ids,
    new_schedule,
    planned,
    read,
    read_schedule,
    running_job,
    succeed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.settle import Change
    from rota.model.schedules.firing import Firing
    from rota.store.contract import Store

THREADS = 8
ROUNDS = 10


class TestRacesOfWorkers:
    def test_a_job_claimed_by_many_runs_once(self, store: Store) -> None:
        made = add(store, *[a_job() for _ in range(100)])
        taken = in_threads(claim_until_empty, [store] * THREADS)
        assert sorted(job for rival in taken for job in rival) == sorted(made)

    def test_one_job_has_one_winner(self, store: Store) -> None:
        for n in range(ROUNDS):
            job_id = add_job(store)
            taken = in_threads(lambda handle, number: ids(claim(handle, holder=f"rival-{number}")), [store] * THREADS)
            assert [job for rival in taken for job in rival] == [job_id], f"round {n}"

    def test_one_lease_is_settled_once(self, store: Store) -> None:
        job = running_job(store)
        refused = in_threads(lambda handle, _: succeed(handle, job), [store] * THREADS)
        assert sorted(len(refusals) for refusals in refused) == [0] + [1] * (THREADS - 1)
        assert store.list_queues()[0].totals == {"succeeded": 1}

    def test_a_expired_job_is_rescued_once(self, store: Store) -> None:
        job = running_job(store)
        decided = rescue(job, T0 + HOUR)
        in_threads(lambda handle, _: handle.rescue_jobs([decided], now=T0 + HOUR), [store] * THREADS)
        assert read(store, job.id).deaths == 1

    def test_between_worker_and_rescuer_one_wins(self, store: Store) -> None:
        for n in range(ROUNDS):
            now = T0 + n * HOUR
            job = running_job(store, now=now, queue=f"q{n}")
            late = now + MINUTE
            settled, rescued = settle(job, Succeeded(), a_policy(), late, 0.0), rescue(job, late)
            refused = in_threads(partial(_settle_or_rescue, settled, rescued, late), [store] * 2)
            assert sum(refused) == 1


class TestRacesOfCallers:
    def test_jobs_that_threads_add_one_by_one_are_there_once_and_in_order(self, store: Store) -> None:
        made = in_threads(add_twenty_jobs, [store] * THREADS)
        there = [job.id for job in sorted(all_jobs(store), key=lambda job: job.seq)]
        assert sorted(there) == sorted(job_id for mine in made for job_id in mine)
        assert [[job_id for job_id in there if job_id in mine] for mine in made] == made
        assert store.list_queues()[0].counts == {"queued": 20 * THREADS}

    def test_one_key_makes_one_job(self, store: Store) -> None:
        made = in_threads(add_under_ten_keys, [store] * THREADS)
        live = Counter(job.key for job in all_jobs(store))
        assert live == {f"key-{n}": 1 for n in range(10)}
        assert sum(len(mine) for mine in made) == 10

    def test_a_reader_never_sees_half_a_batch(self, store: Store) -> None:
        done = Event()

        def write_or_read(handle: Store, number: int) -> set[int]:
            if number:
                for _ in range(ROUNDS):
                    add(handle, *[a_job() for _ in range(20)])
                done.set()
                return set()
            seen: set[int] = set()
            while not done.is_set():
                seen.add(len(handle.list_jobs(JobFilter(), limit=LARGEST_PAGE).items))
            return seen

        seen, _ = in_threads(write_or_read, [store] * 2)
        assert {number % 20 for number in seen} <= {0}

    def test_lines_of_many_writers_are_all_kept_and_each_in_order(self, store: Store) -> None:
        add_job(store, id="job-with-logs")
        written = in_threads(write_twenty_lines, [store] * THREADS)
        kept = [line.text for line in store.list_logs("job-with-logs")]
        assert sorted(kept) == sorted(text for mine in written for text in mine)
        assert len({line.number for line in store.list_logs("job-with-logs")}) == len(kept)
        assert [[text for text in kept if text in mine] for mine in written] == written


class TestRacesOfSchedulers:
    def test_many_schedulers_make_each_occurrence_once(self, store: Store) -> None:
        store.edit_schedules([new_schedule(f"s{n}", overlap="allow") for n in range(5)], now=T0)
        made = in_threads(fire_for_ten_minutes, [store] * THREADS)
        fired = Counter((job.schedule_id, job.fire_at) for job in all_jobs(store))
        assert fired == {(f"s{n}", T0 + minute * MINUTE): 1 for n in range(5) for minute in range(1, 11)}
        assert sum(len(mine) for mine in made) == 50

    def test_of_many_firings_of_one_version_one_is_taken(self, store: Store) -> None:
        add_schedule(store, overlap="allow")
        for n in range(1, ROUNDS + 1):
            now = T0 + n * MINUTE
            firings = [planned(store, now=now) for _ in range(THREADS)]
            fired = in_threads(partial(_fire_mine, firings, now), [store] * THREADS)
            assert sum(fired) == 1
        assert len(all_jobs(store)) == ROUNDS

    def test_one_version_is_edited_once(self, store: Store) -> None:
        schedule = add_schedule(store)

        def rename(handle: Store, number: int) -> list[str]:
            spec = a_spec(description=f"by {number}")
            edit = register(schedule, "tick", spec, schedule.origin, T0, fresh_id)
            assert edit is not None
            return handle.edit_schedules([edit], now=T0)

        refused = in_threads(rename, [store] * THREADS)
        assert sorted(len(names) for names in refused) == [0] + [1] * (THREADS - 1)
        assert read_schedule(store).version == 2

    def test_a_schedule_is_made_once(self, store: Store) -> None:
        refused = in_threads(
            lambda handle, _: handle.edit_schedules([new_schedule("tick", run_on_start=True)], now=T0),
            [store] * THREADS,
        )
        assert sorted(len(names) for names in refused) == [0] + [1] * (THREADS - 1)
        assert len(all_jobs(store)) == 1

    def test_a_pause_leaves_nothing_waiting_whoever_comes_first(self, store: Store) -> None:
        for n in range(ROUNDS):
            schedule = add_schedule(store, f"s{n}")
            firing = planned(store, schedule.id, now=T0 + MINUTE)
            in_threads(partial(_pause_or_fire, firing), [store] * 2)
        assert {job.state for job in all_jobs(store)} <= {State.CANCELLED}


def _settle_or_rescue(settled: Change, rescued: Change, now: int, store: Store, number: int) -> int:
    """Settle and rescue the same job; return how many of the two were refused."""
    if number:
        return len(store.rescue_jobs([rescued], now=now))
    return len(store.exchange(Exchange(holder=WORKER, settled=[settled]), now=now).refused)


def _pause_or_fire(firing: Firing, store: Store, number: int) -> None:
    if number:
        store.fire([firing], now=T0 + MINUTE)
    else:
        _pause_in_the_end(store, firing.schedule.id)


def _fire_mine(firings: Sequence[Firing], now: int, store: Store, number: int) -> bool:
    return store.fire([firings[number]], now=now)[0].is_accepted


def _pause_in_the_end(store: Store, name: str) -> None:
    """Pause it; try again if another caller was faster."""
    while True:
        edit = pause(read_schedule(store, name), T0 + MINUTE, reason="", by="", until=None)
        if store.edit_schedules([edit], now=T0 + MINUTE) == []:
            return
