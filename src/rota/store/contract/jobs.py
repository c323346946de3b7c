"""Defines what a store does with jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rota.errors import Refused
from rota.store.contract.values import LARGEST_BATCH, MOST_COUNTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.jobs.job import Job, NewJob
    from rota.model.jobs.settle import Change
    from rota.store.contract.values import (
        Added,
        Exchange,
        Exchanged,
        Extended,
        Failure,
        Features,
        JobFilter,
        Page,
        Refusal,
    )


class JobVerbs(ABC):
    """Jobs: accepted, exchanged with workers, rescued, changed by hand, shown."""

    features: Features

    @abstractmethod
    def add_jobs(self, jobs: Sequence[NewJob], *, now: int | None = None) -> list[Added]:
        """Accept jobs, all or none. If a key is taken, the result has the id of the job that holds it."""

    @abstractmethod
    def exchange(self, ask: Exchange, *, now: int | None = None) -> Exchanged:
        """Settle jobs and claim jobs, in one step. A claim first makes due jobs of these queues ready.

        One claim makes at most MOST_PROMOTED due jobs ready, and decides on as many lookahead jobs. The limit is
        for all its queues together, and the earliest due come first; of those that are due at one instant, any.

        A due lookahead job (`is_ahead`) is decided on then, by the model's `decide_due`: given its
        schedule's policy (skip, if the schedule is gone), its live job and the last held one, it becomes ready or
        held, or it is deleted and leaves a skip. That is one step of its own or part of the claim's. Two claims never
        decide on one job twice.

        If an idle worker that has a listener claims nothing, the store may claim one job for it when that is added, as
        this call would have done. The listener wakes and has the job, or else the worker's next exchange returns it.
        """

    @abstractmethod
    def extend_leases(
        self, holder: str, leases: Sequence[tuple[str, int]], lease_for: int, *, now: int | None = None
    ) -> Extended:
        """Renew exactly these (job, lease_no). The result also names the holder's jobs that were asked to stop."""

    @abstractmethod
    def expired_jobs(self, limit: int, *, now: int | None = None) -> list[Job]:
        """Running jobs whose lease has expired."""

    @abstractmethod
    def rescue_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        """Apply decisions about jobs with an expired lease, if they still have that lease."""

    @abstractmethod
    def change_jobs(self, changes: Sequence[Change], *, now: int | None = None) -> list[Refusal]:
        """Apply changes made by hand to the jobs that still are what was decided on."""

    @abstractmethod
    def request_cancels(self, ids: Sequence[str], reason: str, *, now: int | None = None) -> list[str]:
        """Ask running jobs to stop. Returns the ids of those that are running.

        The reason is kept with the job. A success that is settled later keeps it (`Change.keeps_cancel`), although its
        worker may not know of it: its history says that the cancel came too late.
        """

    @abstractmethod
    def record_progress(self, holder: str, reports: Sequence[tuple[str, int, str]]) -> None:
        """Record the progress of running jobs: (job, lease_no, text). Jobs that the holder no longer owns stay as they
        are."""

    @abstractmethod
    def delete_jobs(self, ids: Sequence[str], *, now: int | None = None) -> list[str]:
        """Delete jobs that have ended; their occurrences stay. Returns the ids of the deleted ones."""

    @abstractmethod
    def get_jobs(self, ids: Sequence[str]) -> list[Job]:
        """The jobs of these ids that exist, in the requested order."""

    @abstractmethod
    def list_jobs(self, where: JobFilter, *, cursor: str | None = None, limit: int = 50) -> Page[Job]:
        """Jobs, newest first."""

    @abstractmethod
    def count_jobs(self, where: JobFilter, *, limit: int = MOST_COUNTED) -> int:
        """How many jobs a list shows, counted up to a limit: that number means "so many or more"."""

    @abstractmethod
    def list_failures(self, since: int, *, limit: int = LARGEST_BATCH) -> list[Failure]:
        """The jobs that are failed now and became so at or after an instant, the last to fail first."""

    # Inside the caller's own transaction, where Features.enqueues_in_transactions says so.

    def add_jobs_in(self, transaction: object, jobs: Sequence[NewJob]) -> list[Added]:
        """Accept any number of jobs if and when the caller's transaction commits.

        If this raises, the transaction contains none of them. It goes on as it was, unless the database ended it.
        """
        raise self._no_transactions(transaction, jobs)

    def settle_in(self, transaction: object, holder: str, change: Change) -> bool:
        """End a job with the caller's transaction; False if the lease was lost."""
        raise self._no_transactions(transaction, holder, change)

    def _no_transactions(self, *_: object) -> Refused:
        kind = self.features.kind
        return Refused(
            f"the {kind} store has no transactions that a caller could share; enqueue after your commit instead, for "
            "example in transaction.on_commit() or an after_commit event, or keep the jobs in your SQLite file or "
            "PostgreSQL database"
        )
