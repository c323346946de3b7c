"""Upkeep: what has been kept long enough goes, and what was left half done by processes that died is finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.state import FINAL
from rota.store.contract import Pruned
from rota.store.mongo.documents import jobs_of

if TYPE_CHECKING:
    from rota.model.job import Job
    from rota.store.contract import Retention
    from rota.store.mongo.counters import Counters
    from rota.store.mongo.judging import Judges
    from rota.store.mongo.ledger import Ledger
    from rota.store.mongo.records import Entries, Notes
    from rota.store.mongo.removing import Remover
    from rota.store.mongo.schedules import Schedules
    from rota.store.mongo.settling import Settler
    from rota.store.mongo.space import Document, Space
    from rota.store.mongo.steps import Step, Steps


class Upkeep:
    """One namespace's."""

    def __init__(
        self,
        steps: Steps,
        settler: Settler,
        schedules: Schedules,
        remover: Remover,
        ledger: Ledger,
        counters: Counters,
        judges: Judges,
        entries: Entries,
        notes: Notes,
    ) -> None:
        self._steps = steps
        self._settler = settler
        self._schedules = schedules
        self._remover = remover
        self._ledger = ledger
        self._counters = counters
        self._judges = judges
        self._entries = entries
        self._notes = notes

    def finish(self, space: Space, limit: int, now: int) -> None:
        """Deliver what others did not, and release jobs that wait for what is over."""
        self.deliver(space, limit)
        stuck = self._settler.waiters.heal(space, limit)
        if stuck:
            self._steps.run("deliver", lambda step: self._look_at(step, stuck, now))

    def deliver(self, space: Space, limit: int) -> None:
        """Deliver what others did not: what follows from edits and firings, lines of skipped jobs, notes."""
        self._schedules.deliver_some(space, limit)
        self._entries.finish(space, limit)
        owing = self._judges.owing(space, limit)
        if owing:
            self._steps.run("deliver", lambda step: self._judges.finish(step, owing), is_loose=True)

    def _look_at(self, step: Step, stuck: list[Job], now: int) -> None:
        for job in stuck:
            self._settler.waiters.look_at(step, job, now)

    def prune(self, space: Space, retention: Retention, limit: int, now: int) -> Pruned:
        """Remove a bounded batch of what was kept long enough."""
        surplus = self._counters.ended(space) - retention.most_finished

        def work(step: Step) -> Pruned:
            jobs: list[Job] = []
            for state in sorted(FINAL):
                before = now - retention.kept_for(state)
                jobs += self._ended(
                    step, {"state": state.value, "finished_at": {"$lte": before}}, now, limit - len(jobs)
                )
            jobs = self._oldest(step, jobs, now, surplus, limit)
            removed = self._remover.remove(step, jobs)
            lines = self._ledger.prune(step, retention, now, limit)
            silent = step.space.nodes.delete_many(
                {"beat_at": {"$lte": now - retention.nodes_for}}, session=step.session
            ).deleted_count
            notes = self._notes.prune(step, now - retention.audit_for, limit)
            return Pruned(len(removed), lines, silent, notes)

        return self._steps.run("prune", work)

    def _oldest(self, step: Step, jobs: list[Job], now: int, surplus: int, limit: int) -> list[Job]:
        """Those, and the oldest of any state that are too many."""
        room = min(surplus, limit) - len(jobs)
        if room <= 0:
            return jobs
        chosen = {job.id for job in jobs}
        ended = [
            job
            for state in FINAL
            for job in self._ended(
                step, {"state": state.value, "finished_at": {"$exists": True}}, now, room + len(jobs)
            )
        ]
        ended.sort(key=lambda job: job.finished_at or 0)
        return jobs + [job for job in ended if job.id not in chosen][:room]

    def _ended(self, step: Step, query: Document, now: int, limit: int) -> list[Job]:
        """Ended jobs, the oldest first, but for those whose key still holds."""
        if limit <= 0:
            return []
        free = {"$or": [{"key_until": None}, {"key_until": {"$lte": now}}]}
        found = step.space.jobs.find({**query, **free}, session=step.session, hint="ended")
        return jobs_of(list(found.sort("finished_at", 1).limit(limit)))
