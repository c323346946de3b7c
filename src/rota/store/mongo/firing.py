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
from rota.model.job import accept
from rota.model.micros import SECOND
from rota.model.occurrence import of_skip
from rota.model.state import State
from rota.store.contract import Fired
from rota.store.mongo import notify
from rota.store.mongo.adding import key_holders, last_held, live_in_slots, made_occurrences
from rota.store.mongo.codec import changed, document_of_schedule, last_of
from rota.store.mongo.listing import get_jobs
from rota.store.mongo.outbox import Outbox, current_schedules, deliver
from rota.store.mongo.schedules import runs_so_far, with_outbox
from rota.store.mongo.steps import Contended, batches
from rota.store.shared.placing import advanced, place_firing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.firing import Firing
    from rota.model.job import NewJob
    from rota.store.contract import Due
    from rota.store.mongo.database import Document
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

    def __init__(self, steps: Steps, schedules: Schedules) -> None:
        self._steps = steps
        self._schedules = schedules
        self._locked: dict[str, float] = {}  # schedules, and until when they are left alone

    def due_schedules(self, limit: int, now: int | None) -> Due:
        with self._steps.call() as db:
            at = self._steps.control.now(now)
            self._locked = {name: until for name, until in self._locked.items() if until > time.monotonic()}
            due = self._schedules.due(db, limit, at, list(self._locked))
            if not self._locked:
                return due
            self._steps.control.end_dead()
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
        current = current_schedules(step, [firing.schedule.id for firing in firings])
        taken = [firing for firing in firings if _holds_for(firing, current.get(firing.schedule.id))]
        snapshot = OverlapSnapshot(step, taken, now)
        token = secrets.token_hex(8)
        outboxes: dict[str, Outbox] = {}
        writes: dict[str, UpdateOne] = {}
        answers: dict[str, Fired] = {}
        for firing in taken:
            name = firing.schedule.id
            outbox = Outbox(schedule_id=name, created_at=firing.schedule.created_at, token=token, now=now)
            placed = place_firing(firing, FiringSteps(snapshot, outbox))
            if placed is not None:
                outbox.entries = [of_skip(name, skip) for skip in placed.skips]
                outboxes[name], answers[name] = outbox, Fired.of(name, placed.jobs, placed.skips)
                writes[name] = _advance(firing, current[name], outbox, is_atomic=step.is_atomic)
        won = step.schedules.write_guarded(writes, token) if writes else set()
        reach("fire.before_commit")
        refused = deliver(step, [outboxes[name] for name in outboxes if name in won])
        return [
            _without(answers[name], refused) if name in won else Fired(schedule_id=name, is_accepted=False)
            for name in (firing.schedule.id for firing in firings)
        ]


class OverlapSnapshot:
    """The jobs that a batch of firings meets, with those that it adds itself."""

    def __init__(self, step: Step, firings: Sequence[Firing], now: int) -> None:
        overlapping = [each.schedule.id for each in firings if any(shot.when_busy != "allow" for shot in each.shots)]
        many = {firing.schedule.id for firing in firings if len(firing.shots) > 1}
        times = {shot.job.fire_at or 0 for firing in firings for shot in firing.shots}
        self.live = live_in_slots(step, overlapping)
        self.held = last_held(step, list(self.live))
        self.made = made_occurrences(step, [firing.schedule.id for firing in firings if firing.shots], times)
        self.holders = key_holders(step, {key for firing in firings for key in firing.keys}, now)
        live = get_jobs(step, [self.live[name] for name in self.live if name in many])
        self.unstarted = {job.id for job in live if job.state.is_waiting}  # cancelled at once when they are replaced


class FiringSteps:
    """How a firing is placed (see `place_firing`): what it meets is in the snapshot, what it writes in the outbox."""

    def __init__(self, snapshot: OverlapSnapshot, outbox: Outbox) -> None:
        self._snapshot = snapshot
        self._outbox = outbox

    def live_job(self, schedule_id: str) -> str | None:
        return self._snapshot.live.get(schedule_id)

    def last_held(self, schedule_id: str) -> str | None:
        return self._snapshot.held.get(schedule_id)

    def key_holder(self, key: str) -> str | None:
        return self._snapshot.holders.get(key)

    def was_made(self, schedule_id: str, fire_at: int) -> bool:
        return (schedule_id, fire_at) in self._snapshot.made

    def make(self, new: NewJob) -> None:
        job = accept(new, self._outbox.now)
        self._outbox.jobs.append(job)
        if job.key:
            self._snapshot.holders[job.key] = job.id
        if job.state is State.HELD:
            self._snapshot.held[self._outbox.schedule_id] = job.id
        elif job.slot:
            self._snapshot.live[self._outbox.schedule_id] = job.id
            self._snapshot.unstarted.add(job.id)

    def stop(self, job_id: str, reason: str) -> None:
        """The delivery stops the job. If it is cancelled at once, the job that is held behind it takes its slot."""
        del reason  # the delivery knows it
        self._outbox.stops.append(job_id)
        name, snapshot = self._outbox.schedule_id, self._snapshot
        if job_id in snapshot.unstarted:
            snapshot.live[name] = snapshot.held.pop(name)
            snapshot.unstarted.add(snapshot.live[name])


def _names(firing: Firing) -> list[str | tuple[str, str]]:
    """What a batch may contain once: a schedule, and a key, whose holder must exist before the next job asks for it."""
    return [firing.schedule.id, *(("key", key) for key in firing.keys[:1])]


def _holds_for(firing: Firing, document: Document | None) -> bool:
    return document is not None and firing.holds_for(document["version"], document["created_at"])


def _advance(firing: Firing, document: Document, outbox: Outbox, *, is_atomic: bool) -> UpdateOne:
    """The guarded write that advances the schedule."""
    jobs, was = outbox.jobs, firing.schedule
    current = msgspec.structs.replace(was, last=last_of(document))
    after = advanced(firing, current, [job.id for job in jobs], outbox.now)
    outbox.due_at = after.due_at
    outbox.before = runs_so_far(document) if any(job.key for job in jobs) else None
    fields = {name: value for name, value in document_of_schedule(after).items() if name not in _UNTOUCHED}
    if jobs:
        fields |= {f"last.{name}": getattr(after.last, name) for name in ("enqueued_at", "job_id", "fired_for")}
    mine = {"_id": was.id, "version": was.version, "created_at": was.created_at, "outbox": None}
    return UpdateOne(mine, changed(with_outbox(fields, outbox, is_atomic=is_atomic)))


def _without(answer: Fired, refused: Sequence[str]) -> Fired:
    """The answer without jobs whose keys were taken between the decision and the insert."""
    made = [job_id for job_id in answer.jobs if job_id not in refused]
    late = len(answer.jobs) - len(made)
    if not late:
        return answer
    return msgspec.structs.replace(answer, jobs=made, skipped=answer.skipped + late, unique=answer.unique + late)
