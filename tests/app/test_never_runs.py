"""What could never run is refused where somebody makes it now, and told where it stands in code."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from rota import App, calendar, cron, every, once
from rota.app import internals
from rota.errors import BadOption
from rota.testing import Kit, ManualClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def ping() -> None: ...


@pytest.fixture
def app():
    app = App("memory://")
    app.task(name="ping")(ping)
    with Kit(app, ManualClock(NOON)):
        yield app


NEVER = [
    (once(PAST), {}, "have no run after now"),
    (every("1h"), {"end": PAST}, "its end, 2020-01-01T00:00:00+00:00, has passed"),
    (cron("0 9 * * *", tz="UTC"), {"end": PAST.date()}, "has passed"),
    (calendar(years=1, start=PAST.date(), end=datetime(2021, 6, 1, tzinfo=UTC)), {}, "have no run after now"),
    (cron("0 0 1 6 *"), {"end": NOON + timedelta(days=30)}, "have no run after now within its start and end"),
]


@pytest.mark.parametrize(("trigger", "options", "why"), NEVER)
def test_a_new_schedule_that_can_never_run_is_refused(app, trigger, options, why):
    with pytest.raises(BadOption, match="schedule 'it' would never run") as refusal:
        app.schedules.put("it", internals(app).registry.get("ping").job(), trigger, **options)
    assert why in str(refusal.value)
    assert app.schedules.list().items == []


@pytest.mark.parametrize("until", [PAST, NOON])
def test_a_pause_that_is_over_is_refused(app, until):
    app.schedules.put("it", internals(app).registry.get("ping").job(), every("1h"))
    app.tenants.put("acme", tz="UTC")
    with pytest.raises(BadOption, match="has passed, so the pause would stop nothing"):
        app.schedules.pause("it", until=until)
    with pytest.raises(BadOption, match="has passed, so the pause would stop nothing"):
        app.tenants.pause("acme", until=until)
    assert not app.schedules.get("it").is_paused


def test_a_schedule_that_exists_may_be_brought_to_its_end(app):
    app.schedules.put("it", internals(app).registry.get("ping").job(), every("1h"))
    assert app.schedules.put("it", internals(app).registry.get("ping").job(), every("1h"), end=PAST).next_run is None


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"catchup": "none"}, "catchup='none' must be one of latest, skip, all; did you mean 'skip'?"),
        ({"catchup": "lastest"}, "catchup='lastest' must be one of latest, skip, all; did you mean 'latest'?"),
        ({"overlap": "skp"}, "overlap='skp' must be one of skip, allow, queue, cancel; did you mean 'skip'?"),
        ({"overlap": 3}, "overlap=3 must be one of skip, allow, queue, cancel"),
    ],
)
def test_a_policy_that_there_is_not_is_refused_with_its_value(app, options, meant):
    with pytest.raises(BadOption) as refusal:
        app.schedules.put("it", internals(app).registry.get("ping").job(), every("1h"), **options)
    assert str(refusal.value) == meant


def test_in_code_it_is_a_warning_at_each_start(caplog):
    app = App("memory://")
    app.schedule(once(PAST), id="over")(ping)
    with caplog.at_level(logging.WARNING, logger="rota.app"), Kit(app, ManualClock(NOON)):
        assert app.schedules.get("over").next_run is None
    assert "schedule over has no run ahead: its times (Once, on 2020-01-01" in caplog.text
