"""Bad input: each slip is a clear error of its own, told before anything is stored."""

from __future__ import annotations

import inspect
import math
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from app.steps import work
from rota import (
    App,
    BadCron,
    BadDuration,
    BadName,
    BadOption,
    BadPayload,
    BadStoreUrl,
    BadTrigger,
    NaiveDatetime,
    Retry,
    RotaError,
    Snooze,
    UnknownTask,
    UnknownZone,
    backoff,
    calendar,
    cron,
    every,
    once,
)
from rota.app import internals
from rota.errors import PayloadTooLarge
from rota.model.jobs.job import NewJob
from rota.model.option_names import FOR_APP, FOR_REQUEST, FOR_SCHEDULE, FOR_TASK
from rota.operations.specs import ScheduleKeywords
from rota.tasks.task import USING, Task, TaskKeywords

NAIVE = datetime(2026, 1, 1, 12)


@pytest.fixture
def tick(app):
    @app.task(name="shop.tick")
    def tick(value: Any = None) -> None: ...

    yield tick
    assert app.jobs.list().items == []
    assert app.schedules.list().items == []


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


NAIVE_CALLS = {
    "at": lambda _app, tick: tick.using(at=NAIVE).enqueue(),
    "a date as at": lambda _app, tick: tick.using(at=date(2026, 1, 1)).enqueue(),
    "text as at": lambda _app, tick: tick.using(at="2026-01-01").enqueue(),
    "start": lambda app, tick: app.schedules.put("s", tick.job(), every("1h"), start=NAIVE),
    "end": lambda app, tick: app.schedules.put("s", tick.job(), every("1h"), end=NAIVE),
    "until": lambda app, _tick: app.schedules.pause("s", until=NAIVE),
    "since": lambda app, _tick: app.jobs.list(since=NAIVE),
    "before": lambda app, _tick: app.jobs.list(until=NAIVE),
    "log start": lambda app, _tick: app.jobs.logs("x", start=NAIVE),
    "log end": lambda app, _tick: app.jobs.logs("x", end=NAIVE),
    "occurrences": lambda app, _tick: app.schedules.occurrences("s", NAIVE, NAIVE),
    "once": lambda _app, _tick: once(NAIVE),
    "declared": lambda app, tick: app.schedule(every("1h"), start=NAIVE)(tick),
}


@pytest.mark.parametrize("call", NAIVE_CALLS.values(), ids=NAIVE_CALLS)
def test_a_datetime_without_a_zone_is_refused_with_the_fix(app, tick, call):
    with pytest.raises(NaiveDatetime, match=r"(timezone|datetime)"):
        call(app, tick)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "CEST", "", "Europe/paris ", "../etc/passwd", "+02:00", 5])
def test_a_zone_that_nobody_knows_is_refused(app, tick, zone):
    with pytest.raises(UnknownZone, match="timezone"):
        App("memory://", tz=zone)
    with pytest.raises(UnknownZone, match="timezone"):
        app.schedules.put("s", tick.job(), every("1h"), tz=zone)
    with pytest.raises(UnknownZone, match="timezone"):
        app.schedules.put("s", tick.job(), cron("0 0 * * *", tz=zone))


def test_a_zone_that_is_nearly_right_is_answered_with_the_right_one():
    with pytest.raises(UnknownZone, match="did you mean 'Europe/Zurich'"):
        App("memory://", tz="Europe/Zürich")


@pytest.mark.parametrize("expression", ["* * * *", "99 * * * *", "0 0 30 2 *", "every day", "", "0 0 * * * * * *"])
def test_a_bad_cron_is_refused_where_it_is_written(expression):
    with pytest.raises(BadCron):
        cron(expression)


@pytest.mark.parametrize("trigger", ["0 9 * * *", "every 10s", None, 60, timedelta(hours=1), every])
def test_a_trigger_is_a_trigger_and_no_text(app, tick, trigger):
    for put in (
        lambda: app.schedules.put("s", tick.job(), trigger),
        lambda: app.schedules.put_many([("s", tick.job(), trigger)]),
        lambda: app.schedule(trigger)(tick),
    ):
        with pytest.raises(BadTrigger, match=r"is not a trigger; write cron\('0 9 \* \* \*'\), every\('5m'\)"):
            put()


@pytest.mark.parametrize("value", [object(), {1, object()}, lambda: None, 1j, "\ud800", {("a", "b"): 1}, type])
def test_an_argument_that_json_cannot_hold_is_refused_and_names_the_task(tick, value):
    with pytest.raises(BadPayload, match=r"the arguments of shop.tick cannot be kept as JSON"):
        tick.enqueue(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.nan], {"a": {"b": math.inf}}])
def test_a_number_that_json_does_not_have_is_refused_and_never_null(tick, value):
    with pytest.raises(BadPayload, match=r"shop.tick hold (nan|-?inf), which JSON cannot keep"):
        tick.enqueue(value)


def test_meta_must_be_json_too(tick):
    with pytest.raises(BadPayload, match="cannot be kept as JSON"):
        tick.using(meta={"a": object()}).enqueue()
    with pytest.raises(BadPayload, match="JSON cannot keep"):
        tick.using(meta={"a": math.nan}).enqueue()


def test_a_large_argument_is_refused_with_its_size_and_the_way_out(tick):
    with pytest.raises(PayloadTooLarge, match=r"take 300,\d+ bytes; at most 262,144 .*pass its key"):
        tick.enqueue("x" * 300_000)


@pytest.mark.parametrize("depth", [65, 500, 100_000])
def test_a_deep_argument_is_refused(tick, depth):
    with pytest.raises(BadPayload, match=r"(nested deeper than 64 levels|cannot be kept as JSON)"):
        tick.enqueue(nested(depth))


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"c": 1}, "unexpected keyword argument 'c'"),
        ((1,), {"a": 1}, "multiple values for argument 'a'"),
    ],
)
def test_a_call_that_the_function_would_refuse_is_refused_at_once(app, args, kwargs, why):
    @app.task(name="shop.add")
    def add(a: int, b: int = 0) -> int:
        return a + b

    with pytest.raises(BadPayload, match=rf"shop.add\(.*\).*: .*{why}"):
        add.enqueue(*args, **kwargs)
    with pytest.raises(BadPayload, match=why):
        add.job(*args, **kwargs)
    assert app.jobs.list().items == []


@pytest.mark.parametrize("name", ["", "has space", "a.b", "x" * 128, "ünï", None, 5, "a/b"])
def test_a_schedule_id_has_plain_characters(app, tick, name):
    for put in (
        lambda: app.schedules.put(name, tick.job(), every("1h")),
        lambda: app.schedules.put_many([(name, tick.job(), every("1h"))]),
    ):
        with pytest.raises(BadName, match=r"schedule id .*: use 1 to 127 of the characters A-Z a-z 0-9 _ -"):
            put()


@pytest.mark.parametrize("queue", ["", "has space", "x" * 128, 5, "a\nb", "a/b"])
def test_a_queue_has_a_plain_name(app, tick, queue):
    for call in (
        lambda: tick.using(queue=queue),
        lambda: app.task(queue=queue)(lambda: None),
        lambda: app.schedules.put("s", tick.job(), every("1h"), queue=queue),
        lambda: app.start(queues=[queue]),
    ):
        with pytest.raises(BadName, match="queue name"):
            call()


@pytest.mark.parametrize("priority", [101, -101, "urgent", 1.5, True, None, [5]])
def test_a_priority_is_a_small_whole_number_or_one_of_three_names(app, priority):
    with pytest.raises(BadOption, match="must be a whole number from -100 to 100, or low, normal or high"):
        app.task(name="x", priority=priority)(lambda: None)


@pytest.mark.parametrize("key", ["", "x" * 256, 5, "a\x00b", "\ud800"])
def test_a_key_is_short_text(tick, key):
    with pytest.raises(BadName, match=r"key .*: use 1 to 255 characters of text"):
        tick.using(key=key)


@pytest.mark.parametrize("retries", [-1, 1.5, True, "3", 10**9])
def test_retries_are_a_whole_number(app, tick, retries):
    for call in (lambda: tick.using(retries=retries), lambda: app.task(name="x", retries=retries)(lambda: None)):
        with pytest.raises(BadOption, match=r"retries=.* must be a whole number from 0"):
            call()


@pytest.mark.parametrize("option", ["retry_on", "give_up_on"])
@pytest.mark.parametrize("errors", ["KeyError", (1,), None, (ValueError("no"),)])
def test_errors_are_named_by_their_classes(app, option, errors):
    with pytest.raises(BadOption, match=f"{option}=.* must be classes of exceptions"):
        app.task(name="shop.charge", **{option: errors})(print)


def test_one_class_of_errors_needs_no_tuple(app):
    assert app.task(name="shop.charge", give_up_on=KeyError)(print).options.retry.give_up_on == (KeyError,)


@pytest.mark.parametrize("duration", [5, 0.5, "", "5", "soon", "0s", "-5s", "1m1h", timedelta(seconds=-1)])
def test_a_duration_has_a_unit_and_is_positive(app, tick, duration):
    for call in (
        lambda: tick.using(timeout=duration),
        lambda: tick.using(key="k", key_for=duration),
        lambda: app.task(name="x", timeout=duration)(lambda: None),
        lambda: app.task(name="x", backoff=duration)(lambda: None),
        lambda: app.schedules.put("s", tick.job(), every("1h"), grace=duration),
        lambda: app.schedules.put("s", tick.job(), every("1h"), jitter=duration),
        lambda: every(duration),
    ):
        with pytest.raises(BadDuration, match="duration"):
            call()


@pytest.mark.parametrize("span", [5, 0.5, "", "5", "soon", "-5s", "1m1h", "1s500", timedelta(seconds=-1), "1.5us"])
def test_a_span_that_may_be_short_has_a_unit_and_is_not_negative(tick, span):
    for call in (lambda: tick.using(delay=span), lambda: Retry(after=span), lambda: Snooze(after=span)):
        with pytest.raises(BadDuration, match="duration"):
            call()


@pytest.mark.parametrize("timeout", [-1, -0.5, True, "", "5", float("nan"), float("inf")])
def test_a_timeout_for_a_result_is_not_negative_and_text_has_a_unit(app, timeout):
    for call in (lambda: app.jobs.result("any", timeout=timeout), lambda: app.lock("x", wait=timeout)):
        with pytest.raises(BadDuration):
            call()


def test_a_delay_and_an_instant_contradict_each_other(tick):
    with pytest.raises(BadOption, match="give delay= or at=, not both"):
        tick.using(delay="5m", at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True, "4", 10_001])
def test_concurrency_is_a_positive_whole_number(app, concurrency):
    with pytest.raises(BadOption, match=r"concurrency=.* must be a whole number from 1 to 10,000"):
        app.start(concurrency=concurrency)
    app.start(concurrency=1)
    app.stop()


@pytest.mark.parametrize("queues", [[], "default", ()])
def test_a_worker_needs_a_list_of_queues(app, queues):
    with pytest.raises(BadOption, match="must be a list of at least one queue name"):
        app.start(queues=queues)


def test_a_drain_is_a_duration(app):
    with pytest.raises(BadDuration, match="duration 25 has no unit"):
        app.start(drain=25)
    with app.running(drain="1s"):
        pass


def test_an_end_before_the_start_is_refused(app, tick):
    start, end = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(BadOption, match="end lies before its start"):
        app.schedules.put("s", tick.job(), every("1h"), start=start, end=end)


@pytest.mark.parametrize(
    "options", [{"catchup_limit": "many"}, {"max_runs": "3"}, {"max_runs": 2.5}, {"enabled": "no"}]
)
def test_an_option_of_the_wrong_type_is_refused(app, tick, options):
    with pytest.raises(BadOption, match=next(iter(options))):
        app.schedules.put("s", tick.job(), every("1h"), **options)


OPTIONS = {
    "a task": lambda app, _tick, options: app.task(**options)(lambda: None),
    "using()": lambda _app, tick, options: tick.using(**options),
    "a schedule": lambda app, tick, options: app.schedules.put("s", tick.job(), every("1h"), **options),
    "App()": lambda _app, _tick, options: App("memory://", **options),
}


@pytest.mark.parametrize(
    ("what", "name", "advice"),
    [
        ("a task", "retrys", "did you mean retries=?"),
        ("a task", "que", "did you mean queue=?"),
        ("a task", "max_retries", "did you mean retries=?"),
        ("a task", "max_retry", "did you mean retries=?"),
        ("a task", "soft_time_limit", "did you mean timeout=?"),
        ("a task", "rate_limit", "Rota limits how many jobs run at once, not their rate"),
        ("a task", "colour", "options are backoff, description, executor, "),
        ("using()", "countdown", "did you mean delay=?"),
        ("using()", "eta", "did you mean at=?"),
        ("using()", "expires", "a job does not expire: let the task look at the time, or cancel the job"),
        ("using()", "rate_limit", "Rota limits how many jobs run at once, not their rate"),
        ("using()", "priorty", "did you mean priority=?"),
        ("using()", "kwargs", "arguments go to enqueue() or job()"),
        ("a schedule", "overlaps", "did you mean overlap=?"),
        ("a schedule", "cron", "give the trigger first, as in schedule(cron('0 9 * * *')) or schedule(every('5m'))"),
        ("a schedule", "timezone", "did you mean tz=?"),
        ("a schedule", "max_instances", "did you mean overlap=?"),
        ("a schedule", "retries", "that is an option of the task: put @app.task(retries=…) under @app.schedule(…)"),
        ("a schedule", "max_retries", "that is an option of the task: put @app.task(retries=…) under @app.schedule(…)"),
        ("a schedule", "name", "did you mean id=?"),
        ("App()", "broker", "did you mean store=?"),
        ("App()", "timezone", "did you mean tz=?"),
        ("App()", "naem", "did you mean name=?"),
    ],
)
def test_an_option_that_does_not_exist_is_told_with_the_one_that_was_meant(app, tick, what, name, advice):
    with pytest.raises(BadOption, match=re.escape(f"{what} has no option {name!r}; {advice}")):
        OPTIONS[what](app, tick, {name: 3})


def test_every_word_of_another_system_leads_to_an_option_that_exists():
    known = {
        "task": (TaskKeywords.__annotations__, FOR_TASK),
        "request": (inspect.signature(Task.using).parameters, FOR_REQUEST),
        "schedule": ({*ScheduleKeywords.__annotations__, "id"}, FOR_SCHEDULE),
        "app": (inspect.signature(App).parameters, FOR_APP),
    }
    for options, words in known.values():
        assert {meant for meant in words.values() if meant.isidentifier()} <= set(options)
        assert not set(words) & set(options)
    assert set(USING) == set(inspect.signature(Task.using).parameters) - {"self", "unknown"}


def test_a_schedule_needs_a_call(app, tick):
    for given, told in (
        (tick, r"<task shop.tick> is none yet; write shop.tick.job\(…\)"),
        (tick.using(priority=5), r"is none yet; write task.using\(…\).job\(…\)"),
        (every("1h"), r"needs a call such as task.job\(…\), got"),
        (print, r"needs a call such as task.job\(…\), got"),
    ):
        with pytest.raises(BadOption, match=told):
            app.schedules.put("s", given, every("1h"))


def test_an_unknown_task_is_told_with_those_that_are_known(app):
    app.task(name="shop.tick")(lambda: None)
    with pytest.raises(UnknownTask, match=r"no task is named 'nothing'; known are shop.tick"):
        internals(app).registry.get("nothing")


def test_a_job_of_a_task_that_no_worker_knows_waits_and_says_so(app):
    app.open().add_jobs([NewJob(id="odd", task="nobody.knows", payload=b"[]")])
    work(app)
    job = app.jobs.get("odd")
    assert job.state == "scheduled"
    assert app.jobs.history("odd")[-1].reason == "task 'nobody.knows' is unknown to this worker"


@pytest.mark.parametrize(
    "url", ["", "rota.db", "mysql://localhost/x", "sqlite://", "sqlite:///", "sqlite:rota.db", "http://x", 5]
)
def test_a_url_that_names_no_store_is_refused_with_those_that_do(url):
    with pytest.raises(BadStoreUrl, match="sqlite:///"):
        App(url).open()


def test_a_password_is_not_shown():
    with pytest.raises(BadStoreUrl) as caught:
        App("mysql://ann:hunter2@localhost/x").open()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("namespace", ["", "1a", "a-b", "a b", "x; DROP TABLE", "a" * 32])
def test_a_namespace_is_an_identifier(tmp_path, namespace):
    with pytest.raises(BadStoreUrl, match="namespace"):
        App(f"sqlite:///{tmp_path}/rota.db", namespace=namespace).open()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "has space", "ünï", 5])
def test_an_app_has_a_plain_name(name):
    with pytest.raises(BadName, match="app name"):
        App("memory://", name=name)


def test_every_refusal_is_an_error_of_ours_and_of_pythons_kind():
    assert issubclass(BadPayload, TypeError)
    assert issubclass(BadOption, ValueError)
    assert issubclass(BadTrigger, ValueError)
    assert issubclass(UnknownTask, LookupError)
    assert all(issubclass(kind, RotaError) for kind in (BadPayload, BadOption, BadTrigger, UnknownTask))


@pytest.mark.parametrize("build", [lambda: calendar(months=0), calendar, lambda: backoff("0s")])
def test_a_rule_without_sense_is_refused_where_it_is_written(build):
    with pytest.raises(RotaError):
        build()


VERBS = {
    "app.start()": (lambda app: app.start, "workers", "concurrency"),
    "app.changes()": (lambda app: app.changes, "untill", "until"),
    "app.lock()": (lambda app: app.lock, "tll", "ttl"),
    "app.jobs.list()": (lambda app: app.jobs.list, "status", "state"),
    "app.jobs.cancel()": (lambda app: app.jobs.cancel, "reson", "reason"),
    "app.schedules.pause()": (lambda app: app.schedules.pause, "reson", "reason"),
    "app.tenants.put()": (lambda app: app.tenants.put, "timezone", "tz"),
    "app.queues.pause()": (lambda app: app.queues.pause, "user", "by"),
    "app.tokens.create()": (lambda app: app.tokens.create, "expires", "ttl"),
    "app.sources.tasks()": (lambda app: app.sources.tasks, "page_size", "limit"),
    "calendar()": (lambda _app: calendar, "month", "months"),
    "every()": (lambda _app: every, "start_date", "start"),
    "cron()": (lambda _app: cron, "timezone", "tz"),
    "once()": (lambda _app: once, "zone", "tz"),
}


@pytest.mark.parametrize("what", VERBS)
def test_a_misspelt_keyword_of_a_verb_is_told_with_the_one_that_was_meant(app, what):
    find, name, meant = VERBS[what]
    with pytest.raises(BadOption, match=re.escape(f"{what} has no option {name!r}; did you mean {meant}=?")):
        find(app)(**{name: "x"})


def test_every_verb_with_keywords_refuses_a_misspelt_one(app):
    parts = [app, app.jobs, app.schedules, app.tenants, app.queues, app.tokens, app.sources]
    verbs = [
        verb
        for part in parts
        for name, verb in inspect.getmembers(part, inspect.ismethod)
        if not name.startswith("_")
        and any(one.kind is one.KEYWORD_ONLY for one in inspect.signature(verb).parameters.values())
        and not any(one.kind is one.VAR_KEYWORD for one in inspect.signature(verb).parameters.values())
    ]
    assert len(verbs) > 30
    for verb in verbs:
        with pytest.raises(BadOption, match="has no option 'colour'"):
            verb(colour="red")


def test_an_interval_by_keywords_is_told_how_it_is_written():
    with pytest.raises(BadOption, match=re.escape("write the span as text, as in every('90s')")):
        every(minutes=5)
