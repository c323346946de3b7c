"""Renews leases, finds expired ones, and keeps cancel requests and progress of running jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.failpoints import reach
from rota.store.contract import Extended
from rota.store.postgres.codec import JOB_COLUMNS, jobs_from, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.postgres.connection import Database

# A job that ends in a transaction of its task is passed over: to wait for it could cost the other leases.
_EXTEND = (
    "WITH clock AS (SELECT coalesce(%s::bigint, {ns}.micros()) AS now), mine AS MATERIALIZED ("
    "SELECT r.seq, w.id FROM unnest(%s::text[], %s::int[]) AS w (id, lease_no) "
    "JOIN {ns}.job j ON j.id = w.id JOIN {ns}.running r ON r.seq = j.seq AND r.lease_no = w.lease_no "
    "WHERE r.holder = %s), "
    "free AS MATERIALIZED (SELECT r.seq FROM {ns}.running r WHERE r.seq = ANY(ARRAY(SELECT seq FROM mine)) "
    "ORDER BY r.seq FOR UPDATE SKIP LOCKED), "
    "renewed AS (UPDATE {ns}.running r SET lease_until = (SELECT now FROM clock) + %s FROM free f "
    "WHERE r.seq = f.seq) "
    "SELECT (SELECT now FROM clock), (SELECT array_agg(id) FROM mine), "
    "(SELECT array_agg(ARRAY[j.id, r.cancel_reason]) FROM {ns}.running r JOIN {ns}.job j ON j.seq = r.seq "
    "WHERE r.holder = %s AND r.cancel_reason IS NOT NULL)"
)
_EXPIRED = (
    f"SELECT {JOB_COLUMNS} FROM {{ns}}.jobs WHERE seq = ANY(ARRAY(SELECT r.seq FROM {{ns}}.running r "
    "WHERE r.lease_until <= coalesce(%s::bigint, {ns}.micros()) ORDER BY r.lease_until LIMIT %s)) "
    "AND state = 'running' ORDER BY lease_until"
)
_REQUEST_CANCELS = (
    "WITH mine AS MATERIALIZED (SELECT r.seq, j.id FROM {ns}.job j JOIN {ns}.running r ON r.seq = j.seq "
    "WHERE j.id = ANY(%s) ORDER BY r.seq FOR UPDATE OF r) UPDATE {ns}.running r "
    "SET cancel_reason = coalesce(r.cancel_reason, %s) FROM mine m WHERE r.seq = m.seq RETURNING m.id"
)
_RECORD_PROGRESS = (
    "WITH mine AS MATERIALIZED (SELECT r.seq, w.text FROM unnest(%s::text[], %s::int[], %s::text[]) "
    "AS w (id, lease_no, text) JOIN {ns}.job j ON j.id = w.id JOIN {ns}.running r ON r.seq = j.seq "
    "AND r.lease_no = w.lease_no WHERE r.holder = %s ORDER BY r.seq FOR UPDATE OF r SKIP LOCKED) "
    "UPDATE {ns}.running r SET progress = m.text FROM mine m WHERE r.seq = m.seq"
)


class Leases:
    """One namespace's leases, each verb one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: int | None
    ) -> Extended:
        """Renew exactly these leases; also says which of the holder's jobs were asked to stop."""
        ids, numbers = [job_id for job_id, _ in leases], [lease_no for _, lease_no in leases]
        reach("extend.before_commit")
        ((at, kept, asked),) = self._database.select(_EXTEND, (now, ids, numbers, holder, lease_for, holder))
        reach("extend.after_commit")
        held = set(kept or ())
        return Extended(now=at, lost=[job_id for job_id in ids if job_id not in held], cancels=dict(asked or ()))

    def expired_jobs(self, limit: int, now: int | None) -> list[Job]:
        return jobs_from(self._database.select(_EXPIRED, (now, limit)))

    def request_cancels(self, ids: Sequence[str], reason: str) -> list[str]:
        """Ask running jobs to stop; the first reason stays."""
        rows = self._database.select(_REQUEST_CANCELS, (list(ids), text_of(reason) or "cancelled"))
        asked = {job_id for (job_id,) in rows}
        return [job_id for job_id in ids if job_id in asked]

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        """Keep the last report of each running job; leave jobs alone that the holder no longer owns."""
        if not reports:
            return
        last = {(job_id, lease_no): text_of(text) for job_id, lease_no, text in reports}
        ids, numbers = [job_id for job_id, _ in last], [lease_no for _, lease_no in last]
        self._database.call(lambda tx: tx.run(_RECORD_PROGRESS, (ids, numbers, list(last.values()), holder)))
