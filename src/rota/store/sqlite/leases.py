"""Renews leases, finds jobs whose lease has expired, and keeps what is said to and by running jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.store.contract import Extended
from rota.store.sqlite import clock
from rota.store.sqlite.codec import JOB_COLUMNS, jobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job
    from rota.store.sqlite.changing import Changer
    from rota.store.sqlite.transaction import Transactions


class Leases:
    """One namespace's leases, which go by a clock that nobody can set (`clock.lease_now`)."""

    def __init__(self, namespace: str, transactions: Transactions, changer: Changer) -> None:
        self._transactions = transactions
        self._changer = changer
        self._name = f"{namespace}_job"

    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: int | None
    ) -> Extended:
        lost = self._renew(holder, leases, lease_for, now) if leases else []
        with self._transactions.read() as connection:
            rows = connection.execute(
                f"SELECT id, cancel_reason FROM {self._name} "
                "WHERE state = 'running' AND holder = ? AND cancel_reason IS NOT NULL",
                (holder,),
            )
            return Extended(now=clock.at(now), lost=lost, cancels=dict(rows.fetchall()))

    def _renew(self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, now: int | None) -> list[str]:
        """Renew exactly these leases; the ids of those that are lost."""
        lease_at, boot = clock.lease_now(now)
        query = (
            f"UPDATE {self._name} SET lease_until = ?, lease_boot = ? "
            "WHERE id = ? AND state = 'running' AND lease_no = ? AND holder = ?"
        )
        with self._transactions.write("extend") as tx:
            return [
                job_id
                for job_id, lease_no in leases
                if not tx.connection.execute(query, (lease_at + lease_for, boot, job_id, lease_no, holder)).rowcount
            ]

    def expired_jobs(self, limit: int, now: int | None) -> list[Job]:
        with self._transactions.read() as connection:
            rows = connection.execute(
                f"SELECT {JOB_COLUMNS} FROM {self._name} WHERE state = 'running' "
                "AND (lease_until <= ? OR lease_boot <> ?) ORDER BY lease_until LIMIT ?",
                (*clock.lease_now(now), limit),
            )
            return jobs_of(rows)

    def request_cancels(self, ids: Sequence[str], reason: str) -> list[str]:
        with self._transactions.write("cancel") as tx:
            return self._changer.ask_to_stop(tx, ids, reason)

    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        rows = [(text, job_id, lease_no, holder) for job_id, lease_no, text in reports]
        with self._transactions.write("progress") as tx:
            tx.connection.executemany(
                f"UPDATE {self._name} SET progress = ? "
                "WHERE id = ? AND state = 'running' AND lease_no = ? AND holder = ?",
                rows,
            )
