"""A schedule whose stored rule cannot be evaluated: it is shown, explained and mended, whatever is done with it."""

from __future__ import annotations

import msgspec
import pytest

from app.steps import fire
from rota import cron, every
from rota.model.schedules.edit import Edit
from rota.model.schedules.schedule import problem_of

BROKEN = {
    "zone": {"tz": "Mars/Olympus"},
    "field": {"trigger": "cron 61 * * * *"},
    "kind": {"trigger": "lunar 3"},
    "zone of its rule": {"trigger": "cron 0 9 * * * tz=Mars/Olympus"},
}


@pytest.fixture(params=BROKEN.values(), ids=BROKEN)
def spoil(request):
    """Store a schedule as another version, or a hand, may have left it."""

    def spoil(app, name: str = "soon", **fields):
        store = app.open()
        (known,) = store.get_schedules([name])
        spec = msgspec.structs.replace(known.spec, **request.param)
        after = msgspec.structs.replace(known, spec=spec, version=known.version + 1, **fields)
        assert store.edit_schedules([Edit(after=after, expect_version=known.version)]) == []

    return spoil


@pytest.fixture
def tick(app):
    @app.task(name="shop.tick")
    def tick() -> None: ...

    return tick


@pytest.fixture(params=["unnoticed", "stopped"])
def broken(request, app, tick, clock, spoil):
    app.schedules.put("soon", tick.job(), cron("*/5 * * * *"), lookahead="1h")
    fire(app)
    spoil(app)
    if request.param == "stopped":
        clock.skip(7200)
        fire(app)
        assert app.schedules.get("soon").problem
    return clock


def test_it_is_listed_and_explained(app, broken):
    (view,) = app.schedules.list().items
    assert problem_of(view.record)
    assert "cannot be evaluated" in view.explain()
    assert view.next_run is None
    assert app.schedules.next_runs("soon") == []
    assert app.schedules.why("soon").outcome == "broken"
    assert app.schedules.why("soon", broken.now).outcome == "broken"


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("verb", ["pause", "disable", "remove"])
def test_it_can_be_stopped(app, verb):
    getattr(app.schedules, verb)("soon")
    if verb != "remove":
        assert app.schedules.why("soon").outcome == "broken"


@pytest.mark.usefixtures("broken")
def test_it_can_be_stopped_and_switched_on_again(app):
    app.schedules.disable("soon")
    assert app.schedules.enable("soon").is_enabled
    app.schedules.pause("soon")
    assert not app.schedules.resume("soon").is_paused


def test_new_times_mend_it_and_it_goes_on_from_then(app, tick, broken):
    view = app.schedules.put("soon", tick.job(), every("10s"))
    assert (view.problem, view.next_run is not None) == (None, True)
    broken.skip(10)
    fire(app)
    assert app.schedules.why("soon", broken.now).outcome.startswith("waiting")
