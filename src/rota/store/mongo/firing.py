"""Fires schedules: places each occurrence, makes its job and advances the schedule, in one guarded write per schedule.

A scheduler that dies inside its transaction leaves the schedules of its batch locked until the server, or another node,
ends its session (see `control`). Other batches would then fail as a whole, again and again, for one such schedule in
them. So a batch that was blocked for half a second is halved, down to the single schedules that are locked. Those are
refused, as if another scheduler had changed them first, and for one second they do not count as due.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import msgspec
from pymongo import UpdateOne

from rota.failpoints import reach
from rota.model.firing import fired, place
from rota.model.job import accept
from rota.model.micros import SECOND
from rota.model.occurrence import of_skip
from rota.model.state import State
from rota.store.contract import Fired
from rota.store.mongo import notify
from rota.store.mongo.adding import key_holders, last_held, live_in_slots, made_occurrences
from rota.store.mongo.codec import changed, document_of_schedule, last_of
from rota.store.mongo.listing import get_jobs
from rota.store.mongo.outbox import Outbox
from rota.store.mongo.schedules import runs_so_far, with_outbox
from rota.store.mongo.steps import Contended, batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.firing import Firing
    from rota.model.job import Job
    from rota.model.schedule import Schedule
    from rota.store.contract import Due
    from rota.store.mongo.database import Document
    from rota.store.mongo.outbox import OutboxDelivery
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.steps import Step, Steps

PATIENCE = 0.5  # seconds; the transactions of other schedulers take a few milliseconds
PAUSE = 1.0  # seconds until a locked schedule is tried again

_UNTOUCHED = (  # by a firing
    *("spec", "origin", "tenant", "origin_name"),
    *("generation", "created_at", "updated_at", "is_enabled", "problem"),
)


class Firer:
    """Fires one namespace's schedules."""

    def __init__(self, steps: Steps, schedules: Schedules, delivery: OutboxDelivery) -> None:
        self._steps = steps
        self._schedules = schedules
        self._delivery = delivery
        self._locked: dict[str, float] = {}  # schedules, and until when they are left alone

    def due_schedules(self, limit: int, now: int | None) -> Due:
        with self._steps.call() as db:
            at = self._steps.control.now(now)
            self._locked = {name: until for name, until in self._locked.items() if until > time.monotonic()}
            due = self._schedules.due(db, limit, at, list(self._locked))
            if not self._locked:
                return due
            self._steps.control.end_abandoned()
            again_at = at + int(PAUSE * SECOND)
            return msgspec.structs.replace(due, next_due_at=min(due.next_due_at or again_at, again_at))

    def fire(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        with self._steps.work(now) as turn:
            results = self._fire_around_locks(firings, turn.now, PATIENCE)
        notify.send(self._steps.connection, "jobs")
        return results

    def _fire_around_locks(self, firings: Sequence[Firing], now: int, patience: float) -> list[Fired]:
        """Fire all in one step; if some schedules are locked, the others."""
        try:
            return self._steps.run("fire", lambda step: self._fire(step, firings, now), patience=patience)
        except Contended:
            if len(firings) == 1:
                name = firings[0].schedule.id
                self._locked = {**self._locked, name: time.monotonic() + PAUSE}
                return [Fired(schedule_id=name, is_accepted=False)]
        half = len(firings) // 2
        return [*self._fire_around_locks(firings[:half], now, 0), *self._fire_around_locks(firings[half:], now, 0)]

    def _fire(self, step: Step, firings: Sequence[Firing], now: int) -> list[Fired]:
        return [fired for batch in batches(firings, _names) for fired in self._fire_batch(step, batch, now)]

    def _fire_batch(self, step: Step, firings: Sequence[Firing], now: int) -> list[Fired]:
        current = self._delivery.current_schedules(step, [firing.schedule.id for firing in firings])
        taken = [firing for firing in firings if _holds_for(firing, current.get(firing.schedule.id))]
        snapshot = _snapshot(step, taken, now)
        outboxes: list[Outbox] = []
        writes: list[UpdateOne] = []
        answers: dict[str, Fired] = {}
        for firing in taken:
            if not snapshot.must_wait(firing):
                outbox, answer = snapshot.place(firing, now)
                outboxes.append(outbox)
                writes.append(_advance(firing, current[firing.schedule.id], outbox, is_atomic=step.is_atomic))
                answers[firing.schedule.id] = answer
        won = self._delivery.commit(step, writes, outboxes)
        reach("fire.before_commit")
        refused = self._delivery.deliver(step, [outbox for outbox in won if not outbox.is_empty])
        names = {outbox.schedule_id for outbox in won}
        return [
            _without(answers[name], refused) if name in names else Fired(schedule_id=name, is_accepted=False)
            for name in (firing.schedule.id for firing in firings)
        ]


def _snapshot(step: Step, firings: Sequence[Firing], now: int) -> OverlapSnapshot:
    """What the firings meet."""
    overlapping = [firing.schedule.id for firing in firings if any(shot.when_busy != "allow" for shot in firing.shots)]
    live = live_in_slots(step, overlapping)
    many = {firing.schedule.id for firing in firings if len(firing.shots) > 1}
    times = {shot.job.fire_at or 0 for firing in firings for shot in firing.shots}
    return OverlapSnapshot(
        live=live,
        held=last_held(step, list(live)),
        made=made_occurrences(step, [firing.schedule.id for firing in firings if firing.shots], times),
        unstarted=_unstarted(step, [live[name] for name in live if name in many]),
        holders=key_holders(step, {key for firing in firings for key in firing.keys}, now),
    )


def _unstarted(step: Step, ids: Sequence[str]) -> set[str]:
    return {job.id for job in get_jobs(step, ids) if job.state.is_waiting}


class OverlapSnapshot:
    """The jobs that a batch of firings meets, with those that it adds itself."""

    def __init__(
        self,
        *,
        live: dict[str, str],
        held: dict[str, str],
        made: set[tuple[str, int]],
        unstarted: set[str],
        holders: dict[str, str],
    ) -> None:
        self._live = live  # in the schedules' slots
        self._held = held  # the last held job of each schedule
        self._made = made  # occurrences that have a job
        self._unstarted = unstarted  # live jobs that are cancelled when they are replaced; others are asked to stop
        self._holders = holders  # of keys

    def must_wait(self, firing: Firing) -> bool:
        holder = next((self._holders[key] for key in firing.keys if key in self._holders), None)
        return firing.must_wait(self._live.get(firing.schedule.id), holder)

    def place(self, firing: Firing, now: int) -> tuple[Outbox, Fired]:
        """What becomes of each shot, one after the other: an earlier one may overlap with a later one."""
        name = firing.schedule.id
        skips = list(firing.skips)
        jobs: list[Job] = []
        stops: list[str] = []
        for shot in firing.shots:
            if (name, shot.job.fire_at) in self._made:
                continue  # made by a schedule of that name before the clock was set back
            holder = self._holders.get(shot.job.key or "")
            placement = place(shot, self._live.get(name), self._held.get(name), holder)
            if placement.skip is not None:
                skips.append(placement.skip)
            if placement.job is not None:
                jobs.append(accept(placement.job, now))
                self._add(name, jobs[-1])
            if placement.cancels is not None:
                stops.append(placement.cancels)
                self._replace(name, placement.cancels)
        outbox = Outbox(
            schedule_id=name,
            created_at=firing.schedule.created_at,
            token=secrets.token_hex(8),
            now=now,
            jobs=jobs,
            stops=stops,
            entries=[of_skip(name, skip) for skip in skips],
        )
        return outbox, Fired.of(name, [job.id for job in jobs], skips)

    def _add(self, name: str, job: Job) -> None:
        if job.key:
            self._holders[job.key] = job.id
        if job.state is State.HELD:
            self._held[name] = job.id
        elif job.slot:
            self._live[name] = job.id
            self._unstarted.add(job.id)

    def _replace(self, name: str, replaced: str) -> None:
        """If the replaced job is cancelled at once, the one that is held behind it takes its slot."""
        if replaced in self._unstarted:
            self._live[name] = self._held.pop(name)
            self._unstarted.add(self._live[name])


def _names(firing: Firing) -> list[str | tuple[str, str]]:
    """What a batch may contain once: a schedule, and a key, whose holder must exist before the next job asks for it."""
    return [firing.schedule.id, *(("key", key) for key in firing.keys[:1])]


def _holds_for(firing: Firing, document: Document | None) -> bool:
    return document is not None and firing.holds_for(document["version"], document["created_at"])


def _advance(firing: Firing, document: Document, outbox: Outbox, *, is_atomic: bool) -> UpdateOne:
    """The guarded write that advances the schedule."""
    jobs = outbox.jobs
    known = msgspec.structs.replace(firing, schedule=_with_last(firing.schedule, document))
    after = fired(known, len(jobs), outbox.now, jobs[-1].id if jobs else None)
    outbox.due_at = after.due_at
    outbox.before = runs_so_far(document) if any(job.key for job in jobs) else None
    fields = {name: value for name, value in document_of_schedule(after).items() if name not in _UNTOUCHED}
    if jobs:
        fields |= {f"last.{name}": getattr(after.last, name) for name in ("enqueued_at", "job_id", "fired_for")}
    was = firing.schedule
    mine = {"_id": was.id, "version": was.version, "created_at": was.created_at, "outbox": None}
    return UpdateOne(mine, changed(with_outbox(fields, outbox, is_atomic=is_atomic)))


def _with_last(schedule: Schedule, document: Document) -> Schedule:
    return msgspec.structs.replace(schedule, last=last_of(document))


def _without(answer: Fired, refused: Sequence[str]) -> Fired:
    """The answer without jobs whose keys were taken between the decision and the insert."""
    made = [job_id for job_id in answer.jobs if job_id not in refused]
    late = len(answer.jobs) - len(made)
    if not late:
        return answer
    return msgspec.structs.replace(answer, jobs=made, skipped=answer.skipped + late, unique=answer.unique + late)
