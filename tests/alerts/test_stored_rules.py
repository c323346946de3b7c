"""Alert rules that the store keeps: set while nodes run, checked by the nodes of their app, versioned and audited."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from alerts.stage import AlertStage
from every_store import fresh_place
from rota import App
from rota.alerts.starter import AlertStarter
from rota.alerts.stored_rules import MOST_STORED
from rota.app import internals
from rota.client.aio_alerts import AsyncAlerts
from rota.client.alerts import Alerts
from rota.errors import AlertNotFound, BadOption, Refused, VersionConflict
from rota.model.alerts.stored_rule import RULE_KIND
from rota.model.entry import EntryEdit
from rota.operations.copy import move


def waiting_job(stage, queue="mail"):
    @stage.app.task(name="send", queue=queue)
    def send() -> None: ...

    send.enqueue()
    stage.skip(600)


def put(stage, name="mail", **said):
    return stage.app.alerts.put(name, **{"when": "oldest", "queue": "mail", "after": "5m", "by": "ann", **said})


def test_a_stored_rule_raises_an_alert_and_its_removal_ends_it(every_stage):
    stage = every_stage
    waiting_job(stage)
    stage.node("a")
    stage.turn()
    assert stage.open_alerts() == []
    put(stage, channels=["pager"])
    stage.turn()
    assert stage.open_alerts() == ["mail"]
    assert stage.receiver.events == [("pager", "raised", "mail")]
    assert stage.app.alerts.remove("mail", by="ben")
    stage.skip(60)
    stage.turn()
    (alert,) = stage.app.alerts.list().items
    assert (alert.state, alert.end_text) == ("ended", "The rule was removed.")
    assert stage.app.alerts.rules().rules == []
    assert not stage.app.alerts.remove("mail")


@pytest.fixture(params=["memory", "sqlite"])
def cheap_stage(request, tmp_path):
    stage = AlertStage(fresh_place(request.param, tmp_path).make())
    yield stage
    for watch in stage.watches:
        watch.close()
    stage.app.close()


def test_each_change_has_a_version_and_an_audit_record(cheap_stage):
    stage = cheap_stage
    first = put(stage)
    assert (first.version, first.origin, first.app) == (1, "store", "shop")
    assert put(stage, by="ben").version == 1  # nothing has changed
    assert put(stage, after="10m", expect_version=1).version == 2
    with pytest.raises(VersionConflict, match="has version 2, not 1"):
        put(stage, after="20m", expect_version=1)
    with pytest.raises(VersionConflict, match="there is an alert rule 'mail' already"):
        put(stage, expect_version=0)
    with pytest.raises(VersionConflict):
        stage.app.alerts.remove("mail", expect_version=1)
    assert stage.app.alerts.rule("mail").after == "10m"
    stage.app.alerts.remove("mail", by="ben", expect_version=2)
    changes = stage.app.changes().items
    assert [(one.verb, one.by) for one in changes] == [("removed", "ben"), ("changed", "ann"), ("created", "ann")]
    assert (changes[1].before, changes[1].after) == ({"after": "5m"}, {"after": "10m"})
    assert changes[2].after["queue"] == "mail"
    with pytest.raises(AlertNotFound):
        stage.app.alerts.rule("mail")


def test_a_declared_rule_is_changed_where_it_is_declared(stage):
    stage.app.alerts.add("mail", when="length", queue="mail", more_than=3)
    with pytest.raises(Refused, match="alert rule 'mail' is declared in code; change it there"):
        put(stage)
    with pytest.raises(Refused, match="declared in code"):
        stage.app.alerts.remove("mail")


def test_a_declared_rule_replaces_a_stored_one_with_a_warning(stage, caplog):
    put(stage)
    stage.app.alerts.add("mail", when="length", queue="mail", more_than=0)
    waiting_job(stage)
    stage.node("a")
    for _ in range(3):
        stage.turn()
        stage.skip(61)
    assert [one.when for one in stage.app.alerts.list(state="open").items] == ["length"]
    said = [record.getMessage() for record in caplog.records if "is declared (code) and stored" in record.getMessage()]
    assert len(said) == 1
    (rule,) = stage.app.alerts.rules().rules
    assert (rule.origin, rule.when) == ("code", "length")
    assert "`rota alerts remove mail` removes it" in rule.problem
    assert stage.app.alerts.remove("mail")
    assert stage.app.alerts.rule("mail").problem is None
    assert stage.open_alerts() == ["mail"]  # of the rule that code declares


def test_a_rule_is_checked_by_the_nodes_of_its_app_alone(stage):
    other = App(stage.app.open(), name="other")
    other.alerts.put("mail", when="oldest", queue="mail", after="5m")
    waiting_job(stage)
    stage.node("a")
    stage.turn()
    assert stage.app.alerts.list().items == []
    assert [(one.name, one.app) for one in stage.app.alerts.rules().rules] == [("mail", "other")]
    with pytest.raises(Refused, match="belongs to app 'other', and this is app 'shop'"):
        put(stage)
    assert stage.app.alerts.remove("mail")  # an app that is gone leaves nothing for ever


def test_what_is_refused(stage):
    with pytest.raises(AlertNotFound, match="there is no channel named 'nobody'; the app has: pager"):
        put(stage, channels=["pager", "nobody"])
    with pytest.raises(BadOption, match="needs after="):
        stage.app.alerts.put("mail", when="oldest")
    internals(stage.app).has_code = False
    with pytest.raises(Refused, match="this process has no app"):
        put(stage)
    assert stage.app.alerts.rules().rules == []


def test_a_store_keeps_a_bounded_number_of_rules(stage):
    for number in range(MOST_STORED):
        put(stage, f"rule-{number}")
    with pytest.raises(Refused, match="keeps no more"):
        put(stage, "one-more")
    assert put(stage, "rule-7", after="6m").version == 2


def test_a_channel_that_is_no_longer_declared_is_named(stage, caplog):
    put(stage, channels=["pager"])
    stage.app.alerts.declared.channels.clear()
    assert stage.app.alerts.rule("mail").problem == "there is no channel 'pager'; there are: none"
    stage.node("a")
    stage.turn()
    assert "stored alert rule mail: there is no channel 'pager'" in caplog.text


def test_a_rule_that_cannot_be_read_is_left_out_and_can_be_replaced(stage):
    stage.store.edit_entries([EntryEdit(kind=RULE_KIND, name="mail", expect_version=0, data='{"app": 7}')])
    assert stage.app.alerts.rules().rules == []
    stage.node("a")
    stage.turn()
    assert put(stage).version == 2


def test_a_copy_takes_stored_rules_along(stage, tmp_path):
    put(stage)
    target = fresh_place("sqlite", tmp_path).make()
    target.open()
    move(stage.app.open(), target)
    other = App(target, name="shop")
    assert other.alerts.rule("mail").version == 1
    other.close()


class CountedStore:
    """A store that counts its calls."""

    def __init__(self, store):
        self.store = store
        self.calls = []

    def __getattr__(self, verb):
        self.calls.append(verb)
        return getattr(self.store, verb)


def test_a_node_without_rules_makes_one_read_a_minute(stage):
    store, made = CountedStore(stage.store), []

    def make():
        made.append(stage.node("a"))
        return made[0]

    starter = AlertStarter(store, internals(stage.app).events, None, make, app="shop")
    assert starter.turn() == 60.0
    assert store.calls == ["list_entries"]
    assert made == []
    waiting_job(stage)
    put(stage)
    assert starter.turn() == 15.0
    assert stage.open_alerts() == ["mail"]
    stage.app.alerts.remove("mail")
    stage.skip(60)
    starter.turn()
    assert starter.turn() == 60.0


def test_a_running_node_waits_for_stored_rules(stage):
    with stage.app.running(worker=False) as node:
        assert [service.name for service in node.services].count("alert watch") == 1
        assert stage.app.alerts.put("late", when="late").version == 1  # also while it runs


def test_coroutines_have_the_same_verbs(stage):
    declaring = {"add", "webhook", "email", "channel", "heartbeat", "plan"}
    verbs = {name for name, _ in inspect.getmembers(Alerts) if not name.startswith("_")} - declaring
    assert {name for name in vars(AsyncAlerts) if not name.startswith("_")} == verbs

    async def change() -> bool:
        await stage.app.aio.alerts.put("mail", when="fails", by="ann")
        return await stage.app.aio.alerts.remove("mail", by="ann")

    assert asyncio.run(change())
