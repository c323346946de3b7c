"""Tests that a schedule's overlap slot and a user's unique key are independent, and that a firing respects both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rota.model.audit_record import Author
from rota.model.jobs.job import State
from rota.model.jobs.settle import retry_by_hand
from rota.model.schedules.edit import register, start_edit, trigger_now, with_audit
from rota.model.schedules.firing import overlap_reason
from rota.model.schedules.schedule import Origin
from rota.store.contract import Added, AuditFilter, JobFilter
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, a_job, a_spec, fresh_id
from rota.testing.store_suite.steps import (
    add_job,
    add_schedule,
    all_jobs,
    cancel_waiting,
    change_schedule,
    claim,
    claim_one,
    fail,
    fire,
    fire_due,
    fire_early,
    ids,
    is_kept,
    ledger,
    planned,
    read,
    read_schedule,
    running_job,
    succeed,
    succeeded_job,
)

if TYPE_CHECKING:
    from rota.model.jobs.job import Job
    from rota.store.contract import Fired, Store

FIRST_RUN, SECOND_RUN, THIRD_RUN = (T0 + number * MINUTE for number in (1, 2, 3))
SOON = 3 * MINUTE + 30_000_000  # three occurrences lie within it
KEYS_LIKE_SLOTS = ["tick", "schedule:tick", "slot:tick"]  # keys of users that look like the name of a slot
OVERLAPS = ["skip", "queue", "cancel", "allow"]

lookalikes = pytest.mark.parametrize("key", KEYS_LIKE_SLOTS)
overlaps = pytest.mark.parametrize("overlap", OVERLAPS)


def refused(fired: Fired, *, unique: int = 1) -> bool:
    """Whether a firing was accepted, made no job and skipped one occurrence, by its key or not."""
    return (fired.is_accepted, fired.jobs, fired.skipped, fired.unique) == (True, [], 1, unique)


def skips(store: Store, schedule_id: str = "tick") -> dict[int, tuple[str, str]]:
    return {line.through_at: (line.outcome, line.reason) for line in ledger(store, schedule_id) if not line.job_id}


def unique(job_id: str) -> tuple[str, str]:
    return "skipped", f"unique (job {job_id})"


class TestSlotsAndKeys:
    @lookalikes
    @overlaps
    def test_a_users_key_stops_no_schedule(self, store: Store, key: str, overlap: str) -> None:
        add_job(store, key=key, queue="other")
        add_schedule(store, overlap=overlap)
        (job_id,) = fire(store, now=FIRST_RUN).jobs
        assert read(store, job_id).state is State.QUEUED

    @lookalikes
    def test_a_schedules_job_takes_no_key_of_a_user(self, store: Store, key: str) -> None:
        add_schedule(store)
        (fired,) = fire(store, now=FIRST_RUN).jobs
        added = store.add_jobs([a_job(id="mine", key=key)], now=FIRST_RUN)
        assert added == [Added("mine")]
        assert ids(all_jobs(store, JobFilter(key=key))) == ["mine"]
        assert (read(store, fired).key, read(store, fired).slot) == (None, "tick")

    @lookalikes
    def test_one_created_early_neither_holds_nor_waits_for_a_users_key(self, store: Store, key: str) -> None:
        add_schedule(store, lookahead=SOON)
        made = fire(store, now=T0).jobs
        mine = add_job(store, key=key, queue="other")
        assert ids(claim(store, 9, now=FIRST_RUN)) == made[:1]
        assert read(store, mine).state is State.QUEUED
        assert [(read(store, job).waits_for, read(store, job).key) for job in made] == [(None, None)] * 3

    @lookalikes
    def test_a_job_whose_id_looks_like_a_slot_is_a_job_like_any_other(self, store: Store, key: str) -> None:
        awaited = add_job(store, id=key, queue="other")
        behind = add_job(store, waits_for=awaited, schedule_id="tick")
        assert (read(store, behind).state, read(store, behind).waits_for) == (State.HELD, key)
        assert claim(store, 9, now=T0) == []

    def test_a_slot_is_free_when_its_job_has_ended(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=FIRST_RUN)
        job = claim_one(store, now=FIRST_RUN)
        fail(store, job, now=FIRST_RUN + 1)
        assert read(store, job.id).slot is None
        assert len(fire(store, now=SECOND_RUN).jobs) == 1

    def test_a_task_is_started_in_its_schedules_slot_once(self, store: Store) -> None:
        schedule = add_schedule(store)
        change_schedule(store, start_edit(schedule, T0, fresh_id(), "ann"))
        change_schedule(store, start_edit(read_schedule(store), T0 + 1, fresh_id(), "bob"), now=T0 + 1)
        (job,) = all_jobs(store)
        assert (job.slot, job.key) == ("tick", None)

    def test_a_retry_by_hand_takes_neither_back(self, store: Store) -> None:
        add_schedule(store, key="k")
        fire(store, now=FIRST_RUN)
        first = claim_one(store, now=FIRST_RUN)
        fail(store, first, now=FIRST_RUN + 1)
        (second,) = fire(store, now=SECOND_RUN).jobs
        again = retry_by_hand(read(store, first.id), SECOND_RUN + 1, "again")
        assert store.change_jobs([again], now=SECOND_RUN + 1) == []
        both = store.get_jobs([first.id, second])
        assert [(job.state, job.key, job.slot) for job in both] == [
            (State.QUEUED, None, None),
            (State.QUEUED, "k", "tick"),
        ]


class TestUniqueFirings:
    @overlaps
    def test_a_schedules_job_has_its_key(self, store: Store, overlap: str) -> None:
        add_schedule(store, key="k", overlap=overlap)
        (job_id,) = fire(store, now=FIRST_RUN).jobs
        assert store.add_jobs([a_job(key="k")], now=FIRST_RUN) == [Added(job_id, existed=True)]
        assert ids(all_jobs(store, JobFilter(key="k"))) == [job_id]

    @overlaps
    def test_an_occurrence_whose_key_is_held_is_skipped(self, store: Store, overlap: str) -> None:
        holder = add_job(store, key="k", queue="other")
        add_schedule(store, key="k", overlap=overlap)
        assert refused(fire(store, now=FIRST_RUN))
        assert skips(store) == {FIRST_RUN: unique(holder)}
        after = read_schedule(store)
        assert (after.fired_through, after.next_at, after.run_count) == (FIRST_RUN, SECOND_RUN, 0)

    def test_the_next_one_runs_when_the_key_is_free(self, store: Store) -> None:
        holder = running_job(store, key="k")
        add_schedule(store, key="k")
        assert refused(fire(store, now=FIRST_RUN))
        succeed(store, holder, now=FIRST_RUN + 1)
        assert len(fire(store, now=SECOND_RUN).jobs) == 1

    def test_two_schedules_with_one_key_make_one_job(self, store: Store) -> None:
        for name in ("one", "two", "three"):
            add_schedule(store, name, key="k", overlap="allow")
        fired = {one.schedule_id: one for one in fire_due(store, now=FIRST_RUN)}
        made = {name: one.jobs for name, one in fired.items() if one.jobs}
        ((winner, (job_id,)),) = made.items()
        for name in {"one", "two", "three"} - {winner}:
            assert refused(fired[name])
            assert skips(store, name) == {FIRST_RUN: unique(job_id)}

    def test_an_allowed_overlap_is_not_allowed_to_a_key(self, store: Store) -> None:
        add_schedule(store, key="k", overlap="allow")
        (first,) = fire(store, now=FIRST_RUN).jobs
        assert refused(fire(store, now=SECOND_RUN))
        assert skips(store) == {SECOND_RUN: unique(first)}

    def test_overlap_decides_first(self, store: Store) -> None:
        add_schedule(store, key="k", overlap="skip")
        (first,) = fire(store, now=FIRST_RUN).jobs
        assert refused(fire(store, now=SECOND_RUN), unique=0)
        assert skips(store) == {SECOND_RUN: ("skipped", overlap_reason(first))}

    def test_a_successor_that_its_key_refuses_cancels_nobody(self, store: Store) -> None:
        add_schedule(store, key="k", overlap="cancel")
        fire(store, now=FIRST_RUN)
        first = claim_one(store, now=FIRST_RUN)
        assert refused(fire(store, now=SECOND_RUN))
        assert skips(store) == {SECOND_RUN: unique(first.id)}
        assert read(store, first.id).cancel_reason is None

    @pytest.mark.parametrize("overlap", ["queue", "cancel"])
    def test_a_held_job_has_its_key_at_once(self, store: Store, overlap: str) -> None:
        add_schedule(store, overlap=overlap)
        fire(store, now=FIRST_RUN)
        first = claim_one(store, now=FIRST_RUN)
        rekey(store, "k")
        (held,) = fire(store, now=SECOND_RUN).jobs
        job = read(store, held)
        assert (job.state, job.key, job.slot) == (State.HELD, "k", None)
        assert add_job(store, key="k", now=SECOND_RUN) == held
        succeed(store, first, now=SECOND_RUN + 1)
        job = read(store, held)
        assert (job.state, job.key, job.slot) == (State.QUEUED, "k", "tick")

    def test_a_chain_of_missed_runs_with_one_key_is_one_run(self, store: Store) -> None:
        add_schedule(store, key="k", catchup="all", overlap="queue")
        fired = fire(store, now=THIRD_RUN + 1)
        (job_id,) = fired.jobs
        assert (fired.skipped, fired.unique) == (2, 2)
        assert skips(store) == {THIRD_RUN: unique(job_id)}  # one range of two

    def test_missed_runs_that_may_overlap_share_one_key(self, store: Store) -> None:
        add_schedule(store, key="k", catchup="all", overlap="allow")
        fired = fire(store, now=THIRD_RUN + 1)
        assert (len(fired.jobs), fired.skipped) == (1, 2)

    def test_a_key_holds_for_its_period(self, store: Store) -> None:
        add_schedule(store, key="k", key_for=90_000_000)
        fire(store, now=FIRST_RUN)
        job = claim_one(store, now=FIRST_RUN)
        succeed(store, job, now=FIRST_RUN + 1)
        assert refused(fire(store, now=SECOND_RUN))
        assert skips(store) == {SECOND_RUN: unique(job.id)}
        assert len(fire(store, now=THIRD_RUN).jobs) == 1

    def test_a_key_whose_period_is_over_stops_nothing(self, store: Store) -> None:
        succeeded_job(store, key="k", key_for=MINUTE)
        add_schedule(store, key="k")
        assert len(fire(store, now=FIRST_RUN).jobs) == 1

    @overlaps
    def test_a_firing_early_waits_for_its_time_where_the_key_is_held(self, store: Store, overlap: str) -> None:
        holder = running_job(store, key="k")
        add_schedule(store, key="k", overlap=overlap)
        assert not fire_early(store, FIRST_RUN, now=FIRST_RUN - 10).is_accepted
        succeed(store, holder, now=FIRST_RUN - 5)
        fired = fire_early(store, FIRST_RUN, now=FIRST_RUN - 4)
        assert (fired.is_accepted, len(fired.jobs)) == (True, 1)
        assert read(store, fired.jobs[0]).key == "k"

    def test_many_firings_at_once_meet_each_others_keys(self, store: Store) -> None:
        """Schedules with a key are mixed with many without, as in a scheduler's batch."""
        for number in range(6):
            add_schedule(store, f"plain-{number}", overlap="allow" if number % 2 else "skip")
            add_schedule(store, f"unique-{number}", overlap="allow" if number % 2 else "skip", key=f"k{number % 2}")
        names = [f"{kind}-{number}" for number in range(6) for kind in ("plain", "unique")]
        firings = [planned(store, name, now=FIRST_RUN) for name in names]
        fired = store.fire(firings, now=FIRST_RUN)
        assert all(one.is_accepted for one in fired)
        made = {one.schedule_id: one.jobs for one in fired if one.jobs}
        assert set(made) == {*(f"plain-{number}" for number in range(6)), "unique-0", "unique-1"}
        for number in range(2, 6):
            (holder,) = made[f"unique-{number % 2}"]
            assert skips(store, f"unique-{number}") == {FIRST_RUN: unique(holder)}

    def test_a_run_by_hand_ignores_the_slot_and_not_the_key(self, store: Store) -> None:
        schedule = add_schedule(store, key="k")
        change_schedule(store, trigger_now(schedule, T0, "first"))
        change_schedule(store, trigger_now(read_schedule(store), T0 + 1, "second"), now=T0 + 1)
        assert [(job.id, job.key, job.slot) for job in all_jobs(store)] == [("first", "k", None)]

    def test_a_run_by_hand_that_is_refused_leaves_no_audit_record(self, store: Store) -> None:
        add_schedule(store, key="k")
        for number, at in enumerate((T0, T0 + 1)):
            schedule = read_schedule(store)
            author = Author(record_id=f"n{number}", by="ann", verb="run by hand")
            edit = with_audit(trigger_now(schedule, at, f"job-{number}"), schedule, author)
            change_schedule(store, edit, now=at)
        (note,) = store.list_audit_records(AuditFilter()).items
        assert (note.id, note.after) == ("n0", '{"runs":["job-0"]}')

    def test_the_record_of_a_new_schedule_names_only_runs_that_were_made(self, store: Store) -> None:
        running_job(store, key="k")
        edit = register(None, "tick", a_spec(key="k", run_on_start=True), Origin(), T0, fresh_id)
        assert edit is not None
        author = Author(record_id="n", by="ann", verb="created")
        change_schedule(store, with_audit(edit, None, author))
        (note,) = store.list_audit_records(AuditFilter()).items
        assert '"task":"mail.send"' in note.after
        assert '"runs"' not in note.after

    def test_a_key_is_free_when_its_occurrence_is_cancelled(self, store: Store) -> None:
        add_schedule(store, key="k")
        (first,) = fire(store, now=FIRST_RUN).jobs
        cancel_waiting(store, first, now=FIRST_RUN + 1)
        assert len(fire(store, now=SECOND_RUN).jobs) == 1


class TestUniqueAhead:
    def test_the_key_is_taken_when_the_job_is_due(self, store: Store) -> None:
        first, *_ = created_early(store)
        assert ids(all_jobs(store, JobFilter(key="k"))) == []
        job = claim_one(store, now=FIRST_RUN)
        assert (job.id, job.key, job.slot, job.ahead) == (first.id, "k", "tick", None)
        assert ids(all_jobs(store, JobFilter(key="k"))) == [first.id]
        assert add_job(store, key="k", now=FIRST_RUN) == first.id

    @overlaps
    def test_one_whose_key_is_held_when_it_is_due_is_skipped(self, store: Store, overlap: str) -> None:
        first, second, _ = created_early(store, overlap=overlap)
        holder = running_job(store, key="k", queue="other", now=T0 + 1)
        assert claim(store, 9, now=FIRST_RUN) == []
        assert not is_kept(store, first.id)
        assert skips(store) == {FIRST_RUN: unique(holder.id)}
        succeed(store, holder, now=FIRST_RUN + 1)
        assert ids(claim(store, 9, now=SECOND_RUN)) == [second.id]

    def test_those_that_are_due_together_share_one_key(self, store: Store) -> None:
        first, *_ = created_early(store, overlap="allow")
        assert ids(claim(store, 9, now=THIRD_RUN)) == [first.id]
        assert skips(store) == {THIRD_RUN: unique(first.id)}  # one range of two

    def test_its_period_counts_from_its_time(self, store: Store) -> None:
        created_early(store, key_for=90_000_000)
        job = claim_one(store, now=FIRST_RUN)
        succeed(store, job, now=FIRST_RUN + 1)
        assert claim(store, 9, now=SECOND_RUN) == []
        assert skips(store) == {SECOND_RUN: unique(job.id)}
        assert len(claim(store, 9, now=THIRD_RUN)) == 1

    def test_one_that_is_held_has_its_key_at_once(self, store: Store) -> None:
        add_schedule(store, overlap="queue")
        fire(store, now=FIRST_RUN)
        live = claim_one(store, now=FIRST_RUN)
        rekey(store, "k", lookahead=HOUR)
        (second, *_) = fire(store, now=FIRST_RUN + 1).jobs
        assert claim(store, 9, now=SECOND_RUN) == []
        job = read(store, second)
        assert (job.state, job.key, job.slot, job.waits_for) == (State.HELD, "k", None, live.id)
        assert add_job(store, key="k", now=SECOND_RUN) == second

    def test_it_keeps_the_key_that_it_was_made_with(self, store: Store) -> None:
        first, *_ = created_early(store)
        rekey(store, "other", lookahead=SOON)
        job = claim_one(store, now=FIRST_RUN)
        assert (job.id, job.key) == (first.id, "k")


def created_early(store: Store, **spec: Any) -> list[Job]:
    """Create the jobs of the first three minutes at once; oldest first."""
    add_schedule(store, **{"lookahead": SOON, "grace": HOUR, "key": "k", **spec})
    return store.get_jobs(fire(store, now=T0).jobs)


def rekey(store: Store, key: str, **spec: Any) -> None:
    """Give the schedule's later jobs that key."""
    schedule = read_schedule(store)
    after = msgspec.structs.replace(schedule.spec, key=key, **spec)
    change_schedule(store, register(schedule, schedule.id, after, schedule.origin, T0 + 2, fresh_id), now=T0 + 2)
