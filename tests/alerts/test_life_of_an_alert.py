"""An alert is raised once, whatever number of nodes see the trouble, and its record decides who is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from alerts.stage import AlertStage
from every_store import fresh_place
from observe.scraping import scrape
from rota import failpoints
from rota.inspector.standing import read_schedules, read_standing
from rota.model.jobs.outcome import Failed, Succeeded
from rota.model.micros import SECOND
from rota.operations.copy import move
from rota.testing.store_suite.steps import add_job, add_schedule, claim_one, fire_due, settle_job

MINUTE = 60
LATER = datetime.now(UTC) + timedelta(days=1)


def waiting_job(stage):
    """A job has waited in the queue `mail` for ten minutes."""
    app = stage.app
    app.alerts.add("mail", when="oldest", queue="mail", after="5m")

    @app.task(name="t.mail", queue="mail")
    def mail() -> None: ...

    job = mail.enqueue()
    stage.skip(600)
    return job


def test_three_nodes_raise_one_alert_and_its_end_is_told_once(every_stage):
    stage = every_stage
    job = waiting_job(stage)
    nodes = [stage.node(name) for name in "abc"]
    stage.turn()
    assert stage.receiver.events == [("pager", "raised", "mail")]
    stage.skip(20)
    stage.turn()
    stage.app.jobs.cancel(job.id)
    for node in nodes:  # each in its turn is the one that checks
        stage.skip(20)
        stage.turn(node)
    assert stage.receiver.events == [("pager", "raised", "mail"), ("pager", "recovered", "mail")]
    alert = stage.app.alerts.list().items[0]
    assert (alert.state, alert.number, [one.state for one in alert.deliveries]) == ("ended", 1, ["sent", "sent"])


def test_a_schedule_that_fails_at_every_run_raises_one_alert_until_a_run_succeeds(every_stage):
    """A check between the first attempt of a run and its retry ends nothing."""
    stage = every_stage
    stage.app.alerts.add("nightly", when="fails")
    stage.node("a")
    stage.turn()
    add_schedule(stage.app.open(), "nightly", now=stage.store.now(), trigger="every 60s")
    for _ in range(3):
        stage.skip(MINUTE)
        run_of(stage, Failed("boom"), retries=1)
        stage.turn()
        stage.skip(20)
        run_of(stage, Failed("boom"))
        stage.turn()
    assert stage.receiver.events == [("pager", "raised", "nightly")]
    stage.skip(MINUTE)
    run_of(stage, Succeeded())
    stage.turn()
    assert stage.receiver.events == [("pager", "raised", "nightly"), ("pager", "recovered", "nightly")]
    assert stage.app.alerts.list().items[0].end_text == "A run of schedule nightly succeeded."


def run_of(stage, outcome, *, retries=0):
    """The schedule fires if it is due, and its run ends so."""
    store, now = stage.app.open(), stage.store.now()
    fire_due(store, now=now)
    assert settle_job(store, claim_one(store, now=now), outcome, now=now, retries=retries) == []


def test_the_jobs_of_a_queue_that_is_resumed_have_waited_since_then(every_stage):
    """Before that, they waited because an operator paused the queue."""
    stage = every_stage
    stage.app.alerts.add("mail", when="oldest", queue="mail", after="5m")
    add_job(stage.app.open(), queue="mail", now=stage.store.now() - 10 * MINUTE * SECOND)
    stage.node("a")
    stage.app.queues.pause("mail", by="ann")
    stage.turn()
    stage.app.queues.resume("mail", by="ann")
    stage.skip(20)
    stage.turn()
    assert stage.receiver.events == []
    stage.skip(5 * MINUTE)
    stage.turn()
    assert stage.receiver.events == [("pager", "raised", "mail")]
    assert "since the queue was resumed" in stage.receiver.sent[0][1].text


def test_nodes_that_decide_on_the_same_record_raise_one_alert(every_stage):
    """All three have read before any of them writes: the entry's version lets one through."""
    stage = every_stage
    waiting_job(stage)
    nodes = [stage.node(name) for name in "abc"]
    now = stage.store.now()
    held = [change for node in nodes for change in [(node, node.decide(now, None))]]
    for node, changes in held:
        node.record(changes, now)
    stage.turn()
    assert stage.receiver.events == [("pager", "raised", "mail")]


def test_the_first_page_and_the_metrics_count_open_alerts(stage):
    job = waiting_job(stage)
    stage.node("a")
    stage.turn()
    stage.app.jobs.cancel(job.id)
    assert stands(stage) == ("alerting", 1, 1.0)
    stage.skip(20)
    stage.turn()
    assert stands(stage) == ("well", 0, 0.0)


def stands(stage):
    store = stage.app.open()
    facts = read_standing(store, read_schedules(store))
    return facts.standing, facts.alerts, scrape(stage.app).value("rota_alerts_open", rule="mail")


def test_a_silenced_alert_is_recorded_and_told_when_the_silence_ends(every_stage):
    stage = every_stage
    waiting_job(stage)
    stage.app.alerts.silence("mail", until=LATER, reason="the mail server moves", by="ann")
    stage.node("a")
    stage.turn()
    alert = stage.app.alerts.list().items[0]
    assert (alert.state, alert.silence.reason, alert.silence.by) == ("open", "the mail server moves", "ann")
    assert stage.receiver.events == []
    assert stage.app.alerts.unsilence("mail", by="ann")
    stage.skip(20)
    stage.turn()
    assert stage.receiver.events == [("pager", "raised", "mail")]
    assert [change.verb for change in stage.app.changes()] == ["unsilenced", "silenced"]


def test_an_alert_that_begins_and_ends_in_a_silence_is_never_told(stage):
    job = waiting_job(stage)
    stage.app.alerts.silence("mail", until=LATER, by="ann")
    stage.node("a")
    stage.turn()
    stage.app.jobs.cancel(job.id)
    stage.skip(20)
    stage.turn()
    stage.app.alerts.unsilence("mail")
    stage.skip(20)
    stage.turn()
    assert stage.receiver.events == []
    alert = stage.app.alerts.list().items[0]
    assert [(one.state, one.error) for one in alert.deliveries] == [("dropped", "silenced")]


class Killed(BaseException):
    """The process ends here."""


def test_what_a_dead_node_recorded_another_one_tells(every_stage):
    stage = every_stage
    waiting_job(stage)
    first = stage.node("a")

    def die(name: str) -> None:
        if name == "alert.recorded":
            raise Killed

    failpoints.install(die)
    try:
        with pytest.raises(Killed):
            first.turn()
    finally:
        failpoints.install(None)
    stage.watches.clear()  # it is gone
    second = stage.node("b")
    stage.skip(20)
    stage.turn(second)
    assert stage.receiver.events == []  # the dead node may still be sending
    stage.skip(120)
    stage.turn(second)
    assert stage.receiver.events == [("pager", "raised", "mail")]


def test_a_failed_message_is_sent_again_later_each_time_and_then_given_up(stage):
    waiting_job(stage)
    stage.node("a")
    stage.receiver.is_down = True
    heard = []
    stage.app.on("alert.undelivered", heard.append)
    stage.turn()
    delivery = stage.app.alerts.list().items[0].deliveries[0]
    assert (delivery.state, delivery.tries, delivery.error) == ("waiting", 1, "the receiver is down")
    stage.skip(20)
    stage.turn()
    assert len(heard) == 1  # the second try is not before 30 s
    for _ in range(9):
        stage.skip(3700)
        stage.turn()
    delivery = stage.app.alerts.list().items[0].deliveries[0]
    assert (delivery.state, delivery.tries) == ("failed", 10)
    assert [event.data["is_given_up"] for event in heard] == [False] * 9 + [True]


def test_a_restart_neither_repeats_nor_forgets(every_stage):
    stage = every_stage
    waiting_job(stage)
    stage.node("a")
    stage.receiver.is_down = True
    stage.turn()
    stage.watches.clear()
    stage.receiver.is_down = False
    stage.node("a2")
    for _ in range(3):
        stage.skip(60)
        stage.turn()
    assert stage.receiver.events == [("pager", "raised", "mail")]


def test_the_end_is_not_told_before_the_beginning(stage):
    job = waiting_job(stage)
    stage.node("a")
    stage.receiver.is_down = True
    stage.turn()
    stage.app.jobs.cancel(job.id)
    stage.skip(20)
    stage.turn()
    stage.receiver.is_down = False
    for _ in range(3):
        stage.skip(40)
        stage.turn()
    assert stage.receiver.events == [("pager", "raised", "mail"), ("pager", "recovered", "mail")]


def test_an_alert_of_a_rule_that_was_removed_ends_without_a_message(stage):
    waiting_job(stage)
    stage.node("a")
    stage.turn()
    stage.watches.clear()
    del stage.app.alerts.declared.rules["mail"]
    stage.app.alerts.add("other", when="node_gone")
    stage.node("b")
    stage.skip(300)
    stage.turn()
    assert stage.open_alerts() == ["mail"]  # a node of the version before may still check it
    stage.skip(900)
    stage.turn()
    assert stage.open_alerts() == []
    assert stage.receiver.events == [("pager", "raised", "mail")]


def test_a_message_that_waited_too_long_behind_others_is_left_to_the_next_check(stage):
    waiting_job(stage)
    node = stage.node("a")
    now = stage.store.now()
    changes = node.decide(now, None)
    stage.skip(61)
    node.record(changes, now)
    stage.turn(node)
    assert stage.receiver.events == []
    stage.skip(60)
    stage.turn(node)
    assert stage.receiver.events == [("pager", "raised", "mail")]


def test_the_life_of_an_alert_is_emitted_as_events_and_logged(stage, caplog):
    heard = []
    stage.app.on("alert.*", heard.append)
    job = waiting_job(stage)
    stage.node("a")
    stage.receiver.is_down = True
    with caplog.at_level("INFO", "rota.alerts"):
        stage.turn()
        stage.app.jobs.cancel(job.id)
        stage.skip(20)
        stage.turn()
    assert [event.name for event in heard] == ["alert.raised", "alert.undelivered", "alert.recovered"]
    assert heard[0].data["subject"] == "mail"
    assert heard[1].data | {"channel": "pager", "error": "the receiver is down", "is_given_up": False} == heard[1].data
    lines = [record.getMessage().partition(" of rule ")[2] for record in caplog.records if record.name == "rota.alerts"]
    assert lines[0].startswith("mail was raised: The oldest job of queue mail has waited for 10m")
    assert lines[1] == "mail: channel pager did not take the message, and it is sent again: the receiver is down"
    assert lines[2].startswith("mail has ended: ")


def test_a_copy_to_another_store_takes_alerts_and_silences_along(stage, tmp_path):
    waiting_job(stage)
    stage.node("a")
    stage.turn()
    stage.app.alerts.silence("mail", until=LATER, reason="the mail server moves", by="ann")
    target = fresh_place("sqlite", tmp_path).make()
    target.open()
    move(stage.app.open(), target)
    stage.app.close()
    other = AlertStage(target)
    other.app.alerts.add("mail", when="oldest", queue="mail", after="5m")
    other.skip(700)
    other.node("b")
    other.turn()
    assert other.receiver.events == []  # it was told already
    assert other.app.alerts.list().items[0].silence.reason == "the mail server moves"
    other.app.close()


def test_trouble_that_flickers_loses_no_message_and_no_number(stage):
    """The limit is passed again for a moment while the message about the end of the first alert still waits."""
    stage.app.alerts.add("mail", when="length", queue="mail", more_than=0, after="1m")

    @stage.app.task(name="t.mail", queue="mail")
    def mail() -> None: ...

    node = stage.node("a")

    def hold(seconds: int) -> None:
        job = mail.enqueue()
        stage.skip(20)
        stage.turn(node)
        stage.skip(seconds)
        stage.turn(node)
        stage.app.jobs.cancel(job.id)
        stage.skip(20)
        stage.turn(node)

    hold(70)
    assert stage.receiver.events == [("pager", "raised", "mail"), ("pager", "recovered", "mail")]
    hold(70)
    stage.receiver.sent.clear()
    stage.receiver.is_down = True
    hold(70)
    hold(20)  # not long enough
    stage.receiver.is_down = False
    stage.skip(600)
    stage.turn(node)
    stage.skip(20)
    stage.turn(node)
    assert stage.receiver.events == [("pager", "raised", "mail"), ("pager", "recovered", "mail")]
    hold(70)
    assert [alert.id.split("-")[1] for _, alert in stage.receiver.sent] == ["3", "3", "4", "4"]
