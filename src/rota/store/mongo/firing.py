"""Fires schedules: places each occurrence, makes its job and advances the schedule, in one guarded write per schedule.

A scheduler that dies inside its transaction leaves the schedules of its batch locked until the server, or another node,
ends its session (see `control`). Other batches would then fail as a whole, again and again, for one such schedule in
them. So a batch that was blocked for half a second is halved, down to the single schedules that are locked. Those are
refused, as if another scheduler had changed them first, and for one second they do not count as due.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec
from pymongo import UpdateOne

from rota.failpoints import reach
from rota.model.jobs.job import State, accept
from rota.model.schedules.occurrence import of_skip
from rota.store.contract import Fired
from rota.store.mongo import notify
from rota.store.mongo.adding import key_holders, last_held, live_in_slots, made_occurrences
from rota.store.mongo.codec import changed, document_of_schedule, last_of
from rota.store.mongo.listing import get_jobs
from rota.store.mongo.outbox import Outbox, current_schedules, deliver
from rota.store.mongo.schedules import guard_of, runs_so_far, with_outbox
from rota.store.mongo.steps import Contended
from rota.store.shared.batching import batches, names_of_firing
from rota.store.shared.placing import BatchSnapshot, advanced, place_firing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import NewJob
    from rota.model.schedules.firing import Firing
    from rota.store.mongo.database import Document
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.steps import Step, Steps

PATIENCE = 0.5  # seconds; the transactions of other schedulers take a few milliseconds

_UNTOUCHED = (  # by a firing: a newer node may have stored what this one does not know
    *("spec", "origin", "tenant", "origin_name"),
    *("generation", "created_at", "updated_at", "is_enabled", "problem"),
)


class Firer:
    """Fires one namespace's schedules."""

    def __init__(self, steps: Steps, schedules: Schedules) -> None:
        self._steps = steps
        self._schedules = schedules

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
                self._schedules.leave_alone(name)
                return [Fired(schedule_id=name, is_accepted=False)]
        half = len(firings) // 2
        return [*self._fire_around_locks(firings[:half], now, 0), *self._fire_around_locks(firings[half:], now, 0)]

    def _fire(self, step: Step, firings: Sequence[Firing], now: int) -> list[Fired]:
        return [fired for batch in batches(firings, names_of_firing) for fired in self._fire_batch(step, batch, now)]

    def _fire_batch(self, step: Step, firings: Sequence[Firing], now: int) -> list[Fired]:
        current = current_schedules(step, [firing.schedule.id for firing in firings])
        taken = [firing for firing in firings if firing.holds_for(*guard_of(current.get(firing.schedule.id)))]
        steps = FiringSteps(step, taken, now)
        token = secrets.token_hex(8)
        outboxes: dict[str, Outbox] = {}
        writes: dict[str, UpdateOne] = {}
        answers: dict[str, Fired] = {}
        for firing in taken:
            name = firing.schedule.id
            outbox = Outbox(schedule_id=name, created_at=firing.schedule.created_at, token=token, now=now)
            steps.outbox = outbox
            placed = place_firing(firing, steps)
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


class FiringSteps(BatchSnapshot):
    """How the firings of a batch are placed (see `place_firing`): what they meet, with the jobs that they add
    themselves. What a firing writes goes to its outbox."""

    outbox: Outbox

    def __init__(self, step: Step, firings: Sequence[Firing], now: int) -> None:
        overlapping = [each.schedule.id for each in firings if any(shot.when_busy != "allow" for shot in each.shots)]
        many = {firing.schedule.id for firing in firings if len(firing.shots) > 1}
        times = {shot.job.fire_at or 0 for firing in firings for shot in firing.shots}
        live = live_in_slots(step, overlapping)
        holders = key_holders(step, {key for firing in firings for key in firing.keys}, now)
        super().__init__(live, last_held(step, list(live)), holders)
        self._made = made_occurrences(step, [firing.schedule.id for firing in firings if firing.shots], times)
        waiting = get_jobs(step, [live[name] for name in live if name in many])
        self._unstarted = {job.id for job in waiting if job.state.is_waiting}  # cancelled at once when replaced

    def make(self, new: NewJob) -> None:
        job = accept(new, self.outbox.now)
        self.outbox.jobs.append(job)
        self.add(job)
        if job.state is not State.HELD and job.slot:
            self._unstarted.add(job.id)

    def stop(self, job_id: str, reason: str) -> None:
        """The delivery stops the job. If it is cancelled at once, the job that is held behind it takes its slot."""
        del reason  # the delivery knows it
        self.outbox.stops.append(job_id)
        name = self.outbox.schedule_id
        if job_id in self._unstarted:
            self._live[name] = self._held.pop(name)
            self._unstarted.add(self._live[name])


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
    return msgspec.structs.replace(answer, jobs=made, skipped=answer.skipped + late, unique=answer.unique + late)
