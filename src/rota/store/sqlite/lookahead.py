"""Decides about due jobs that their schedules created ahead, in the transaction of the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.occurrence import of_skip
from rota.store.shared.placing import place_due
from rota.store.sqlite.firing import Steps

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.model.slots import Skip
    from rota.store.shared.counting import Counts
    from rota.store.sqlite.jobs import JobTable
    from rota.store.sqlite.ledger import Ledger
    from rota.store.sqlite.schedules import ScheduleTable


class LookaheadJudge:
    """One namespace's jobs that were created ahead."""

    def __init__(self, schedules: ScheduleTable, jobs: JobTable, ledger: Ledger) -> None:
        self._schedules = schedules
        self._jobs = jobs
        self._ledger = ledger

    def judge_due(self, connection: sqlite3.Connection, queues: Sequence[str], now: int, counts: Counts) -> None:
        """Decide about the due jobs of these queues, a bounded number of them, in the order of their times."""
        for job in self._jobs.due_ahead(connection, queues, now):
            schedule = next(iter(self._schedules.get(connection, [job.schedule_id or ""])), None)
            place_due(job, schedule, _Steps(connection, self._jobs, self._ledger, now, counts), now)


class _Steps(Steps):
    """What deciding about a job reads and writes."""

    def __init__(
        self, connection: sqlite3.Connection, jobs: JobTable, ledger: Ledger, now: int, counts: Counts
    ) -> None:
        super().__init__(connection, jobs, now, counts)
        self._ledger = ledger

    def put(self, before: Job, after: Job) -> None:
        self._jobs.put(self._connection, before, after, self._counts)

    def unmake(self, job: Job) -> None:
        self._jobs.unmake(self._connection, [job], self._now, self._counts)

    def record_skip(self, schedule_id: str, skip: Skip) -> None:
        self._ledger.record(self._connection, [of_skip(schedule_id, skip)])
