"""Defines the handle that `enqueue` returns: one job, read from the store when a caller first asks for a field."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from rota.errors import JobFailed, JobNotFound, StoreUnavailable
from rota.model.jobs.job import State
from rota.model.jobs.payload import unpack_call
from rota.model.micros import datetime_of, optional_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from rota.model.jobs.job import Job as JobRecord

R_co = TypeVar("R_co", covariant=True)


class JobReader(Protocol):
    """Reads the job of a handle."""

    def read(self, job_id: str) -> JobRecord: ...

    def wait(self, job_id: str, timeout: str | timedelta | float | None = None) -> JobRecord: ...

    def decode(self, task_name: str, packed: bytes | None, /) -> Any: ...


class InTransaction:
    """Reads jobs that were enqueued with `tx=`: until the caller commits, no other connection can see them."""

    def __init__(self, jobs: JobReader) -> None:
        self._jobs = jobs
        self.decode = jobs.decode

    def read(self, job_id: str) -> JobRecord:
        with _uncommitted(job_id):
            return self._jobs.read(job_id)

    def wait(self, job_id: str, timeout: str | timedelta | float | None = None) -> JobRecord:
        with _uncommitted(job_id):
            self._jobs.read(job_id)  # apart from the wait, during which a job may be pruned
        return self._jobs.wait(job_id, timeout)


@contextmanager
def _uncommitted(job_id: str) -> Iterator[None]:
    part = f"job {job_id} is part of a transaction (tx=) that"
    try:
        yield
    except JobNotFound as err:
        raise JobNotFound(
            f"{part} is not committed yet or was rolled back; read the job after your commit. "
            "If you did commit, the job may have been pruned"
        ) from err
    except StoreUnavailable as err:
        raise StoreUnavailable(
            f"{part} may not be committed yet, and the store cannot be read now; read the job after your commit. "
            f"If you did commit: {err}"
        ) from err


class Job(Generic[R_co]):
    """One request to run a task. Fields are read from the store when first used; refresh() reads them again."""

    __slots__ = ("_jobs", "_record", "existed", "id")

    def __init__(self, jobs: JobReader, job_id: str, *, existed: bool = False, record: JobRecord | None = None) -> None:
        self._jobs = jobs
        self._record = record
        self.id = job_id
        self.existed = existed  # its key was in use: this is the job that had it

    @property
    def record(self) -> JobRecord:
        """The job as the store keeps it."""
        if self._record is None:
            self._record = self._jobs.read(self.id)
        return self._record

    def refresh(self) -> Job[R_co]:
        """Read it again, and return itself."""
        self._record = self._jobs.read(self.id)
        return self

    @property
    def state(self) -> str:
        """scheduled, queued, running, succeeded, failed, cancelled or held."""
        return self.record.state.value

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.record.task

    @property
    def queue(self) -> str:
        """The queue that it waits in."""
        return self.record.queue

    @property
    def priority(self) -> int:
        """From -100 to 100, higher first."""
        return self.record.priority

    @property
    def key(self) -> str | None:
        """The unique key: while the job is live, no other job has it."""
        return self.record.key

    @property
    def args(self) -> list[Any]:
        """Its arguments by position, as JSON gives them back."""
        return unpack_call(self.record.payload).args

    @property
    def kwargs(self) -> dict[str, Any]:
        """Its arguments by name, as JSON gives them back."""
        return unpack_call(self.record.payload).kwargs

    @property
    def schedule_id(self) -> str | None:
        """The schedule that made it, if one did."""
        return self.record.schedule_id

    @property
    def occurrence(self) -> datetime | None:
        """The nominal time that it stands for, if a schedule made it."""
        return optional_datetime(self.record.fire_at)

    @property
    def created_at(self) -> datetime:
        """When the store accepted it."""
        return datetime_of(self.record.created_at)

    @property
    def run_at(self) -> datetime:
        """The job does not run before this time."""
        return datetime_of(self.record.run_at)

    @property
    def started_at(self) -> datetime | None:
        """When its last attempt began."""
        return optional_datetime(self.record.started_at)

    @property
    def finished_at(self) -> datetime | None:
        """When it ended for good."""
        return optional_datetime(self.record.finished_at)

    @property
    def attempts(self) -> int:
        """How many attempts have ended; deaths of workers are not among them."""
        return self.record.attempts

    @property
    def progress(self) -> str | None:
        """The progress that its last attempt reported: "3/10"."""
        return self.record.progress

    @property
    def error(self) -> str | None:
        """The error of the last attempt: one line, then the traceback."""
        return self.record.error

    def result(self, timeout: str | timedelta | float | None = None) -> R_co:
        """The result of the task. Waits for it without a limit, or for a time: `"10s"`, or a number of seconds.

        JobFailed if the job has no result, ResultTimeout if it has none in time.
        """
        record = self._jobs.wait(self.id, timeout)
        self._record = record
        if record.state is not State.SUCCEEDED:
            why = record.error or record.cancel_reason or "no reason is known"
            raise JobFailed(f"job {self.id} ({record.task}) {record.state}: {why}")
        value: R_co = self._jobs.decode(record.task, record.result)
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        known = f" {self._record.task} {self._record.state}" if self._record else ""
        return f"<job {self.id}{known}>"
