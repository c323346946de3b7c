"""What is said about a job's uniqueness holds for the jobs that schedules make, too."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import msgspec
import pytest

from app.steps import fire
from rota import BadName, BadOption, Refused, every
from rota.app import internals
from rota.cli.export import exported
from rota.cli.schedule_page import ShownSchedule, page
from rota.inspector.facts.schedule import schedule_facts
from rota.model.jobs.job import State
from rota.model.micros import SECOND, datetime_of
from rota.store.contract import Exchange


@pytest.fixture
def send(app):
    @app.task(name="mail.send", unique=True)
    def send(to: str = "ann") -> None: ...

    return send


@pytest.fixture
def plain(app):
    @app.task(name="mail.plain")
    def plain(to: str = "ann") -> None: ...

    return plain


def live(app) -> list:
    return [job for job in app.jobs.list().items if not job.record.state.is_final]


def spec_of(app, name: str = "soon"):
    return app.schedules.get(name).record.spec


def test_a_unique_task_never_runs_twice_at_once_in_a_schedule_that_allows_overlaps(app, clock, send):
    app.schedules.put("soon", send.job("ann"), every("10s"), overlap="allow")
    for _ in range(4):
        clock.skip(10)
        fire(app)
        app.open().exchange(Exchange(holder="w", want=9), now=clock.time)
    (job,) = live(app)
    assert (job.record.state, job.key) == (State.RUNNING, send.job("ann").key)
    assert send.enqueue("ann").id == job.id


def test_why_names_the_job_that_holds_the_key_and_says_what_to_do(app, clock, send):
    holder = send.enqueue("ann")
    app.schedules.put("soon", send.job("ann"), every("10s"))
    clock.skip(10)
    fire(app)
    verdict = app.schedules.why("soon", clock.now)
    assert verdict.outcome == f"skipped: unique (job {holder.id})"
    assert f"It was skipped, because job {holder.id} held the unique key '{holder.key}'." in verdict.sentence
    assert f"`rota why {holder.id}` says what the job did." in verdict.fix


def test_other_arguments_have_another_key(app, clock, send):
    send.enqueue("bob")
    app.schedules.put("soon", send.job("ann"), every("10s"))
    clock.skip(10)
    fire(app)
    assert len(live(app)) == 2


def test_a_request_keeps_its_key_in_a_schedule(app, clock, plain):
    request = plain.using(key="mine", key_for="1h").job("ann")
    app.schedules.put("soon", request, every("10s"))
    assert (spec_of(app).key, spec_of(app).key_for) == ("mine", 3600 * SECOND)
    clock.skip(10)
    fire(app)
    (job,) = live(app)
    assert (job.key, job.record.key_until) == ("mine", clock.time + 3600 * SECOND)
    assert plain.using(key="mine").enqueue("bob").id == job.id


def test_a_schedule_may_say_the_key_of_its_jobs(app, plain, send):
    app.schedules.put("soon", plain.job(), every("10s"), key="mine", key_for=timedelta(minutes=1))
    assert (spec_of(app).key, spec_of(app).key_for) == ("mine", 60 * SECOND)
    app.schedules.put("later", send.job("ann"), every("10s"), key="mine")
    assert (spec_of(app, "later").key, spec_of(app, "later").key_for) == ("mine", 0)


@pytest.mark.parametrize("given", ["1.5s", timedelta(seconds=1.5)])
def test_a_key_may_hold_for_part_of_a_second_wherever_it_is_said(app, plain, given):
    app.schedules.put("soon", plain.job(), every("10s"), key="mine", key_for=given)
    app.schedules.put("later", plain.using(key="mine", key_for=given).job(), every("10s"))
    assert spec_of(app).key_for == spec_of(app, "later").key_for == 1_500_000
    for name in ("soon", "later"):
        shown = ShownSchedule(app.schedules.get(name).record, app.open().now())
        assert schedule_facts(shown.record, internals(app).redaction, app.open().now()).key_for == "1s500ms"
        assert exported(shown.record, internals(app).redaction).key_for == "1s500ms"
        table = page(shown, [], [], datetime_of(app.open().now()), internals(app).redaction)
        assert any("mine, held for 1s500ms" in line for line in table)


def test_a_key_that_is_none_is_refused(app, plain):
    with pytest.raises(BadName, match="key ''"):
        app.schedules.put("soon", plain.job(), every("10s"), key="")
    with pytest.raises(BadOption, match="key_for='1h' needs a key="):
        app.schedules.put("soon", plain.job(), every("10s"), key_for="1h")


def test_a_schedule_without_a_key_says_nothing_of_one(app, plain):
    app.schedules.put("soon", plain.job(), every("10s"))
    assert b"key" not in msgspec.json.encode(spec_of(app))


def test_an_export_has_the_key(app, plain):
    app.schedules.put("soon", plain.using(key="mine", key_for="1h").job(), every("10s"))
    shown = msgspec.to_builtins(exported(app.schedules.get("soon").record, internals(app).redaction))
    assert (shown["key"], shown["key_for"]) == ("mine", "1h")


def test_a_run_by_hand_is_answered_with_the_job_that_holds_its_key(app, send):
    app.schedules.put("soon", send.job("ann"), every("10s"))
    first = app.schedules.run_now("soon")
    again = app.schedules.run_now("soon")
    assert (first.existed, again.existed, again.id) == (False, True, first.id)
    assert [job.id for job in live(app)] == [first.id]


@pytest.fixture
def meanwhile(app, monkeypatch):
    """Has others do something just before and just after each edit of a schedule."""

    def install(before, after):
        store = app.open()
        edit = store.edit_schedules

        def edit_schedules(edits):
            before()
            refused = edit(edits)
            after()
            return refused

        monkeypatch.setattr(store, "edit_schedules", edit_schedules)

    return install


def test_a_run_by_hand_that_another_job_was_in_the_way_of_is_tried_again(app, send, meanwhile):
    app.schedules.put("soon", send.job("ann"), every("10s"))
    turns = count()

    def take() -> None:
        if next(turns) == 0:
            send.enqueue("ann")

    def end() -> None:
        if next(turns) == 1:
            app.jobs.cancel(live(app)[0].id)

    meanwhile(take, end)
    job = app.schedules.run_now("soon")
    assert (job.existed, [one.id for one in live(app)]) == (False, [job.id])
    record = app.schedules.get("soon").record
    assert (record.last.job_id, record.runs) == (job.id, 1)


def test_a_run_by_hand_that_others_are_always_in_the_way_of_is_refused(app, send, meanwhile):
    app.schedules.put("soon", send.job("ann"), every("10s"))
    others = []
    meanwhile(lambda: others.append(send.enqueue("ann")), lambda: app.jobs.cancel(others[-1].id))
    with pytest.raises(Refused, match=r"took the key '.*' of schedule 'soon' 5 times .*; try again"):
        app.schedules.run_now("soon")
    assert (live(app), app.schedules.get("soon").record.runs) == ([], 0)


def test_a_run_by_hand_is_answered_with_the_job_that_took_its_key_meanwhile(app, send, meanwhile):
    app.schedules.put("soon", send.job("ann"), every("10s"))
    others = []
    meanwhile(lambda: others.append(send.enqueue("ann")), lambda: None)
    job = app.schedules.run_now("soon")
    assert (job.existed, job.id) == (True, others[0].id)
    assert app.schedules.get("soon").record.runs == 0


def test_a_run_by_hand_that_has_ended_and_is_gone_is_not_made_again(app, send, meanwhile):
    app.schedules.put("soon", send.job("ann"), every("10s"))

    def end() -> None:
        (job,) = live(app)
        app.jobs.cancel(job.id)
        app.jobs.delete(job.id)

    meanwhile(lambda: None, end)
    assert not app.schedules.run_now("soon").existed
    assert (app.jobs.list().items, app.schedules.get("soon").record.runs) == ([], 1)


def test_a_run_by_hand_ignores_the_slot(app, clock, plain):
    app.schedules.put("soon", plain.job(), every("10s"))
    clock.skip(10)
    fire(app)
    assert not app.schedules.run_now("soon").existed
    assert len(live(app)) == 2


def test_a_key_that_looks_like_a_schedule_stops_none(app, clock, plain):
    plain.using(key="schedule:soon").enqueue()
    app.schedules.put("soon", plain.job(), every("10s"))
    clock.skip(10)
    fire(app)
    assert len(live(app)) == 2
    assert app.schedules.why("soon", clock.now).outcome.startswith("waiting")


def test_skips_are_counted_by_their_reason(app, clock, send):
    told = []
    internals(app).events.on("schedule.skipped", lambda event: told.append(event.data))
    send.enqueue("ann")
    app.schedules.put("soon", send.job("ann"), every("10s"))
    clock.skip(10)
    fire(app)
    assert [(one["count"], one["reasons"]) for one in told] == [(1, {"unique": 1})]
