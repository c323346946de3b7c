"""Decides which conditions of alert rules are true, given what a store showed at one instant; and says it in words."""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct

from rota.model.alerts.rule import HELD, AlertRule
from rota.model.micros import SECOND, iso_text, span_text

LONGEST_ERROR = 300  # characters of an error that a message carries
LONGEST_LINE = 2 * LONGEST_ERROR


class ScheduleSnapshot(Struct, frozen=True, kw_only=True):
    """What rules ask about a schedule."""

    id: str
    state: str  # on, paused, disabled, retired, finished or broken
    created_at: int
    status: str | None = None  # of its last run
    error: str = ""
    success_at: int | None = None
    due_at: int | None = None
    overdue_for: int = 0  # microseconds; 0: in time
    has_failed: bool = False  # since the last check, although a run may have succeeded after that


class QueueSnapshot(Struct, frozen=True, kw_only=True):
    """What rules ask about a queue."""

    name: str
    waiting: int = 0
    oldest_at: int | None = None
    is_paused: bool = False
    has_worker: bool = False  # a live node takes jobs from it


class NodeSnapshot(Struct, frozen=True, kw_only=True):
    """What rules ask about a node."""

    id: str
    beat_at: int
    is_alive: bool


class AlertSnapshot(Struct, frozen=True, kw_only=True):
    """What the store showed at one instant; a part that no rule asks about is empty."""

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
        return f"The rule is no longer about {rule.kind} {subject}."
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
    """The first line of an error, without characters that a terminal or a store would not bear, and not too much."""
    line = "".join(one if one.isprintable() else " " for one in text.partition("\n")[0][:LONGEST_LINE]).strip()
    return line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR - 1]}…"


# Schedules.


def _schedule_finding(rule: AlertRule, one: ScheduleSnapshot, now: int) -> str:
    if one.state == "broken":
        return f"Schedule {one.id} cannot be evaluated: {one.error}" if rule.when == "fails" else ""
    if rule.when == "fails":
        is_failing = one.has_failed or (one.state == "on" and one.status == "failed")
        return f"A run of schedule {one.id} failed: {one.error or 'its error is not known'}" if is_failing else ""
    if one.state != "on":
        return ""
    if rule.when == "late":
        if one.overdue_for <= rule.after:
            return ""
        return f"Schedule {one.id} is late: it was due at {iso_text(one.due_at or now)} and has not been fired."
    if now - (one.success_at or one.created_at) <= rule.after:
        return ""
    limit = f"limit {span_text(rule.after)}"
    if one.success_at is None:
        return f"Schedule {one.id} has not succeeded since it was created at {iso_text(one.created_at)} ({limit})."
    return f"Schedule {one.id} has not succeeded since {iso_text(one.success_at)} ({limit})."


def _schedule_end(rule: AlertRule, subject: str, one: ScheduleSnapshot | None) -> str:
    if one is None:
        return f"Schedule {subject} does not exist any more."
    if one.state != "on":
        return f"Schedule {subject} is {one.state}."
    if rule.when == "late":
        return f"Schedule {subject} is on time again."
    return f"A run of schedule {subject} succeeded." if one.status == "succeeded" else f"Schedule {subject} is well."


# Queues. The jobs of a paused queue wait because somebody wants them to.


def _queue_finding(rule: AlertRule, one: QueueSnapshot, now: int) -> str:
    if one.is_paused:
        return ""
    if rule.when == "no_worker":
        is_asked_for = one.waiting > 0 or rule.is_exact
        return f"No live worker takes queue {one.name}; {_waiting(one)}." if is_asked_for and not one.has_worker else ""
    if rule.when == "oldest":
        age = 0 if one.oldest_at is None else now - one.oldest_at
        if age <= rule.after:
            return ""
        return f"The oldest job of queue {one.name} has waited for {_rough(age)} (limit {span_text(rule.after)})."
    if one.waiting <= rule.more_than:
        return ""
    return f"In queue {one.name}, {_waiting(one)} (limit {rule.more_than:,})."


def _queue_end(rule: AlertRule, subject: str, one: QueueSnapshot | None) -> str:
    if one is None:
        return f"Queue {subject} has no jobs any more."
    if one.is_paused:
        return f"Queue {subject} is paused."
    if rule.when == "no_worker":
        return f"A live worker takes queue {subject}." if one.has_worker else f"No job waits in queue {subject}."
    return f"Queue {subject} is within its limit again; {_waiting(one)}."


def _waiting(one: QueueSnapshot) -> str:
    if not one.waiting:
        return "no job waits"
    return "1 job waits" if one.waiting == 1 else f"{one.waiting:,} jobs wait"


# Nodes. One that stops in good order leaves the list.


def _node_finding(rule: AlertRule, one: NodeSnapshot, now: int) -> str:
    is_gone = not one.is_alive and now - one.beat_at > rule.after
    return f"Node {one.id} is gone: its last heartbeat was at {iso_text(one.beat_at)}." if is_gone else ""


def _node_end(subject: str, one: NodeSnapshot | None) -> str:
    if one is None:
        return f"Node {subject} is not in the list of nodes any more: it was replaced, or its record has expired."
    return f"Node {subject} sends heartbeats again."


def _rough(micros: int) -> str:
    """In whole seconds."""
    return span_text(micros // SECOND * SECOND)
