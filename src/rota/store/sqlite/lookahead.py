"""Decides on due jobs that their schedules created in advance, in the transaction of the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.schedules.occurrence import of_skip
from rota.store.shared.placing import place_due
from rota.store.sqlite.firing import PlacingSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.slots import Skip
    from rota.store.sqlite.adding import Adder
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.schedules import Schedules
    from rota.store.sqlite.transaction import Transaction


class LookaheadDecider:
    """One namespace's jobs that were created ahead."""

    def __init__(self, namespace: str, schedules: Schedules, adder: Adder, changer: Changer, ledger: Ledger) -> None:
        self._jobs = f"{namespace}_job"
        self._schedules = schedules
        self._adder = adder
        self._changer = changer
        self._ledger = ledger

    def decide(self, tx: Transaction, jobs: Sequence[Job]) -> None:
        """Decide about due jobs, one after another: the first may be what the next would overlap with."""
        for job in jobs:
            schedule = next(iter(self._schedules.read(tx, [job.schedule_id or ""])), None)
            steps = _Steps(tx, self._jobs, self._adder, self._changer, self._ledger)
            place_due(job, schedule, steps, tx.now)


class _Steps(PlacingSteps):
    """What deciding about a job reads and writes."""

    def __init__(self, tx: Transaction, jobs: str, adder: Adder, changer: Changer, ledger: Ledger) -> None:
        super().__init__(tx, jobs, adder, changer)
        self._ledger = ledger

    def put(self, before: Job, after: Job) -> None:
        self._changer.put(self._tx, before, after)

    def delete_unstarted(self, job: Job) -> None:
        self._changer.delete_unstarted(self._tx, [job], self._tx.now)

    def record_skip(self, schedule_id: str, skip: Skip) -> None:
        self._ledger.record(self._tx, [of_skip(schedule_id, skip)])
