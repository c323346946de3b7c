"""Does seeded random operations of every kind, many of them stale, and checks every invariant after each."""

from __future__ import annotations

import os
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest

from rota.model.jobs.job import State, history_of
from rota.model.jobs.outcome import Failed, RetryAsked, Returned, Snoozed, Stopped, Succeeded, TaskUnknown
from rota.model.jobs.settle import cancel, rescue, retry_by_hand, settle
from rota.model.micros import SECOND
from rota.model.schedules.edit import disable, enable, pause, register, remove, resume, trigger_now
from rota.model.schedules.firing import plan
from rota.model.schedules.schedule import Origin
from rota.store.contract import Exchange, Retention
from rota.testing.store_suite.builders import HOUR, LEASE, MINUTE, T0, a_job, a_line, a_policy, a_spec, fresh_id
from rota.testing.store_suite.checks import check_store
from rota.testing.store_suite.steps import all_jobs, ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.jobs.job import Job, Move, NewJob
    from rota.model.jobs.outcome import Outcome
    from rota.model.jobs.settle import Change
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

SEEDS = range(int(os.environ.get("ROTA_SUITE_WALKS") or 10))
STEPS = 150
QUEUES = ("a", "b", "c")
HOLDERS = ("w1", "w2", "w3")
SCHEDULES = ("s1", "s2", "s3")
OUTCOMES: tuple[Outcome, ...] = (
    Succeeded(b"1"),
    Succeeded(),
    Failed("boom"),
    Failed("boom", may_retry=False),
    RetryAsked(MINUTE, "later"),
    Snoozed(MINUTE),
    Stopped("stopped"),
    TaskUnknown(),
    Returned(),
)
RETENTION = Retention(succeeded_for=HOUR, failed_for=HOUR, cancelled_for=HOUR, most_finished=30, most_occurrences=20)


class Walker:
    """Does random operations. It keeps old values of jobs and schedules, and decides on those, too."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = Random(seed)  # noqa: S311 - a walk that repeats, not a secret
        self.now = T0
        self.trace: list[str] = []  # shown if a check fails
        self.jobs: list[Job] = []  # as read at some time; many are stale
        self.schedules: list[Schedule] = []
        self.histories: dict[str, list[Move]] = {}
        self.steps: list[Callable[[], object]] = [
            *[self.add] * 4,
            *[self.work] * 8,
            *[self.fire] * 4,
            *[self.rescue] * 2,
            *(self.extend, self.ask_to_stop, self.cancel, self.retry, self.delete, self.prune, self.pause_queue),
            *(self.make_schedule, self.edit_schedule, self.fire_stale, self.write_log),
        ]

    def walk(self, steps: int) -> None:
        for _ in range(steps):
            self.now += self.random.choice((0, 1, SECOND, 20 * SECOND, MINUTE))
            step = self.random.choice(self.steps)
            self.trace.append(f"{(self.now - T0) / SECOND:.0f}s {step.__name__}")
            try:
                step()
                self.check()
            except Exception as error:
                error.add_note(f"after {len(self.trace)} steps, the last of them: {', '.join(self.trace[-10:])}")
                raise

    def check(self) -> None:
        """The store is consistent, and no entry of any history has changed."""
        jobs = check_store(self.store)
        for job in jobs:
            lines = history_of(job)
            before = self.histories.get(job.id, [])
            assert lines[: len(before)] == before
            self.histories[job.id] = lines
        self.jobs = [*self.jobs[-30:], *self.random.sample(jobs, min(10, len(jobs)))]

    def drain(self) -> None:
        """Without faults, every live job must end."""
        for queue in QUEUES:
            self.store.pause_queue(queue, paused=False)
        for _ in range(200):
            self.now += HOUR
            self.rescue()
            claimed = self.store.exchange(Exchange(holder="last", want=100, queues=QUEUES), now=self.now).claimed
            changes = [settle(job, Succeeded(), a_policy(), self.now, 0.0) for job in claimed]
            self.store.exchange(Exchange(holder="last", settled=changes), now=self.now)
            if not any(job.is_live for job in all_jobs(self.store)):
                return

    # Operations on jobs.

    def add(self) -> None:
        self.store.add_jobs([self._new_job() for _ in range(self.random.randint(1, 4))], now=self.now)

    def _new_job(self) -> NewJob:
        known = self._some_job()
        return a_job(
            queue=self.random.choice(QUEUES),
            priority=self.random.choice((-1, 0, 0, 1)),
            key=self.random.choice((None, None, "k1", "k2", "k3")),
            key_for=self.random.choice((0, 0, 5 * MINUTE)),
            delay=self.random.choice((0, 0, SECOND, 10 * MINUTE)),
            waits_for=known.id if known and self.random.random() < 0.2 else None,
        )

    def work(self) -> None:
        """A worker settles the jobs that it believes it holds, then claims."""
        holder = self.random.choice(HOLDERS)
        mine = [job for job in self.jobs if job.holder == holder and job.state is State.RUNNING]
        settled = [self._settled(job) for job in self.random.sample(mine, min(2, len(mine)))]
        queues = tuple(self.random.sample(QUEUES, 2))
        ask = Exchange(holder=holder, settled=settled, want=self.random.randint(0, 3), queues=queues)
        self.jobs += self.store.exchange(ask, now=self.now).claimed

    def _settled(self, job: Job) -> Change:
        outcome, keep = self.random.choice(OUTCOMES), self.random.random() < 0.8
        return settle(job, outcome, a_policy(2), self.now, self.random.random(), keep=keep)

    def extend(self) -> None:
        holder = self.random.choice(HOLDERS)
        leases = {(job.id, job.lease_no) for job in self.jobs if job.holder == holder}
        self.store.extend_leases(holder, sorted(leases), LEASE, now=self.now)

    def rescue(self) -> None:
        stale = [job for job in self.jobs if job.state is State.RUNNING][:1]
        expired = [*self.store.expired_jobs(10, now=self.now), *stale]
        self.store.rescue_jobs([rescue(job, self.now) for job in expired], now=self.now)

    def ask_to_stop(self) -> None:
        running = [job.id for job in self.jobs if job.state is State.RUNNING]
        self.store.request_cancels(sorted(set(running))[:3], "enough", now=self.now)

    def cancel(self) -> None:
        waiting = [job for job in self.jobs if job.state.is_waiting]
        if waiting:
            self.store.change_jobs([cancel(self.random.choice(waiting), self.now, "by hand")], now=self.now)

    def retry(self) -> None:
        ended = [job for job in self.jobs if job.state in {State.FAILED, State.CANCELLED}]
        if ended:
            self.store.change_jobs([retry_by_hand(self.random.choice(ended), self.now, "by hand")], now=self.now)

    def delete(self) -> None:
        known = self._some_job()
        if known is not None:
            for job_id in self.store.delete_jobs([known.id], now=self.now):
                self.histories.pop(job_id)

    def _some_job(self) -> Job | None:
        return self.random.choice(self.jobs) if self.jobs else None

    # Operations on schedules.

    def make_schedule(self) -> None:
        spec = a_spec(
            queue=self.random.choice(QUEUES),
            key=self.random.choice(("", "", "", "k1", "k2")),
            key_for=self.random.choice((0, 0, 5 * MINUTE)),
            trigger=self.random.choice(("every 1m", "every 30s", "every 5m")),
            overlap=self.random.choice(("skip", "allow", "queue", "cancel")),
            catchup=self.random.choice(("latest", "skip", "all")),
            catchup_limit=5,
            max_runs=self.random.choice((None, None, 5)),
            jitter=self.random.choice((0, 20 * SECOND)),
        )
        name = self.random.choice(SCHEDULES)
        current = next(iter(self.store.get_schedules([name])), None)
        existing = self.random.choice([current, *self._known(name)])
        origin = existing.origin if existing else Origin()
        edit = register(existing, name, spec, origin, self.now, fresh_id)
        self.store.edit_schedules([edit] if edit else [], now=self.now)
        self._look()

    def edit_schedule(self) -> None:
        if not self.schedules:
            return
        known = self.random.choice(self.schedules[-6:])
        until = self.random.choice((None, self.now + 3 * MINUTE))
        edits = [
            pause(known, self.now, reason="rest", by="ann", until=until),
            resume(known, self.now),
            disable(known, self.now),
            enable(known, self.now),
            trigger_now(known, self.now, fresh_id()),
            remove(known, self.now) if self.random.random() < 0.3 else None,
        ]
        edit = self.random.choice(edits)
        self.store.edit_schedules([edit] if edit else [], now=self.now)
        self._look()

    def fire(self) -> None:
        due = self.store.due_schedules(2, now=self.now)
        self.store.fire([plan(schedule, self.now, fresh_id) for schedule in due.schedules], now=self.now)
        self._look()

    def fire_stale(self) -> None:
        known = [schedule for schedule in self.schedules if (schedule.due_at or self.now) < self.now]
        if known:
            self.store.fire([plan(self.random.choice(known), self.now, fresh_id)], now=self.now)

    def _known(self, name: str) -> list[Schedule]:
        return [schedule for schedule in self.schedules if schedule.id == name][-2:]

    def _look(self) -> None:
        self.schedules = [*self.schedules[-12:], *self.store.get_schedules(SCHEDULES)]
        for name in SCHEDULES:
            lines = ledger(self.store, name)
            assert all(before.through_at <= after.after_at for before, after in pairwise(lines)), lines

    # Other operations.

    def prune(self) -> None:
        self.store.prune(RETENTION, self.random.choice((1, 100)), now=self.now)
        kept = {job.id for job in all_jobs(self.store)}
        self.histories = {job_id: lines for job_id, lines in self.histories.items() if job_id in kept}

    def pause_queue(self) -> None:
        self.store.pause_queue(self.random.choice(QUEUES), paused=self.random.random() < 0.3)

    def write_log(self) -> None:
        known = self._some_job()
        if known is not None:
            self.store.append_logs([a_line(known.id, "hello", at=self.now)])


class TestRandomWalk:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_whatever_happens_the_store_stays_sound(self, store: Store, seed: int) -> None:
        walker = Walker(store, seed)
        walker.walk(STEPS)
        walker.drain()
        assert [job for job in all_jobs(store) if job.is_live] == []
