"""Spans of jobs: one per enqueue and attempt, in one trace through delays and retries, linked for schedules."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Annotated

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from rota import Cancel, Secret, every
from rota.cli.text_lines import TextLines
from rota.errors import BadOption
from rota.observe.json_lines import JsonLines
from rota.otel import OpenTelemetry
from rota.testing import Kit


@pytest.fixture(autouse=True)
def _usual_records(monkeypatch):
    """The middleware gives log records the ids of traces, once for the whole process: here, for one test."""
    monkeypatch.setattr("rota.otel._has_factory", False)
    factory = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(factory)


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(app, exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app.use(OpenTelemetry(provider))
    return provider.get_tracer("test")


def named(exporter, name):
    return [span for span in exporter.get_finished_spans() if span.name == name]


def trace_ids(spans):
    return {span.context.trace_id for span in spans}


def test_a_delayed_and_retried_job_is_one_trace_with_a_span_for_each_step(app, exporter, tracer):
    @app.task(name="shop.pay", retries=1, queue="money")
    def pay(code: Annotated[int | str, Secret]) -> None:
        if len(named(exporter, "process money")) < 1:
            raise ConnectionError(f"no bank for {code}")

    with Kit(app) as kit:
        with tracer.start_as_current_span("request"):
            job = pay.using(delay="1h").enqueue("hunter2")
        kit.travel("2h")
    (sent,), attempts = named(exporter, "send money"), named(exporter, "process money")
    assert sent.kind is SpanKind.PRODUCER
    assert sent.attributes["messaging.message.id"] == job.id
    assert sent.attributes["messaging.operation.type"] == "send"
    assert [(span.kind, span.parent.span_id) for span in attempts] == [(SpanKind.CONSUMER, sent.context.span_id)] * 2
    assert [span.links[0].context.span_id for span in attempts] == [sent.context.span_id] * 2
    assert len(trace_ids([sent, *attempts, *named(exporter, "request")])) == 1
    assert dict(attempts[0].attributes) == {
        "messaging.system": "rota",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "money",
        "messaging.message.id": job.id,
        "rota.task": "shop.pay",
        "rota.attempt": 1,
        "error.type": "ConnectionError",
    }
    assert [span.status.status_code for span in attempts] == [StatusCode.ERROR, StatusCode.UNSET]
    (event,) = attempts[0].events
    assert event.attributes["exception.message"] == "no bank for [redacted]"
    assert "hunter2" not in attempts[0].to_json()


def test_runs_of_a_schedule_are_traces_of_their_own_linked_to_the_one_that_put_it(app, exporter, tracer):
    @app.task(name="shop.tick")
    async def tick() -> None: ...

    with Kit(app) as kit:
        with tracer.start_as_current_span("request") as request:
            app.schedules.put("hourly", tick.job(), every("1h"))
        kit.travel("150m")
    runs = named(exporter, "process default")
    assert len(runs) == 2
    assert len(trace_ids([*runs, *named(exporter, "request")])) == 3
    assert [span.links[0].context.span_id for span in runs] == [request.get_span_context().span_id] * 2
    assert {span.attributes["rota.schedule_id"] for span in runs} == {"hourly"}


def test_a_batch_is_one_span_and_a_coroutine_keeps_its_trace(app, exporter, tracer):
    @app.task(name="shop.pay")
    def pay(_: int) -> None: ...

    async def enqueue():
        with tracer.start_as_current_span("request"):
            await app.aio.enqueue_many([pay.job(1), pay.job(2)])

    asyncio.run(enqueue())
    (sent,) = named(exporter, "send default")
    assert sent.attributes["messaging.batch.message_count"] == 2
    assert len(trace_ids([sent, *named(exporter, "request")])) == 1


@pytest.mark.usefixtures("tracer")
def test_a_batch_for_several_queues_names_none_as_its_destination(app, exporter):
    @app.task(name="shop.pay")
    def pay(_: int) -> None: ...

    app.enqueue_many([pay.job(1), pay.using(queue="money").job(2)])
    (sent,) = named(exporter, "send")
    assert "messaging.destination.name" not in sent.attributes
    assert sent.attributes["messaging.operation.name"] == "send"


@pytest.mark.usefixtures("tracer")
def test_jobs_that_are_not_stored_leave_a_span_with_the_error(app, exporter):
    @app.task(name="shop.pay")
    def pay(_: int) -> None: ...

    with pytest.raises(BadOption):
        pay.using(tx=object()).enqueue(1)
    (sent,) = named(exporter, "send default")
    assert sent.status.status_code is StatusCode.ERROR
    assert sent.attributes["error.type"] == "rota.errors.BadOption"


@pytest.mark.usefixtures("tracer")
def test_a_cancelled_attempt_is_no_error(app, exporter):
    @app.task
    def leave() -> None:
        raise Cancel("not now")

    with Kit(app) as kit:
        leave.enqueue()
        kit.run_due()
    (span,) = named(exporter, "process default")
    assert span.status.status_code is StatusCode.UNSET
    assert [event.name for event in span.events] == ["rota.signal"]


@pytest.mark.usefixtures("tracer")
def test_log_lines_of_a_job_have_its_trace_id(app, exporter):
    lines, texts = [], []

    class Keeps(logging.Handler):
        def emit(self, record):
            lines.append(json.loads(JsonLines().format(record)))
            texts.append(TextLines(has_colours=False).format(record).partition(": ")[2])

    log = logging.getLogger("shop")

    @app.task
    def pay() -> None:
        log.warning("paid")

    handler = Keeps()
    log.addHandler(handler)
    try:
        with Kit(app) as kit:
            pay.enqueue()
            kit.run_due()
    finally:
        log.removeHandler(handler)
    (span,) = named(exporter, "process default")
    trace_id, span_id = f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"
    assert [(line["msg"], line["trace_id"]) for line in lines] == [("paid", trace_id)]
    assert texts == [f"paid (trace {trace_id}, span {span_id})"]
