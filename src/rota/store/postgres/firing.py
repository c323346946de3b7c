"""Firing: jobs made and schedules advanced, a whole batch in a handful of statements, each under its version."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from rota.model.firing import fired, place
from rota.model.job import accept
from rota.model.occurrence import of_skip
from rota.model.state import State
from rota.store.contract import Fired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.firing import Firing, Shot
    from rota.model.job import Job
    from rota.model.slots import Skip
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.job_rows import JobRows
    from rota.store.postgres.keys import Keys
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.schedules import Guard, Schedules
    from rota.store.postgres.transaction import Transaction

REPLACED = "replaced by the next occurrence"


class FiringSnapshot:
    """What is known of the schedules' jobs while a batch is placed."""

    def __init__(
        self, live: dict[str, str], held: dict[str, str], made: set[tuple[str, int]], keys: dict[str, str]
    ) -> None:
        self.live = live  # schedule -> the job in its slot
        self.held = held  # schedule -> the last job that is held
        self.made = made  # occurrences that have a job already
        self.keys = keys  # key -> the job that holds it

    def note(self, name: str, job: Job) -> None:
        if job.state is State.HELD:
            self.held[name] = job.id
        elif job.slot:
            self.live[name] = job.id
        if job.key:
            self.keys[job.key] = job.id

    def holder(self, firing: Firing) -> str | None:
        """A job that holds a key which the firing asks for."""
        return next((self.keys[key] for key in firing.keys if key in self.keys), None)

    def must_wait(self, firing: Firing) -> bool:
        return firing.must_wait(self.live.get(firing.schedule.id), self.holder(firing))


class PendingFiring:
    """What one firing comes to."""

    def __init__(self, firing: Firing) -> None:
        self.firing = firing
        self.jobs: list[Job] = []
        self.skips: list[Skip] = list(firing.skips)

    @property
    def made(self) -> list[str]:
        return [job.id for job in self.jobs]


class Firer:
    """One namespace's firings."""

    def __init__(self, schedules: Schedules, jobs: JobRows, keys: Keys, changer: Changer, ledger: Ledger) -> None:
        self._schedules = schedules
        self._jobs = jobs
        self._keys = keys
        self._changer = changer
        self._ledger = ledger

    def fire(self, tx: Transaction, firings: Sequence[Firing], now: int) -> list[Fired]:
        """Fire what still is as it was when that was decided; a schedule that comes twice is fired once."""
        guards = self._schedules.guards(tx, [firing.schedule.id for firing in firings])
        holding: dict[str, PendingFiring] = {}
        for firing in firings:
            guard = guards.get(firing.schedule.id)
            if guard is not None and firing.schedule.id not in holding and firing.holds_for(*guard[:2]):
                holding[firing.schedule.id] = PendingFiring(firing)
        snapshot = self._look(tx, list(holding.values()), now)
        holding = {name: one for name, one in holding.items() if not snapshot.must_wait(one.firing)}
        self._place(tx, list(holding.values()), snapshot, now)
        self._advance(tx, holding, guards, now)
        return [_told(firing, holding.get(firing.schedule.id)) for firing in firings]

    def _place(self, tx: Transaction, batch: Sequence[PendingFiring], snapshot: FiringSnapshot, now: int) -> None:
        """Make the jobs in the order given: most firings at once, and those that stop a live job shot by shot."""
        for by_turns, group in groupby(batch, lambda pending: _replaces(pending.firing, snapshot)):
            if by_turns:
                for pending in group:
                    self._place_by_turns(tx, pending, now)
                snapshot.keys = self._holders(tx, batch, now)
            else:
                self._place_at_once(tx, list(group), snapshot, now)

    def _place_at_once(
        self, tx: Transaction, batch: Sequence[PendingFiring], snapshot: FiringSnapshot, now: int
    ) -> None:
        for pending in batch:
            for shot in pending.firing.shots:
                self._shoot(pending, shot, snapshot, now)
        self._insert(tx, [job for pending in batch for job in pending.jobs])

    def _place_by_turns(self, tx: Transaction, pending: PendingFiring, now: int) -> None:
        for shot in pending.firing.shots:
            snapshot = self._look(tx, [pending], now)
            before = len(pending.jobs)
            stopped = self._shoot(pending, shot, snapshot, now)
            self._insert(tx, pending.jobs[before:])
            if stopped is not None:
                self._changer.stop(tx, stopped, REPLACED, now)

    def _shoot(self, pending: PendingFiring, shot: Shot, snapshot: FiringSnapshot, now: int) -> str | None:
        """Decide about one shot; gives the job that is to be stopped for it."""
        name = pending.firing.schedule.id
        if (name, shot.job.fire_at or 0) in snapshot.made:
            return None  # made already, by a schedule of that name before the clock stepped back
        holder = snapshot.keys.get(shot.job.key or "")
        placement = place(shot, snapshot.live.get(name), snapshot.held.get(name), holder)
        if placement.skip is not None:
            pending.skips.append(placement.skip)
        if placement.job is not None:
            job = accept(placement.job, now)
            pending.jobs.append(job)
            snapshot.note(name, job)
        return placement.cancels

    def _look(self, tx: Transaction, batch: Sequence[PendingFiring], now: int) -> FiringSnapshot:
        """Everything that the placing of a batch must know, in three questions, or four where keys are asked for."""
        shots = [(pending.firing.schedule.id, shot) for pending in batch for shot in pending.firing.shots]
        if not shots:
            return FiringSnapshot({}, {}, set(), {})
        made = self._jobs.made(tx, [(name, shot.job.fire_at) for name, shot in shots])
        live = self._keys.live(tx, [name for name, shot in shots if shot.when_busy != "allow"])
        return FiringSnapshot(live, self._jobs.last_held(tx, sorted(live)), made, self._holders(tx, batch, now))

    def _holders(self, tx: Transaction, batch: Sequence[PendingFiring], now: int) -> dict[str, str]:
        return self._keys.holders(tx, [key for pending in batch for key in pending.firing.keys], now)

    def _insert(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        if jobs:
            self._jobs.tell(tx, jobs)
            placed = self._jobs.insert(tx, jobs)
            self._keys.put(tx, placed)

    def _advance(self, tx: Transaction, holding: dict[str, PendingFiring], guards: dict[str, Guard], now: int) -> None:
        """Record the skips and write the schedules as they are after their firing."""
        lines = [of_skip(name, skip) for name, pending in holding.items() for skip in pending.skips]
        self._ledger.record(tx, lines)
        after = []
        for name, pending in holding.items():  # their last run as it was: what is replaced here is none
            schedule = msgspec.structs.replace(pending.firing.schedule, last=guards[name][2])
            firing = msgspec.structs.replace(pending.firing, schedule=schedule)
            after.append(fired(firing, len(pending.made), now, pending.made[-1] if pending.made else None))
        self._schedules.update(tx, after)


def _replaces(firing: Firing, snapshot: FiringSnapshot) -> bool:
    """Whether a firing may stop a live job, whose end changes what the next shot meets."""
    is_busy = firing.schedule.id in snapshot.live or len(firing.shots) > 1
    return is_busy and any(shot.when_busy == "cancel" for shot in firing.shots)


def _told(firing: Firing, pending: PendingFiring | None) -> Fired:
    name = firing.schedule.id
    if pending is None or pending.firing is not firing:
        return Fired(schedule_id=name, is_accepted=False)
    return Fired.of(name, pending.made, pending.skips)
