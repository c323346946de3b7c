"""Decides on jobs that schedules created before they were due, under the locks of their schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.settle import due_order
from rota.model.schedules.lookahead import is_ahead
from rota.model.schedules.occurrence import of_skip
from rota.store.contract import MOST_PROMOTED
from rota.store.postgres import job_rows, keys
from rota.store.postgres.firing import Steps
from rota.store.shared.placing import place_due

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.schedules.occurrence import Occurrence
    from rota.model.schedules.schedule import Schedule
    from rota.model.schedules.slots import Skip
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.schedules import Schedules
    from rota.store.postgres.transaction import Transaction

_DUE = (
    "SELECT l.seq, j.schedule_id FROM unnest(%s::text[]) AS q (name) CROSS JOIN LATERAL ("
    "SELECT x.seq, x.run_at FROM {ns}.later x WHERE x.is_ahead AND x.queue = q.name AND x.run_at <= %s "
    "ORDER BY x.run_at, x.seq LIMIT %s) l JOIN {ns}.job j ON j.seq = l.seq "
    "WHERE NOT EXISTS (SELECT FROM {ns}.paused_queue p WHERE p.name = q.name) ORDER BY l.run_at, l.seq LIMIT %s"
)
_LOCK = "SELECT seq FROM {ns}.later WHERE seq = ANY(%s) AND is_ahead ORDER BY seq FOR UPDATE SKIP LOCKED"


class LookaheadDecider:
    """Two claims never decide about one job: each takes the schedules that no other transaction has locked."""

    def __init__(self, schedules: Schedules, changer: Changer, ledger: Ledger) -> None:
        self._schedules = schedules
        self._changer = changer
        self._ledger = ledger

    def decide_due(self, tx: Transaction, queues: Sequence[str], now: int) -> None:
        """Decide about due jobs of these queues, a bounded number of them, in the order of their times."""
        due = tx.rows(_DUE, (sorted(set(queues)), now, MOST_PROMOTED, MOST_PROMOTED))
        schedules = self._unlocked(tx, sorted({name for _, name in due}))
        locked = tx.rows(_LOCK, ([seq for seq, name in due if name in schedules],))
        jobs = [job for job in job_rows.at(tx, [seq for (seq,) in locked]) if is_ahead(job)]
        steps = LookaheadSteps(tx, self._changer, self._ledger, jobs, now)
        for job in sorted(jobs, key=due_order):
            place_due(job, schedules[job.schedule_id or ""], steps, now)
        steps.write()

    def _unlocked(self, tx: Transaction, names: Sequence[str]) -> dict[str, Schedule | None]:
        """The schedules, locked; None for those that are gone.

        Those that another transaction has locked are left out: a claim does not wait, and the next one looks again.
        """
        mine: dict[str, Schedule | None] = {schedule.id: schedule for schedule in self._schedules.take(tx, names)}
        rest = [name for name in names if name not in mine]
        others = {schedule.id for schedule in self._schedules.read(tx, rest)} if rest else set()
        return mine | {name: None for name in rest if name not in others}


class LookaheadSteps(Steps):
    """What deciding about due jobs reads and writes."""

    def __init__(self, tx: Transaction, changer: Changer, ledger: Ledger, jobs: Sequence[Job], now: int) -> None:
        self._ledger = ledger
        self._kept: list[tuple[Job, Job]] = []
        self._deleted: list[Job] = []
        self._skips: list[Occurrence] = []
        names = [job.schedule_id or "" for job in jobs]
        super().__init__(tx, changer, names, [job.ahead for job in jobs if job.ahead], now)

    def put(self, before: Job, after: Job) -> None:
        self._kept.append((before, after))
        self.add(after)

    def delete_unstarted(self, job: Job) -> None:
        self._deleted.append(job)

    def record_skip(self, schedule_id: str, skip: Skip) -> None:
        self._skips.append(of_skip(schedule_id, skip))

    def write(self) -> None:
        """What waited for deleted jobs is released after the others are written."""
        tx, after = self._tx, [after for _, after in self._kept]
        job_rows.take(tx, [before for before, _ in self._kept])
        job_rows.put(tx, after)
        keys.put(tx, after)
        tx.counts.move_all((before.queue, before.state, after.state) for before, after in self._kept)
        self._ledger.record(tx, self._skips)
        self._changer.delete_unstarted(tx, self._deleted, self._now)
        self._kept, self._deleted, self._skips = [], [], []
