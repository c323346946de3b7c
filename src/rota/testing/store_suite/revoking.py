"""Tests that pausing, disabling, removing or re-timing a schedule cancels what is already queued for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rota.model.jobs.job import State
from rota.model.micros import SECOND
from rota.model.schedules.edit import disable, pause, register, remove, trigger_now
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, fresh_id
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    change_schedule,
    claim,
    claim_one,
    fire,
    history,
    ids,
    ledger,
    read,
    read_schedule,
    succeed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rota.model.schedules.edit import Edit
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Store

NOW = T0 + MINUTE + SECOND


def paused(schedule: Schedule) -> Edit:
    return pause(schedule, NOW, reason="rest", by="ann", until=None)


def disabled(schedule: Schedule) -> Edit:
    edit = disable(schedule, NOW)
    assert edit is not None
    return edit


def removed(schedule: Schedule) -> Edit:
    return remove(schedule, NOW)


def retimed(schedule: Schedule) -> Edit:
    spec = msgspec.structs.replace(schedule.spec, trigger="every 1h")
    edit = register(schedule, schedule.id, spec, schedule.origin, NOW, fresh_id)
    assert edit is not None
    return edit


def edited(schedule: Schedule) -> Edit:
    """Another payload, and the same times."""
    spec = msgspec.structs.replace(schedule.spec, payload="[[2]]")
    edit = register(schedule, schedule.id, spec, schedule.origin, NOW, fresh_id)
    assert edit is not None
    return edit


STOPS = [paused, disabled, removed, retimed]
stopping = pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.__name__)


def waiting_run(store: Store, **spec: Any) -> str:
    """A schedule whose first job waits."""
    add_schedule(store, **spec)
    (job_id,) = fire(store, now=T0 + MINUTE).jobs
    return job_id


class TestRevoking:
    @stopping
    def test_a_waiting_job_is_cancelled_in_the_same_step(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        job_id = waiting_run(store)
        edit = stop(read_schedule(store))
        change_schedule(store, edit, now=NOW)
        job = read(store, job_id)
        assert (job.state, job.cancel_reason, job.finished_at) == (State.CANCELLED, edit.revoke, NOW)
        assert claim(store, now=T0 + HOUR) == []

    @stopping
    def test_a_job_that_is_due_later_is_cancelled_too(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        job_id = waiting_run(store, jitter=50 * SECOND)
        assert read(store, job_id).state is State.SCHEDULED
        change_schedule(store, stop(read_schedule(store)), now=NOW)
        assert history(store, job_id) == [State.SCHEDULED, State.CANCELLED]

    @stopping
    def test_a_running_job_continues(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        waiting_run(store)
        job = claim_one(store, now=T0 + MINUTE)
        change_schedule(store, stop(read_schedule(store)), now=NOW)
        assert read(store, job.id) == job
        assert succeed(store, job, now=NOW) == []

    @stopping
    def test_a_held_job_is_cancelled_while_the_other_runs(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        waiting_run(store, overlap="queue")
        job = claim_one(store, now=T0 + MINUTE)
        (held,) = fire(store, now=T0 + 2 * MINUTE).jobs
        change_schedule(store, stop(read_schedule(store)), now=T0 + 2 * MINUTE)
        succeed(store, job, now=T0 + 2 * MINUTE)
        assert read(store, held).state is State.CANCELLED

    @stopping
    def test_a_whole_chain_is_cancelled(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        add_schedule(store, catchup="all")
        made = fire(store, now=T0 + 3 * MINUTE + 1).jobs
        change_schedule(store, stop(read_schedule(store)), now=T0 + 4 * MINUTE)
        assert [job.state for job in store.get_jobs(made)] == [State.CANCELLED] * 3

    @stopping
    def test_a_job_run_by_hand_stays(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        add_schedule(store)
        change_schedule(store, trigger_now(read_schedule(store), T0, "by-hand"))
        change_schedule(store, stop(read_schedule(store)), now=NOW)
        assert ids(claim(store, now=NOW)) == ["by-hand"]

    @stopping
    def test_jobs_of_other_schedules_stay(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        add_schedule(store, "tock")
        waiting_run(store)
        (other,) = fire(store, "tock", now=T0 + MINUTE).jobs
        plain = add_job(store)
        change_schedule(store, stop(read_schedule(store)), now=NOW)
        assert ids(claim(store, 9, now=NOW)) == [other, plain]

    def test_an_edit_of_anything_else_revokes_nothing(self, store: Store) -> None:
        job_id = waiting_run(store)
        change_schedule(store, edited(read_schedule(store)), now=NOW)
        job = read(store, job_id)
        assert (job.state, job.payload) == (State.QUEUED, b"[]")

    @stopping
    def test_a_refused_edit_revokes_nothing(self, store: Store, stop: Callable[[Schedule], Edit]) -> None:
        stale = add_schedule(store)
        fire(store, now=T0 + MINUTE)
        before = all_jobs(store)
        assert store.edit_schedules([stop(stale)], now=NOW) == ["tick"]
        assert all_jobs(store) == before


class TestAfterRevoking:
    def test_what_was_revoked_is_in_the_ledger(self, store: Store) -> None:
        waiting_run(store)
        edit = paused(read_schedule(store))
        change_schedule(store, edit, now=NOW)
        (line,) = ledger(store)
        assert (line.through_at, line.outcome, line.reason) == (T0 + MINUTE, "cancelled", "paused by ann: rest")

    def test_a_revoked_job_frees_the_schedules_key(self, store: Store) -> None:
        waiting_run(store)
        change_schedule(store, retimed(read_schedule(store)), now=NOW)
        assert len(fire(store, now=NOW + HOUR).jobs) == 1

    def test_a_running_job_keeps_the_schedules_key_when_its_followers_are_revoked(self, store: Store) -> None:
        """Otherwise the next occurrence would run at the same time."""
        add_schedule(store, catchup="all")
        fire(store, now=T0 + 3 * MINUTE + 1)
        running = claim_one(store, now=T0 + 3 * MINUTE + 1)
        change_schedule(store, retimed(read_schedule(store)), now=T0 + 4 * MINUTE)
        fired = fire(store, now=T0 + 4 * MINUTE + HOUR)
        assert read(store, running.id).slot == "tick"
        assert claim(store, 9, now=T0 + 4 * MINUTE + HOUR) == []
        assert fired.is_accepted

    def test_a_revoked_occurrence_does_not_come_back(self, store: Store) -> None:
        waiting_run(store)
        schedule = change_schedule(store, disabled(read_schedule(store)), now=NOW)
        assert schedule.fired_through == T0 + MINUTE
        assert store.due_schedules(9, now=NOW).schedules == []

    def test_the_counters_follow(self, store: Store) -> None:
        waiting_run(store)
        change_schedule(store, removed(read_schedule(store)), now=NOW)
        (info,) = store.list_queues(now=NOW)
        assert (info.counts.get("queued", 0), info.totals) == (0, {"cancelled": 1})
