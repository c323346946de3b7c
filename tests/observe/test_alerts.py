"""Each example alert is evaluated against real scrapes: quiet while all is well, and heard when its trouble comes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from observe.promql import Query, Sample
from observe.scraping import scrape
from rota import every
from rota.store.contract import Node

FILE = Path(__file__).parents[2] / "examples" / "monitoring" / "rota_alerts.yml"
RULES = {rule["alert"]: rule["expr"] for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]}
UP = [
    Sample("up", {"job": "rota-store", "instance": "a"}, 1.0),
    Sample("up", {"job": "rota-workers", "instance": "b"}, 1.0),
]
DOWN = [sample._replace(value=0.0) for sample in UP]


def samples_of(app) -> list[Sample]:
    return [Sample(one.name, dict(one.labels), one.value) for one in scrape(app).samples]


def firing(before: list[Sample], now: list[Sample], time: float, up=UP) -> set[str]:
    return {name for name, text in RULES.items() if Query(text, [*before, *up], [*now, *up], time).run()}


@pytest.fixture
def well(stage):
    """An app at work: a worker and a scheduler that beat, and a schedule whose run has succeeded."""
    app = stage.app
    assert app.metrics.text()

    @app.task(name="t.tick", retries=0)
    def tick(fails: bool = False) -> None:  # noqa: FBT001, FBT002
        if fails:
            raise ValueError("no")

    app.schedules.put("soon", tick.job(), every("10s"))
    app.schedules.put("bad", tick.job(fails=True), every("1h"))
    stage.still.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker", "scheduler"), queues=("default",)))
    stage.scheduler, stage.worker = stage.a_scheduler(), stage.a_worker()
    return stage


def run(stage, seconds: int) -> None:
    stage.skip(seconds)
    stage.still.record_heartbeat(Node(id="n", host="h", pid=1, roles=("worker", "scheduler"), queues=("default",)))
    stage.scheduler.turn()
    stage.work_off(stage.worker)


def heard(stage, before: list[Sample], **options) -> set[str]:
    return firing(before, samples_of(stage.app), stage.still.now() / 1e6, **options)


def test_nothing_is_heard_while_all_is_well(well):
    before = samples_of(well.app)
    run(well, 10)
    assert heard(well, before) == set()


def test_the_first_failure_of_a_process_is_heard(well):
    """By its counter, which began at zero; and by what the store keeps, where a worker's own numbers have no zero."""
    before = samples_of(well.app)
    run(well, 3600)
    assert heard(well, before) == {"RotaScheduleFails"}
    without = [one for one in before if one.name != "scheduler_runs_total"]
    assert heard(well, without) == {"RotaScheduleFails"}


def test_a_failure_that_a_success_follows_before_the_next_scrape_is_heard_too(well):
    before = samples_of(well.app)
    run(well, 3600)
    now = [one if one.name != "rota_schedule_failing" else one._replace(value=0.0) for one in samples_of(well.app)]
    assert "RotaScheduleFails" in firing(before, now, well.still.now() / 1e6)


def test_the_end_of_the_only_scheduler_is_heard_though_nobody_can_be_scraped(well):
    before = samples_of(well.app)
    silent = firing(before, [], well.still.now() / 1e6, up=DOWN)
    assert silent == {"RotaTargetDown", "RotaStoreDown", "RotaNoScheduler", "RotaNoWorker"}
    assert firing(before, [], 0.0, up=[]) >= {"RotaTargetDown", "RotaNoScheduler"}  # it is not even configured


def test_a_scheduler_that_fell_silent_is_heard_by_a_node_that_lives(well):
    before = samples_of(well.app)
    well.skip(60)
    found = heard(well, before)
    assert {"RotaNoScheduler", "RotaNoWorker"} <= found
    assert "RotaTargetDown" not in found


def test_a_store_that_does_not_answer_is_heard(well):
    before = samples_of(well.app)
    down = [one for one in before if one.name.startswith("rota_l")] + [Sample("rota_store_up", {}, 0.0)]
    assert "RotaStoreDown" in firing(before, down, 0.0)


DOCTORED = {
    "RotaQueueWaits": ("rota_queue_oldest_age_seconds", {"queue": "default"}, 301),
    "RotaJobsFail": ("rota_jobs_ended_total", {"queue": "default", "state": "failed"}, 50),
    "RotaScheduleOverdue": ("scheduler_next_run_timestamp", {"schedule_id": "soon"}, 1),
    "RotaSchedulesBroken": ("rota_schedules", {"state": "broken"}, 1),
    "RotaRunsLate": ("rota_schedule_lateness_seconds_bucket", {"queue": "default", "le": "300.0"}, 40),
    "RotaLeasesLost": ("rota_lease_losses_total", {}, 1),
    "RotaWorkersDie": ("rota_jobs_rescued_total", {}, 4),
    "RotaLoopStuck": ("rota_loop_healthy", {"service": "worker"}, 0),
    "RotaSlotsStuck": ("rota_worker_slots_stuck", {}, 1),
}


@pytest.mark.parametrize("alert", DOCTORED)
def test_each_other_alert_is_heard_when_its_number_says_so(well, alert):
    name, labels, value = DOCTORED[alert]
    run(well, 10)
    before = samples_of(well.app)
    others = [one for one in before if (one.name, one.labels) != (name, labels)]
    now = [*others, Sample(name, labels, float(value))]
    assert firing(before, now, well.still.now() / 1e6) == {alert}


def test_every_alert_has_a_test():
    tested = {"RotaStoreDown", "RotaNoScheduler", "RotaNoWorker", "RotaScheduleFails", "RotaTargetDown", *DOCTORED}
    assert tested == set(RULES)


def test_counters_of_known_words_begin_at_zero(well):
    seen = scrape(well.app)
    for reason in ("overlap", "paused", "catch-up", "coalesced", "disabled"):
        assert seen.has("rota_schedule_skipped_total", reason=reason)
    for status in ("succeeded", "failed", "cancelled", "skipped"):
        assert seen.has("scheduler_runs_total", schedule_id="soon", status=status)
    assert seen.has("scheduler_lock_failures_total", schedule_id="soon")
    with well.app.running() as node:
        seen = scrape(well.app)
        for service in node.services:
            assert seen.has("rota_store_outages_total", service=service.name)
            assert seen.has("rota_service_failures_total", service=service.name)
        assert seen.has("rota_job_attempts_total", task="t.tick", outcome="failed")
