"""Holds the data of the memory store and the steps that its verbs share, in the place of a connection."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from rota.clock import utc_micros
from rota.store.contract import Store
from rota.store.memory.ledger import Ledger
from rota.store.memory.locks import Locks
from rota.store.memory.logs import Logs
from rota.store.shared.changing import Counts
from rota.store.shared.notify import LocalNotifier

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rota.model.audit_record import AuditRecord
    from rota.model.entry import Entry
    from rota.model.jobs.job import Job
    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import Node, Seal


class Database(Store):
    """Everything in this process. Each verb holds the lock, so each is one atomic step."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._notifier = LocalNotifier()
        self._jobs: dict[str, Job] = {}
        self._made: set[tuple[str, int]] = set()  # occurrences that have a job
        self._keys: dict[str, str] = {}  # unique key -> the id of the job that has it
        self._slots: dict[str, str] = {}  # schedule -> the id of the live job in its overlap slot
        self._schedules: dict[str, Schedule] = {}
        self._entries: dict[tuple[str, str], Entry] = {}  # by kind and name
        self._audit: dict[str, AuditRecord] = {}
        self._ledger = Ledger()
        self._paused: set[str] = set()
        self._nodes: dict[str, Node] = {}
        self._logs = Logs()
        self._locks = Locks()
        self._counts = Counts()
        self._series: dict[int, list[int]] = {}  # by minute
        self._seal: Seal | None = None
        self._seq = 0

    def now(self) -> int:
        return utc_micros()

    # The lock is held.

    def _check_open(self) -> None:
        """A sealed store accepts no work."""
        if self._seal is not None:
            raise self._seal.refusal(self.describe())

    def _at(self, now: int | None) -> int:
        return self.now() if now is None else now

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _insert(self, job: Job) -> None:
        self._counts.add(job.queue, job.state)
        if job.schedule_id is not None and job.fire_at is not None:
            self._made.add((job.schedule_id, job.fire_at))
        self._put(job)

    def _put(self, job: Job) -> None:
        before = self._jobs.get(job.id)
        if before is not None:
            self._free(before)
        if job.key:
            self._keys[job.key] = job.id
        if job.slot:
            self._slots[job.slot] = job.id
        self._jobs[job.id] = job

    def _free(self, job: Job) -> None:
        """Free the job's key and slot."""
        if job.key:
            self._keys.pop(job.key, None)
        if job.slot:
            self._slots.pop(job.slot, None)

    def _keep_audit(self, audit_records: Iterable[AuditRecord]) -> None:
        for audit in audit_records:
            self._audit.setdefault(audit.id, audit)

    def _drop(self, job: Job) -> None:
        """Delete a job without an entry in the ledger."""
        self._made.discard((job.schedule_id or "", job.fire_at or 0))
        self._free(job)
        self._logs.forget(job.id)
        del self._jobs[job.id]
