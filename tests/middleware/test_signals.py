"""What middleware shares with tasks: signals, the current job, the kit, and processes that must have it too."""

from __future__ import annotations

from executors import deeds
from executors.bench import Bench
from rota import Cancel, Middleware, Snooze, current_job
from rota.model.jobs.outcome import Failed
from rota.testing import Kit


class Signals(Middleware):
    def run(self, job, call_next):
        assert current_job.id == job.id
        if job.meta.get("signal") == "cancel":
            raise Cancel("not for this tenant")
        if job.meta.get("signal") == "snooze" and job.attempt == 1:
            raise Snooze("10m")
        return call_next(job)


def test_it_may_cancel_and_snooze(app):
    app.use(Signals())

    @app.task
    def work() -> int:
        return 7

    with Kit(app) as kit:
        cancelled = work.using(meta={"signal": "cancel"}).enqueue()
        snoozed = work.using(meta={"signal": "snooze"}).enqueue()
        kit.run_due()
        assert cancelled.refresh().state == "cancelled"
        assert snoozed.refresh().state == "scheduled"
        kit.travel("10m")
        assert snoozed.result() == 7


def test_a_process_whose_app_lacks_it_says_so_instead_of_running_the_task_without_it(monkeypatch):
    """As when app.use() is called in a module that the process does not load."""
    monkeypatch.setattr(deeds.add, "middleware", [Signals()])
    bench = Bench(1)
    try:
        outcome = bench.do(deeds.add.job(2, 2))
    finally:
        bench.stop()
    assert isinstance(outcome, Failed)
    assert "whose app has other middleware (none) than the worker's (Signals)" in outcome.error
    assert not outcome.may_retry
