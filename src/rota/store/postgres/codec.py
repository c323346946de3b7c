"""Converts between values and rows. Only this module knows which column keeps which field."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rota.model.jobs.job import Job, State
from rota.model.schedules.lookahead import is_ahead
from rota.store.shared.sql_codec import SqlCodec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rota.model.jobs.job import NewJob
    from rota.model.jobs.settle import Change

Row = tuple[Any, ...]

# A job's row that is never updated.
RECORD = {
    **dict.fromkeys(("seq", "created_at", "key_until", "fire_at", "after_at"), "bigint"),
    "generation": "integer",
    "priority": "smallint",
    **dict.fromkeys(("id", "task", "queue", "schedule_id", "made_by"), "text"),
    "payload": "bytea",
}
# The row in the table of its state.
STATE_ROW = {
    **dict.fromkeys(("seq", "run_at", "queued_at", "started_at", "finished_at", "lease_until"), "bigint"),
    **dict.fromkeys(("attempts", "failures", "deaths", "lease_no"), "integer"),
    **dict.fromkeys(("queue", "key", "slot", "ahead", "waits_for", "holder"), "text"),
    **dict.fromkeys(("cancel_reason", "error", "progress"), "text"),
    **dict.fromkeys(("past", "result"), "bytea"),
}
STATE_TYPES = {**STATE_ROW, "rank": "smallint", "is_ahead": "boolean", "state": "text", "schedule_id": "text"}
TABLES = {
    State.QUEUED: "ready",
    State.SCHEDULED: "later",
    State.HELD: "held",
    State.RUNNING: "running",
    State.SUCCEEDED: "finished",
    State.FAILED: "finished",
    State.CANCELLED: "finished",
}
JOB_FIELDS = tuple(dict.fromkeys((*RECORD, "state", *STATE_ROW)))
CLAIMED = (  # in the order of what the server's `exchange` returns
    *("id", "seq", "task", "payload", "queue", "priority", "created_at", "run_at", "key", "key_until", "schedule_id"),
    *("fire_at", "after_at", "generation", "made_by", "waits_for", "queued_at", "attempts", "failures", "deaths"),
    *("lease_no", "error", "past", "slot", "ahead"),
)
JOB_COLUMNS = ", ".join(JOB_FIELDS)  # of the view that shows whole jobs
record_row = attrgetter(*RECORD)
_state_row = attrgetter(*STATE_ROW)

_STATES = {state.value: state for state in State}


def text_of(text: str | None) -> str | None:
    """Text as PostgreSQL accepts it: it cannot store the character NUL, so a visible sign replaces it."""
    return text.replace("\x00", "\u2400") if text and "\x00" in text else text


CODEC = SqlCodec(text_of, no_tenant="")  # of the tables that are as in every store with tables


# Arrays.


def array_literal(values: Sequence[Any]) -> str:
    """A list of numbers, texts, bytes or booleans (or None) as PostgreSQL reads it. The driver is slower at this."""
    if set(map(type, values)) == {int}:
        return f"{{{','.join(map(str, values))}}}"
    return f"{{{','.join(map(_array_item, values))}}}"


def _array_item(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"') if "\\" in value or '"' in value else value
        return f'"{escaped}"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return str(value)  # a boolean is read as such


def once(values: list[Any]) -> list[Any] | None:
    """A column of which one element may stand for all: that one if all are equal, None if there are none."""
    if values.count(values[0]) < len(values):
        return values
    return None if values[0] is None else values[:1]


def filled(values: list[Any]) -> list[Any] | None:
    """A column, or None if it has no values."""
    return None if values.count(None) == len(values) else values


# Jobs.


def job_from(row: Row) -> Job:
    """A job from the columns of JOB_COLUMNS."""
    fields = dict(zip(JOB_FIELDS, row, strict=True))
    fields["state"] = _STATES[fields["state"]]
    return Job(**fields)


def jobs_from(rows: Iterable[Row]) -> list[Job]:
    return [job_from(row) for row in rows]


def claimed_job(row: Row, holder: str, now: int, lease_until: int) -> Job:
    """A job that the server's `exchange` has claimed; the row leaves out what all claimed jobs have in common."""
    fields = dict(zip(CLAIMED, row, strict=True))
    started_at = max(now, fields["queued_at"] or 0)
    return Job(**fields, state=State.RUNNING, started_at=started_at, holder=holder, lease_until=lease_until)


def state_row(job: Job) -> Row:
    """The columns of STATE_TYPES."""
    is_held, is_final = job.state is State.HELD, job.state.is_final
    more = (job.state.value if is_final else None, job.schedule_id if is_held else None)
    return (*_state_row(job), -job.priority, is_ahead(job) or None, *more)


NEW_JOB_COLUMNS = 15  # of the server's functions that add jobs


def one_job_values(job: Job | NewJob) -> list[Any]:
    """A job that has no key and belongs to no schedule, as the server's `add_job` takes it."""
    own = [job.id, job.task, job.payload, job.queue, job.priority]
    if isinstance(job, Job):
        return [*own, job.run_at if job.state is State.SCHEDULED else None, job.past]
    return [*own, None, b""]


def plain_job_columns(jobs: Sequence[Job] | Sequence[NewJob]) -> list[list[Any] | None]:
    """Jobs with nothing but the fields that all jobs have, as the server's functions take them."""
    own: list[list[Any] | None] = [
        [job.id for job in jobs],
        once([job.task for job in jobs]),
        once([job.payload for job in jobs]),
        once([job.queue for job in jobs]),
        once([job.priority for job in jobs]),
    ]
    return own + [None] * (NEW_JOB_COLUMNS - len(own))


def new_job_columns(jobs: Sequence[Job]) -> list[list[Any] | None]:
    """Jobs that are ready or scheduled, and wait for no other job, as the server's functions take them."""
    return [
        *plain_job_columns(jobs)[:5],
        filled([job.run_at if job.state is State.SCHEDULED else None for job in jobs]),
        once([job.past for job in jobs]),
        filled([job.schedule_id for job in jobs]),
        filled([job.fire_at for job in jobs]),
        filled([job.after_at for job in jobs]),
        once([job.generation for job in jobs]),
        filled([job.made_by for job in jobs]),
        filled([job.slot for job in jobs]),
        filled([job.key for job in jobs]),
        filled([job.key_until or None for job in jobs]),
    ]


SETTLED_COLUMNS = 16  # of the server's `exchange`


def settled_columns(changes: Sequence[Change]) -> list[Any]:
    """Changes that only end their jobs, as the server's `exchange` takes them; then the jobs whose keys are free,
    a value that means nothing by now, and how many of each queue ended in which way."""
    if not changes:
        return [None] * SETTLED_COLUMNS
    usual = [
        once([change.job.lease_no for change in changes]),
        once([change.state.value for change in changes]),
        once([change.finished_at for change in changes]),
        once([change.attempts for change in changes]),
    ]
    rare = [
        filled([None if change.failures == change.job.failures else change.failures for change in changes]),
        filled([text_of(change.error) for change in changes]),
        filled([text_of(change.cancel_reason) for change in changes]),
        filled([change.result for change in changes]),
        filled([change.key for change in changes]),
    ]
    freed = [change.job.seq for change in changes if change.job.key is not None and change.key is None]
    ended = Counter([(change.job.queue, change.state) for change in changes])
    queues = list(dict.fromkeys(queue for queue, _ in ended))
    counts = [[ended[queue, state] for queue in queues] for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED)]
    return [[change.job.seq for change in changes], *usual, *rare, freed or None, None, queues, *counts]
