"""app.jobs: getting, listing, history, logs, cancelling, retrying and deleting, with their refusals."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta

import pytest

from app.steps import PATIENCE, work
from rota import BadOption, JobNotFound, NaiveDatetime, Refused, UnlawfulMove, current_job, every, walk
from rota.model.jobs.job import NewJob

ALWAYS, NOW = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def tasks(app):
    @app.task(name="shop.good")
    def good() -> None: ...

    @app.task(name="shop.bad", retries=0)
    def bad() -> None:
        raise ValueError("no stamp")

    @app.task(name="mail.send", queue="mail")
    def send() -> None: ...

    return {"good": good, "bad": bad, "send": send}


@pytest.mark.parametrize("verb", ["get", "history", "cancel", "retry", "delete"])
def test_a_job_that_does_not_exist_is_told(app, verb):
    with pytest.raises(JobNotFound, match="no job has the id 'nothing'; it may have been pruned"):
        getattr(app.jobs, verb)("nothing")


def test_lists_show_the_newest_first_and_what_was_asked_for(app, tasks, clock):
    good = tasks["good"].enqueue()
    bad = tasks["bad"].enqueue()
    work(app)
    clock.skip(10)
    middle = clock.now
    sent = tasks["send"].using(key="user-42").enqueue()
    late = tasks["good"].using(delay="1h").enqueue()
    app.schedules.put("soon", tasks["good"].job(), every("1h"))
    by_hand = app.schedules.run_now("soon")

    def found(**where):
        return [job.id for job in app.jobs.list(**where).items]

    assert found() == [by_hand.id, late.id, sent.id, bad.id, good.id]
    assert found(state="failed") == [bad.id]
    assert found(state=("failed", "succeeded")) == [bad.id, good.id]
    assert found(task="mail.send") == [sent.id]
    assert found(task="shop.*") == [by_hand.id, late.id, bad.id, good.id]
    assert found(queue="mail") == [sent.id]
    assert found(schedule="soon") == [by_hand.id]
    assert found(key="user-42") == [sent.id]
    assert found(since=middle) == [by_hand.id, late.id, sent.id]
    assert found(until=middle) == [bad.id, good.id]
    assert found(state="running") == found(task="shop") == found(queue="%") == found(task="%") == []


def test_pages_follow_each_other_without_gap_or_repeat(app, tasks):
    made = app.enqueue_many([tasks["good"].job() for _ in range(25)])
    shown, cursor = [], None
    while True:
        page = app.jobs.list(limit=10, cursor=cursor)
        shown += page.items
        if (cursor := page.cursor) is None:
            break
        tasks["good"].enqueue()  # what comes meanwhile does not disturb
    assert shown == made[::-1]


def test_a_page_has_bounds(app, tasks):
    app.enqueue_many([tasks["good"].job() for _ in range(250)])
    assert len(app.jobs.list(limit=200)) == 200
    assert len(app.jobs.list(limit=1)) == 1
    assert len(app.jobs.list()) == 50


LISTS = {
    "jobs": lambda app, limit: app.jobs.list(limit=limit),
    "logs": lambda app, limit: app.jobs.logs("any", limit=limit),
    "schedules": lambda app, limit: app.schedules.list(limit=limit),
    "occurrences": lambda app, limit: app.schedules.occurrences("any", ALWAYS, NOW, limit=limit),
    "tenants": lambda app, limit: app.tenants.list(limit=limit),
    "tokens": lambda app, limit: app.tokens.list(limit=limit),
    "changes": lambda app, limit: app.changes(limit=limit),
}


@pytest.mark.parametrize("limit", [0, -1, 201, True, "ten", None, 1.5])
@pytest.mark.parametrize("name", LISTS)
def test_a_limit_that_no_page_has_is_refused(app, name, limit):
    with pytest.raises(BadOption, match=re.escape(f"limit={limit!r} must be a whole number from 1 to 200")):
        LISTS[name](app, limit)


def test_a_page_can_be_gone_through_and_has_a_length_of_its_own(app, tasks):
    made = app.enqueue_many([tasks["good"].job() for _ in range(3)])
    page = app.jobs.list(limit=2)
    assert [job.id for job in page] == [made[2].id, made[1].id]
    assert len(page) == 2  # later pages are asked for with its cursor
    assert [job.id for job in app.jobs.list(cursor=page.cursor)] == [made[0].id]
    assert list(app.schedules.list()) == list(app.tenants.list()) == []
    assert [change.subject for change in app.changes()] == []


def test_what_makes_no_sense_in_a_list_is_told(app):
    with pytest.raises(BadOption, match=r"no job is ever 'done'; states are .*succeeded"):
        app.jobs.list(state="done")
    with pytest.raises(BadOption, match="cursor 'junk'"):
        app.jobs.list(cursor="junk")
    with pytest.raises(NaiveDatetime, match="has no timezone"):
        app.jobs.list(since=datetime(2026, 1, 1))


def test_every_move_is_a_line_of_the_history(app, tasks, caplog):
    job, later = tasks["bad"].enqueue(), tasks["bad"].using(delay="1h").enqueue()
    for one in (job, later):
        app.jobs.cancel(one.id, reason="not today")
        app.jobs.retry(one.id, reason="after all")
    work(app)
    del caplog
    assert [line.state for line in app.jobs.history(later.id)] == ["scheduled", "cancelled", "scheduled"]
    lines = app.jobs.history(job.id)
    assert [line.state for line in lines] == ["queued", "cancelled", "queued", "running", "failed"]
    assert [line.reason for line in lines[1:3]] == ["not today", "after all"]
    assert "ValueError: no stamp" in f"{lines[-1].reason}{lines[-1].data}"
    assert [line.at for line in lines] == sorted(line.at for line in lines)
    assert all(line.at.utcoffset() == timedelta() for line in lines)


def test_a_running_line_names_its_worker(app):
    seen = []

    @app.task
    def look() -> None:
        seen.append(app.jobs.history(current_job.id))

    job = look.enqueue()
    with app.running(scheduler=False) as node:
        job.result("10s")
        worker = node.id
    (running,) = [line for line in app.jobs.history(job.id) if line.state == "running"]
    assert worker in f"{running.reason}{running.data}"


def test_logs_can_be_read_from_a_line_on_and_between_two_instants(app, clock):
    @app.task
    def talk() -> None:
        for number in range(3):
            print("line", number)  # noqa: T201
            clock.skip(1)

    job = talk.enqueue()
    work(app)
    lines = app.jobs.logs(job.id)
    assert [(line.level, line.text) for line in lines] == [("info", f"line {number}") for number in range(3)]
    assert app.jobs.logs(job.id, after=lines[0].number) == lines[1:]
    assert app.jobs.logs(job.id, limit=2) == lines[:2]
    assert app.jobs.logs(job.id, start=lines[0].at, end=lines[-1].at + timedelta(microseconds=1)) == lines
    assert app.jobs.logs(job.id, end=lines[0].at) == []
    assert app.jobs.logs("nothing") == []
    with pytest.raises(NaiveDatetime):
        app.jobs.logs(job.id, start=datetime(2026, 1, 1))


def test_a_waiting_job_is_cancelled_at_once(app, tasks):
    for job in (tasks["good"].enqueue(), tasks["good"].using(delay="1h").enqueue()):
        cancelled = app.jobs.cancel(job.id, reason="not needed")
        assert (cancelled.state, cancelled.record.cancel_reason) == ("cancelled", "not needed")
    work(app)
    assert {job.state for job in app.jobs.list().items} == {"cancelled"}


def test_a_running_job_is_asked_to_stop(app):
    begun = threading.Event()

    @app.task
    def hold() -> None:
        begun.set()
        waited = threading.Event()
        while not current_job.cancelled:
            waited.wait(0.01)
        current_job.check()

    job = hold.enqueue()
    with app.running(scheduler=False):
        assert begun.wait(PATIENCE)
        assert app.jobs.cancel(job.id, reason="enough").state == "running"
        app.jobs.wait(job.id, "10s")
    assert (job.refresh().state, job.record.cancel_reason) == ("cancelled", "enough")


@pytest.mark.parametrize("name", ["good", "bad"])
def test_a_job_that_has_ended_cannot_be_cancelled(app, tasks, name):
    job = tasks[name].enqueue()
    work(app)
    with pytest.raises(Refused, match=rf"job {job.id} has ended already: it is (succeeded|failed)"):
        app.jobs.cancel(job.id)


def test_a_failed_or_cancelled_job_may_be_retried_with_fresh_budgets(app):
    attempts = []

    @app.task(retries=0)
    def fail_once() -> str:
        attempts.append(current_job.attempt)
        if len(attempts) == 1:
            raise ValueError("no stamp")
        return "sent"

    job = fail_once.enqueue()
    work(app)
    assert job.state == "failed"
    again = app.jobs.retry(job.id)
    assert (again, again.state, again.record.failures) == (job, "queued", 0)
    work(app)
    assert job.result("1s") == "sent"


def test_only_a_failed_or_cancelled_job_can_be_retried(app, tasks):
    done, waiting = tasks["good"].enqueue(), tasks["send"].enqueue()
    work(app)
    for job, state in ((done, "succeeded"), (waiting, "queued")):
        with pytest.raises(UnlawfulMove, match=f"a {state} job cannot be retried"):
            app.jobs.retry(job.id)
        assert job.refresh().state == state


def test_a_job_that_has_ended_may_be_deleted_with_its_log(app):
    @app.task
    def talk() -> None:
        print("hello")  # noqa: T201

    job = talk.enqueue()
    work(app)
    assert len(app.jobs.logs(job.id)) == 1
    app.jobs.delete(job.id)
    assert app.jobs.logs(job.id) == []
    with pytest.raises(JobNotFound):
        app.jobs.get(job.id)
    with pytest.raises(JobNotFound):
        app.jobs.delete(job.id)


def test_a_live_job_is_not_deleted(app, tasks):
    job = tasks["good"].enqueue()
    with pytest.raises(Refused, match=f"job {job.id} is queued; cancel it first"):
        app.jobs.delete(job.id)
    assert job.refresh().state == "queued"


def test_a_cancelled_job_may_be_deleted(app, tasks):
    job = tasks["good"].enqueue()
    app.jobs.cancel(job.id)
    app.jobs.delete(job.id)
    assert app.jobs.list().items == []


def test_a_handle_shows_what_it_read_until_it_is_refreshed(app, tasks):
    job = tasks["good"].enqueue()
    assert job.state == "queued"
    work(app)
    assert job.state == "queued"
    assert job.refresh().state == "succeeded"
    assert job.started_at <= job.finished_at
    assert (job.attempts, job.occurrence) == (1, None)


def test_a_job_whose_arguments_cannot_be_read_is_parked_with_the_reason(app, tasks):

    app.open().add_jobs([NewJob(id="odd", task="shop.good", payload=b"{not json")])
    work(app)
    job = app.jobs.get("odd")
    assert job.state == "failed"
    assert "cannot be read" in job.error
    assert tasks["good"].enqueue().state == "queued"


def test_walking_asks_for_every_page_of_a_list_once(app, tasks):
    jobs = [tasks["good"].using(delay="1h").enqueue() for _ in range(5)]
    assert [job.id for job in walk(app.jobs.list, limit=2)] == [job.id for job in reversed(jobs)]
    assert [job.id for job in walk(app.jobs.list, state="scheduled", limit=5)] == [job.id for job in reversed(jobs)]
    assert list(walk(app.jobs.list, state="failed")) == []


def test_queues_tell_instants_as_datetimes(app, tasks):
    tasks["good"].enqueue()
    (queue,) = app.queues.list()
    assert (queue.name, queue.counts["queued"], queue.oldest_at.tzinfo) == ("default", 1, UTC)
    assert app.queues.get("default") == queue
