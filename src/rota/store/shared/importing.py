"""What every store does with records of another store before it writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from rota.model.entry import Entry
from rota.model.jobs.job import State
from rota.model.schedules.occurrence import Occurrence
from rota.store.contract import LockRecord, LogLine, QueueRecord

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from rota.model.jobs.job import Job
    from rota.store.contract import Record

Kind = TypeVar("Kind")


def of_kind(records: Iterable[Record], kind: type[Kind]) -> list[Kind]:
    return [record for record in records if isinstance(record, kind)]


def each_once(records: Iterable[Record]) -> list[Record]:
    """The records without those that one load has twice: no store may count them twice."""
    return list({_identity(record): record for record in records}.values())


def _identity(record: Record) -> tuple[object, ...]:
    match record:
        case Occurrence():
            return Occurrence, record.schedule_id, record.through_at
        case LogLine():
            return LogLine, record.job_id, record.number
        case Entry():
            return Entry, record.kind, record.name
        case QueueRecord() | LockRecord():
            return type(record), record.name
        case _:
            return type(record), record.id


def imported(job: Job) -> Job:
    """A job as it is taken from another store. Its position is yet to be given. The lease of a running one has expired:
    its worker is on the other store."""
    return msgspec.structs.replace(job, seq=0, lease_until=0 if job.state is State.RUNNING else None)


def fresh_jobs(jobs: Iterable[Job], known: Container[str]) -> list[Job]:
    """The jobs that are not there yet, as they are taken."""
    return [imported(job) for job in jobs if job.id not in known]
