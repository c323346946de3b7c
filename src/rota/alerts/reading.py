"""Reads from a store the facts that alert rules use, and no more: a rule about queues reads no schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.inspector.coming import overdue_for
from rota.inspector.facts.queue import last_audit_record
from rota.inspector.reading import all_entries, schedules_from
from rota.inspector.schedule_state import schedule_problem, state_given
from rota.model.alerts.decide import Kept
from rota.model.alerts.findings import AlertSnapshot, NodeSnapshot, QueueSnapshot, ScheduleSnapshot, shortened
from rota.model.alerts.incident import KIND, SILENCE_KIND, unpack_incident, unpack_silence
from rota.model.alerts.rule import EVERY
from rota.store.shared.liveness import is_alive, live_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rota.model.alerts.incident import Silence
    from rota.model.alerts.rule import AlertRule
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import QueueInfo, Store

MOST_READ = 10_000  # schedules that one check reads


def read_snapshot(store: Store, rules: Collection[AlertRule], now: int, since: int | None) -> AlertSnapshot:
    """The facts that the rules use. Runs that failed at `since` or later count, even if others succeeded since."""
    kinds = {rule.kind for rule in rules}
    nodes = store.list_nodes() if kinds & {"queue", "node"} else []
    schedules, is_whole = _schedules(store, rules, now, since) if "schedule" in kinds else ({}, True)
    taken = {queue for node in live_nodes(nodes, now) if "worker" in node.roles for queue in node.queues}
    queues = _queues(store, rules, taken, now) if "queue" in kinds else {}
    return AlertSnapshot(
        now=now,
        schedules=schedules,
        queues=queues,
        nodes={one.id: NodeSnapshot(id=one.id, beat_at=one.beat_at, is_alive=is_alive(one, now)) for one in nodes},
        is_whole=is_whole,
    )


def read_incidents(store: Store) -> dict[str, Kept]:
    """All incidents by id, those of other apps included."""
    found = ((entry, unpack_incident(entry.data)) for entry in all_entries(store, KIND))
    return {entry.name: Kept(incident, entry.version) for entry, incident in found if incident is not None}


def read_silences(store: Store) -> dict[str, Silence]:
    """Silences by target, those that are over included."""
    found = (unpack_silence(entry.data) for entry in all_entries(store, SILENCE_KIND))
    return {silence.target: silence for silence in found if silence is not None}


def _schedules(
    store: Store, rules: Collection[AlertRule], now: int, since: int | None
) -> tuple[dict[str, ScheduleSnapshot], bool]:
    mine = [rule for rule in rules if rule.kind == "schedule"]
    exact = sorted({rule.selects for rule in mine if rule.is_exact})
    found: dict[str, Schedule] = {one.id: one for one in store.get_schedules(exact)} if exact else {}
    is_whole = True
    for prefix in _prefixes(mine):
        for schedule in _with_prefix(store, prefix):
            if len(found) >= MOST_READ:
                is_whole = False
                break
            found[schedule.id] = schedule
    failed = _failed_since(store, since) if any(rule.when == "fails" for rule in mine) else {}
    return {name: _snapshot(one, now, failed.get(name)) for name, one in found.items()}, is_whole


def _prefixes(rules: Collection[AlertRule]) -> list[str]:
    """The prefixes to read, without those that a shorter one covers."""
    wanted = sorted({rule.selects.removesuffix(EVERY) for rule in rules if not rule.is_exact})
    kept: list[str] = []
    for prefix in wanted:
        if not any(prefix.startswith(shorter) for shorter in kept):
            kept.append(prefix)
    return kept


def _with_prefix(store: Store, prefix: str) -> Iterator[Schedule]:
    """The schedule whose id is the prefix itself, and those whose ids continue it."""
    if prefix:
        yield from store.get_schedules([prefix])
    yield from schedules_from(store, prefix)


def _failed_since(store: Store, since: int | None) -> dict[str, str]:
    """Schedules of which a run failed for good since the last check, each with the error."""
    if since is None:
        return {}
    errors = {failure.id: failure.error for failure in store.list_failures(since)}
    jobs = store.get_jobs(list(errors)) if errors else []
    return {job.schedule_id: errors[job.id] for job in jobs if job.schedule_id is not None}


def _snapshot(schedule: Schedule, now: int, failed: str | None) -> ScheduleSnapshot:
    problem = schedule_problem(schedule)
    return ScheduleSnapshot(
        id=schedule.id,
        state=state_given(problem, schedule, now),
        created_at=schedule.created_at,
        status=schedule.last.status,
        is_failing=schedule.last.is_failing,
        error=shortened(problem or failed or _error(schedule)),
        success_at=schedule.last.success_at,
        due_at=schedule.due_at,
        overdue_for=overdue_for(schedule, now),
        has_failed=failed is not None,
    )


def _error(schedule: Schedule) -> str:
    """The error of its last failed attempt; empty if a run was cancelled since: then only the reason is known."""
    return "" if schedule.last.status == "cancelled" else schedule.last_error or ""


def _queues(store: Store, rules: Collection[AlertRule], taken: set[str], now: int) -> dict[str, QueueSnapshot]:
    found = {
        one.name: QueueSnapshot(
            name=one.name,
            waiting=one.counts.get("queued", 0),
            oldest_at=one.oldest_at,
            resumed_at=_resumed_at(store, one) if _is_too_old(one, rules, now) else None,
            is_paused=one.is_paused,
            has_worker=one.name in taken,
        )
        for one in store.list_queues()
    }
    named = {rule.selects for rule in rules if rule.kind == "queue" and rule.is_exact}
    return found | {name: QueueSnapshot(name=name, has_worker=name in taken) for name in named - found.keys()}


def _is_too_old(queue: QueueInfo, rules: Collection[AlertRule], now: int) -> bool:
    """Whether its oldest job has waited for longer than a rule allows, pauses included."""
    if queue.is_paused or queue.oldest_at is None:
        return False
    age = now - queue.oldest_at
    return any(rule.when == "oldest" and age > rule.after and rule.matches(queue.name) for rule in rules)


def _resumed_at(store: Store, queue: QueueInfo) -> int | None:
    """The end of its last pause. Only the audit has it; None if it was never paused, or the record was pruned."""
    record = last_audit_record(store, queue.name, "resumed")
    return None if record is None else record.at
