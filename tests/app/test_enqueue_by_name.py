"""app.enqueue: a task by its name, from a service that does not have its code."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from rota.errors import BadName, BadPayload, UnknownTask
from rota.model.secrets.redaction import DEFAULT, REDACTED

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Order:
    number: int
    at: datetime


def shown(job):
    """The keyword arguments as a reader sees them who has neither the code nor the settings."""
    return DEFAULT.call(job.record.payload).kwargs


def worker_of(make_app):
    app = make_app()

    @app.task(name="jobs.place", queue="default")
    def place(order: Order, *, password: str = "") -> str:
        return f"{order.number} at {order.at:%H:%M} {password}"

    return app


def test_a_worker_elsewhere_runs_it_with_typed_arguments(make_app):
    sent = make_app().enqueue("jobs.place", Order(7, NOON), password="hunter2")  # noqa: S106 - it is to be hidden
    assert (sent.task, sent.queue, shown(sent)["password"]) == ("jobs.place", "default", REDACTED)
    with worker_of(make_app).running(scheduler=False):
        assert sent.result("60s") == "7 at 12:00 hunter2"


def test_a_coroutine_enqueues_by_name(make_app):
    app = make_app()

    async def send():
        return await app.aio.enqueue("jobs.place", {"number": 7, "at": NOON})

    job = asyncio.run(send())
    with worker_of(make_app).running(scheduler=False):
        assert job.result("60s") == "7 at 12:00 "


def test_the_signature_and_the_options_of_a_task_that_the_app_has_count(make_app):
    app = make_app()

    @app.task(name="mail.send", queue="mail", unique=True)
    def send(to: str) -> None: ...

    assert app.enqueue("mail.send", "ann").queue == "mail"
    assert app.enqueue("send", to="ann").existed  # the bare name, and the key that its arguments make
    with pytest.raises(BadPayload, match=r"mail.send\(to: str\) -> None: missing a required argument: 'to'"):
        app.enqueue("mail.send")
    with pytest.raises(BadPayload, match=r"got an unexpected keyword argument 'too'; did you mean to\?"):
        app.enqueue("mail.send", too="ann")


def test_a_name_that_may_be_two_tasks_or_is_none_is_refused(make_app):
    app = make_app()
    for name in ("a.send", "b.send"):
        app.task(name=name)(lambda: None)
    with pytest.raises(UnknownTask, match=r"'send' may be a\.send or b\.send"):
        app.enqueue("send")
    with pytest.raises(BadName):
        app.enqueue("no name")


def test_names_that_the_settings_hide_are_hidden(make_app):
    job = make_app(redact=["pin"]).enqueue("jobs.pay", pin="1234", amount=3)
    assert shown(job) == {"pin": REDACTED, "amount": 3}


def test_a_name_that_no_live_worker_has_is_refused_with_what_may_be_meant(make_app):
    producer = make_app()
    producer.enqueue("jobs.plaec", 1)  # no worker is alive, so that nobody knows better
    with worker_of(make_app).running(scheduler=False) as node:
        while not producer.open().list_nodes():
            node.worker.is_idle.wait(0.05)
        producer = make_app()
        for wrong, words in {
            "jobs.plaec": r"no live worker has a task named 'jobs.plaec'; did you mean jobs\.place\?",
            "place": r"did you mean jobs\.place\?",
            "zebra": "start a worker that has it",
        }.items():
            with pytest.raises(UnknownTask, match=words):
                producer.enqueue(wrong, 1)
        producer.enqueue("jobs.place", {"number": 1, "at": NOON})
        producer.task(name="zebra")(lambda: None)
        producer.enqueue("zebra")  # a stub: its worker may come later
    assert [job.task for job in producer.jobs.list().items] == ["zebra", "jobs.place", "jobs.plaec"]
