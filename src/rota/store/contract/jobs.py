"""What a store does with jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.job import Job, NewJob
    from rota.model.settle import Change
    from rota.store.contract.values import Added, Exchange, Exchanged, Extended, Features, JobFilter, Page, Refusal


class JobVerbs(ABC):
    """Jobs: accepted, exchanged with workers, rescued, changed by hand, shown."""

    features: Features

    @abstractmethod
    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        """Accept jobs, all or none. Where a key is taken, the live job's id comes back instead."""

    @abstractmethod
    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        """Settle some jobs and claim some, in one step. Claiming first makes due jobs of these queues ready.

        A due job that was made ahead (`is_ahead`) is judged then: it becomes what the model's `judge` says, given its
        schedule's policy (skip, where the schedule is gone), its live job and the last held one, or goes and leaves a
        skip. That is one step of its own or part of the claim's; two claims never judge one job twice.
        """

    @abstractmethod
    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        """Renew exactly these (job, lease_no); also says which of the holder's jobs were asked to stop."""

    @abstractmethod
    def lapsed_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        """Running jobs whose lease has run out."""

    @abstractmethod
    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        """Apply what was decided about lapsed jobs, where their lease still is the lapsed one."""

    @abstractmethod
    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        """Apply decisions made by hand, where the jobs still are what was decided on."""

    @abstractmethod
    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        """Ask running jobs to stop; says which of them are running.

        The reason is kept with the job. A success that is settled later keeps it (`Change.keeps_cancel`), although its
        worker may not have heard of it: its history says that the cancel came too late.
        """

    @abstractmethod
    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        """Keep how far running jobs are: (job, lease_no, text); what the holder no longer owns is left alone."""

    @abstractmethod
    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        """Remove jobs that have ended; their occurrences stay. Says which were removed."""

    @abstractmethod
    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        """Those of the jobs that exist, in the order asked for."""

    @abstractmethod
    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        """Jobs, newest first."""

    # Inside the caller's own transaction, where Features.enqueues_in_transactions says so.

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        """Accept jobs if and when the caller's transaction commits."""
        raise self._no_transactions(transaction, jobs)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        """End a job with the caller's transaction; False where the lease was lost."""
        raise self._no_transactions(transaction, holder, change)

    def _no_transactions(self, *_: object) -> Refused:
        kind = self.features.kind
        return Refused(f"the {kind} store has no transactions that a caller could share; use SQLite or PostgreSQL")
