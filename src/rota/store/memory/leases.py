"""Renews leases, finds and rescues jobs whose lease has expired, and keeps the progress of running jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rota.model.jobs.job import State
from rota.store.contract import Extended
from rota.store.memory.changing import Changer
from rota.store.shared.matching import has_expired, is_running, may_rescue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.model.jobs.settle import Change
    from rota.store.contract import Refusal


class Leases(Changer):
    """Leases of running jobs."""

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        with self._lock:
            at = self._at(now)
            lost = [job_id for job_id, lease_no in leases if not self._extend(job_id, lease_no, holder, at + lease_for)]
            asked = {
                job.id: job.cancel_reason
                for job in self._jobs.values()
                if job.state is State.RUNNING and job.holder == holder and job.cancel_reason
            }
            return Extended(now=at, lost=lost, cancels=asked)

    def expired_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        with self._lock:
            at = self._at(now)
            expired = [job for job in self._jobs.values() if has_expired(job, at)]
            return sorted(expired, key=lambda job: job.lease_until or 0)[:limit]

    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        at = self._at(now)
        return self._decided(changes, at, lambda change, job: may_rescue(change, job, at))

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        with self._lock:
            for job_id, lease_no, text in reports:
                job = self._jobs.get(job_id)
                if job is not None and is_running(job) and (job.lease_no, job.holder) == (lease_no, holder):
                    self._put(msgspec.structs.replace(job, progress=text))

    def _extend(self, job_id: str, lease_no: int, holder: str, until: int) -> bool:
        job = self._jobs.get(job_id)
        if job is None or job.state is not State.RUNNING or (job.lease_no, job.holder) != (lease_no, holder):
            return False
        self._put(msgspec.structs.replace(job, lease_until=until))
        return True
