"""Tests lists of jobs: filters, newest first, and pages that show each job once while jobs are added and deleted."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from rota.model.jobs.job import State
from rota.model.jobs.settle import cancel
from rota.store.contract import JobFilter
from rota.store.shared.matching import matches
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_job
from rota.testing.store_suite.steps import (
    add,
    add_job,
    all_jobs,
    claim,
    fail,
    ids,
    read,
    running_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.store.contract import Store


class TestGettingJobs:
    def test_jobs_come_in_the_order_asked_for(self, store: Store) -> None:
        first, second, third = add(store, a_job(), a_job(), a_job())
        assert ids(store.get_jobs([third, first, second])) == [third, first, second]

    def test_jobs_that_do_not_exist_are_left_out(self, store: Store) -> None:
        job_id = add_job(store)
        assert ids(store.get_jobs(["nowhere", job_id])) == [job_id]

    def test_asking_for_nothing_gives_nothing(self, store: Store) -> None:
        assert store.get_jobs([]) == []

    def test_many_jobs_are_read_in_one_call(self, store: Store) -> None:
        made = add(store, *[a_job() for _ in range(500)])
        assert ids(store.get_jobs(made)) == made


class TestListingJobs:
    def test_the_newest_come_first(self, store: Store) -> None:
        made = [add_job(store, now=T0 + n) for n in range(5)]
        assert ids(store.list_jobs(JobFilter()).items) == made[::-1]

    def test_jobs_of_one_instant_come_in_reverse_order_of_adding(self, store: Store) -> None:
        made = add(store, *[a_job() for _ in range(5)])
        assert ids(store.list_jobs(JobFilter()).items) == made[::-1]

    def test_an_empty_list_has_no_next_page(self, store: Store) -> None:
        page = store.list_jobs(JobFilter())
        assert (page.items, page.cursor) == ([], None)

    def test_a_listed_job_is_whole(self, store: Store) -> None:
        job = running_job(store, key="k", payload=b"\x00")
        assert store.list_jobs(JobFilter()).items == [job]

    def test_a_change_of_state_does_not_move_a_job(self, store: Store) -> None:
        made = add(store, a_job(), a_job(), a_job())
        succeed(store, claim(store, now=T0 + HOUR)[0], now=T0 + HOUR)
        assert ids(store.list_jobs(JobFilter()).items) == made[::-1]


class TestFilters:
    def test_by_state(self, store: Store) -> None:
        ended = succeeded_job(store)
        waiting = add_job(store)
        assert ids(all_jobs(store, JobFilter(states=(State.SUCCEEDED,)))) == [ended]
        assert ids(all_jobs(store, JobFilter(states=(State.QUEUED, State.SUCCEEDED)))) == [waiting, ended]

    def test_by_every_state(self, store: Store) -> None:
        first = running_job(store)
        held, later = add_job(store, waits_for=first.id), add_job(store, delay=HOUR)
        shown = {state: ids(all_jobs(store, JobFilter(states=(state,)))) for state in State}
        expected = {State.RUNNING: [first.id], State.HELD: [held], State.SCHEDULED: [later]}
        assert shown == {state: expected.get(state, []) for state in State}

    def test_by_queue(self, store: Store) -> None:
        mail, _ = add(store, a_job(queue="mail"), a_job(queue="mail.bulk"))
        assert ids(all_jobs(store, JobFilter(queue="mail"))) == [mail]

    def test_by_task(self, store: Store) -> None:
        one, _ = add(store, a_job(task="mail.send"), a_job(task="mail.send_all"))
        assert ids(all_jobs(store, JobFilter(task="mail.send"))) == [one]

    @pytest.mark.parametrize("other", ["mailXsend", "Mail.send", "e.mail.send", "mail"])
    def test_by_the_beginning_of_a_task(self, store: Store, other: str) -> None:
        add(store, a_job(task="mail.send"), a_job(task="mail."), a_job(task=other))
        assert [job.task for job in all_jobs(store, JobFilter(task="mail.*"))] == ["mail.", "mail.send"]

    @pytest.mark.parametrize("wild", ["%", "_", "[a-z]", "?", ".", "\\"])
    def test_a_star_is_the_only_wildcard(self, store: Store, wild: str) -> None:
        add(store, a_job(task="mail.send"))
        assert all_jobs(store, JobFilter(task=f"mai{wild}.send")) == []
        assert all_jobs(store, JobFilter(task=f"mai{wild}*")) == []

    def test_a_star_alone_matches_every_task(self, store: Store) -> None:
        add(store, a_job(task="a"), a_job(task="b"))
        assert len(all_jobs(store, JobFilter(task="*"))) == 2

    def test_by_schedule(self, store: Store) -> None:
        mine, _, _ = add(store, a_job(schedule_id="tick"), a_job(schedule_id="tock"), a_job())
        assert ids(all_jobs(store, JobFilter(schedule_id="tick"))) == [mine]

    def test_by_key(self, store: Store) -> None:
        mine, _, _ = add(store, a_job(key="k"), a_job(key="l"), a_job())
        assert ids(all_jobs(store, JobFilter(key="k"))) == [mine]

    def test_since_is_inclusive_and_until_is_not(self, store: Store) -> None:
        made = [add_job(store, now=T0 + n) for n in range(4)]
        assert ids(all_jobs(store, JobFilter(since=T0 + 1, until=T0 + 3))) == [made[2], made[1]]

    def test_filters_add_up(self, store: Store) -> None:
        add(store, a_job(task="b"), a_job(task="a", queue="q"), a_job(task="a", delay=MINUTE))
        mine = add_job(store, task="a", now=T0 + 1)
        where = JobFilter(states=(State.QUEUED,), queue="default", task="a*", since=T0, until=T0 + 2)
        assert ids(all_jobs(store, where)) == [mine]


class TestPages:
    @pytest.mark.parametrize("size", [1, 3, 7, 10, 200])
    def test_pages_of_any_size_show_every_job_once(self, store: Store, size: int) -> None:
        made = add(store, *[a_job() for _ in range(10)])
        assert ids(all_jobs(store, page=size)) == made[::-1]

    def test_a_page_is_no_larger_than_asked(self, store: Store) -> None:
        add(store, *[a_job() for _ in range(5)])
        page = store.list_jobs(JobFilter(), limit=3)
        assert len(page.items) == 3
        assert page.cursor is not None

    def test_a_last_page_that_is_full_has_no_cursor(self, store: Store) -> None:
        add(store, *[a_job() for _ in range(3)])
        assert store.list_jobs(JobFilter(), limit=3).cursor is None

    def test_jobs_added_meanwhile_do_not_repeat_or_hide_any(self, store: Store) -> None:
        made = add(store, *[a_job() for _ in range(9)])
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = store.list_jobs(JobFilter(), cursor=cursor, limit=3)
            seen, cursor = [*seen, *ids(page.items)], page.cursor
            add(store, a_job(), a_job(), now=T0 + 1)
        assert seen == made[::-1]
        assert cursor is None

    def test_jobs_deleted_meanwhile_do_not_hide_others(self, store: Store) -> None:
        made = [succeeded_job(store) for _ in range(6)]
        page = store.list_jobs(JobFilter(), limit=2)
        store.delete_jobs([made[5], made[4], made[3]], now=T0)
        rest = store.list_jobs(JobFilter(), cursor=page.cursor, limit=10)
        assert ids(rest.items) == made[2::-1]

    def test_a_filter_holds_on_every_page(self, store: Store) -> None:
        made = add(store, *[a_job(queue="ab"[n % 2]) for n in range(12)])
        assert ids(all_jobs(store, JobFilter(queue="a"), page=2)) == made[10::-2]

    def test_reading_a_page_again_gives_the_same(self, store: Store) -> None:
        add(store, *[a_job() for _ in range(6)])
        cursor = store.list_jobs(JobFilter(), limit=2).cursor
        pages = [store.list_jobs(JobFilter(), cursor=cursor, limit=2) for _ in range(2)]
        assert pages[0] == pages[1]

    def test_listing_reads_what_get_reads(self, store: Store) -> None:
        add(store, a_job(), a_job(delay=MINUTE), a_job(key="k"))
        assert all(read(store, job.id) == job for job in all_jobs(store))


class TestFarApart:
    """Lists whose jobs are far apart, with many others between them."""

    @pytest.fixture
    def added(self, store: Store) -> list[Job]:
        """Add 3,000 jobs of a few kinds, the rare ones first, in every state; return them newest first."""
        rare = [a_job(task=f"rare.{n % 3}", queue="aside" if n % 2 else "default", priority=n % 4) for n in range(12)]
        later = [a_job(task="rare.0", delay=HOUR) for _ in range(3)]
        first = add_job(store, now=T0, task="rare.2")
        add(store, *rare, *later, a_job(task="noop", waits_for=first))
        for start in range(0, 3_000, 500):
            many = [a_job(task=("noop", "mail.send")[n % 2], queue=("default", "bulk")[n % 5 == 0]) for n in range(500)]
            add(store, *many, now=T0 + start)
        for number, job in enumerate(claim(store, 300, queues=("default", "aside"), now=T0 + HOUR)):
            if number % 3:
                succeed(store, job, now=T0 + HOUR)
            elif number % 2:
                fail(store, job, now=T0 + HOUR)
        waiting = store.list_jobs(JobFilter(states=(State.QUEUED,), queue="bulk"), limit=5).items
        store.change_jobs([cancel(job, T0 + HOUR, "not needed") for job in waiting], now=T0 + HOUR)
        return all_jobs(store, page=200)

    def test_they_show_all_that_belong_there_in_order(self, store: Store, added: list[Job]) -> None:
        states = [(), *((state,) for state in State), (State.SUCCEEDED, State.QUEUED, State.FAILED)]
        for queue, task, some in product((None, "aside", "bulk"), (None, "noop", "rare.1", "rare.*"), states):
            where = JobFilter(states=some, queue=queue, task=task)
            expected = ids([job for job in added if matches(job, where)])
            assert ids(all_jobs(store, where, page=190)) == expected, where
            assert store.count_jobs(where) == len(expected), where

    def test_few_are_found_by_small_pages_among_many_that_do_not_match(self, store: Store, added: list[Job]) -> None:
        ended = [(State.FAILED,), (State.SUCCEEDED, State.FAILED), (State.CANCELLED, State.FAILED)]
        times = [(None, None), (None, T0 + 1), (T0, T0 + HOUR)]
        for states, task, (since, until) in product(ended, ("rare.1", "rare.*"), times):
            where = JobFilter(states=states, task=task, since=since, until=until)
            expected = ids([job for job in added if matches(job, where)])
            assert ids(all_jobs(store, where, page=2)) == expected, where
            assert store.count_jobs(where) == len(expected), where


class TestAddedTogether:
    """Lists of a task whose jobs were added in mixed batches and alone, and deleted one by one."""

    @pytest.fixture
    def added(self, store: Store) -> list[str]:
        """Add three batches of two tasks each, and one job alone after each; return them oldest first."""
        made: list[str] = []
        for number in range(3):
            made += add(store, *[a_job(task="ab"[n % 3 == number], queue="xy"[n % 2]) for n in range(40)])
            made.append(add_job(store, task="a"))
        return made

    @pytest.mark.parametrize("size", [1, 7, 40, 200])
    def test_pages_of_a_task_are_whole_and_in_order(self, store: Store, added: list[str], size: int) -> None:
        kept = {job.id: job for job in store.get_jobs(added)}
        for task in ("a", "b", "*"):
            shown = ids(all_jobs(store, JobFilter(task=task), page=size))
            assert shown == [job_id for job_id in reversed(added) if matches(kept[job_id], JobFilter(task=task))]

    @pytest.mark.parametrize("size", [1, 7, 40, 200])
    def test_what_went_is_shown_no_more_and_hides_nobody(self, store: Store, added: list[str], size: int) -> None:
        gone = [*added[3:90:2], *added[100:], *added[:2]]
        store.change_jobs([cancel(job, T0, "not needed") for job in store.get_jobs(gone)], now=T0)
        assert sorted(store.delete_jobs(gone, now=T0)) == sorted(gone)
        left = store.get_jobs([job_id for job_id in added if job_id not in gone])
        for task in ("a", "b"):
            expected = [job.id for job in reversed(left) if job.task == task]
            assert ids(all_jobs(store, JobFilter(task=task), page=size)) == expected
        assert ids(_dumped(store, size)) == ids(left)

    def test_what_is_removed_as_it_ends_leaves_the_others(self, store: Store, added: list[str]) -> None:
        for job in claim(store, 50, queues=("x",)):
            succeed(store, job, keep=False)
        left = store.get_jobs(added)
        assert len(left) == len(added) - 50
        assert ids(all_jobs(store)) == ids(left[::-1])

    def test_one_that_comes_again_stands_at_its_new_place(self, store: Store, added: list[str]) -> None:
        (job,) = claim(store, 1, queues=("x",))
        succeed(store, job, keep=False)
        add(store, a_job(id=job.id, task=job.task))
        assert ids(all_jobs(store)) == [job.id, *(job_id for job_id in reversed(added) if job_id != job.id)]


def _dumped(store: Store, size: int) -> list[Job]:
    """All jobs, oldest first, as a copy reads them."""
    jobs: list[Any] = []
    page = store.dump("jobs", limit=size)
    jobs += page.items
    while page.cursor is not None:
        page = store.dump("jobs", cursor=page.cursor, limit=size)
        jobs += page.items
    return jobs
