"""Schedules that the code declares: deploys bring them, change them, and leave each other's alone."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from app.steps import NOON, PATIENCE, fire, work
from rota import App, BadOption, DuplicateName, Refused, Task, cron, current_job, every
from rota.app import internals
from rota.model.micros import SECOND


def test_a_declared_schedule_fires(app):
    fired = threading.Event()
    seen = []

    @app.schedule(every("1s"))
    def tick() -> None:
        seen.append((current_job.schedule_id, current_job.meta))
        fired.set()

    assert isinstance(tick, Task)
    with app.running():
        assert fired.wait(PATIENCE)
    schedule_id, meta = seen[0]
    assert schedule_id == "tick"
    assert set(meta) == {"schedule_id", "scheduled_at", "trigger_type"}


@pytest.mark.parametrize(
    ("trigger", "kind"), [(every("10s"), "every"), (cron("* * * * *"), "cron"), (cron("*/10 * * * * *"), "cron")]
)
def test_a_job_knows_its_schedule_its_time_and_its_trigger(app, clock, trigger, kind):
    seen = []

    @app.schedule(trigger, id="soon")
    def tick() -> None:
        seen.append((current_job.meta, current_job.occurrence))

    app.schedules.sync()
    due = app.schedules.get("soon").next_run
    clock.skip((due - clock.now).total_seconds())
    fire(app)
    work(app)
    expected = {"schedule_id": "soon", "scheduled_at": due.isoformat(), "trigger_type": kind}
    assert seen == [(expected, due)]
    app.schedules.run_now("soon")
    work(app)
    meta, occurrence = seen[-1]
    assert (meta["trigger_type"], meta["scheduled_at"], occurrence) == ("manual", None, None)


def test_a_run_that_was_caught_up_says_so(app, clock):
    seen = []

    @app.schedule(every("1h"), grace="1m")
    def hourly() -> None:
        seen.append(current_job.meta["trigger_type"])

    app.schedules.sync()
    clock.skip(3600 * 5 + 600)
    fire(app)
    work(app)
    assert seen == ["catchup"]


def test_the_nominal_time_is_kept_however_late_it_runs(app, clock):
    seen = []

    @app.schedule(every("10s"))
    def tick() -> None:
        seen.append(current_job.occurrence.timestamp() - NOON / SECOND)

    app.schedules.sync()
    clock.skip(13)
    fire(app)
    clock.skip(100)
    work(app)
    assert seen == [10]


def test_a_schedule_may_be_declared_over_a_task(app, clock):
    @app.schedule(every("10s"), id="fast")
    @app.schedule(every("1h"), id="slow", queue="other", priority="low")
    @app.task(name="shop.sync", queue="sync", priority=3)
    def sync() -> None: ...

    app.schedules.sync()
    fast, slow = app.schedules.list().items
    assert (fast.record.spec.queue, fast.record.spec.priority) == ("sync", 3)
    assert (slow.record.spec.queue, slow.record.spec.priority) == ("other", -10)
    clock.skip(10)
    fire(app)
    assert [job.task for job in app.jobs.list().items] == ["shop.sync"]


def test_coroutines_may_be_scheduled(app, clock):
    @app.schedule(every("10s"))
    async def tick() -> str:
        return "done"

    app.schedules.sync()
    clock.skip(10)
    fire(app)
    work(app)
    assert app.jobs.list().items[0].result() == "done"


def test_nothing_fires_at_registration(app, clock):
    @app.schedule(every("10s"))
    def tick() -> None: ...

    @app.schedule(cron("* * * * *"))
    def minutely() -> None: ...

    assert app.schedules.sync() == 2
    fire(app)
    assert app.jobs.list().items == []
    assert all(view.next_run > clock.now for view in app.schedules.list().items)
    assert app.schedules.get("tick").origin == "the code of app 'app'"


def test_run_on_start_runs_once_and_not_at_every_deploy(make_app, clock):
    ran = []

    def deploy() -> App:
        app = make_app()

        @app.schedule(every("1h"), run_on_start=True)
        def tick() -> None:
            ran.append(current_job.meta["trigger_type"])

        app.schedules.sync()
        work(app)
        return app

    deploy()
    assert ran == ["start"]
    app = deploy()
    assert ran == ["start"]
    assert app.schedules.get("tick").run_count == 1
    clock.skip(3600)
    fire(app)
    work(app)
    assert ran == ["start", "every"]


def test_an_unchanged_deploy_changes_nothing(make_app, clock):
    def deploy() -> App:
        app = make_app(version="1.0")

        @app.schedule(every("10s"), description="Ticks", jitter="5s", overlap="queue")
        def tick(name: str = "a", many: int = 2) -> None: ...

        app.changed = app.schedules.sync()
        return app

    app = deploy()
    assert app.changed == 1
    before = app.schedules.get("tick").record
    clock.skip(3)
    again = deploy()
    assert again.changed == 0
    assert again.schedules.get("tick").record == before


def test_a_deploy_with_new_times_recomputes_and_keeps_the_history(make_app, clock):
    def deploy(seconds: str) -> App:
        app = make_app()

        @app.schedule(every(seconds))
        def tick() -> None: ...

        app.schedules.sync()
        return app

    app = deploy("10s")
    noon = clock.now
    clock.skip(10)
    fire(app)
    work(app)
    app = deploy("1m")
    view = app.schedules.get("tick")
    assert (view.run_count, view.last_status, view.created_at) == (1, "succeeded", noon)
    assert view.next_run - clock.now <= timedelta(minutes=1)
    (line,) = app.schedules.occurrences("tick", noon, clock.now + timedelta(seconds=1)).items
    assert line.outcome == "succeeded"


def test_new_times_win_over_what_the_old_ones_had_waiting(make_app, clock):
    for seconds in ("10s", "1h"):
        app = make_app()

        @app.schedule(every(seconds))
        def tick() -> None: ...

        app.schedules.sync()
        clock.skip(10)
        fire(app)
    (job,) = app.jobs.list().items
    assert (job.state, job.record.cancel_reason) == ("cancelled", "schedule re-timed")


def test_what_operators_decided_survives_a_deploy(make_app, clock):
    def deploy(description: str) -> App:
        app = make_app()

        @app.schedule(every("10s"), id="paused", description=description)
        @app.schedule(every("10s"), id="off", description=description)
        @app.task(name="tick")
        def tick() -> None: ...

        app.schedules.sync()
        return app

    app = deploy("old")
    app.schedules.pause("paused", by="ann")
    app.schedules.disable("off")
    app = deploy("new")
    assert app.schedules.get("paused").pause_reason == "paused by ann"
    assert not app.schedules.get("off").is_enabled
    assert app.schedules.get("off").description == "new"
    clock.skip(60)
    fire(app)
    assert app.jobs.list().items == []


def deploy_version(make_app, version: str, seconds: str) -> App:
    app = make_app(name="shop", version=version)

    @app.schedule(every(seconds))
    def tick() -> None: ...

    app.schedules.sync()
    return app


@pytest.mark.parametrize(("newer", "older"), [("2.0", "1.9"), ("1.10", "1.9"), ("3", "2.99.99"), ("2.0.1", "2.0")])
@pytest.mark.usefixtures("clock")
def test_an_older_version_never_overwrites_what_a_newer_one_declared(make_app, newer, older):
    app = deploy_version(make_app, newer, "10s")
    before = app.schedules.get("tick").record
    deploy_version(make_app, older, "1h")
    assert app.schedules.get("tick").record == before
    deploy_version(make_app, newer, "1h")
    assert app.schedules.get("tick").record.spec.trigger == str(every("1h"))


@pytest.mark.usefixtures("clock")
def test_a_newer_version_that_changed_nothing_is_not_overwritten_by_one_in_between(make_app):
    for version in ("1", "3"):
        app = deploy_version(make_app, version, "10s")
    deploy_version(make_app, "2", "1h")
    assert app.schedules.get("tick").record.spec.trigger == str(every("10s"))


def test_a_removed_schedule_of_the_code_comes_back_with_the_next_start(app):
    @app.schedule(every("1h"))
    def tick() -> None: ...

    app.schedules.sync()
    with pytest.raises(Refused, match="you cannot remove it; remove it there"):
        app.schedules.remove("tick")
    assert app.schedules.remove("tick", force=True) is True
    assert app.schedules.list().items == []
    with app.running(worker=False):
        assert [view.id for view in app.schedules.list().items] == ["tick"]


def test_the_api_may_stop_what_the_code_declares_and_not_rewrite_it(app):
    @app.schedule(every("1h"))
    def tick() -> None: ...

    app.schedules.sync()
    with pytest.raises(Refused, match="defined by the code of app 'app', so you cannot change it"):
        app.schedules.put("tick", tick.job(), every("2h"))
    assert app.schedules.pause("tick").is_paused
    assert not app.schedules.resume("tick").is_paused
    assert not app.schedules.disable("tick").is_enabled
    assert app.schedules.enable("tick").is_enabled
    assert app.schedules.run_now("tick").state == "queued"


# Two apps.


def test_two_apps_in_one_process_share_nothing():
    one, two = App("memory://", name="one"), App("memory://", name="two")
    heard = []
    two.on("*", heard.append)

    def greet() -> str:
        return "hello"

    tasks = [app.task(name="shop.greet")(greet) for app in (one, two)]

    @one.schedule(every("1h"))
    def tick() -> None: ...

    one.schedules.sync()
    job = tasks[0].enqueue()
    work(one)
    assert job.result() == "hello"
    assert two.jobs.list().items == two.schedules.list().items == heard == []
    assert (len(internals(one).registry), len(internals(two).registry)) == (2, 1)


def test_two_apps_on_one_store_leave_each_others_schedules_alone(make_app, clock):
    one, two = make_app(name="one"), make_app(name="two")

    @one.schedule(every("10s"), id="of-one")
    def tick() -> None: ...

    @two.schedule(every("10s"), id="of-two")
    def tock() -> None: ...

    one.schedules.sync()
    two.schedules.sync()
    before = one.schedules.get("of-one").record
    clock.skip(1)
    two.schedules.sync()
    assert one.schedules.get("of-one").record == before
    clock.skip(10)
    fire(one)
    assert {job.schedule_id for job in two.jobs.list().items} == {"of-one", "of-two"}


def test_two_apps_cannot_declare_the_same_id_on_one_store(make_app):
    for name in ("one", "two"):
        app = make_app(name=name)

        @app.schedule(every("10s"))
        def tick() -> None: ...

        if name == "one":
            app.schedules.sync()
    with pytest.raises(Refused, match=r"defined by the code of app 'one'.*choose another id"):
        app.schedules.sync()


def test_a_job_of_another_app_is_left_to_it(make_app, clock):
    one, two = make_app(name="one"), make_app(name="two")

    @two.task(name="only.two")
    def only() -> str:
        return "done"

    job = only.enqueue()
    work(one)
    assert job.refresh().state == "scheduled"
    clock.skip(60)
    work(two)
    assert job.result() == "done"
    assert job.attempts == 1


# Declaring wrongly.


def test_one_id_is_declared_once(app):
    @app.schedule(every("1h"))
    def tick() -> None: ...

    with pytest.raises(DuplicateName, match="a schedule with the id 'tick' is declared already; give one an id="):
        app.schedule(every("2h"))(tick)
    app.schedule(every("2h"), id="tick-2")(tick)
    assert set(internals(app).declared) == {"tick", "tick-2"}


def test_a_scheduled_function_must_be_callable_without_arguments(app):
    with pytest.raises(TypeError, match="missing a required argument: 'name'"):

        @app.schedule(every("1h"))
        def greet(name: str) -> None: ...


@pytest.mark.parametrize("options", [{"overlap": "never"}, {"catchup": "some"}, {"catchup_limit": 0}, {"max_runs": 0}])
def test_a_policy_that_does_not_exist_is_refused_when_it_is_declared(app, options):
    with pytest.raises(BadOption, match=next(iter(options))):

        @app.schedule(every("1h"), **options)
        def tick() -> None: ...

    assert internals(app).declared == {}


def test_an_unknown_option_is_refused(app):
    with pytest.raises(BadOption, match="a schedule has no option 'overlaps'; did you mean overlap="):

        @app.schedule(every("1h"), overlaps="skip")
        def tick() -> None: ...


@pytest.mark.parametrize("options", [{"overlap": "sometimes"}, {"overlaps": "skip"}, {"id": "no spaces"}])
def test_a_declaration_that_fails_leaves_no_task(app, options):
    for _ in range(2):  # the second time, too, the mistake is told, and not that the name is taken
        with pytest.raises(BadOption, match=r"overlap|id"):

            @app.schedule(every("1h"), **options)
            def tick() -> None: ...

    with pytest.raises(BadOption):

        @app.sources.declare("shop", [])
        def sync(source: str, collection: str) -> None: ...

    assert len(internals(app).registry) == 0
    assert internals(app).declared == {}

    @app.task
    def known() -> None: ...

    with pytest.raises(BadOption):
        app.schedule(every("1h"), overlap="sometimes")(known)
    assert [task.name for task in internals(app).registry] == [known.name]
