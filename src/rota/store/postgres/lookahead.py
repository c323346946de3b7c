"""Jobs that were made ahead: judged when they are due, under the lock of their schedule, as firings are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.lookahead import is_ahead, judge
from rota.model.occurrence import of_skip
from rota.store.contract import MOST_PROMOTED
from rota.store.postgres.firing import REPLACED, FiringSnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job
    from rota.model.lookahead import Judgement
    from rota.model.schedule import Schedule
    from rota.store.postgres.changing import Changer
    from rota.store.postgres.job_rows import JobRows
    from rota.store.postgres.keys import Keys
    from rota.store.postgres.ledger import Ledger
    from rota.store.postgres.schedules import Schedules
    from rota.store.postgres.transaction import Transaction

Verdict = tuple["Job", "Judgement"]

_DUE = (
    "SELECT l.seq, j.schedule_id FROM unnest(%s::text[]) AS q (name) CROSS JOIN LATERAL ("
    "SELECT x.seq FROM {ns}.later x WHERE x.is_ahead AND x.queue = q.name AND x.run_at <= %s "
    "ORDER BY x.run_at, x.seq LIMIT %s) l JOIN {ns}.job j ON j.seq = l.seq "
    "WHERE NOT EXISTS (SELECT FROM {ns}.paused_queue p WHERE p.name = q.name)"
)
_TAKEN = "SELECT seq FROM {ns}.later WHERE seq = ANY(%s) AND is_ahead ORDER BY seq FOR UPDATE SKIP LOCKED"


class LookaheadJudge:
    """One namespace's judge. Two who claim at once never judge one job: each takes the schedules that are free."""

    def __init__(self, schedules: Schedules, jobs: JobRows, keys: Keys, changer: Changer, ledger: Ledger) -> None:
        self._schedules = schedules
        self._jobs = jobs
        self._keys = keys
        self._changer = changer
        self._ledger = ledger

    def judge_due(self, tx: Transaction, queues: Sequence[str], now: int) -> None:
        """Decide about jobs of these queues that are due, a bounded number of them, in the order of their times."""
        due = tx.rows(_DUE, (sorted(set(queues)), now, MOST_PROMOTED))
        schedules = self._free(tx, sorted({name for _, name in due}))
        taken = tx.rows(_TAKEN, ([seq for seq, name in due if name in schedules],))
        jobs = [job for job in self._jobs.at(tx, [seq for (seq,) in taken]) if is_ahead(job)]
        jobs.sort(key=lambda job: (job.run_at, job.seq))
        while jobs:
            jobs = self._judge_some(tx, jobs, schedules, now)

    def _free(self, tx: Transaction, names: Sequence[str]) -> dict[str, Schedule | None]:
        """The schedules, locked; None for those that are gone.

        What somebody else has locked is left out: a claim waits for nobody, and the next one looks again.
        """
        mine: dict[str, Schedule | None] = {schedule.id: schedule for schedule in self._schedules.take(tx, names)}
        rest = [name for name in names if name not in mine]
        others = {schedule.id for schedule in self._schedules.get(tx, rest)} if rest else set()
        return mine | {name: None for name in rest if name not in others}

    def _judge_some(
        self, tx: Transaction, jobs: list[Job], schedules: dict[str, Schedule | None], now: int
    ) -> list[Job]:
        """Judge up to a job that stops another, whose end changes what the next one meets; gives the rest."""
        snapshot = self._look(tx, jobs, now)
        verdicts: list[Verdict] = []
        stopped: str | None = None
        for job in jobs:
            name = job.schedule_id or ""
            live, held, holder = snapshot.live.get(name), snapshot.held.get(name), snapshot.keys.get(job.ahead or "")
            became = judge(job, schedules[name], live, held, holder, now)
            verdicts.append((job, became))
            if became.job is not None:
                snapshot.note(name, became.job)
            stopped = became.cancels
            if stopped is not None:
                break
        self._write(tx, verdicts, schedules, now)
        if stopped is not None:
            self._changer.stop(tx, stopped, REPLACED, now)
        return jobs[len(verdicts) :]

    def _look(self, tx: Transaction, jobs: Sequence[Job], now: int) -> FiringSnapshot:
        live = self._keys.live(tx, [job.schedule_id or "" for job in jobs])
        keys = self._keys.holders(tx, [job.ahead for job in jobs if job.ahead], now)
        return FiringSnapshot(live, self._jobs.last_held(tx, sorted(live)), set(), keys)

    def _write(
        self, tx: Transaction, verdicts: Sequence[Verdict], schedules: dict[str, Schedule | None], now: int
    ) -> None:
        """What became of the jobs; what waited for those that go is let go once the others stand."""
        kept = [(job, became.job) for job, became in verdicts if became.job is not None]
        self._jobs.take(tx, [before for before, _ in kept])
        self._jobs.put(tx, [after for _, after in kept])
        self._keys.put(tx, [after for _, after in kept])
        tx.counts.move_all((before.queue, before.state, after.state) for before, after in kept)
        skips = [(job.schedule_id or "", became.skip) for job, became in verdicts if became.skip is not None]
        known = [(name, skip) for name, skip in skips if schedules[name] is not None]  # others have no ledger
        self._ledger.record(tx, [of_skip(name, skip) for name, skip in known])
        self._changer.unmake(tx, [job for job, became in verdicts if became.job is None], now)
