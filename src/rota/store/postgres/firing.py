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
    from rota.store.postgres.changes import Changes
    from rota.store.postgres.jobs import Jobs
    from rota.store.postgres.keys import Keys
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.schedules import Guard, Schedules
    from rota.store.postgres.transaction import Transaction

REPLACED = "replaced by the next occurrence"


class Situation:
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


class Volley:
    """What one firing comes to."""

    def __init__(self, firing: Firing) -> None:
        self.firing = firing
        self.jobs: list[Job] = []
        self.skips: list[Skip] = list(firing.skips)

    @property
    def made(self) -> list[str]:
        return [job.id for job in self.jobs]


class Shooting:
    """One namespace's firings."""

    def __init__(self, schedules: Schedules, jobs: Jobs, keys: Keys, changes: Changes, ledger: Ledger) -> None:
        self._schedules = schedules
        self._jobs = jobs
        self._keys = keys
        self._changes = changes
        self._ledger = ledger

    def fire(self, tx: Transaction, firings: Sequence[Firing], now: int) -> list[Fired]:
        """Fire what still is as it was when that was decided; a schedule that comes twice is fired once."""
        guards = self._schedules.guards(tx, [firing.schedule.id for firing in firings])
        holding: dict[str, Volley] = {}
        for firing in firings:
            guard = guards.get(firing.schedule.id)
            if guard is not None and firing.schedule.id not in holding and firing.holds_for(*guard[:2]):
                holding[firing.schedule.id] = Volley(firing)
        situation = self._look(tx, list(holding.values()), now)
        holding = {name: one for name, one in holding.items() if not situation.must_wait(one.firing)}
        self._place(tx, list(holding.values()), situation, now)
        self._advance(tx, holding, guards, now)
        return [_told(firing, holding.get(firing.schedule.id)) for firing in firings]

    def _place(self, tx: Transaction, volleys: Sequence[Volley], situation: Situation, now: int) -> None:
        """Make the jobs in the order given: most firings at once, and those that stop a live job shot by shot."""
        for by_turns, group in groupby(volleys, lambda volley: _replaces(volley.firing, situation)):
            if by_turns:
                for volley in group:
                    self._place_by_turns(tx, volley, now)
                situation.keys = self._holders(tx, volleys, now)
            else:
                self._place_at_once(tx, list(group), situation, now)

    def _place_at_once(self, tx: Transaction, volleys: Sequence[Volley], situation: Situation, now: int) -> None:
        for volley in volleys:
            for shot in volley.firing.shots:
                self._shoot(volley, shot, situation, now)
        self._insert(tx, [job for volley in volleys for job in volley.jobs])

    def _place_by_turns(self, tx: Transaction, volley: Volley, now: int) -> None:
        for shot in volley.firing.shots:
            situation = self._look(tx, [volley], now)
            before = len(volley.jobs)
            stopped = self._shoot(volley, shot, situation, now)
            self._insert(tx, volley.jobs[before:])
            if stopped is not None:
                self._changes.stop(tx, stopped, REPLACED, now)

    def _shoot(self, volley: Volley, shot: Shot, situation: Situation, now: int) -> str | None:
        """Decide about one shot; gives the job that is to be stopped for it."""
        name = volley.firing.schedule.id
        if (name, shot.job.fire_at or 0) in situation.made:
            return None  # made already, by a schedule of that name before the clock stepped back
        holder = situation.keys.get(shot.job.key or "")
        placement = place(shot, situation.live.get(name), situation.held.get(name), holder)
        if placement.skip is not None:
            volley.skips.append(placement.skip)
        if placement.job is not None:
            job = accept(placement.job, now)
            volley.jobs.append(job)
            situation.note(name, job)
        return placement.cancels

    def _look(self, tx: Transaction, volleys: Sequence[Volley], now: int) -> Situation:
        """Everything that the placing of a batch must know, in three questions, or four where keys are asked for."""
        shots = [(volley.firing.schedule.id, shot) for volley in volleys for shot in volley.firing.shots]
        if not shots:
            return Situation({}, {}, set(), {})
        made = self._jobs.made(tx, [(name, shot.job.fire_at) for name, shot in shots])
        live = self._keys.live(tx, [name for name, shot in shots if shot.when_busy != "allow"])
        return Situation(live, self._jobs.last_held(tx, sorted(live)), made, self._holders(tx, volleys, now))

    def _holders(self, tx: Transaction, volleys: Sequence[Volley], now: int) -> dict[str, str]:
        return self._keys.holders(tx, [key for volley in volleys for key in volley.firing.keys], now)

    def _insert(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        if jobs:
            self._jobs.tell(tx, jobs)
            placed = self._jobs.insert(tx, jobs)
            self._keys.put(tx, placed)

    def _advance(self, tx: Transaction, holding: dict[str, Volley], guards: dict[str, Guard], now: int) -> None:
        """Record the skips and write the schedules as they are after their firing."""
        lines = [of_skip(name, skip) for name, volley in holding.items() for skip in volley.skips]
        self._ledger.record(tx, lines)
        after = []
        for name, volley in holding.items():  # their last run as it was: what is replaced here is none
            schedule = msgspec.structs.replace(volley.firing.schedule, last=guards[name][2])
            firing = msgspec.structs.replace(volley.firing, schedule=schedule)
            after.append(fired(firing, len(volley.made), now, volley.made[-1] if volley.made else None))
        self._schedules.update(tx, after)


def _replaces(firing: Firing, situation: Situation) -> bool:
    """Whether a firing may stop a live job, whose end changes what the next shot meets."""
    is_busy = firing.schedule.id in situation.live or len(firing.shots) > 1
    return is_busy and any(shot.when_busy == "cancel" for shot in firing.shots)


def _told(firing: Firing, volley: Volley | None) -> Fired:
    name = firing.schedule.id
    if volley is None or volley.firing is not firing:
        return Fired(schedule_id=name, is_accepted=False)
    return Fired.of(name, volley.made, volley.skips)
