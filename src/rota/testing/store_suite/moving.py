"""Tests copies: a store dumps all that it holds, and what another store loads behaves there as before.

The other side is always the memory store: what a copy to it and from it keeps can be copied between any two stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.jobs.job import State, history_of
from rota.model.schedules.firing import plan
from rota.store.contract import JobFilter, LockRecord, LogLine, QueueRecord, Retention, Seal
from rota.store.memory import MemoryStore
from rota.testing.store_suite.builders import DAY, HOUR, LEASE, MINUTE, T0, WORKER, a_job, a_line, fresh_id
from rota.testing.store_suite.furnished import (
    LATER,
    PARTS,
    QUEUES,
    carried,
    copy_all,
    dumped,
    everything,
    furnish,
    furnish_by_load,
    movable,
)
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    claim,
    claim_one,
    fire,
    fire_due,
    ids,
    ledger,
    queue_info,
    read,
    read_schedule,
    rescue_expired,
    running_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job
    from rota.store.contract import Part, Store

SCHEDULES = ("chained", "recorded", "resting", "off", "ahead", "unique", "unique-ahead", "held-back")


class TestDumping:
    @pytest.mark.parametrize("part", PARTS)
    def test_an_empty_store_has_nothing_to_give(self, store: Store, part: Part) -> None:
        page = store.dump(part)
        assert (page.items, page.cursor) == ([], None)

    def test_jobs_of_every_state_are_dumped_whole_and_in_order(self, store: Store) -> None:
        furnish(store)
        jobs = dumped(store, "jobs")
        assert {job.state for job in jobs} == set(State)
        assert jobs == all_jobs(store)[::-1]
        assert [job.seq for job in jobs] == sorted({job.seq for job in jobs})

    @pytest.mark.parametrize("limit", [1, 2, 7])
    def test_pages_join_without_gap_or_overlap(self, store: Store, limit: int) -> None:
        furnish_by_load(store)
        assert everything(store, limit=limit) == everything(store)

    def test_many_jobs_of_one_task_come_whole_beside_few_of_others(self, store: Store) -> None:
        for task, number in (("rare.one", 1), ("rare.two", 1), ("bulk", 700), ("rare.one", 1)):
            store.add_jobs([a_job(task=task) for _ in range(number)], now=T0)
        jobs = dumped(store, "jobs", limit=300)
        assert len(jobs) == 703
        assert jobs == all_jobs(store)[::-1]

    def test_a_full_last_page_is_the_last(self, store: Store) -> None:
        store.add_jobs([a_job(), a_job()], now=T0)
        page = store.dump("jobs", limit=2)
        rest = store.dump("jobs", cursor=page.cursor, limit=2).items if page.cursor else []
        assert (len(page.items), rest) == (2, [])

    def test_schedules_come_whole(self, store: Store) -> None:
        furnish(store)
        schedules = dumped(store, "schedules")
        assert sorted(schedule.id for schedule in schedules) == sorted(SCHEDULES)
        assert schedules == store.get_schedules([schedule.id for schedule in schedules])

    def test_occurrences_come_only_where_no_job_is_their_record(self, store: Store) -> None:
        furnish(store)
        lines = [line for name in SCHEDULES for line in ledger(store, name)]
        alone = [line for line in lines if line.job_id is None]
        assert len(alone) < len(lines)
        given = dumped(store, "occurrences")
        assert sorted(given, key=msgspec.json.encode) == sorted(alone, key=msgspec.json.encode)

    def test_a_jobs_logs_come_in_order_with_their_numbers(self, store: Store) -> None:
        furnish(store)
        given: dict[str, list[LogLine]] = {}
        for line in dumped(store, "logs", limit=2):
            given.setdefault(line.job_id, []).append(line)
        assert len(given) == 2
        assert given == {job_id: store.list_logs(job_id) for job_id in given}

    def test_queues_come_with_pauses_and_totals(self, store: Store) -> None:
        furnish(store)
        said = {info.name: (info.is_paused, info.totals) for info in store.list_queues(now=T0)}
        given = {queue.name: (queue.is_paused, queue.totals) for queue in dumped(store, "queues")}
        assert given == said
        assert given["empty"] == (True, {})
        assert given["slow"][1] == {"succeeded": 5, "failed": 2}

    def test_locks_come_with_their_last_numbers(self, store: Store) -> None:
        furnish(store)
        locks = sorted(dumped(store, "locks"), key=lambda lock: lock.name)
        assert locks == [LockRecord(name="free", number=2), LockRecord(name="held", number=1)]

    def test_asking_changes_nothing(self, store: Store) -> None:
        furnish_by_load(store)
        assert everything(store) == everything(store)

    def test_what_another_store_takes_in_is_what_was_there(self, store: Store) -> None:
        furnish(store)
        other = MemoryStore()
        copy_all(store, other, limit=3)
        assert movable(other) == movable(store)


@pytest.fixture
def source() -> MemoryStore:
    """The store to copy, with some of everything in it."""
    memory = MemoryStore()
    furnish(memory)
    return memory


class TestLoading:
    def test_everything_arrives(self, store: Store, source: Store) -> None:
        assert copy_all(source, store) > 0
        assert movable(store) == movable(source)

    def test_it_says_how_much_was_new(self, store: Store, source: Store) -> None:
        for part in ("schedules", "occurrences", "jobs", "logs", "locks"):
            records = dumped(source, part)
            assert (part, store.load(records)) == (part, len(records))

    def test_loading_nothing_is_harmless(self, store: Store) -> None:
        assert store.load([]) == 0

    def test_loading_everything_twice_adds_nothing(self, store: Store, source: Store) -> None:
        copy_all(source, store)
        before = everything(store)
        assert {part: store.load(records) for part, records in everything(source).items()} == dict.fromkeys(PARTS, 0)
        assert everything(store) == before

    @pytest.mark.parametrize("part", PARTS)
    def test_a_load_that_was_stopped_can_continue(self, store: Store, source: Store, part: Part) -> None:
        for earlier in PARTS[: PARTS.index(part)]:
            store.load(dumped(source, earlier))
        records = dumped(source, part)
        store.load(records[: len(records) // 2])
        copy_all(source, store, limit=3)
        assert movable(store) == movable(source)

    def test_what_is_there_already_is_left_alone(self, store: Store, source: Store) -> None:
        copy_all(source, store)
        job = claim_one(store, queues=("many",), now=LATER)
        succeed(store, job, now=LATER)
        fire(store, "recorded", now=LATER)
        before = read(store, job.id), read_schedule(store, "recorded")
        assert store.load([*dumped(source, "jobs"), *dumped(source, "schedules")]) == 0
        assert (read(store, job.id), read_schedule(store, "recorded")) == before

    def test_a_record_that_comes_twice_in_one_load_counts_once(self, store: Store, source: Store) -> None:
        others = [dumped(source, part)[0] for part in PARTS if part != "jobs"]
        records = [*dumped(source, "jobs"), *others]
        assert store.load([*records, *records]) == len(records)
        assert [dumped(store, part)[0] for part in ("queues", "locks")] == [
            dumped(source, part)[0] for part in ("queues", "locks")
        ]

    def test_a_sealed_store_takes_records_and_stays_sealed(self, store: Store, source: Store) -> None:
        seal = Seal(target="here", source="there")
        store.seal(seal)
        copy_all(source, store)
        assert movable(store) == movable(source)
        assert store.sealed() == seal

    def test_many_jobs_keep_their_order(self, store: Store) -> None:
        source = MemoryStore()
        source.add_jobs([a_job(priority=number % 5) for number in range(1_200)], now=T0)
        copy_all(source, store)
        assert ids(all_jobs(store)) == ids(all_jobs(source))


class TestRemoval:
    def test_it_is_the_same_for_a_handle_that_is_not_open(self, store: Store, make_store: Callable[[], Store]) -> None:
        found = store.removal()
        assert found.words
        assert make_store().removal() == found

    def test_it_names_the_namespace_and_changes_nothing(self, store: Store) -> None:
        furnish(store)
        before = everything(store)
        assert store.namespace in store.removal().words
        assert everything(store) == before


class TestLoadedJobs:
    @pytest.fixture(autouse=True)
    def _loaded(self, store: Store, source: Store) -> None:
        copy_all(source, store, limit=5)

    def test_claims_come_in_the_same_order(self, store: Store, source: Store) -> None:
        expected = _claim_all(source)
        assert len(expected) > 15
        assert [carried(job) for job in _claim_all(store)] == [carried(job) for job in expected]

    def test_new_jobs_stand_behind_them(self, store: Store) -> None:
        waiting = ids(_claim_all(store, most=1))
        last = add_job(store, queue="many", now=LATER)
        assert last not in waiting
        assert ids(_claim_all(store))[-1] == last

    def test_a_key_that_was_taken_is_taken(self, store: Store, source: Store) -> None:
        (holder,) = source.list_jobs(JobFilter(key="taken")).items
        assert add_job(store, key="taken", now=LATER) == holder.id
        assert add_job(store, key="gone", now=LATER) != holder.id

    def test_a_key_that_holds_for_a_period_holds_to_its_end(self, store: Store, source: Store) -> None:
        (holder,) = source.list_jobs(JobFilter(key="once a day")).items
        assert add_job(store, key="once a day", now=T0 + DAY - 1) == holder.id
        assert add_job(store, key="once a day", now=T0 + DAY) != holder.id

    def test_held_jobs_are_released_one_after_another(self, store: Store) -> None:
        chain = [job for job in all_jobs(store)[::-1] if job.schedule_id == "chained"]
        assert [job.state for job in chain] == [State.QUEUED, State.HELD, State.HELD]
        for job in chain:
            claimed = _claim_by_id(store, job.id)
            assert succeed(store, claimed, now=LATER) == []
        assert {read(store, job.id).state for job in chain} == {State.SUCCEEDED}

    def test_a_running_job_has_an_expired_lease(self, store: Store) -> None:
        """Its worker uses the store that was copied."""
        (job,) = [job for job in all_jobs(store) if job.state is State.RUNNING]
        assert job.lease_until == 0
        assert ids(store.expired_jobs(10, now=T0 - DAY)) == ids(store.expired_jobs(10)) == [job.id]
        assert rescue_expired(store, now=LATER) == []
        assert read(store, job.id).state is State.CANCELLED  # it had been asked to stop
        assert read(store, job.id).cancel_reason == "enough"

    def test_a_rescued_job_runs_under_a_higher_lease_number(self, store: Store) -> None:
        source = MemoryStore()
        old = running_job(source, queue="other")
        copy_all(source, store)
        rescue_expired(store, now=LATER)
        new = claim_one(store, queues=("other",), now=LATER)
        assert (new.id, new.lease_no) == (old.id, old.lease_no + 1)
        assert [refusal.id for refusal in succeed(store, old, now=LATER)] == [old.id]

    def test_histories_are_the_same(self, store: Store, source: Store) -> None:
        assert {job.id: history_of(job) for job in all_jobs(store)} == {
            job.id: history_of(job) for job in all_jobs(source)
        }

    def test_lists_show_the_same_jobs(self, store: Store, source: Store) -> None:
        for where in (
            JobFilter(states=(State.FAILED, State.HELD)),
            JobFilter(queue="mail"),
            JobFilter(schedule_id="chained"),
            JobFilter(task="mail.w*"),
            JobFilter(since=T0 + 1, until=LATER),
        ):
            assert ids(all_jobs(store, where)) == ids(all_jobs(source, where))

    def test_what_was_kept_long_enough_is_pruned(self, store: Store, source: Store) -> None:
        kept = Retention(succeeded_for=50 * MINUTE, failed_for=50 * MINUTE, cancelled_for=2 * HOUR)
        pruned = source.prune(kept, 100, now=LATER)
        assert pruned.jobs > 0
        assert store.prune(kept, 100, now=LATER) == pruned
        assert ids(all_jobs(store)) == ids(all_jobs(source))

    def test_a_line_that_is_written_later_comes_last(self, store: Store) -> None:
        job_id = next(line.job_id for line in dumped(store, "logs") if line.text == "two")
        before = store.list_logs(job_id)
        store.append_logs([a_line(job_id, "later")])
        after = store.list_logs(job_id)
        assert after[:-1] == before
        assert (after[-1].text, after[-1].number > before[-1].number) == ("later", True)


class TestLoadedSchedules:
    @pytest.fixture(autouse=True)
    def _loaded(self, store: Store, source: Store) -> None:
        copy_all(source, store, limit=5)

    def test_they_are_due_when_they_were(self, store: Store, source: Store) -> None:
        for now in (T0, T0 + 15 * MINUTE, LATER, T0 + 3 * HOUR):
            assert store.due_schedules(10, now=now) == source.due_schedules(10, now=now)

    def test_their_records_are_the_same(self, store: Store, source: Store) -> None:
        for name in SCHEDULES:
            assert ledger(store, name) == ledger(source, name)

    def test_they_go_on_where_they_were(self, store: Store, source: Store) -> None:
        for minutes in (15, 16, 30):
            now = T0 + minutes * MINUTE
            theirs, ours = fire_due(source, now=now), fire_due(store, now=now)
            assert [(fired.schedule_id, len(fired.jobs), fired.skipped) for fired in ours] == [
                (fired.schedule_id, len(fired.jobs), fired.skipped) for fired in theirs
            ]
        assert [line.through_at for line in ledger(store, "recorded")] == [
            line.through_at for line in ledger(source, "recorded")
        ]

    def test_an_occurrence_that_has_a_job_never_gets_another(self, store: Store) -> None:
        """Not even from a scheduler that plans from the schedule's first time again."""
        schedule = read_schedule(store, "chained")
        made = [job.fire_at for job in all_jobs(store, JobFilter(schedule_id="chained"))]
        first = msgspec.structs.replace(schedule, fired_through=T0)
        (fired,) = store.fire([plan(first, T0 + 3 * MINUTE + 1, fresh_id)], now=LATER)
        assert (fired.is_accepted, fired.jobs) == (True, [])
        assert [job.fire_at for job in all_jobs(store, JobFilter(schedule_id="chained"))] == made

    def test_the_live_job_still_stands_in_the_way_of_the_next(self, store: Store) -> None:
        fired = fire(store, "recorded", now=T0 + 15 * MINUTE)
        assert (fired.jobs, fired.skipped) == ([], 1)

    def test_they_show_how_their_jobs_end(self, store: Store) -> None:
        job = claim_one(store, queues=("slow",), now=LATER)
        succeed(store, job, now=LATER)
        assert read_schedule(store, "recorded").last.job_id == job.id


class TestLoadedQueuesAndLocks:
    @pytest.fixture(autouse=True)
    def _loaded(self, store: Store, source: Store) -> None:
        copy_all(source, store, limit=5)

    def test_queues_are_the_same_in_numbers(self, store: Store, source: Store) -> None:
        assert store.list_queues(now=T0) == source.list_queues(now=T0)
        assert store.recount() == {}

    def test_totals_go_on_from_what_they_were(self, store: Store) -> None:
        before = queue_info(store, "many").totals.get("succeeded", 0)
        succeed(store, claim_one(store, queues=("many",), now=LATER), now=LATER)
        assert queue_info(store, "many").totals["succeeded"] == before + 1

    def test_a_paused_queue_is_paused(self, store: Store) -> None:
        assert claim(store, queues=("paused",), now=LATER) == []
        store.pause_queue("paused", paused=False)
        assert len(claim(store, queues=("paused",), now=LATER)) == 1

    def test_totals_do_not_need_jobs(self, store: Store) -> None:
        record = QueueRecord(name="long gone", totals={"succeeded": 5})
        assert [store.load([record]), store.load([record])] == [1, 0]
        assert queue_info(store, "long gone").totals == {"succeeded": 5}

    @pytest.mark.parametrize(("name", "number"), [("free", 2), ("held", 1)])
    def test_fencing_numbers_go_on_rising(self, store: Store, name: str, number: int) -> None:
        assert store.change_lock(name, "acquire", "next", MINUTE, now=LATER) == number + 1

    def test_a_lower_number_changes_nothing(self, store: Store) -> None:
        assert store.load([LockRecord(name="free", number=1)]) == 0
        assert store.change_lock("free", "acquire", "next", MINUTE, now=LATER) == 3


class TestTwoCopies:
    def test_two_moves_change_nothing(self, store: Store) -> None:
        """Into the memory store and back into the first store, from which a job was deleted meanwhile."""
        add_schedule(store)
        made = fire(store, now=T0 + MINUTE).jobs
        ended = succeeded_job(store, queue="other")
        other = MemoryStore()
        copy_all(store, other)
        before = movable(store)
        assert store.delete_jobs([ended], now=LATER) == [ended]
        assert copy_all(other, store) == 1
        assert sorted(ids(all_jobs(store))) == sorted([*made, ended])
        assert movable(other) == before
        assert queue_info(store, "other") == queue_info(other, "other")


def _claim_all(store: Store, *, most: int = 100) -> list[Job]:
    """Claim every job that becomes ready, in order, under leases that begin at LATER."""
    return claim(store, most, queues=QUEUES, holder=WORKER, now=LATER, lease_for=LEASE)


def _claim_by_id(store: Store, job_id: str) -> Job:
    """Claim the ready jobs of its queue, among them this one."""
    ready = {job.id: job for job in claim(store, 100, queues=("many",), now=LATER, lease_for=DAY)}
    return ready[job_id]
