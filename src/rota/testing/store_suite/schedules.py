"""Tests schedules: whole values, edited only if they still have the version that the edit was decided on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rota.model.jobs.job import State
from rota.model.jobs.outcome import Failed, Outcome, RetryAsked, Returned, Snoozed, Succeeded, TaskUnknown
from rota.model.jobs.settle import settle
from rota.model.micros import SECOND
from rota.model.schedules.edit import (
    disable,
    enable,
    follow_pause,
    mark_broken,
    pause,
    register,
    remove,
    resume,
    trigger_now,
)
from rota.model.schedules.schedule import LastRun, Origin, Pause, Schedule, ScheduleSpec
from rota.store.contract import Exchange, ScheduleFilter
from rota.testing.store_suite.builders import HOUR, MINUTE, T0, WORKER, a_policy, a_spec, fresh_id
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
    ledger,
    new_schedule,
    planned,
    read,
    read_schedule,
    settle_job,
    succeed,
)

if TYPE_CHECKING:
    from rota.store.contract import Page, Store

FULL = ScheduleSpec(
    trigger="cron 5 4 * * mon tz=Europe/Zurich",
    task="shop.report",
    payload='[["Zürich ☕"]]',
    queue="mail",
    priority=-3,
    tz="Europe/Zurich",
    overlap="queue",
    catchup="all",
    catchup_limit=7,
    grace=MINUTE,
    jitter=30,
    start=T0,
    end=T0 + 1000 * HOUR,
    max_runs=9,
    run_on_start=True,
    enabled=False,
    description="weekly 'report' %s",
)


def changed(schedule: Schedule, *, now: int, **spec: object) -> Schedule:
    """An edit by the schedule's own origin."""
    new = msgspec.structs.replace(schedule.spec, **spec)
    edit = register(schedule, schedule.id, new, schedule.origin, now, fresh_id)
    assert edit is not None
    return edit.after


class TestEditingSchedules:
    def test_a_new_schedule_is_kept_whole(self, store: Store) -> None:
        edit = register(None, "full", FULL, Origin("code", "shop", "2.4"), T0, fresh_id)
        assert edit is not None
        assert store.edit_schedules([edit], now=T0) == []
        assert store.get_schedules(["full"]) == [edit.after]

    def test_a_paused_schedule_is_kept_whole(self, store: Store) -> None:
        edit = pause(add_schedule(store), T0 + 1, reason="month's end", by="ann", until=T0 + HOUR)
        assert change_schedule(store, edit) == edit.after

    def test_a_broken_schedule_is_kept_with_its_problem(self, store: Store) -> None:
        edit = mark_broken(add_schedule(store), T0 + 1, "no such zone: 'Mars/Olympus'")
        assert change_schedule(store, edit) == edit.after

    def test_a_changed_spec_replaces_the_old_one(self, store: Store) -> None:
        schedule = add_schedule(store)
        edit = register(schedule, "tick", a_spec(queue="mail"), schedule.origin, T0 + 1, fresh_id)
        after = change_schedule(store, edit)
        assert (after.spec.queue, after.version, after.updated_at) == ("mail", 2, T0 + 1)

    def test_a_removed_schedule_is_gone(self, store: Store) -> None:
        change_schedule(store, remove(add_schedule(store), T0 + 1))
        assert store.get_schedules(["tick"]) == []

    def test_a_removed_schedule_can_be_made_again(self, store: Store) -> None:
        change_schedule(store, remove(add_schedule(store), T0 + 1))
        assert add_schedule(store, now=T0 + 2).created_at == T0 + 2

    def test_an_edit_can_bring_a_job(self, store: Store) -> None:
        edit = trigger_now(add_schedule(store), T0 + 1, "by-hand", by="ann")
        change_schedule(store, edit, now=T0 + 1)
        job = read(store, "by-hand")
        assert (job.state, job.schedule_id, job.fire_at, job.made_by) == (State.QUEUED, "tick", None, "manual")

    def test_a_schedule_may_run_on_its_start(self, store: Store) -> None:
        add_schedule(store, run_on_start=True)
        assert claim_one(store).made_by == "start"

    def test_an_edit_can_record_skips(self, store: Store) -> None:
        schedule = change_schedule(store, disable(add_schedule(store), T0 + 1))
        change_schedule(store, enable(schedule, T0 + 5 * MINUTE), now=T0 + 5 * MINUTE)
        (line,) = ledger(store)
        assert (line.after_at, line.through_at, line.count) == (T0, T0 + 5 * MINUTE, 5)
        assert (line.outcome, line.reason) == ("skipped", "disabled")

    def test_editing_nothing_changes_nothing(self, store: Store) -> None:
        assert store.edit_schedules([], now=T0) == []

    def test_many_schedules_are_made_in_one_call(self, store: Store) -> None:
        edits = [new_schedule(f"s{n:03}") for n in range(300)]
        assert store.edit_schedules(edits, now=T0) == []
        assert len(store.get_schedules([edit.id for edit in edits])) == 300

    def test_edits_of_one_schedule_in_one_call_hold_one_after_another(self, store: Store) -> None:
        """Each finds the result of the one before it, also a removal, or a schedule made in the same call."""
        first, again = new_schedule("tick", run_on_start=True), new_schedule("tick", queue="mail", run_on_start=True)
        paused = pause(first.after, T0, reason="", by="", until=None)
        edits = [paused, first, new_schedule("other"), paused, paused, remove(paused.after, T0), again, first]
        assert store.edit_schedules(edits, now=T0) == ["tick", "tick", "tick"]
        assert {schedule.id for schedule in store.list_schedules().items} == {"tick", "other"}
        after = read_schedule(store)
        assert (after.version, after.spec.queue, after.pause) == (1, "mail", None)
        assert {job.id for job in all_jobs(store)} == {job.id for edit in (first, again) for job in edit.jobs}
        assert store.edit_schedules([pause(after, T0, reason="", by="", until=None)], now=T0) == []

    def test_a_schedule_that_is_changed_and_removed_in_one_call_is_gone(self, store: Store) -> None:
        schedule = add_schedule(store)
        paused = pause(schedule, T0, reason="", by="", until=None)
        assert store.edit_schedules([paused, remove(paused.after, T0), paused], now=T0) == ["tick"]
        assert store.get_schedules(["tick"]) == []


class TestVersionGuard:
    def test_a_schedule_that_exists_is_not_made_again(self, store: Store) -> None:
        before = add_schedule(store)
        assert store.edit_schedules([new_schedule("tick", queue="mail")], now=T0) == ["tick"]
        assert read_schedule(store) == before

    def test_an_edit_of_an_older_version_is_refused(self, store: Store) -> None:
        schedule = add_schedule(store)
        first, second = (pause(schedule, T0, reason="", by=by, until=None) for by in ("ann", "bob"))
        assert store.edit_schedules([first], now=T0) == []
        assert store.edit_schedules([second], now=T0) == ["tick"]
        assert read_schedule(store) == first.after

    def test_an_edit_of_what_was_removed_is_refused(self, store: Store) -> None:
        schedule = add_schedule(store)
        change_schedule(store, remove(schedule, T0))
        assert store.edit_schedules([pause(schedule, T0, reason="", by="", until=None)], now=T0) == ["tick"]
        assert store.get_schedules(["tick"]) == []

    def test_an_edit_that_raced_with_a_firing_is_refused(self, store: Store) -> None:
        schedule = add_schedule(store)
        fire(store, now=T0 + MINUTE)
        edit = pause(schedule, T0 + MINUTE, reason="", by="", until=None)
        assert store.edit_schedules([edit], now=T0 + MINUTE) == ["tick"]
        assert read_schedule(store).pause is None

    def test_a_refused_edit_changes_nothing(self, store: Store) -> None:
        schedule = add_schedule(store)
        fire(store, now=T0 + MINUTE)
        jobs, lines = all_jobs(store), ledger(store)
        stale = msgspec.structs.replace(trigger_now(schedule, T0, "by-hand"), revoke="stale")
        skips = new_schedule("tick").skips
        assert store.edit_schedules([msgspec.structs.replace(stale, skips=skips)], now=T0) == ["tick"]
        assert (all_jobs(store), ledger(store)) == (jobs, lines)

    def test_a_refused_edit_does_not_stop_the_others(self, store: Store) -> None:
        add_schedule(store, "b")
        edits = [new_schedule(name) for name in ("a", "b", "c")]
        assert store.edit_schedules(edits, now=T0) == ["b"]
        assert [schedule.id for schedule in store.get_schedules(["a", "c"])] == ["a", "c"]

    def test_two_edits_of_one_call_follow_each_other(self, store: Store) -> None:
        schedule = add_schedule(store)
        first = disable(schedule, T0)
        assert first is not None
        second = enable(first.after, T0)
        assert second is not None
        assert store.edit_schedules([first, second], now=T0) == []
        assert read_schedule(store).version == 3

    def test_an_edit_decided_on_a_schedule_of_the_same_name_that_is_gone_is_refused(self, store: Store) -> None:
        """It was removed and made again between the decision and the write, so it is another schedule."""
        old = add_schedule(store)
        change_schedule(store, remove(old, T0 + 1), now=T0 + 1)
        new = add_schedule(store, now=T0 + 2, queue="mail")
        edit = pause(old, T0 + 3, reason="", by="", until=None)
        assert store.edit_schedules([edit], now=T0 + 3) == ["tick"]
        assert read_schedule(store) == new


class TestLastRun:
    def test_a_success_is_noted(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        succeed(store, job, now=T0 + MINUTE + 5)
        last = read_schedule(store).last
        assert last == LastRun(
            enqueued_at=T0 + MINUTE,
            finished_at=T0 + MINUTE + 5,
            status="succeeded",
            success_at=T0 + MINUTE + 5,
            duration=5,
            job_id=job.id,
            fired_for=T0 + MINUTE,
        )

    def test_a_failure_keeps_the_time_of_the_last_success(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        fire(store, now=T0 + 2 * MINUTE)
        fail(store, claim_one(store, now=T0 + 2 * MINUTE), now=T0 + 2 * MINUTE)
        last = read_schedule(store).last
        assert (last.status, last.error) == ("failed", "boom")
        assert (last.success_at, last.finished_at) == (T0 + MINUTE, T0 + 2 * MINUTE)

    @pytest.mark.parametrize("outcome", [Failed("boom"), RetryAsked(MINUTE, "boom")], ids=["failed", "asked"])
    def test_a_run_that_waits_for_its_retry_shows_its_error(self, store: Store, outcome: Outcome) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        (made,) = fire(store, now=T0 + 2 * MINUTE).jobs
        job = claim_one(store, now=T0 + 2 * MINUTE)
        assert settle_job(store, job, outcome, now=T0 + 2 * MINUTE, retries=1) == []
        last = read_schedule(store).last
        assert (last.status, last.error, last.job_id) == ("retrying", "boom", made)
        assert (last.success_at, last.finished_at) == (T0 + MINUTE, T0 + MINUTE)
        fired = fire(store, now=T0 + 3 * MINUTE)
        assert (fired.jobs, fired.skipped) == ([], 1)  # it is still live
        assert read_schedule(store).last == last
        again = claim_one(store, now=T0 + 4 * MINUTE)
        succeed(store, again, now=T0 + 4 * MINUTE)
        last = read_schedule(store).last
        assert (last.status, last.error, last.success_at) == ("succeeded", None, T0 + 4 * MINUTE)

    def test_a_schedule_fails_until_a_run_of_it_has_succeeded(self, store: Store) -> None:
        """Neither the retry of the next run, nor a run that is cancelled, ends it."""
        add_schedule(store)
        seen = [read_schedule(store).last.is_failing]
        boom, done = Failed("boom"), Succeeded()
        outcomes: list[tuple[Outcome | None, int]] = [(boom, 1), (boom, 0), (boom, 1), (None, 0), (boom, 1), (done, 0)]
        for n, (outcome, retries) in enumerate([*outcomes, (boom, 1)], 1):
            now = T0 + n * MINUTE
            fire(store, now=now)
            if outcome is None:
                (waiting,) = (job.id for job in all_jobs(store) if job.state.is_waiting)
                cancel_waiting(store, waiting, now=now)
            else:
                settle_job(store, claim_one(store, now=now), outcome, now=now, retries=retries)
            seen.append(read_schedule(store).last.is_failing)
        assert seen == [False, False, True, True, True, True, False, False]

    def test_a_run_that_is_given_back_or_snoozed_says_nothing_new(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        job = claim_one(store, now=T0 + MINUTE)
        settle_job(store, job, Failed("boom"), now=T0 + MINUTE, retries=1)
        known = read_schedule(store).last
        outcomes: list[Outcome] = [Returned(), TaskUnknown(), Snoozed(SECOND)]
        for n, outcome in enumerate(outcomes):
            job = claim_one(store, now=T0 + (n + 2) * MINUTE)
            settle_job(store, job, outcome, now=T0 + (n + 2) * MINUTE)
        assert known.status == "retrying"
        assert read_schedule(store).last == known

    def test_an_end_and_a_retry_of_one_schedule_count_in_their_order(self, store: Store) -> None:
        add_schedule(store, overlap="allow")
        fire(store, now=T0 + MINUTE)
        fire(store, now=T0 + 2 * MINUTE)
        first, second = claim(store, 2, now=T0 + 2 * MINUTE)
        add_job(store, waits_for=first.id)
        at = T0 + 3 * MINUTE
        changes = [
            settle(first, Succeeded(), a_policy(), at, 0.0),
            settle(second, Failed("boom"), a_policy(1), at, 0.0),
        ]
        assert store.exchange(Exchange(holder=WORKER, settled=changes), now=at).refused == []
        last = read_schedule(store).last
        assert (last.status, last.error, last.job_id) == ("retrying", "boom", second.id)
        assert last.success_at == at

    def test_a_removed_job_is_noted_too(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE, keep=False)
        assert read_schedule(store).last.status == "succeeded"

    def test_an_edit_keeps_what_is_known_of_the_last_run(self, store: Store) -> None:
        """A worker may settle between the read of a schedule and its edit, without a change of its version."""
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        stale = read_schedule(store)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        known = read_schedule(store).last
        change_schedule(store, disable(stale, T0 + 2 * MINUTE), now=T0 + 2 * MINUTE)
        assert known.status == "succeeded"
        assert read_schedule(store).last == known

    def test_a_firing_keeps_what_is_known_of_the_last_run(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        stale = planned(store, now=T0 + 2 * MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        store.fire([stale], now=T0 + 2 * MINUTE)
        last = read_schedule(store).last
        assert (last.status, last.enqueued_at) == ("succeeded", T0 + 2 * MINUTE)

    def test_settling_does_not_change_the_version(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        before = read_schedule(store).version
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        assert read_schedule(store).version == before

    def test_a_resumed_schedule_keeps_it_too(self, store: Store) -> None:
        add_schedule(store)
        fire(store, now=T0 + MINUTE)
        succeed(store, claim_one(store, now=T0 + MINUTE), now=T0 + MINUTE)
        known = read_schedule(store).last
        paused = change_schedule(store, pause(read_schedule(store), T0 + MINUTE, reason="", by="", until=None))
        change_schedule(store, resume(paused, T0 + 2 * MINUTE), now=T0 + 2 * MINUTE)
        assert read_schedule(store).last == known


class TestListingSchedules:
    def test_schedules_come_in_the_order_asked_for(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            add_schedule(store, name)
        assert [schedule.id for schedule in store.get_schedules(["c", "nowhere", "a"])] == ["c", "a"]

    def test_schedules_are_listed_by_id(self, store: Store) -> None:
        for name in ("b", "a-1", "B", "_a", "a", "0"):
            add_schedule(store, name)
        listed = [schedule.id for schedule in store.list_schedules().items]
        assert listed == ["0", "B", "_a", "a", "a-1", "b"]

    @pytest.mark.parametrize("size", [1, 2, 5, 200])
    def test_pages_of_any_size_show_every_schedule_once(self, store: Store, size: int) -> None:
        names = [f"s{n}" for n in range(5)]
        store.edit_schedules([new_schedule(name) for name in names], now=T0)
        assert _listed(store, size) == names

    def test_schedules_made_meanwhile_do_not_repeat_any(self, store: Store) -> None:
        for name in ("b", "d", "f"):
            add_schedule(store, name)
        first = store.list_schedules(limit=2)
        add_schedule(store, "a")
        add_schedule(store, "e")
        rest = store.list_schedules(cursor=first.cursor, limit=10)
        assert [schedule.id for schedule in rest.items] == ["e", "f"]

    def test_schedules_of_a_tenant(self, store: Store) -> None:
        for name, tenant in (("a", "acme"), ("b", ""), ("c", "acme"), ("d", "ac"), ("e", "acme")):
            add_schedule(store, name, tenant=tenant)
        acme = ScheduleFilter(tenant="acme")
        first = store.list_schedules(acme, limit=2)
        rest = store.list_schedules(acme, cursor=first.cursor, limit=2)
        assert [schedule.id for schedule in first.items] == ["a", "c"]
        assert ([schedule.id for schedule in rest.items], rest.cursor) == (["e"], None)
        assert store.list_schedules(ScheduleFilter(tenant="nobody")).items == []
        assert [schedule.id for schedule in store.list_schedules(ScheduleFilter(tenant="")).items] == ["b"]

    def test_a_schedule_that_changes_its_tenant_is_listed_there(self, store: Store) -> None:
        schedule = add_schedule(store, "a", tenant="acme")
        spec = msgspec.structs.replace(schedule.spec, tenant="globex")
        change_schedule(store, register(schedule, "a", spec, schedule.origin, T0, fresh_id))
        assert store.list_schedules(ScheduleFilter(tenant="acme")).items == []
        assert [schedule.id for schedule in store.list_schedules(ScheduleFilter(tenant="globex")).items] == ["a"]
        change_schedule(store, remove(read_schedule(store, "a"), T0))
        assert store.list_schedules(ScheduleFilter(tenant="globex")).items == []

    def test_schedules_of_an_origin(self, store: Store) -> None:
        for name, origin in (("a", Origin("code", "shop")), ("b", Origin("code", "shop2")), ("c", Origin("api"))):
            change_schedule(store, register(None, name, a_spec(tenant="acme"), origin, T0, fresh_id))
        of_shop = ScheduleFilter(origin="code:shop")
        assert [schedule.id for schedule in store.list_schedules(of_shop).items] == ["a"]
        assert [schedule.id for schedule in store.list_schedules(ScheduleFilter(origin="api:")).items] == ["c"]
        both = ScheduleFilter(origin="code:shop2", tenant="acme")
        assert [schedule.id for schedule in store.list_schedules(both).items] == ["b"]

    def test_a_filter_still_finds_a_schedule_that_fired(self, store: Store) -> None:
        add_schedule(store, tenant="acme")
        fire(store, now=T0 + MINUTE)
        assert len(store.list_schedules(ScheduleFilter(tenant="acme", origin="api:")).items) == 1

    def test_a_tenants_pause_is_kept_beside_the_schedules_own(self, store: Store) -> None:
        add_schedule(store)
        whole = Pause(T0, "unpaid", "ann", tenant="acme", until=T0 + 3 * MINUTE)
        change_schedule(store, follow_pause(read_schedule(store), whole, T0))
        own = change_schedule(store, pause(read_schedule(store), T0, reason="rest", by="bob", until=T0 + 2 * MINUTE))
        assert (own.tenant_pause, own.pause) == (whole, Pause(T0, "rest", "bob", T0 + 2 * MINUTE))
        assert store.due_schedules(9, now=T0 + 3 * MINUTE - 1).schedules == []
        fire(store, now=T0 + 3 * MINUTE)
        after = read_schedule(store)
        assert (after.tenant_pause, after.pause, after.next_at) == (None, None, T0 + 3 * MINUTE)

    def test_an_empty_list_has_no_next_page(self, store: Store) -> None:
        page: Page[Schedule] = store.list_schedules()
        assert (page.items, page.cursor) == ([], None)


def _listed(store: Store, size: int) -> list[str]:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = store.list_schedules(cursor=cursor, limit=size)
        names += [schedule.id for schedule in page.items]
        cursor = page.cursor
        if cursor is None:
            return names
