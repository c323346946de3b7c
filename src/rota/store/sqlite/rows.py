"""Rows and values: how jobs, schedules and occurrences are laid out in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.job import Job
from rota.model.occurrence import Occurrence
from rota.model.schedule import Ahead, LastRun, Origin, Pause, Schedule, ScheduleSpec, pack_spec, unpack_spec
from rota.model.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable

JOB_FIELDS = Job.__struct_fields__
JOB_COLUMNS = ", ".join(JOB_FIELDS)  # the table's columns carry the fields' names
STATE_INDEX = JOB_FIELDS.index("state")

# Most claimed jobs have nothing behind them: of those a third of the columns tells all, and reading less is quicker.
FRESH_COLUMNS = "id, seq, task, payload, queue, priority, created_at, run_at, lease_no"
IS_FRESH = (
    "attempts = 0 AND failures = 0 AND deaths = 0 AND length(past) = 0 AND key_until = 0 AND generation = 0 "
    "AND coalesce(key, schedule_id, fire_at, after_at, made_by, waits_for, queued_at, finished_at, cancel_reason, "
    "error, result, progress, slot, ahead) IS NULL"
)

# Of a scheduled job: whether it was made ahead and is yet to be judged, as the model's is_ahead says.
IS_AHEAD = "ahead IS NOT NULL AND lease_no = 0"

SCHEDULE_COLUMNS = (
    "id, spec, origin, version, generation, created_at, updated_at, is_enabled, pause, next_at, fired_through, "
    "run_count, last, problem, tenant_pause, ahead"
)
FOUND_BY = "due_at, tenant, origin_name"
OCCURRENCE_COLUMNS = "schedule_id, through_at, after_at, count, outcome, reason"

_STATES = {state.value: state for state in State}
_encode = msgspec.json.encode
_decode_origin = msgspec.json.Decoder(Origin).decode
_decode_pause = msgspec.json.Decoder(Pause).decode
_decode_ahead = msgspec.json.Decoder(Ahead).decode
_decode_last = msgspec.json.Decoder(LastRun).decode


def job_of(row: tuple[Any, ...]) -> Job:
    """A row as a job; one that cannot be read is shown as failed, with the reason."""
    values = list(row)
    stored = values[STATE_INDEX]
    values[STATE_INDEX] = state_of(stored)
    job = Job(*values)
    if stored in _STATES:
        return job
    return msgspec.structs.replace(job, error=f"the stored job cannot be read: it has the state {stored!r}")


def state_of(stored: str) -> State:
    """One that no version knows was written by hand: such a job is shown as failed."""
    return _STATES.get(stored, State.FAILED)


def fresh_job_of(row: tuple[Any, ...], now: int, holder: str, lease_until: int) -> Job:
    """A job that was claimed for the first time."""
    job_id, seq, task, payload, queue, priority, created_at, run_at, lease_no, _ = row
    return Job(
        job_id,
        seq,
        task,
        payload,
        State.RUNNING,
        queue,
        priority,
        created_at,
        run_at,
        started_at=now,
        lease_no=lease_no,
        holder=holder,
        lease_until=lease_until,
    )


def jobs_of(rows: Iterable[tuple[Any, ...]]) -> list[Job]:
    return [job_of(row) for row in rows]


def row_of_job(job: Job) -> tuple[Any, ...]:
    return msgspec.structs.astuple(job)


def schedule_of(row: tuple[Any, ...]) -> Schedule:
    """A row as a schedule; one that cannot be read is shown with the reason, and is never due."""
    try:
        return _readable_schedule(row)
    except (msgspec.MsgspecError, TypeError, ValueError) as err:
        return Schedule(
            id=str(row[0]),
            spec=ScheduleSpec(trigger="", task="unreadable"),
            version=row[3],
            created_at=row[5],
            updated_at=row[6],
            fired_through=row[10],
            problem=f"the stored schedule cannot be read: {err}",
        )


def _readable_schedule(row: tuple[Any, ...]) -> Schedule:
    return Schedule(
        id=row[0],
        spec=unpack_spec(row[1]),
        origin=_decode_origin(row[2]),
        version=row[3],
        generation=row[4],
        created_at=row[5],
        updated_at=row[6],
        is_enabled=bool(row[7]),
        pause=None if row[8] is None else _decode_pause(row[8]),
        next_at=row[9],
        fired_through=row[10],
        run_count=row[11],
        last=_decode_last(row[12]),
        problem=row[13],
        tenant_pause=None if row[14] is None else _decode_pause(row[14]),
        ahead=None if row[15] is None else _decode_ahead(row[15]),
    )


def row_of_schedule(schedule: Schedule) -> tuple[Any, ...]:
    """The columns of SCHEDULE_COLUMNS, then those of FOUND_BY."""
    return (
        schedule.id,
        pack_spec(schedule.spec).decode(),
        _encode(schedule.origin).decode(),
        schedule.version,
        schedule.generation,
        schedule.created_at,
        schedule.updated_at,
        int(schedule.is_enabled),
        _packed(schedule.pause),
        schedule.next_at,
        schedule.fired_through,
        schedule.run_count,
        packed_last(schedule.last),
        schedule.problem,
        _packed(schedule.tenant_pause),
        _packed(schedule.ahead),
        schedule.due_at,
        schedule.spec.tenant or None,
        schedule.origin.name,
    )


ADVANCED = ("version", "next_at", "fired_through", "run_count", "pause", "tenant_pause", "ahead", "last", "due_at")


def advanced_row(schedule: Schedule) -> tuple[Any, ...]:
    """The columns of ADVANCED: all that a firing changes."""
    return (
        schedule.version,
        schedule.next_at,
        schedule.fired_through,
        schedule.run_count,
        _packed(schedule.pause),
        _packed(schedule.tenant_pause),
        _packed(schedule.ahead),
        packed_last(schedule.last),
        schedule.due_at,
    )


def _packed(value: Pause | Ahead | None) -> str | None:
    return None if value is None else _encode(value).decode()


def packed_last(last: LastRun) -> str:
    return _encode(last).decode()


def last_of(packed: str) -> LastRun:
    return _decode_last(packed)


def occurrence_of(row: tuple[Any, ...]) -> Occurrence:
    schedule_id, through_at, after_at, count, outcome, reason = row
    return Occurrence(
        schedule_id=schedule_id, after_at=after_at, through_at=through_at, count=count, outcome=outcome, reason=reason
    )


def row_of_occurrence(line: Occurrence) -> tuple[Any, ...]:
    return line.schedule_id, line.through_at, line.after_at, line.count, line.outcome, line.reason
