"""Sentry gets each failed attempt with its job, task and schedule, and continues the trace of the caller."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import pytest
import sentry_sdk
from sentry_sdk.transport import Transport

from rota import Cancel, Secret, every
from rota.sentry import Sentry
from rota.testing import Kit


class Kept(Transport):
    """Keeps what would be sent."""

    def __init__(self):
        super().__init__()
        self.envelopes = []

    def capture_envelope(self, envelope):
        self.envelopes.append(envelope)

    @property
    def events(self):
        found = [item.get_event() for envelope in self.envelopes for item in envelope.items]
        return [event for event in found if event is not None]


@pytest.fixture
def sentry(app):
    kept = Kept()
    with sentry_sdk.isolation_scope():
        sentry_sdk.init(
            dsn="https://key@localhost/1", transport=kept, default_integrations=False, traces_sample_rate=1.0
        )
        app.use(Sentry())
        yield kept
        sentry_sdk.init(default_integrations=False)  # the default ones would replace methods of logging.Logger


def test_each_failed_attempt_is_an_event_with_its_job_and_the_trace_of_the_caller(app, sentry):
    @app.task(name="shop.pay", retries=1)
    def pay(_: str) -> None:
        raise ConnectionError("no bank")

    with Kit(app) as kit:
        with sentry_sdk.start_transaction(name="request") as request:
            job = pay.enqueue("4000")
        kit.travel("1h")
    assert [event["exception"]["values"][-1]["type"] for event in sentry.events] == ["ConnectionError"] * 2
    first, second = sentry.events
    assert first["tags"] == {"rota.task": "shop.pay", "rota.job_id": job.id}
    assert [event["contexts"]["rota"]["rota.attempt"] for event in (first, second)] == [1, 2]
    assert {event["contexts"]["trace"]["trace_id"] for event in (first, second)} == {request.trace_id}
    assert first["transaction"] == "shop.pay"


def test_a_run_of_a_schedule_names_it_and_scopes_do_not_leak(app, sentry):
    @app.task(name="shop.tick", retries=0)
    async def tick() -> None:
        raise ValueError("late")

    with Kit(app) as kit:
        app.schedules.put("hourly", tick.job(), every("1h"))
        kit.travel("90m")
    (event,) = sentry.events
    assert event["tags"]["rota.schedule_id"] == "hourly"
    sentry_sdk.capture_message("elsewhere")
    assert "rota.task" not in (sentry.events[-1].get("tags") or {})


def test_secrets_of_a_job_are_in_no_event_of_it(app, sentry):
    @app.task(name="shop.pay", retries=0)
    def pay(card: Annotated[str, Secret]) -> None:
        sentry_sdk.add_breadcrumb(message=f"asking the bank about {card}")
        sentry_sdk.capture_message(f"slow bank for {card}")
        raise ConnectionError(f"no bank for {card}")

    with Kit(app) as kit:
        pay.enqueue("4000-1234")
        kit.run_due()
    message, failure = sentry.events
    assert message["message"] == "slow bank for [redacted]"
    assert failure["exception"]["values"][-1]["value"] == "no bank for [redacted]"
    assert "4000-1234" not in json.dumps(sentry.events)


def test_a_cancelled_attempt_is_no_event(app, sentry):
    @app.task
    def leave() -> None:
        raise Cancel("not now")

    with Kit(app) as kit:
        asyncio.run(leave.aenqueue())
        kit.run_due()
    assert sentry.events == []
