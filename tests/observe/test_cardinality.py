"""However many queues, tasks and schedules there are, a scrape stays bounded, and nothing is lost from its sums."""

from __future__ import annotations

import re

import pytest

from observe.scraping import scrape
from rota import App, every
from rota.model.schedules.firing import plan
from rota.observe import census
from rota.observe.numbers import MOST_QUEUES, MOST_SCHEDULES, MOST_TASKS, Counts, FirstIds, Histograms

LABELS = {"queue", "task", "state", "reason", "role", "service", "outcome", "status", "schedule_id", "le", "version"}


@pytest.fixture
def app():
    app = App("memory://")
    assert app.metrics.text()
    yield app
    app.close()


def put_schedules(app, task, number: int) -> None:
    ids = [f"s{place:05d}" for place in range(number)]
    for start in range(0, number, 500):
        app.schedules.put_many([(name, task.job(), every("1h")) for name in ids[start : start + 500]])


def test_queues_beyond_the_bound_are_one(app):
    tasks = [app.task(name=f"t{place}", queue=f"q{place:03d}")(lambda: None) for place in range(MOST_QUEUES + 20)]
    app.enqueue_many([task.job() for task in tasks])
    seen = scrape(app)
    assert len(seen.labels("rota_queue_jobs", "queue")) == MOST_QUEUES + 1
    assert seen.value("rota_queue_jobs", queue="other", state="queued") == 20
    assert seen.value("rota_queue_jobs", queue="q099", state="queued") == 1


def test_tasks_beyond_the_bound_are_one(app):
    tasks = [app.task(name=f"t{place:03d}")(lambda: None) for place in range(MOST_TASKS + 30)]
    app.enqueue_many([task.job() for task in reversed(tasks)])  # so that not the first by name are counted
    with app.running(scheduler=False) as node:
        assert node.worker.is_idle.wait(10)
        seen = scrape(app)
    for name in ("rota_job_attempts_total", "rota_job_run_seconds_count"):
        assert len(seen.labels(name, "task")) == MOST_TASKS + 1
        assert sum(sample.value for sample in seen.samples if sample.name == name) == MOST_TASKS + 30
    assert seen.value("rota_job_run_seconds_count", task="other") == 30


def test_the_first_thousand_schedules_by_id_have_their_own_numbers(app):
    task = app.task(name="t")(lambda: None)
    put_schedules(app, task, MOST_SCHEDULES + 50)
    seen = scrape(app)
    shown = seen.labels("scheduler_next_run_timestamp", "schedule_id")
    assert len(shown) == MOST_SCHEDULES + 1
    assert "s00999" in shown
    assert "s01000" not in shown
    assert "other" in shown
    assert seen.value("rota_schedules", state="on") == MOST_SCHEDULES + 50
    for name in ("s00999", "s01000", "s01049"):
        app.schedules.run_now(name)
    with app.running(scheduler=False) as node:
        assert node.worker.is_idle.wait(10)
    seen = scrape(app)
    assert seen.value("scheduler_runs_total", schedule_id="s00999", status="succeeded") == 1
    assert seen.value("scheduler_runs_total", schedule_id="other", status="succeeded") == 2
    assert seen.value("scheduler_run_duration_seconds_count", schedule_id="other") == 2
    assert len(seen.labels("rota_schedule_failing", "schedule_id")) == MOST_SCHEDULES + 1
    assert len(seen.labels("scheduler_runs_total", "schedule_id")) == MOST_SCHEDULES + 1


def test_of_the_other_schedules_the_newest_last_run_and_the_earliest_next_one_are_told(app):
    task = app.task(name="t")(lambda: None)
    put_schedules(app, task, MOST_SCHEDULES + 3)
    store = app.open()
    lasts = {}
    for number, name in enumerate(("s01000", "s01001")):
        (known,) = store.get_schedules([name])
        at = known.next_at + number * 3_600_000_000
        firing = plan(known, at, lambda name=name: f"job-{name}")
        assert store.fire([firing], now=at)[0].jobs
        lasts[name] = at / 1e6
    seen = scrape(app)
    assert seen.value("scheduler_last_run_timestamp", schedule_id="other") == max(lasts.values())
    nexts = [one.next_at for one in store.get_schedules(["s01000", "s01001", "s01002"])]
    assert seen.value("scheduler_next_run_timestamp", schedule_id="other") == min(nexts) / 1e6


def test_no_more_schedules_are_read_than_a_bound_and_that_is_told(app, monkeypatch):
    monkeypatch.setattr(census, "MOST_READ", 30)
    task = app.task(name="t")(lambda: None)
    put_schedules(app, task, 30)
    assert scrape(app).value("rota_schedules_truncated") == 0
    put_schedules(app, task, 31)
    seen = scrape(app)
    assert seen.value("rota_schedules_truncated") == 1
    assert seen.value("rota_schedules", state="on") == 30


def test_schedules_are_not_read_at_every_scrape(app, monkeypatch):
    monkeypatch.setattr(census, "LEAST_AGE", 3600.0)
    task = app.task(name="t")(lambda: None)
    put_schedules(app, task, 1)
    before = scrape(app).value("rota_schedules", state="on")
    put_schedules(app, task, 2)
    assert scrape(app).value("rota_schedules", state="on") == before == 1


def test_labels_are_of_a_closed_set_and_no_value_is_an_id_or_an_argument(app):
    @app.task(name="t")
    def secret(word: str) -> str:
        return word

    job = secret.enqueue("canary-argument")
    with app.running():
        job.result(timeout="10s")
        text = app.metrics.text()
        seen = scrape(app)
    assert {label for sample in seen.samples for label in sample.labels} <= LABELS
    assert b"canary-argument" not in text
    assert job.id.encode() not in text
    assert not re.search(rb'="[^"]*[0-9a-f]{12,}', text), "no id of a node either"


def test_a_name_beyond_the_bound_stays_other():
    counts = Counts(2)
    for name in ("a", "b", "c", "a", "c", "d"):
        counts.add(name, "x")
    assert dict(counts.items()) == {("a", "x"): 2, ("b", "x"): 1, ("other", "x"): 3}


def test_known_names_are_zero_as_long_as_there_is_room():
    counts, names = Counts(3), ["a", "b", "c", "d"]
    assert dict(counts.items(names)) == {("a", ""): 0, ("b", ""): 0, ("c", ""): 0}
    counts.add("d")
    assert dict(counts.items(names)) == {("a", ""): 0, ("b", ""): 0, ("d", ""): 1}
    for name in ("c", "b", "a", "a"):
        counts.add(name)
    assert dict(counts.items(names)) == {("b", ""): 1, ("c", ""): 1, ("d", ""): 1, ("other", ""): 2}


def test_who_is_not_accepted_is_other_in_histograms_too():
    first = FirstIds()
    first.last = "b"
    observed = Histograms((1.0, 2.0), 10, first)
    for name, seconds in (("a", 1.0), ("c", 5.0), ("d", 1.5)):
        observed.observe(name, seconds)
    assert {name: (cell.counts, cell.total) for name, cell in observed.items()} == {
        "a": ([1, 0, 0], 1.0),
        "other": ([0, 1, 1], 6.5),
    }
