"""Renews leases, finds expired ones, requests cancels and stores progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.jobs.job import State
from rota.store.contract import Extended
from rota.store.redis.codec import fence_of, job_of, pairs_of, snapshots_of
from rota.store.redis.upkeep import fail_unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.redis.guarded_write import GuardedWriter


class Leases:
    """What concerns running jobs and their holders."""

    def __init__(self, writer: GuardedWriter) -> None:
        self._writer = writer
        self._connection = writer.connection

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: int | None
    ) -> Extended:
        reply = self._connection.call(
            "extend",
            verb="extend" if leases else None,
            now=now,
            holder=holder,
            ids=[job_id for job_id, _ in leases],
            fences=[fence_of(lease_no, holder) for _, lease_no in leases],
            lease_for=lease_for,
        )
        lost, cancels = reply.body
        reasons = {job_id.decode(): reason.decode() for job_id, reason in pairs_of(cancels)}
        return Extended(now=reply.now, lost=[job_id.decode() for job_id in lost], cancels=reasons)

    def expired_jobs(self, limit: int, now: int | None) -> list[Job]:
        """Running jobs whose lease has expired; those that cannot be read are failed at once."""
        reply = self._connection.call("expired", now=now, limit=limit)
        jobs: list[Job] = []
        for job_id, snapshot in snapshots_of(reply.body).items():
            job = job_of(job_id, snapshot) if snapshot is not None else None
            if job is not None and job.state is State.RUNNING:
                jobs.append(job)
            elif job is not None and snapshot is not None:
                fail_unreadable(self._writer, job, snapshot.record, reply.now)
        return jobs

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        if reports:
            self._writer.write(
                *(["PROGRESS", job_id, fence_of(number, holder), text] for job_id, number, text in reports)
            )

    def request_cancels(self, ids: Sequence[str], reason: str) -> list[str]:
        asked = self._connection.call("cancel", ids=list(ids), reason=reason or "cancelled").body
        return [job_id.decode() for job_id in asked]
