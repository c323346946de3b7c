"""Plain type hints are checked at enqueue and on return: in the kit and `rota dev`, or always, or never."""

# ruff: noqa: ARG001, FBT003 - the parameters are there to be checked, and so are the values
from __future__ import annotations

import pytest

from executors import deeds
from executors.bench import Bench
from rota import App, BadPayload, Middleware
from rota.app import internals
from rota.model.jobs.outcome import Failed
from rota.testing import Kit


@pytest.fixture
def app(monkeypatch, request):
    monkeypatch.setenv("ROTA_CHECK_TYPES", getattr(request, "param", "always"))
    app = App("memory://")
    yield app
    app.close()


def charge_of(app):
    @app.task(name="charge", retries=2)
    def charge(cents: int, note: str | None = None, rate: float = 1.0, *tags: str, **more: bool) -> int:
        return note if note is not None else cents

    return charge


def test_values_that_fit_are_taken(app):
    charge = charge_of(app)
    charge.enqueue(3)
    charge.enqueue(True, "x", 2, "a", "b", last=False)
    charge.enqueue(3, None, 1.5)
    assert len(app.jobs.list().items) == 3


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (("3",), {}, "argument 'cents' of charge must be int, got str"),
        ((3, 4), {}, "argument 'note' of charge must be str or None, got int"),
        ((3, "x", "1"), {}, "argument 'rate' of charge must be float, got str"),
        ((3, "x", 1, 5), {}, "argument 'tags' of charge must be str, got int"),
        ((3,), {"last": 1}, "argument 'more' of charge must be bool, got int"),
    ],
)
def test_a_value_of_another_type_is_refused_and_nothing_is_stored(app, args, kwargs, words):
    charge = charge_of(app)
    with pytest.raises(BadPayload, match=words):
        charge.enqueue(*args, **kwargs)
    assert app.jobs.list().items == []


class Passes(Middleware):
    pass


@pytest.mark.parametrize("app", ["dev"], indirect=True)
@pytest.mark.parametrize("has_middleware", [False, True])
def test_the_kit_checks_results_and_arguments(app, has_middleware):
    charge = charge_of(app)
    if has_middleware:
        app.use(Passes())
    charge.enqueue("3")  # outside of the kit, nothing is checked by default
    app.close()
    with Kit(app) as kit:
        with pytest.raises(BadPayload):
            charge.enqueue("3")
        job = charge.enqueue(3, "x")
        kit.travel("1h")
        assert job.refresh().error.startswith("BadResult: charge returned str, and its return hint says int")
    assert not internals(app).checks_types


@pytest.mark.parametrize("app", ["never"], indirect=True)
def test_never_means_the_kit_too(app):
    charge = charge_of(app)
    with Kit(app) as kit:
        job = charge.enqueue("3")
        kit.run_due()
        assert job.refresh().state == "succeeded"


def test_a_process_checks_what_its_worker_checks(monkeypatch):
    monkeypatch.setitem(vars(deeds.add.sender), "checks_types", False)
    request = deeds.add.job("2", "2")
    monkeypatch.setitem(vars(deeds.add.sender), "checks_types", True)
    bench = Bench(1)
    try:
        outcome = bench.do(request)
    finally:
        bench.stop()
    assert isinstance(outcome, Failed)
    assert "returned str, and its return hint says int" in outcome.error
