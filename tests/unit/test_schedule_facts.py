"""What the command line and HTTP say of a schedule, a tenant and a change: the same, wherever both say it."""

from __future__ import annotations

import msgspec
import pytest

from rota import App
from rota.cli.change_list import facts_of_change
from rota.cli.schedule_page import ShownSchedule, facts_of, page
from rota.cli.tenant_page import facts_of_tenant
from rota.inspector.facts import change_facts
from rota.model.micros import SECOND, datetime_of
from rota.model.redaction import DEFAULT
from rota.model.schedule import Ahead, LastRun, Origin, Pause, Schedule, ScheduleSpec
from rota.web.api.tenants import tenant_facts
from rota.web.schedule_facts import schedule_facts

FAR = 4_000_000_000 * SECOND
PLAIN = Schedule(
    id="one",
    spec=ScheduleSpec(trigger="cron 0 9 * * *", task="t", payload='[["ann"],{"x":1}]', tenant="acme", tz="Asia/Tokyo"),
    created_at=0,
    updated_at=0,
    fired_through=0,
    next_at=FAR,
    last=LastRun(enqueued_at=1, finished_at=2, status="failed", duration=SECOND, error="no luck"),
)
OWN = {  # in forms of their own: how a rule, a pause and a look-ahead are written
    "sentence",
    "trigger",
    "pause",
    "lookahead",
}


def last_is_made_ahead() -> Schedule:
    spec = msgspec.structs.replace(PLAIN.spec, trigger="once 2096-10-02T07:06:40Z", lookahead=FAR)
    return msgspec.structs.replace(PLAIN, spec=spec, next_at=None, ahead=Ahead(through=FAR))


SCHEDULES = {
    "on": PLAIN,
    "retired": msgspec.structs.replace(PLAIN, origin=Origin("code", "shop", "1", is_retired=True)),
    "disabled": msgspec.structs.replace(PLAIN, is_enabled=False),
    "paused": msgspec.structs.replace(PLAIN, pause=Pause(1, "month end", "ann")),
    "finished": msgspec.structs.replace(PLAIN, next_at=None),
    "on: made ahead": last_is_made_ahead(),
    "on: not fired": msgspec.structs.replace(PLAIN, ahead=Ahead(fault="too large")),
    "broken": msgspec.structs.replace(PLAIN, problem="told"),
    "broken: no rule": msgspec.structs.replace(
        PLAIN, spec=ScheduleSpec(trigger="cron 0 9 * * * tz=Mars", task="t"), origin=Origin("code", "shop")
    ),
    "on: no payload": msgspec.structs.replace(PLAIN, spec=msgspec.structs.replace(PLAIN.spec, payload="{")),
}


def shared(one: object, other: object) -> tuple[dict, dict]:
    names = {*one.__struct_fields__} & {*other.__struct_fields__} - OWN
    return tuple({name: getattr(facts, name) for name in names} for facts in (one, other))


@pytest.mark.parametrize(("title", "record"), SCHEDULES.items(), ids=list(SCHEDULES))
def test_a_schedule_is_the_same_on_the_screen_and_over_http(title, record):
    shown, answered = shared(facts_of(ShownSchedule(record), DEFAULT), schedule_facts(record, DEFAULT))
    assert shown == answered
    assert len(shown) >= 20
    assert shown["state"] == title.partition(":")[0]
    assert (shown["next_run"] is not None) == (shown["state"] == "on")


def test_a_tenant_and_its_changes_are_the_same_on_the_screen_and_over_http():
    app = App("memory://")
    tenant = app.tenants.put("acme", tz="Asia/Kolkata", queue="acme", priority=3, by="ann")
    (change,) = app.changes().items
    for one, other in (
        shared(facts_of_tenant(tenant, datetime_of(app.open().now())), tenant_facts(tenant)),
        shared(facts_of_change(change), change_facts(change)),
    ):
        assert one == other
        assert len(one) >= 8
    app.close()


def test_a_failed_firing_is_the_last_error_and_has_a_row_on_the_page():
    known = ShownSchedule(SCHEDULES["on: not fired"])
    assert facts_of(known, DEFAULT).last_error == schedule_facts(known.record, DEFAULT).last_error == "too large"
    lines = list(page(known, [], [], datetime_of(SECOND), DEFAULT))
    assert any(line.split() == ["not", "fired", "the", "store", "failed:", "too", "large"] for line in lines)
