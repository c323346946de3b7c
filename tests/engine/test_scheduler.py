"""The scheduler, turned by hand: what is due is fired once, what is not due costs nothing."""

from __future__ import annotations

import logging
import threading

import msgspec
import pytest

from engine.stage import NOON, PATIENCE, Stage
from rota import cron, every
from rota.engine.scheduling.scheduler import BATCH, FIRST_RETRY, LONGEST_WAIT, LOOK, MOST_TRIES
from rota.errors import StoreUnavailable
from rota.model.micros import SECOND
from rota.model.schedules.edit import Edit
from rota.model.schedules.schedule import Schedule, ScheduleSpec
from rota.observe.logs import sentence
from rota.store.contract import JobFilter


def add_broken(stage: Stage, name: str = "broken", trigger: str = "cron 99 99 * * *") -> None:
    """A schedule as another program may have stored it."""
    broken = Schedule(
        id=name,
        spec=ScheduleSpec(trigger=trigger, task="engine.tick"),
        created_at=NOON - SECOND,
        updated_at=NOON - SECOND,
        fired_through=NOON - SECOND,
        next_at=NOON - SECOND,
    )
    assert stage.still.edit_schedules([Edit(after=broken, expect_version=0)]) == []


@pytest.fixture
def tick(stage):
    @stage.app.task(name="engine.tick")
    def tick() -> None: ...

    return tick


def test_a_due_schedule_makes_its_job_and_others_wait(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"))
    stage.app.schedules.put("later", tick.job(), every("1h"))
    scheduler = stage.a_scheduler()
    assert scheduler.turn() == LONGEST_WAIT
    assert stage.states() == []
    stage.skip(10)
    assert scheduler.turn() == 0.0
    (job,) = stage.app.jobs.list().items
    assert (job.schedule_id, job.record.fire_at, job.record.made_by) == ("soon", NOON + 10 * SECOND, "every")
    (fired,) = [event for event in stage.heard if event.name == "schedule.fired"]
    assert fired.data == {
        "schedule_id": "soon",
        "task": "engine.tick",
        "description": "",
        "priority": 0,
        "job_id": job.id,
        "jobs": [job.id],
        "next_at": NOON + 20 * SECOND,
    }


def test_an_occurrence_is_fired_once_however_often_the_scheduler_looks(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"))
    scheduler = stage.a_scheduler()
    stage.skip(10)
    for _ in range(5):
        scheduler.turn()
    assert stage.states() == ["queued"]
    assert stage.app.schedules.get("soon").run_count == 1


def test_the_scheduler_sleeps_until_the_next_due_instant(stage, tick, monkeypatch):
    monkeypatch.setattr(stage, "monotonic", lambda: stage._skipped)  # no time passes but what is skipped
    stage.app.schedules.put("soon", tick.job(), every("3s"))
    scheduler = stage.a_scheduler()
    assert scheduler.turn() == 3.0
    stage.skip(2.5)
    assert scheduler.turn() == 0.5


def test_the_sleep_is_bounded_whatever_is_due_when(stage, tick):
    assert stage.a_scheduler().turn() == LONGEST_WAIT
    stage.app.schedules.put("yearly", tick.job(), cron("0 0 1 1 *"))
    assert stage.a_scheduler().turn() == LONGEST_WAIT


def test_an_idle_scheduler_asks_the_store_once_per_wait(stage, tick):
    stage.app.schedules.put("yearly", tick.job(), cron("0 0 1 1 *"))
    scheduler = stage.a_scheduler()
    asked = []
    for _ in range(12):
        asked.append(scheduler.turn())
        stage.skip(asked[-1])
    assert sum(asked) == 60
    assert stage.store.calls["due_schedules"] == 12
    assert set(stage.store.calls) <= {"due_schedules", "listen", "now"}


def test_a_scheduler_that_sleeps_is_woken_by_a_new_schedule(any_stage):
    @any_stage.app.task
    def tick() -> None: ...

    scheduler = any_stage.a_scheduler()
    scheduler.turn()
    woken = threading.Event()

    def wait() -> None:
        scheduler.wait(PATIENCE)
        woken.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    any_stage.app.schedules.put("soon", tick.job(), every("1h"))
    assert woken.wait(PATIENCE / 2)
    waiter.join()
    scheduler.close()


def test_a_broken_schedule_is_set_aside_with_its_reason_and_the_others_fire(stage, tick, caplog):
    add_broken(stage)
    stage.app.schedules.put("sound", tick.job(), every("10s"))
    scheduler = stage.a_scheduler()
    stage.skip(10)
    with caplog.at_level(logging.ERROR, "rota.scheduler"):
        scheduler.turn()
    assert [job.schedule_id for job in stage.app.jobs.list().items] == ["sound"]
    broken = stage.app.schedules.get("broken")
    assert "minute" in broken.problem
    assert broken.next_run is None
    assert broken.explain().startswith("cannot be evaluated")
    (event,) = [event for event in stage.heard if event.name == "schedule.broken"]
    assert event.data == {"schedule_id": "broken", "error": broken.problem}
    assert "schedule broken (engine.tick) cannot be fired and was stopped" in caplog.text


def test_a_broken_schedule_is_looked_at_once_and_not_for_ever(stage):
    add_broken(stage)
    scheduler = stage.a_scheduler()
    scheduler.turn()
    assert scheduler.turn() == LONGEST_WAIT
    assert stage.names("schedule.") == ["schedule.broken"]


@pytest.mark.parametrize("trigger", ["", "cron", "moon full", "cron 0 0 30 2 *", "every 0s", "once yesterday"])
def test_whatever_is_stored_as_a_trigger_harms_no_other_schedule(stage, tick, trigger):
    add_broken(stage, trigger=trigger)
    stage.app.schedules.put("sound", tick.job(), every("10s"))
    stage.skip(10)
    stage.a_scheduler().turn()
    assert [job.schedule_id for job in stage.app.jobs.list().items] == ["sound"]
    assert stage.app.schedules.get("broken").problem


def test_an_unknown_zone_sets_only_its_own_schedule_aside(stage, tick):
    add_broken(stage, "lost", "cron 0 0 * * * tz=Mars/Olympus")
    stage.app.schedules.put("sound", tick.job(), every("10s"))
    stage.skip(10)
    stage.a_scheduler().turn()
    assert [job.schedule_id for job in stage.app.jobs.list().items] == ["sound"]
    assert "Mars/Olympus" in stage.app.schedules.get("lost").problem


def test_a_firing_that_another_scheduler_was_faster_with_is_refused_and_told(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"))
    stage.skip(10)
    slow, fast = stage.a_scheduler(), stage.a_scheduler()
    due = stage.still.due_schedules(10)
    fast.turn()
    slow.fire(due.schedules, due.now)
    assert stage.names("schedule.") == ["schedule.fired", "schedule.refused"]
    assert stage.states() == ["queued"]


def test_many_schedulers_make_each_occurrence_once(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"), overlap="allow")
    schedulers = [stage.a_scheduler() for _ in range(5)]
    for _ in range(10):
        stage.skip(10)
        due = stage.still.due_schedules(10)
        for scheduler in schedulers:
            scheduler.fire(due.schedules, due.now)
    fired = [job.record.fire_at for job in stage.app.jobs.list(limit=200).items]
    assert sorted(fired) == [NOON + k * 10 * SECOND for k in range(1, 11)]
    assert stage.names("schedule.").count("schedule.refused") == 40


def test_a_firing_that_fails_leaves_the_occurrence_due(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"))
    scheduler = stage.a_scheduler()
    stage.skip(10)
    stage.store.fail("fire")
    assert scheduler._guarded_turn() > 0
    assert stage.states() == []
    assert scheduler._guarded_turn() == 0.0
    (job,) = stage.app.jobs.list().items
    assert job.record.fire_at == NOON + 10 * SECOND
    assert stage.names() == ["schedule.refused", "store.unavailable", "schedule.fired", "store.back"]


def test_a_store_that_fails_names_the_schedules_that_were_due_as_errors(stage, tick, caplog):
    stage.app.schedules.put("soon", tick.job(), every("10s"), description="the soonest")
    stage.app.schedules.put("later", tick.job(), every("1h"))
    scheduler = stage.a_scheduler()
    stage.skip(10)
    stage.store.fail("fire", 3)
    for _ in range(3):
        assert scheduler._guarded_turn() > 0
    (record,) = [each for each in caplog.records if each.name == "rota.schedule"]
    assert (record.levelname, record.rota["schedule_id"], record.rota["task"]) == ("ERROR", "soon", "engine.tick")
    assert "is due and could not be fired; it is tried again" in record.getMessage()
    assert record.rota["error"]
    (outage,) = [each for each in caplog.records if each.name == "rota.store"]
    assert outage.levelname == "ERROR"
    assert scheduler._guarded_turn() == 0.0
    assert stage.states() == ["queued"]


def test_a_schedule_that_came_due_while_the_store_could_not_be_asked_is_named_when_it_answers(stage, tick, caplog):
    stage.app.schedules.put("soon", tick.job(), every("10s"))
    scheduler = stage.a_scheduler()
    scheduler.turn()
    stage.skip(10)
    stage.store.fail("due_schedules", 2)
    for _ in range(2):
        assert scheduler._guarded_turn() > 0
    assert scheduler._guarded_turn() == 0.0
    named = [(each.levelname, each.rota["schedule_id"]) for each in caplog.records if each.name == "rota.schedule"]
    assert named == [("ERROR", "soon")]
    stage.skip(10)
    assert scheduler._guarded_turn() == 0.0  # the outage is over
    assert len([each for each in caplog.records if each.levelname == "ERROR" and each.name == "rota.schedule"]) == 1


def test_what_overlaps_is_skipped_and_told(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"))
    scheduler = stage.a_scheduler()
    for _ in range(3):
        stage.skip(10)
        scheduler.turn()
    assert stage.states() == ["queued"]
    skipped = [event.data for event in stage.heard if event.name == "schedule.skipped"]
    assert skipped == [{"schedule_id": "soon", "count": 1, "reasons": {"overlap": 1}, "jobs": []}] * 2
    told = [sentence(event) for event in stage.heard if event.name == "schedule.skipped"]
    assert told == ["schedule soon skipped 1 occurrence: an earlier run had not ended (overlap)"] * 2


def test_times_that_are_due_together_are_skipped_behind_the_first_which_is_told(stage, tick):
    """All are within their grace, so none is missed; the first makes the job that the others meet."""
    stage.app.schedules.put("soon", tick.job(), every("2s"))
    stage.skip(6)
    stage.a_scheduler().turn()
    (job,) = stage.store.list_jobs(JobFilter()).items
    assert job.fire_at == NOON + 2 * SECOND
    (skip,) = (event for event in stage.heard if event.name == "schedule.skipped")
    assert skip.data == {"schedule_id": "soon", "count": 2, "reasons": {"overlap": 2}, "jobs": [job.id]}
    assert sentence(skip) == (
        "schedule soon skipped 2 occurrences: several times were due at once, and the job of the first had not ended "
        "(overlap)"
    )


def test_with_a_grace_below_the_time_between_two_runs_the_newest_runs(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("2s"), grace="1s")
    stage.skip(6)
    stage.a_scheduler().turn()
    (job,) = stage.store.list_jobs(JobFilter()).items
    assert job.fire_at == NOON + 6 * SECOND
    (skip,) = (event for event in stage.heard if event.name == "schedule.skipped")
    assert skip.data["reasons"] == {"coalesced": 2}


def test_disabled_and_paused_schedules_are_not_looked_at(stage, tick):
    for name, stop in (("off", stage.app.schedules.disable), ("still", stage.app.schedules.pause)):
        stage.app.schedules.put(name, tick.job(), every("10s"))
        stop(name)
    stage.skip(60)
    assert stage.a_scheduler().turn() == LONGEST_WAIT
    assert stage.states() == []


def test_more_due_schedules_than_fit_one_look_are_fired_one_look_after_the_other(stage, tick):
    stage.app.schedules.put_many([(f"s-{number:04}", tick.job(), every("10s")) for number in range(2 * LOOK + 50)])
    scheduler = stage.a_scheduler()
    stage.skip(10)
    turns = 1
    while scheduler.turn() == 0.0:
        turns += 1
    assert turns == 4
    assert stage.store.calls["fire"] == 2 * LOOK // BATCH + 1
    assert {info.counts["queued"] for info in stage.still.list_queues()} == {2 * LOOK + 50}


def test_a_crowd_whose_first_answer_is_lost_is_fired_once_all_the_same(stage, tick):
    stage.app.schedules.put_many([(f"s-{number:04}", tick.job(), every("10s")) for number in range(3 * BATCH)])
    scheduler = stage.a_scheduler()
    stage.skip(10)
    stage.store.fail_after("fire")
    with pytest.raises(StoreUnavailable):
        scheduler.turn()
    assert stage.store.calls["fire"] == 1  # what comes behind a fault is not sent
    assert len(stage.still.due_schedules(3 * BATCH).schedules) == 2 * BATCH
    while scheduler.turn() == 0.0:
        pass
    assert {info.counts["queued"] for info in stage.still.list_queues()} == {3 * BATCH}


def test_the_clock_of_the_store_decides_what_is_due(stage, tick):
    stage.app.schedules.put("soon", tick.job(), every("10s"))
    scheduler = stage.a_scheduler()
    stage._skipped += 3600  # this machine believes that an hour has passed
    scheduler.turn()
    assert stage.states() == []
    stage.still.time += 10 * SECOND
    scheduler.turn()
    assert stage.states() == ["queued"]


def test_a_schedule_that_cannot_be_planned_for_any_reason_is_set_aside_alone(stage, tick):
    """Another program may have stored what this one would have refused."""
    stage.app.schedules.put_many([("odd", tick.job(), every("10s")), ("sound", tick.job(), every("10s"))])
    odd = stage.still._schedules["odd"]
    spec = msgspec.structs.replace(odd.spec, max_runs=2.5)
    stage.still._schedules["odd"] = msgspec.structs.replace(odd, spec=spec)
    stage.skip(10)
    scheduler = stage.a_scheduler()
    for _ in range(3):
        scheduler._guarded_turn()
    assert [job.schedule_id for job in stage.app.jobs.list().items] == ["sound"]
    assert stage.app.schedules.get("odd").problem
    assert "service.failed" not in stage.names()


def test_a_firing_that_the_store_fails_at_is_tried_again_and_recorded(stage, tick, caplog):
    """The others of its batch fire meanwhile, and nothing is lost once the store can."""
    stage.app.schedules.put_many([("odd", tick.job(), every("10s")), ("sound", tick.job(), every("10s"))])
    stage.skip(10)
    scheduler = stage.a_scheduler()
    stage.store.choke_on("odd")
    scheduler._guarded_turn()
    assert [job.schedule_id for job in stage.app.jobs.list().items] == ["sound"]
    assert scheduler._guarded_turn() > 0  # nothing else is due, and it does not spin
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    known = {name: record.rota[name] for name in ("schedule_id", "task", "error")}
    assert known == {"schedule_id": "odd", "task": "engine.tick", "error": "RuntimeError: cannot write this"}
    (change,) = [one for one in stage.app.schedules.changes("odd").items if one.verb == "could not fire"]
    assert change.after == {"error": "RuntimeError: cannot write this"}
    failed = stage.app.schedules.get("odd")
    assert (failed.last_error, failed.problem) == ("RuntimeError: cannot write this", None)
    said = stage.app.schedules.why("odd", failed.next_run).sentence
    assert "The store failed at the firing: RuntimeError: cannot write this. No scheduler is running" in said
    stage.store.choke_on("nothing")
    stage.skip(1)
    assert scheduler._guarded_turn() == 0.0
    assert {job.schedule_id for job in stage.app.jobs.list().items} == {"odd", "sound"}
    assert stage.app.schedules.get("odd").last_error is None


def test_each_failure_of_one_kind_is_recorded_once(stage, tick):
    stage.app.schedules.put("odd", tick.job(), every("10s"))
    stage.skip(10)
    first, second = stage.a_scheduler(), stage.a_scheduler()
    stage.store.choke_on("odd")
    for scheduler in (first, second, first):
        scheduler._guarded_turn()
        stage.skip(FIRST_RETRY)
    assert [one.verb for one in stage.app.schedules.changes("odd").items] == ["could not fire", "created"]


def test_the_error_of_a_failed_firing_is_kept_without_secrets_and_not_whole(stage, tick):
    stage.app.schedules.put("odd", tick.job(), every("10s"))
    odd = stage.still._schedules["odd"]
    spec = msgspec.structs.replace(odd.spec, payload='[[],{"password":"hunter2!"}]')
    stage.still._schedules["odd"] = msgspec.structs.replace(odd, spec=spec)
    stage.skip(10)
    stage.store.choke_on("odd", f"cannot write password=hunter2! {'x' * 5000}")
    stage.a_scheduler()._guarded_turn()
    error = stage.app.schedules.get("odd").last_error
    assert error.startswith("RuntimeError: cannot write password=[redacted] xxx")
    assert len(error) < 2_100
    (change, *_) = stage.app.schedules.changes("odd").items
    assert change.after == {"error": error}


def test_a_firing_that_the_store_cannot_digest_is_set_aside_alone(stage, tick, caplog):
    """After a few tries: the others of its batch fire, the log names the schedule, and the record keeps the reason."""
    stage.app.schedules.put_many([("odd", tick.job(), every("10s")), ("sound", tick.job(), every("10s"))])
    stage.skip(10)
    scheduler = stage.a_scheduler()
    stage.store.choke_on("odd")
    for _ in range(MOST_TRIES):
        assert stage.app.schedules.get("odd").problem is None
        while scheduler._guarded_turn() == 0.0:
            pass
        stage.skip(FIRST_RETRY * 2**MOST_TRIES)
    assert {job.schedule_id for job in stage.app.jobs.list().items} == {"sound"}
    assert stage.app.schedules.get("odd").problem == "RuntimeError: cannot write this"
    assert "schedule odd (" in caplog.text
    assert "service.failed" not in stage.names()
