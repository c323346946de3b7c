"""Prunes records whose retention is over, and recounts."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rota.model.jobs.series import first_kept, last_kept
from rota.store.contract import Pruned
from rota.store.memory.changing import Changer
from rota.store.shared.pruning import Ended, jobs_to_prune
from rota.store.shared.stepwise import remove_job

if TYPE_CHECKING:
    from rota.model.jobs.job import State
    from rota.store.contract import Retention


class Upkeep(Changer):
    """Keeps the store small and its counters exact."""

    def recount(self) -> dict[str, int]:
        with self._lock:
            return self._counts.differences((job.queue, job.state) for job in self._jobs.values())

    def prune(self, retention: Retention, limit: int, *, now: int | None = None) -> Pruned:
        with self._lock:
            self._check_open()
            at = self._at(now)
            old = self._old_jobs(retention, limit, at)
            for job_id in old:
                remove_job(self._jobs[job_id], self._changes(at))
            entries = self._ledger.prune(retention, at)
            kept = range(first_kept(at), last_kept(at) + 1)
            self._series = {minute: runs for minute, runs in self._series.items() if minute in kept}
            silent = [node.id for node in self._nodes.values() if node.beat_at <= at - retention.nodes_for]
            for node_id in silent:
                del self._nodes[node_id]
            records = self._prune_audit(at - retention.audit_for, limit)
            return Pruned(jobs=len(old), occurrences=entries, nodes=len(silent), audit_records=records)

    def _prune_audit(self, until: int, limit: int) -> int:
        old = sorted((record.at, record.id) for record in self._audit.values() if record.at <= until)[:limit]
        for _, record_id in old:
            del self._audit[record_id]
        return len(old)

    def _old_jobs(self, retention: Retention, limit: int, now: int) -> list[str]:
        ended = [job for job in self._jobs.values() if job.finished_at]
        free = sorted(Ended(job.finished_at or 0, job.seq, job.id) for job in ended if job.key_until <= now)

        def find(state: State, through: int, most: int) -> list[Ended]:
            found = (one for one in free if one.finished_at <= through and self._jobs[one.id].state is state)
            return list(islice(found, most))

        return jobs_to_prune(retention, limit, now, len(ended), find)
