"""Which conditions are true, and what is said of them: rules and snapshots alone, without a store."""

from __future__ import annotations

import pytest

from rota.errors import BadName, BadOption
from rota.model.alerts.decide import MOST_OPEN, Context, Kept, decide, limits_reached, pause_after
from rota.model.alerts.findings import AlertSnapshot, NodeSnapshot, QueueSnapshot, ScheduleSnapshot, find, why_ended
from rota.model.alerts.incident import Incident
from rota.model.alerts.rule import make_rule
from rota.model.micros import SECOND

NOW = 1_790_000_000 * SECOND
HOUR = 3600 * SECOND


def schedule(name="daily", **said) -> ScheduleSnapshot:
    return ScheduleSnapshot(**{"id": name, "state": "on", "created_at": NOW - 100 * HOUR, **said})


def seen(*things, **said) -> AlertSnapshot:
    of = {ScheduleSnapshot: "schedules", QueueSnapshot: "queues", NodeSnapshot: "nodes"}
    parts: dict = {"schedules": {}, "queues": {}, "nodes": {}}
    for thing in things:
        parts[of[type(thing)]][getattr(thing, "id", None) or thing.name] = thing
    return AlertSnapshot(now=NOW, **parts, **said)


def found(rule, *things) -> dict[str, str]:
    return find(rule, seen(*things))


FAILS = make_rule("r", when="fails")


@pytest.mark.parametrize(
    ("is_found", "said"),
    [
        (True, {"status": "failed", "is_failing": True, "error": "ValueError: no"}),
        (True, {"status": "retrying", "is_failing": True, "error": "ValueError: no"}),
        (False, {"status": "retrying"}),
        (True, {"status": "succeeded", "has_failed": True}),
        (True, {"state": "broken", "error": "no such zone"}),
        (False, {"status": "succeeded"}),
        (False, {"status": "cancelled"}),
        (False, {"status": "failed", "is_failing": True, "state": "paused"}),
        (False, {"status": "failed", "is_failing": True, "state": "disabled"}),
        (False, {}),
    ],
)
def test_a_schedule_that_fails(is_found, said):
    assert bool(found(FAILS, schedule(**said))) is is_found


def test_the_error_is_in_the_sentence():
    assert found(FAILS, schedule(is_failing=True, error="ValueError: no")) == {
        "daily": "A run of schedule daily failed: ValueError: no"
    }


def test_a_late_schedule():
    late = make_rule("r", when="late", after="5m")
    assert not found(late, schedule(overdue_for=300 * SECOND))
    assert found(late, schedule(overdue_for=301 * SECOND, due_at=NOW - 301 * SECOND)) == {
        "daily": "Schedule daily is late: it was due at 2026-09-21T14:08:19Z and has not been fired."
    }


@pytest.mark.parametrize(
    ("is_found", "said"),
    [
        (False, {"success_at": NOW - 26 * HOUR}),
        (True, {"success_at": NOW - 26 * HOUR - 1}),
        (True, {"success_at": None}),
        (False, {"success_at": None, "created_at": NOW - HOUR}),
        (False, {"success_at": None, "state": "paused"}),
    ],
)
def test_a_schedule_without_a_success(is_found, said):
    rule = make_rule("r", when="no_success", schedule="daily", after="26h")
    assert bool(found(rule, schedule(**said))) is is_found


@pytest.mark.parametrize(
    ("rule", "is_found", "queue"),
    [
        ({"when": "no_worker"}, True, {"waiting": 1}),
        ({"when": "no_worker"}, False, {"waiting": 1, "has_worker": True}),
        ({"when": "no_worker"}, False, {}),  # no job asks for one
        ({"when": "no_worker", "queue": "mail"}, True, {}),  # it is named, so it is to have one
        ({"when": "no_worker", "queue": "mail"}, False, {"is_paused": True}),
        ({"when": "oldest", "after": "10m"}, True, {"oldest_at": NOW - 601 * SECOND}),
        ({"when": "oldest", "after": "10m"}, False, {"oldest_at": NOW - 600 * SECOND}),
        ({"when": "oldest", "after": "10m"}, False, {"oldest_at": NOW - 601 * SECOND, "is_paused": True}),
        ({"when": "oldest", "after": "10m"}, False, {"oldest_at": NOW - HOUR, "resumed_at": NOW - 600 * SECOND}),
        ({"when": "oldest", "after": "10m"}, True, {"oldest_at": NOW - HOUR, "resumed_at": NOW - 601 * SECOND}),
        ({"when": "oldest", "after": "10m"}, True, {"oldest_at": NOW - 601 * SECOND, "resumed_at": NOW - HOUR}),
        ({"when": "oldest", "after": "10m"}, False, {"oldest_at": None, "resumed_at": NOW - HOUR}),
        ({"when": "oldest", "after": "10m"}, False, {}),
        ({"when": "length", "more_than": 10}, True, {"waiting": 11}),
        ({"when": "length", "more_than": 10}, False, {"waiting": 10}),
        ({"when": "length", "more_than": 10, "queue": "other"}, False, {"waiting": 11}),
    ],
)
def test_queues(rule, is_found, queue):
    assert bool(found(make_rule("r", **rule), QueueSnapshot(name="mail", **queue))) is is_found


def test_a_node_that_is_gone():
    rule = make_rule("r", when="node_gone", node="web-*")
    gone = NodeSnapshot(id="web-1", beat_at=NOW - 61 * SECOND, is_alive=False)
    assert list(found(rule, gone, NodeSnapshot(id="db-1", beat_at=0, is_alive=False))) == ["web-1"]
    assert not found(rule, NodeSnapshot(id="web-1", beat_at=NOW - 59 * SECOND, is_alive=False))
    assert "sends heartbeats again" in why_ended(
        rule, "web-1", seen(NodeSnapshot(id="web-1", beat_at=0, is_alive=True))
    )
    assert "not in the list" in why_ended(rule, "web-1", seen())


def test_a_prefix_selects_what_begins_so():
    rule = make_rule("r", when="fails", schedule="mail-*")
    names = ("mail-a", "mail-b", "mail", "email-a")
    assert list(found(rule, *(schedule(name, is_failing=True) for name in names))) == ["mail-a", "mail-b"]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"when": "fails", "queue": "mail"}, "say schedule="),
        ({"when": "no_worker", "schedule": "daily"}, "say queue="),
        ({"when": "fails", "after": "5m"}, "does not fit"),
        ({"when": "oldest"}, "needs after="),
        ({"when": "no_success"}, "needs after="),
        ({"when": "length"}, "needs more_than="),
        ({"when": "length", "more_than": -1}, "needs more_than="),
        ({"when": "late", "more_than": 1}, "belongs to when='length'"),
        ({"when": "failing"}, "did you mean 'fails'"),
        ({"when": "fails", "schedule": "a*b"}, "prefix that ends in"),
        ({"when": "fails", "schedule": ""}, "prefix that ends in"),
        ({"when": "fails", "channels": "ops"}, "must be a list"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_the_fix(said, error):
    with pytest.raises((BadOption, BadName), match=error):
        make_rule("r", **said)


# Deciding.


def around(now=NOW) -> Context:
    return Context("shop", "n", ("ops",), {}, now)


def kept(changes, before=()) -> dict[str, Kept]:
    """The store after these changes."""
    after = {name: one for name, one in dict(before).items() if name not in {change.id for change in changes}}
    return after | {change.id: Kept(change.after, change.version + 1) for change in changes if change.after}


def test_a_condition_that_must_hold_is_pending_first():
    rule = make_rule("r", when="length", queue="mail", more_than=1, after="1m")
    long = QueueSnapshot(name="mail", waiting=9)
    first = decide([rule], seen(long), {}, around())
    assert [(one.after.state, one.send) for one in first] == [("pending", ())]
    store = kept(first)
    assert decide([rule], seen(long), store, around(NOW + 59 * SECOND)) == []
    then = decide([rule], seen(long), store, around(NOW + 60 * SECOND))
    assert [(one.after.state, len(one.send), one.version) for one in then] == [("open", 1, 1)]
    short = decide([rule], seen(QueueSnapshot(name="mail")), store, around(NOW + 60 * SECOND))
    assert [one.after for one in short] == [None]  # it never was an alert


def test_an_alert_that_comes_again_is_another_incident():
    bad, good = seen(schedule(is_failing=True)), seen(schedule(status="succeeded"))
    store: dict = {}
    numbers = []
    for number, snapshot in enumerate((bad, good, bad)):
        changes = decide([FAILS], snapshot, store, around(NOW + number * 60 * SECOND))
        numbers += [(one.after.number, one.after.state) for one in changes]
        store = kept(changes, store)
    assert numbers == [(1, "open"), (1, "ended"), (2, "open")]


def test_many_subjects_raise_a_bounded_number_of_alerts_and_those_that_are_open_stay():
    failing = [schedule(f"s{number:03}", is_failing=True) for number in range(MOST_OPEN + 50)]
    first = decide([FAILS], seen(*failing[50:]), {}, around())
    assert len(first) == MOST_OPEN
    assert decide([FAILS], seen(*failing), kept(first), around()) == []
    assert limits_reached([FAILS], seen(*failing[50:])) == set()
    assert limits_reached([FAILS], seen(*failing)) == {
        "alert rule r is true for more than 100 schedules; the others raise no alert"
    }
    assert "more schedules than a check" in limits_reached([FAILS], seen(is_whole=False)).pop()


def test_an_alert_whose_schedule_was_not_read_stays_as_it_is():
    store = kept(decide([FAILS], seen(schedule(is_failing=True)), {}, around()))
    assert decide([FAILS], seen(is_whole=False), store, around(NOW + 60 * SECOND)) == []
    gone = decide([FAILS], seen(), store, around(NOW + HOUR))
    assert [one.after.end_text for one in gone] == ["Schedule daily does not exist any more."]


def test_the_alerts_of_other_apps_are_left_alone():
    other = Incident(
        app="other", rule="r", when="fails", subject="daily", state="open", since=NOW, checked_at=NOW - 99 * HOUR
    )
    assert decide([FAILS], seen(), {other.id: Kept(other, 3)}, around()) == []


def test_an_ended_alert_goes_after_a_month():
    store = kept(decide([FAILS], seen(schedule(is_failing=True)), {}, around()))
    store = kept(decide([FAILS], seen(schedule(status="succeeded")), store, around()), store)
    assert decide([], seen(), store, around(NOW + 29 * 24 * HOUR))[0].after is not None  # its messages are due again
    assert decide([], seen(), store, around(NOW + 31 * 24 * HOUR))[0].after is None


def test_pauses_double_up_to_an_hour():
    pauses = [pause_after(tries) // SECOND for tries in range(1, 10)]
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
