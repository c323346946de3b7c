"""Fires schedules: adds their jobs and advances them under their versions, a batch in a handful of statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import accept
from rota.model.schedules.occurrence import of_skip
from rota.store.contract import Fired
from rota.store.postgres import job_rows, keys
from rota.store.postgres.fast import firing as fast
from rota.store.shared.placing import BatchSnapshot, advanced, place_firing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.model.schedules.firing import Firing
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.connection import Database
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.schedules import Schedules
    from rota.store.postgres.transaction import Transaction
    from rota.store.shared.placing import Placed


class Firer:
    """One namespace's firings."""

    def __init__(self, database: Database, schedules: Schedules, changer: Changer, ledger: Ledger) -> None:
        self._database = database
        self._schedules = schedules
        self._changer = changer
        self._ledger = ledger

    def fire(self, firings: Sequence[Firing], now: int | None) -> list[Fired]:
        if not firings:
            return []
        answers = fast.fire(self._database, firings, now)
        return answers or self._database.write("fire", lambda tx, at: self._fire(tx, firings, at), now)

    def _fire(self, tx: Transaction, firings: Sequence[Firing], now: int) -> list[Fired]:
        """Fire the schedules that still are what was decided on; one that occurs twice is fired once."""
        guards = self._schedules.guards(tx, [firing.schedule.id for firing in firings])
        holding: dict[str, Firing] = {}
        for firing in firings:
            guard = guards.get(firing.schedule.id)
            if guard is not None and firing.holds_for(*guard[:2]):
                holding.setdefault(firing.schedule.id, firing)
        steps = FiringSteps(tx, self._changer, list(holding.values()), now)
        placed = {name: place_firing(firing, steps) for name, firing in holding.items()}
        steps.write()
        accepted = {name: one for name, one in placed.items() if one is not None}
        self._ledger.record(tx, [of_skip(name, skip) for name, one in accepted.items() for skip in one.skips])
        after = []
        for name, one in accepted.items():  # their last run as it was: a job that was replaced here is none
            current = msgspec.structs.replace(holding[name].schedule, last=guards[name][2])
            after.append(advanced(holding[name], current, one.jobs, now))
        self._schedules.update(tx, after)
        return [_answer(firing, holding, accepted) for firing in firings]


class Steps(BatchSnapshot, ABC):
    """What placing occurrences finds: read once for a batch, and again after a job was stopped."""

    def __init__(
        self, tx: Transaction, changer: Changer, names: Sequence[str], wanted: Sequence[str], now: int
    ) -> None:
        self._tx = tx
        self._changer = changer
        self._names = names
        self._wanted = wanted  # keys
        self._now = now
        self._read()

    def _read(self) -> None:
        live = keys.live(self._tx, self._names)
        held = job_rows.last_held(self._tx, sorted(live))
        super().__init__(live, held, keys.holders(self._tx, self._wanted, self._now))

    def stop(self, job_id: str, reason: str) -> None:
        self.write()
        self._changer.stop(self._tx, job_id, reason, self._now)
        self._read()

    @abstractmethod
    def write(self) -> None:
        """Write what was placed since the last time, by the batch."""


class FiringSteps(Steps):
    """Those of firings."""

    def __init__(self, tx: Transaction, changer: Changer, firings: Sequence[Firing], now: int) -> None:
        shots = [(firing.schedule.id, shot) for firing in firings for shot in firing.shots]
        self._made = job_rows.made(tx, [(name, shot.job.fire_at) for name, shot in shots])
        self._new: list[Job] = []
        names = [name for name, shot in shots if shot.when_busy != "allow"]
        super().__init__(tx, changer, names, [key for firing in firings for key in firing.keys], now)

    def make(self, new: NewJob) -> None:
        job = accept(new, self._now)
        self._new.append(job)
        self.add(job)

    def write(self) -> None:
        jobs, self._new = self._new, []
        if jobs:
            job_rows.notify(self._tx, jobs)
            keys.put(self._tx, job_rows.insert(self._tx, job_rows.placed(self._tx, jobs)))


def _answer(firing: Firing, holding: dict[str, Firing], accepted: dict[str, Placed]) -> Fired:
    name = firing.schedule.id
    if name not in accepted or holding[name] is not firing:
        return Fired(schedule_id=name, is_accepted=False)
    return Fired.of(name, accepted[name].jobs, accepted[name].skips)
