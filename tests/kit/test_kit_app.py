"""A kit borrows an app: it gives it back as it was, and takes none that is in use."""

from __future__ import annotations

import pytest

from rota import App, Refused, every
from rota.app import internals
from rota.testing import Kit, ManualClock
from rota.testing.kit_store import KitStore


def test_the_app_works_normally_afterwards(app, clock, tmp_path):
    @app.schedule(every("1h"), id="hourly")
    def hourly() -> int:
        return 7

    with Kit(app, clock) as kit:
        hourly.enqueue()
        assert len(kit.run_due()) == 1
        assert app.open().describe() == "memory (a test's)"
    assert list(tmp_path.iterdir()) == []
    with app.running():
        job = hourly.enqueue()
        assert job.result(timeout="10s") == 7
        assert app.jobs.list().items == [job]
    assert app.open().features.kind == "sqlite"
    app.close()


@pytest.mark.parametrize("given", [None, "memory://", "a store"])
def test_the_app_has_its_own_store_back_also_after_an_error(given, clock, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = KitStore(clock) if given == "a store" else given
    app = App(own)
    kind = type(internals(app).store.find())
    with pytest.raises(ZeroDivisionError), Kit(app, clock):
        raise ZeroDivisionError
    assert type(internals(app).store.find()) is kind
    if given == "a store":
        assert internals(app).store.find() is own


def test_kits_one_after_another_know_nothing_of_each_other(app):
    @app.schedule(every("1h"), id="hourly")
    def hourly() -> None: ...

    for year in ("2026", "2025"):  # the second starts earlier than the first
        with Kit(app, ManualClock(f"{year}-01-01T00:00:00Z")) as kit:
            assert kit.jobs == []
            kit.travel("3h")
            assert [at.hour for at in kit.fired("hourly")] == [1, 2, 3]


def test_an_app_whose_store_is_open_is_refused(app, clock):
    internals(app).store.use("memory://")
    app.open()
    with pytest.raises(Refused, match=r"store open already \(memory .*Call app\.close\(\) first"), Kit(app, clock):
        pass
    app.close()
    with Kit(app, clock), pytest.raises(Refused, match="store open already"), Kit(app, clock):
        pass
    assert internals(app).store.find().features.kind == "memory"


def test_schedules_put_at_run_time_fire_too(app, clock):
    @app.task
    def task() -> None: ...

    with Kit(app, clock) as kit:
        app.schedules.put("mine", task.job(), every("1h"))
        kit.travel("2h")
        assert len(kit.fired("mine")) == 2
        app.schedules.pause("mine")
        kit.travel("2h")
        assert len(kit.fired("mine")) == 2


def test_jobs_of_every_queue_run_unless_it_is_paused(app, clock):
    @app.task
    def task() -> None: ...

    with Kit(app, clock) as kit:
        task.using(queue="a").enqueue()
        task.using(queue="b", delay="1m").enqueue()
        app.open().pause_queue("b", paused=True)
        assert [job.queue for job in kit.travel("1h")] == ["a"]
        app.open().pause_queue("b", paused=False)
        assert [job.queue for job in kit.run_due()] == ["b"]
