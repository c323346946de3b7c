"""app.schedules.why: every expected time has one answer, with its reason and what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.steps import fire, work
from rota import ScheduleNotFound, backoff, calendar, cron, every
from rota.model.micros import micros_of
from rota.store.contract import Node


@pytest.fixture
def tick(app):
    @app.task(name="shop.tick", retries=0)
    def tick(fails: bool = False) -> None:  # noqa: FBT001, FBT002
        if fails:
            raise ValueError("no stock")

    return tick


@pytest.fixture
def why(app, clock):
    """Why the schedule ran or not, so many seconds from now."""

    def ask(seconds: float = 0, name: str = "soon"):
        return app.schedules.why(name, clock.now + timedelta(seconds=seconds))

    return ask


@pytest.fixture
def soon(app, tick, clock):
    app.schedules.put("soon", tick.job(), every("10s"), overlap="skip")
    return clock


def record_heartbeat(app, clock, *roles: str, queues=("default",), tasks=("shop.tick",)) -> None:
    app.open().record_heartbeat(Node(id="n", host="h", pid=1, roles=roles, queues=queues, tasks=tasks), now=clock.time)


def test_a_run_in_time_is_told(app, soon, why):
    soon.skip(10)
    fire(app)
    work(app)
    verdict = why()
    assert verdict.outcome == "fired"
    assert "It ran in time. The job succeeded in" in verdict.sentence
    assert verdict.job_id == app.jobs.list().items[0].id
    assert app.schedules.why("soon") == verdict  # the last expected time is the default


def test_a_run_that_waited_is_late_and_its_cause_is_told(app, soon, why):
    soon.skip(10)
    fire(app)
    soon.skip(5)
    work(app)
    verdict = why(-5)
    assert (verdict.outcome, "It ran 5 s late." in verdict.sentence) == ("late", True)
    assert verdict.fix.startswith("Give its queue more workers")


def test_a_run_that_failed_names_its_error(app, tick, clock, why):
    app.schedules.put("soon", tick.job(fails=True), every("10s"))
    clock.skip(10)
    fire(app)
    work(app)
    verdict = why()
    assert verdict.outcome == "failed"
    assert verdict.sentence.endswith("It ran, and its job failed after 1 attempt: ValueError: no stock.")
    assert verdict.job_id in verdict.fix


def test_an_overlap_is_told(app, soon, why):
    soon.skip(10)
    fire(app)
    soon.skip(10)
    fire(app)
    verdict = why()
    assert verdict.outcome == "skipped: overlap"
    assert "had not ended: it had been waiting for a worker in the queue default for 10 s." in verdict.sentence
    assert verdict.fix == "Start one: `rota worker TARGET -q default`."


def test_what_was_missed_is_told_with_the_time_of_silence(app, soon, why):
    soon.skip(205)
    fire(app)
    verdict = why(-105)
    assert verdict.outcome == "coalesced"
    assert "no scheduler fired the schedule from" in verdict.sentence


def test_a_pause_names_who_and_why(app, soon, why):
    app.schedules.pause("soon", by="ann", reason="month end")
    soon.skip(10)
    open_one = why()
    app.schedules.resume("soon")
    recorded = why()
    assert open_one.outcome == recorded.outcome == "skipped: paused by ann: month end"
    assert "rota schedules resume soon" in open_one.fix


def test_a_disabled_schedule_says_how_to_enable_it(app, soon, why):
    app.schedules.disable("soon")
    soon.skip(10)
    assert (why().outcome, why().fix) == ("skipped: disabled", "`rota schedules enable soon`.")
    app.schedules.enable("soon")
    assert why().outcome == "skipped: disabled"


def test_what_is_due_waits_for_a_scheduler(app, soon, why):
    soon.skip(10)
    assert (why().outcome, "no scheduler is running" in why().sentence) == ("due", True)
    record_heartbeat(app, soon, "scheduler")
    assert "A scheduler is running and has not fired it yet." in why().sentence


def test_a_job_that_waits_says_for_what(app, soon, why):
    soon.skip(10)
    fire(app)
    assert why().outcome == "waiting: no worker for this queue"
    record_heartbeat(app, soon, "worker", tasks=())
    assert why().outcome == "waiting: task unknown to every worker"
    record_heartbeat(app, soon, "worker")
    assert why().outcome == "waiting"
    app.open().pause_queue("default", paused=True)
    assert (why().outcome, why().fix) == ("waiting: queue paused", "`rota queues resume default`.")


def test_what_lies_ahead_is_expected(soon, why):
    assert why(10).outcome == "expected"
    assert why(10).sentence.endswith("It is due in 10 s.")
    assert soon.now == datetime.fromtimestamp(soon.time / 1e6, UTC)


def test_what_no_rule_expects_is_told_with_its_neighbours(app, soon, why):
    soon.skip(60)
    verdict = why(-3)
    assert verdict.outcome == "not expected"
    assert "The schedule was not due then. It runs every 10 seconds" in verdict.sentence
    assert (verdict.before, verdict.after) == (soon.now - timedelta(seconds=10), soon.now)
    assert "The schedule did not exist then." in why(-3600).sentence
    assert app.schedules.why("soon", soon.now - timedelta(hours=1)).outcome == "not expected"


def test_before_the_start_and_after_the_end_nothing_is_expected(app, tick, clock, why):
    app.schedules.put(
        "soon",
        tick.job(),
        every("10s"),
        start=clock.now + timedelta(seconds=100),
        end=clock.now + timedelta(seconds=200),
    )
    assert "It starts at" in why(50).sentence
    assert why(210).outcome == "ended"
    assert why(150).outcome == "expected"


def test_a_run_that_a_clock_change_moves_says_so(app, tick, clock):
    app.schedules.put("night", tick.job(), cron("30 2 * * *", tz="America/New_York"))
    gap = app.schedules.why("night", datetime(2027, 3, 14, 7, 0, tzinfo=UTC))
    assert (gap.outcome, "02:30 does not exist in America/New_York" in gap.sentence) == ("expected", True)
    app.schedules.put("night", tick.job(), cron("30 1 * * *", tz="America/New_York"))
    first = app.schedules.why("night", datetime(2026, 11, 1, 5, 30, tzinfo=UTC))
    again = app.schedules.why("night", datetime(2026, 11, 1, 6, 30, tzinfo=UTC))
    assert clock.now < datetime(2026, 11, 1, tzinfo=UTC)
    assert "runs once, on the first pass" in first.sentence
    assert (again.outcome, "runs once" in again.sentence) == ("once: DST repeat", True)


def test_a_spent_schedule_has_ended(app, tick, clock, why):
    app.schedules.put("soon", tick.job(), every("10s"), max_runs=1)
    clock.skip(10)
    fire(app)
    assert (why(10).outcome, "all of its runs (1)" in why(10).sentence) == ("ended", True)


def test_an_unknown_schedule_is_an_error(app):
    with pytest.raises(ScheduleNotFound):
        app.schedules.why("nobody")


def test_a_failed_run_that_waits_for_its_retry_is_the_cause_of_an_overlap(app, clock, why):
    @app.task(name="shop.flaky", retries=3, backoff=backoff("1h"))
    def flaky() -> None:
        raise OSError("full")

    app.schedules.put("soon", flaky.job(), every("10s"))
    clock.skip(10)
    fire(app)
    work(app)
    view = app.schedules.get("soon")
    assert (view.last_status, view.last_error.partition("\n")[0]) == ("retrying", "OSError: full")
    clock.skip(10)
    fire(app)
    verdict = why()
    assert "an attempt had failed (OSError: full), and it was waiting for the next one" in verdict.sentence
    assert verdict.fix.startswith("Correct the error: `rota jobs show ")


def test_a_task_that_no_worker_knows_is_the_cause_of_an_overlap(app, make_app, soon, why):
    other = make_app()  # a deploy without the task
    soon.skip(10)
    fire(app)
    work(other)
    soon.skip(10)
    fire(app)
    assert "the worker that took it did not know the task shop.tick" in why().sentence
    assert why().fix == "Deploy the code that has shop.tick, or correct the name of the task."
    assert app.jobs.why(app.jobs.list().items[0].id).outcome == "waiting: task unknown to every worker"


def test_a_queue_of_runs_is_told_as_such(app, tick, clock, why):
    app.schedules.put("soon", tick.job(), every("10s"), overlap="queue")
    for _ in range(3):
        clock.skip(10)
        fire(app)
    assert 'With overlap="queue", one time waits for the job before it' in why().sentence
    assert 'overlap="queue"' not in why().fix
    held = app.jobs.list(state="held").items[0]
    assert (app.jobs.why(held.id).outcome, why(-10).outcome) == ("waiting: another job", "waiting: another job")


def test_a_schedule_that_its_tenant_paused_before_its_first_run_is_paused(app, tick):
    app.tenants.put("acme", tz="UTC")
    app.tenants.pause("acme", by="ann")
    app.schedules.put("soon", tick.job(), every("10s"), tenant="acme")
    verdict = app.schedules.why("soon")
    assert (verdict.outcome, verdict.fix) == ("skipped: paused with tenant acme by ann", "`rota tenants resume acme`.")


def test_changed_times_are_named_with_who_changed_them(app, tick, clock, why):
    app.schedules.put("soon", tick.job(), every("1h"))
    clock.skip(1800)
    app.schedules.put("soon", tick.job(), every("10s"), by="ann")
    verdict = why(-600)
    assert verdict.outcome == "not expected"
    assert "Its times were changed by ann at" in verdict.sentence
    assert "(trigger: every 1h → every 10s)" in verdict.sentence


def test_a_removed_schedule_says_who_removed_it(app, soon):
    soon.skip(1)  # records of one instant have no order
    app.schedules.remove("soon", by="ann")
    verdict = app.schedules.why("soon")
    assert (verdict.outcome, verdict.at) == ("removed", soon.now)
    assert "removed by ann at" in verdict.sentence
    assert app.schedules.why("soon", soon.now + timedelta(hours=1)).outcome == "removed"


def daily(app, clock, task, tz, *runs, at="00:05"):
    """A schedule of every local day, whose jobs are done at these times."""
    app.schedules.put("daily", task.job(), calendar(days=1, at=at), tz=tz)
    for run in runs:
        clock.time = micros_of(datetime.fromisoformat(run))
        fire(app)
        work(app)


def asked(app, at, tz):
    return app.schedules.why("daily", datetime.fromisoformat(at).replace(tzinfo=ZoneInfo(tz)))


@pytest.mark.parametrize("is_fired", [False, True], ids=["at once", "after the next run"])
def test_a_date_that_was_done_before_its_wall_time_was_changed_is_told_as_such(app, tick, clock, is_fired):
    clock.time = micros_of(datetime(2026, 1, 15, tzinfo=UTC))
    daily(app, clock, tick, "UTC", "2026-01-15T00:05Z", "2026-01-16T00:05Z", "2026-01-16T12:00Z")
    app.schedules.put("daily", tick.job(), calendar(days=1, at="18:00"), tz="UTC", by="ann")
    if is_fired:
        clock.time = micros_of(datetime(2026, 1, 17, 18, tzinfo=UTC))
        fire(app)
    verdict = asked(app, "2026-01-16 18:00", "UTC")
    assert verdict.outcome == "done before the change"
    assert verdict.sentence.partition(" UTC: ")[2] == (
        "This local date had its turn already, at Fri 2026-01-16 00:05 UTC. Its times were changed by ann at Fri "
        "2026-01-16 12:00 UTC (trigger: calendar days=1 at=00:05 → calendar days=1 at=18:00). A new wall time does not "
        "run a date again."
    )


MOVES = {  # from, to, the last run before the move, the move, the local time asked about, its run
    "west": ("Asia/Kolkata", "UTC", "2026-01-15T18:35Z", "2026-01-15T20:00Z", "already, at Fri 2026-01-16 00:05 IST"),
    "east": ("UTC", "Asia/Kolkata", "2026-01-16T00:05Z", "2026-01-16T12:00Z", "at Fri 2026-01-16 00:05 UTC"),
}


@pytest.mark.parametrize(("before", "after", "ran", "moved", "then"), MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("by", ["schedule", "tenant"])
def test_a_date_that_was_done_before_a_move_is_told_as_such(app, tick, clock, by, before, after, ran, moved, then):
    """Also where the zone before or after is UTC, which is the default and so not written down."""
    clock.time = micros_of(datetime(2026, 1, 15, tzinfo=UTC))
    app.tenants.put("acme", tz=before)
    whose = {"tz": before} if by == "schedule" else {"tenant": "acme"}
    app.schedules.put("daily", tick.job(), calendar(days=1, at="00:05"), **whose)
    clock.time = micros_of(datetime.fromisoformat(ran))
    fire(app)
    work(app)
    clock.time = micros_of(datetime.fromisoformat(moved))
    if by == "schedule":
        app.schedules.put("daily", tick.job(), calendar(days=1, at="00:05"), tz=after, by="ann")
    else:
        app.tenants.put("acme", tz=after, by="ann")
    clock.time = micros_of(datetime(2026, 1, 18, tzinfo=UTC))
    fire(app)
    verdict = asked(app, "2026-01-16 00:05", after)
    assert verdict.outcome == "done before the move"
    assert f"This local time had its turn {then}. Its times were changed by ann" in verdict.sentence
    assert f"(tz: {before} → {after}). No local time runs twice." in verdict.sentence


@pytest.mark.parametrize(
    ("catchup", "outcome", "rest"),
    [
        ("latest", "late", "It was made up for 30 m late."),
        ("all", "late", "It was made up for 30 m late."),
        ("skip", "skipped: catch-up", 'With catchup="skip", missed times are not made up for.'),
    ],
)
@pytest.mark.parametrize("by", ["schedule", "tenant"])
def test_a_time_that_a_move_put_into_the_past_blames_no_scheduler(app, tick, clock, by, catchup, outcome, rest):
    clock.time = micros_of(datetime(2026, 1, 15, 12, tzinfo=UTC))
    app.tenants.put("acme", tz="UTC")
    whose = {"tz": "UTC"} if by == "schedule" else {"tenant": "acme"}
    app.schedules.put("daily", tick.job(), calendar(days=1, at="19:00"), catchup=catchup, **whose)
    clock.time = micros_of(datetime(2026, 1, 15, 14, tzinfo=UTC))
    if by == "schedule":
        whose = {"tz": "Asia/Kolkata", "by": "ann"}
        app.schedules.put("daily", tick.job(), calendar(days=1, at="19:00"), catchup=catchup, **whose)
    else:
        app.tenants.put("acme", tz="Asia/Kolkata", by="ann")
    fire(app)
    work(app)
    verdict = asked(app, "2026-01-15 19:00", "Asia/Kolkata")
    assert verdict.outcome == outcome
    assert "The clock of the new zone had passed this time when the zone was changed." in verdict.sentence
    assert "(tz: UTC → Asia/Kolkata)" in verdict.sentence
    assert rest in verdict.sentence
    assert "scheduler" not in verdict.sentence + verdict.fix


def test_the_run_of_a_date_that_two_zones_leave_out_blames_no_scheduler(app, tick, clock):
    clock.time = micros_of(datetime(2026, 1, 15, tzinfo=UTC))
    daily(app, clock, tick, "Pacific/Pago_Pago", "2026-01-16T23:00Z", "2026-01-17T00:30Z", at="12:00")
    app.schedules.put("daily", tick.job(), calendar(days=1, at="12:00"), tz="Pacific/Kiritimati", by="ann")
    fire(app)
    work(app)
    verdict = asked(app, "2026-01-17 13:00:01", "Pacific/Kiritimati")
    assert (verdict.outcome, verdict.code, verdict.fix) == ("late", "late.moved", "")


def test_a_time_that_was_missed_before_a_move_blames_the_scheduler(app, tick, clock):
    """By the clock of both zones it was past, and nothing fired it."""
    clock.time = micros_of(datetime(2026, 1, 15, 12, tzinfo=UTC))
    app.schedules.put("daily", tick.job(), calendar(days=1, at="19:00"), tz="UTC")
    clock.time = micros_of(datetime(2026, 1, 15, 20, tzinfo=UTC))
    app.schedules.put("daily", tick.job(), calendar(days=1, at="19:00"), tz="Asia/Kolkata", by="ann")
    fire(app)
    work(app)
    assert "No scheduler fired it in time." in asked(app, "2026-01-15 19:00", "Asia/Kolkata").sentence


@pytest.mark.parametrize("is_fired", [False, True], ids=["before its run", "after its run"])
def test_a_date_that_two_zones_leave_out_names_its_run(app, tick, clock, is_fired):
    """Kiritimati is 25 hours ahead of Pago Pago: a move there comes after noon of the next date."""
    clock.time = micros_of(datetime(2026, 1, 15, tzinfo=UTC))
    daily(app, clock, tick, "Pacific/Pago_Pago", "2026-01-16T23:00Z", "2026-01-17T00:30Z", at="12:00")
    app.schedules.put("daily", tick.job(), calendar(days=1, at="12:00"), tz="Pacific/Kiritimati", by="ann")
    if is_fired:
        fire(app)
        work(app)
    verdict = asked(app, "2026-01-17 12:00", "Pacific/Kiritimati")
    assert verdict.outcome == "run after the move"
    assert "Its run is the one at Sat 2026-01-17 13:00:01 +14. Its times were changed by ann" in verdict.sentence
    assert "more than 24 hours apart" in verdict.fix
    done = asked(app, "2026-01-16 12:00", "Pacific/Kiritimati")
    assert "This local time had its turn at Fri 2026-01-16 12:00 SST." in done.sentence
