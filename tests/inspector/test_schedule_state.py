"""What state a schedule is in: one rule for lists, numbers and metrics."""

from __future__ import annotations

import msgspec
import pytest

from rota.cli.schedule_page import ShownSchedule, page
from rota.inspector.facts.schedule import schedule_facts
from rota.inspector.known_schedule import KnownSchedule
from rota.inspector.schedule_state import schedule_state
from rota.model.micros import SECOND, datetime_of
from rota.model.schedules.schedule import Ahead, LastRun, Origin, Pause, Schedule, ScheduleSpec
from rota.model.secrets.redaction import DEFAULT

NOW = 1_800_000_000 * SECOND
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


def made_ahead(at: int) -> Schedule:
    """A schedule whose last job was created before it is due."""
    spec = msgspec.structs.replace(PLAIN.spec, trigger="once 2096-10-02T07:06:40Z", lookahead=FAR)
    return msgspec.structs.replace(PLAIN, spec=spec, next_at=None, ahead=Ahead(through=at))


SCHEDULES = {
    "on": PLAIN,
    "retired": msgspec.structs.replace(PLAIN, origin=Origin("code", "shop", "1", is_retired=True)),
    "disabled": msgspec.structs.replace(PLAIN, is_enabled=False),
    "paused": msgspec.structs.replace(PLAIN, pause=Pause(1, "month end", "ann")),
    "finished": msgspec.structs.replace(PLAIN, next_at=None),
    "on: made ahead": made_ahead(FAR),
    "broken": msgspec.structs.replace(PLAIN, problem="noted by a scheduler"),
    "broken: no rule": msgspec.structs.replace(
        PLAIN, spec=ScheduleSpec(trigger="cron 0 9 * * * tz=Mars", task="t"), origin=Origin("code", "shop")
    ),
    "broken: outside the calendar": msgspec.structs.replace(PLAIN, updated_at=10**19),
    "on: not fired": msgspec.structs.replace(PLAIN, ahead=Ahead(fault="too large")),
    "on: no payload": msgspec.structs.replace(PLAIN, spec=msgspec.structs.replace(PLAIN.spec, payload="{")),
}


@pytest.mark.parametrize(("title", "record"), SCHEDULES.items(), ids=list(SCHEDULES))
def test_lists_pages_and_numbers_name_the_same_state(title, record):
    state = title.partition(":")[0]
    facts = schedule_facts(record, DEFAULT, NOW)
    assert schedule_state(record, NOW) == KnownSchedule(record, NOW).state == facts.state == state
    assert (facts.next_run is not None) == (state == "on")
    assert (facts.trigger is None) == ("rule" in title)


def test_a_schedule_whose_last_early_job_has_become_due_is_finished():
    assert schedule_state(made_ahead(FAR), FAR + SECOND) == "finished"


def test_a_failed_firing_is_the_last_error_and_has_a_row_on_the_page():
    shown = ShownSchedule(SCHEDULES["on: not fired"], NOW)
    assert schedule_facts(shown.record, DEFAULT, NOW).last_error == "too large"
    lines = list(page(shown, [], [], datetime_of(NOW), DEFAULT))
    assert any(line.split() == ["not", "fired", "the", "store", "failed:", "too", "large"] for line in lines)
