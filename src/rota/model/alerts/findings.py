"""Decides which conditions of alert rules are true, given the state of a store at one instant, and describes them in
words."""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct

from rota.model.alerts.rule import HELD, AlertRule
from rota.model.kept_texts import KeptTexts
from rota.model.micros import SECOND, iso_text, span_text

LONGEST_ERROR = 300  # characters of an error that a message carries
LONGEST_LINE = 2 * LONGEST_ERROR


FINDINGS = {
    # Why an alert is raised.
    "broken": "Schedule {id} cannot be evaluated: {error}",
    "failed": "A run of schedule {id} failed: {error}",
    "failed_unknown": "A run of schedule {id} failed: its error is not known",
    "late": "Schedule {id} is late: it was due at {due_at} and has not been fired.",
    "never_succeeded": "Schedule {id} has not succeeded since it was created at {created_at} (limit {limit}).",
    "not_succeeded": "Schedule {id} has not succeeded since {success_at} (limit {limit}).",
    "no_worker": "No live worker takes queue {name}; {waiting}.",
    "oldest": "The oldest job of queue {name} has waited for {age} (limit {limit}).",
    "oldest_resumed": "The oldest job of queue {name} has waited for {age} since the queue was resumed "
    "(limit {limit}).",
    "length": "In queue {name}, {waiting} (limit {limit}).",
    "node_gone": "Node {id} is gone: its last heartbeat was at {beat_at}.",
    # Why it has ended.
    "other_rule": "The rule is no longer about {kind} {name}.",
    "rule_removed": "The rule was removed.",
    "schedule_gone": "Schedule {id} does not exist any more.",
    "schedule_state": "Schedule {id} is {state}.",
    "on_time": "Schedule {id} is on time again.",
    "succeeded": "A run of schedule {id} succeeded.",
    "well": "Schedule {id} is well.",
    "queue_gone": "Queue {name} has no jobs any more.",
    "queue_paused": "Queue {name} is paused.",
    "has_worker": "A live worker takes queue {name}.",
    "nothing_waits": "No job waits in queue {name}.",
    "within_limit": "Queue {name} is within its limit again; {waiting}.",
    "node_expired": "Node {id} is not in the list of nodes any more: it was replaced, or its record has expired.",
    "node_back": "Node {id} sends heartbeats again.",
    # Parts.
    "waits_none": "no job waits",
    "waits_one": "1 job waits",
    "waits_many": "{n} jobs wait",
}
KEPT = KeptTexts("finding", FINDINGS, nested=frozenset({"waiting"}), names=frozenset({"id", "name", "state"}))
finding_text = KEPT.text
read_finding = KEPT.read


class ScheduleSnapshot(Struct, frozen=True, kw_only=True):
    """The facts about a schedule that rules use."""

    id: str
    state: str  # on, paused, disabled, retired, finished or broken
    created_at: int
    status: str | None = None  # of its last run
    is_failing: bool = False  # a run failed for good, and none has succeeded since
    error: str = ""
    success_at: int | None = None
    due_at: int | None = None
    overdue_for: int = 0  # microseconds; 0: in time
    has_failed: bool = False  # since the last check, although a run may have succeeded after that


class QueueSnapshot(Struct, frozen=True, kw_only=True):
    """The facts about a queue that rules use."""

    name: str
    waiting: int = 0
    oldest_at: int | None = None
    resumed_at: int | None = None  # the end of its last pause, if that is known
    is_paused: bool = False
    has_worker: bool = False  # a live node claims jobs from it


class NodeSnapshot(Struct, frozen=True, kw_only=True):
    """The facts about a node that rules use."""

    id: str
    beat_at: int
    is_alive: bool


class AlertSnapshot(Struct, frozen=True, kw_only=True):
    """The state of the store at one instant. A part that no rule uses is empty."""

    now: int
    schedules: dict[str, ScheduleSnapshot] = {}
    queues: dict[str, QueueSnapshot] = {}
    nodes: dict[str, NodeSnapshot] = {}
    is_whole: bool = True  # False: there are more schedules than were read


def find(rule: AlertRule, seen: AlertSnapshot) -> dict[str, str]:
    """The subjects for which a rule's condition is true, each with a sentence."""
    match rule.kind:
        case "schedule":
            found = {name: _schedule_finding(rule, one, seen.now) for name, one in seen.schedules.items()}
        case "queue":
            found = {name: _queue_finding(rule, one, seen.now) for name, one in seen.queues.items()}
        case "node":
            found = {name: _node_finding(rule, one, seen.now) for name, one in seen.nodes.items()}
        case _:
            assert_never(rule.kind)
    return {name: text for name, text in found.items() if text and rule.matches(name)}


def is_held(rule: AlertRule) -> bool:
    """Whether the condition must be true for a time before the incident is raised."""
    return rule.when in HELD and rule.after > 0


def why_ended(rule: AlertRule, subject: str, seen: AlertSnapshot) -> str:
    """Why the condition is no longer true."""
    if not rule.matches(subject):
        return finding_text("other_rule", kind=rule.kind, name=subject)
    match rule.kind:
        case "schedule":
            return _schedule_end(rule, subject, seen.schedules.get(subject))
        case "queue":
            return _queue_end(rule, subject, seen.queues.get(subject))
        case "node":
            return _node_end(subject, seen.nodes.get(subject))
        case _:
            assert_never(rule.kind)


def shortened(text: str) -> str:
    """The first line of an error, shortened, without characters that a terminal or a store cannot handle."""
    line = "".join(one if one.isprintable() else " " for one in text.partition("\n")[0][:LONGEST_LINE]).strip()
    return line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR - 1]}…"


# Schedules.


def _schedule_finding(rule: AlertRule, one: ScheduleSnapshot, now: int) -> str:
    if one.state == "broken":
        return finding_text("broken", id=one.id, error=one.error) if rule.when == "fails" else ""
    if rule.when == "fails":
        is_failing = one.has_failed or (one.state == "on" and one.is_failing)
        if not is_failing:
            return ""
        known = finding_text("failed", id=one.id, error=one.error) if one.error else ""
        return known or finding_text("failed_unknown", id=one.id)
    if one.state != "on":
        return ""
    if rule.when == "late":
        if one.overdue_for <= rule.after:
            return ""
        return finding_text("late", id=one.id, due_at=iso_text(one.due_at or now))
    if now - (one.success_at or one.created_at) <= rule.after:
        return ""
    limit = span_text(rule.after)
    if one.success_at is None:
        return finding_text("never_succeeded", id=one.id, created_at=iso_text(one.created_at), limit=limit)
    return finding_text("not_succeeded", id=one.id, success_at=iso_text(one.success_at), limit=limit)


def _schedule_end(rule: AlertRule, subject: str, one: ScheduleSnapshot | None) -> str:
    if one is None:
        return finding_text("schedule_gone", id=subject)
    if one.state != "on":
        return finding_text("schedule_state", id=subject, state=one.state)
    if rule.when == "late":
        return finding_text("on_time", id=subject)
    return finding_text("succeeded" if one.status == "succeeded" else "well", id=subject)


# Queues. The jobs of a paused queue wait because an operator paused it.


def _queue_finding(rule: AlertRule, one: QueueSnapshot, now: int) -> str:
    if one.is_paused:
        return ""
    if rule.when == "no_worker":
        is_asked_for = one.waiting > 0 or rule.is_exact
        return (
            finding_text("no_worker", name=one.name, waiting=_waiting(one))
            if is_asked_for and not one.has_worker
            else ""
        )
    if rule.when == "oldest":
        return _oldest_finding(rule, one, now)
    if one.waiting <= rule.more_than:
        return ""
    return finding_text("length", name=one.name, waiting=_waiting(one), limit=f"{rule.more_than:,}")


def _oldest_finding(rule: AlertRule, one: QueueSnapshot, now: int) -> str:
    if one.oldest_at is None:
        return ""
    resumed_at = one.resumed_at or 0
    age = now - max(one.oldest_at, resumed_at)
    if age <= rule.after:
        return ""
    found = "oldest" if one.oldest_at >= resumed_at else "oldest_resumed"
    return finding_text(found, name=one.name, age=_rough(age), limit=span_text(rule.after))


def _queue_end(rule: AlertRule, subject: str, one: QueueSnapshot | None) -> str:
    if one is None:
        return finding_text("queue_gone", name=subject)
    if one.is_paused:
        return finding_text("queue_paused", name=subject)
    if rule.when == "no_worker":
        return finding_text("has_worker" if one.has_worker else "nothing_waits", name=subject)
    return finding_text("within_limit", name=subject, waiting=_waiting(one))


def _waiting(one: QueueSnapshot) -> str:
    if not one.waiting:
        return finding_text("waits_none")
    return finding_text("waits_one") if one.waiting == 1 else finding_text("waits_many", n=f"{one.waiting:,}")


# Nodes. A node that stops in good order is removed from the list.


def _node_finding(rule: AlertRule, one: NodeSnapshot, now: int) -> str:
    is_gone = not one.is_alive and now - one.beat_at > rule.after
    return finding_text("node_gone", id=one.id, beat_at=iso_text(one.beat_at)) if is_gone else ""


def _node_end(subject: str, one: NodeSnapshot | None) -> str:
    if one is None:
        return finding_text("node_expired", id=subject)
    return finding_text("node_back", id=subject)


def _rough(micros: int) -> str:
    """A span in whole seconds."""
    return span_text(micros // SECOND * SECOND)
