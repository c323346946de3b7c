"""Converts between values and rows: jobs, their changes, and what a firing changes of a schedule.

The columns of a job carry the names of its fields, and every row is read and written by these names. A field that the
model adds needs a column in schema.sql and nothing here.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.jobs.job import Job, State
from rota.model.jobs.settle import Change
from rota.store.shared.sql_codec import SqlCodec, packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.schedules.schedule import Schedule
    from rota.store.contract import LogLine

    Row = tuple[Any, ...]

JOB_FIELDS = Job.__struct_fields__
JOB_COLUMNS = ", ".join(JOB_FIELDS)

# Of a scheduled job: whether it was created ahead and is yet to be decided, as the model's is_ahead says.
IS_AHEAD = "ahead IS NOT NULL AND lease_no = 0"

_STATES = {state.value: state for state in State}


# Jobs.


def job_of(row: Sequence[Any]) -> Job:
    """A row as a job; one that cannot be read is shown as failed, with the reason."""
    values = dict(zip(JOB_FIELDS, row, strict=True))
    stored = values["state"]
    values["state"] = state_of(stored)
    if stored not in _STATES:
        values["error"] = f"the stored job cannot be read: it has the state {stored!r}"
    return Job(**values)


def jobs_of(rows: Iterable[Row]) -> list[Job]:
    return [job_of(row) for row in rows]


def state_of(stored: str) -> State:
    """One that no version knows was written by hand: such a job is shown as failed."""
    return _STATES.get(stored, State.FAILED)


NEW_FIELDS = tuple(name for name in JOB_FIELDS if name != "seq")  # the database gives the position
_new_values = attrgetter(*NEW_FIELDS)


def row_of_new_job(job: Job) -> Row:
    """The values of NEW_FIELDS."""
    row: Row = _new_values(job)
    return row


# Most claimed jobs never ran before: a third of the columns is enough, and reading less is faster.
FRESH_FIELDS = ("id", "seq", "task", "payload", "queue", "priority", "created_at", "run_at", "lease_no")
FRESH_COLUMNS = ", ".join(FRESH_FIELDS)
CLAIMED_FIELDS = ("state", "started_at", "holder", "lease_until")  # what a claim sets


def _is_fresh() -> str:
    """A condition: all other fields have their defaults."""
    names = JOB_FIELDS[len(JOB_FIELDS) - len(Job.__struct_defaults__) :]
    others = {
        name: default
        for name, default in zip(names, Job.__struct_defaults__, strict=True)
        if name not in {*FRESH_FIELDS, *CLAIMED_FIELDS}
    }
    empty = [name for name, default in others.items() if default is None]
    others_set = [
        f"length({name}) = 0" if default == b"" else f"{name} = {default}"
        for name, default in others.items()
        if default is not None
    ]
    return " AND ".join([*others_set, f"coalesce({', '.join(empty)}) IS NULL"])


IS_FRESH = _is_fresh()


def fresh_job_of(row: Row, now: int, holder: str, lease_until: int) -> Job:
    """A job that was claimed for the first time."""
    job_id, seq, task, payload, queue, priority, created_at, run_at, lease_no, _ = row
    return Job(
        id=job_id,
        seq=seq,
        task=task,
        payload=payload,
        state=State.RUNNING,
        queue=queue,
        priority=priority,
        created_at=created_at,
        run_at=run_at,
        started_at=now,
        lease_no=lease_no,
        holder=holder,
        lease_until=lease_until,
    )


# Changes of jobs. What differs from the fields of a Change: a cancel request may stay, and the lease ends.

_PLAIN = tuple(
    name for name in Change.__struct_fields__ if name not in {"job", "cancel_reason", "is_removal", "ended_at"}
)
SET_CHANGE = (
    f"{', '.join(f'{name} = ?' for name in _PLAIN)}, holder = ?, "
    "cancel_reason = coalesce(?, CASE WHEN ? THEN cancel_reason END), lease_until = NULL, lease_boot = NULL"
)
_plain_values = attrgetter(*_PLAIN)


def row_of_change(change: Change) -> Row:
    """The values of SET_CHANGE."""
    holder = change.job.holder if change.state.is_final else None
    return (*_plain_values(change), holder, change.cancel_reason, change.keeps_cancel)


BARE_END = ("state", "finished_at", "attempts", "result")  # all that most ends set, beside the lease
_bare_values = attrgetter(*BARE_END)


def row_of_end(change: Change) -> Row:
    """The values of BARE_END."""
    row: Row = _bare_values(change)
    return row


# Schedules.

ADVANCED = ("version", "next_at", "fired_through", "run_count", "pause", "tenant_pause", "ahead", "last", "due_at")


CODEC = SqlCodec(no_tenant=None)  # of the tables that are as in every store with tables


def advanced_row(schedule: Schedule) -> Row:
    """The columns of ADVANCED: all that a firing changes."""
    return (
        schedule.version,
        schedule.next_at,
        schedule.fired_through,
        schedule.run_count,
        packed(schedule.pause),
        packed(schedule.tenant_pause),
        packed(schedule.ahead),
        CODEC.packed_last(schedule.last),
        schedule.due_at,
    )


def row_of_log_line(line: LogLine) -> Row:
    return line.job_id, line.number, line.at, line.level, line.text


def numbers_of(stored: str) -> list[int]:
    """The numbers of a minute."""
    return msgspec.json.decode(stored, type=list[int])
