"""Rows and values: how jobs, schedules and occurrences are laid out in columns."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from rota.model.job import Job
from rota.model.lookahead import is_ahead
from rota.model.occurrence import Occurrence
from rota.model.schedule import Ahead, LastRun, Origin, Pause, Schedule, ScheduleSpec, pack_spec, unpack_spec
from rota.model.state import State

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = tuple[Any, ...]

JOB_COLUMNS = ", ".join(Job.__struct_fields__)  # of the view that shows jobs whole; it carries the fields' names
STATE_INDEX = Job.__struct_fields__.index("state")

# The row that is never updated; its number comes first.
RECORD = (
    "seq, created_at, key_until, fire_at, after_at, generation, priority, id, task, queue, schedule_id, made_by, "
    "payload"
)
record_of = attrgetter(*RECORD.split(", "))

# The row that says where a job stands.
TABLES = {
    State.QUEUED: "ready",
    State.SCHEDULED: "later",
    State.HELD: "held",
    State.RUNNING: "running",
    State.SUCCEEDED: "finished",
    State.FAILED: "finished",
    State.CANCELLED: "finished",
}
_PLACE = (
    "seq, run_at, queued_at, attempts, failures, deaths, lease_no, queue, key, waits_for, error, past, progress, slot, "
    "ahead"
)
_MORE = {
    "held": ", schedule_id",
    "running": ", started_at, lease_until, holder, cancel_reason",
    "finished": ", started_at, finished_at, state, holder, cancel_reason, result",
}
PLACES = {table: _PLACE + _MORE.get(table, "") for table in sorted(set(TABLES.values()))}
WRITTEN = {table: f"{columns}, rank{', is_ahead' if table == 'later' else ''}" for table, columns in PLACES.items()}
_places_of = {table: attrgetter(*columns.split(", ")) for table, columns in PLACES.items()}

SCHEDULE_COLUMNS = (
    "id, spec, origin, version, generation, created_at, updated_at, is_enabled, pause, next_at, fired_through, "
    "run_count, last, problem, tenant_pause, ahead"
)
FOUND_BY = "due_at, tenant, origin_name"
SCHEDULE_TYPES = (
    *("text", "text", "text", "bigint", "int", "bigint", "bigint", "boolean", "text", "bigint", "bigint", "bigint"),
    *("text", "text", "text", "text", "bigint", "text", "text"),
)  # of those, and of FOUND_BY
OCCURRENCE_COLUMNS = "schedule_id, through_at, after_at, count, outcome, reason"

_STATES = {state.value: state for state in State}
_encode = msgspec.json.encode
_decode_origin = msgspec.json.Decoder(Origin).decode
_decode_pause = msgspec.json.Decoder(Pause).decode
_decode_ahead = msgspec.json.Decoder(Ahead).decode
_decode_last = msgspec.json.Decoder(LastRun).decode


def text_of(text: str | None) -> str | None:
    """Text as PostgreSQL takes it: it has no place for the character NUL, so a sign for it is kept."""
    return text.replace("\x00", "\u2400") if text and "\x00" in text else text


def job_of(row: Row) -> Job:
    values = list(row)
    values[STATE_INDEX] = _STATES[values[STATE_INDEX]]
    return Job(*values)


def jobs_of(rows: Iterable[Row]) -> list[Job]:
    return [job_of(row) for row in rows]


def place_of(job: Job) -> Row:
    """The columns of WRITTEN for the table of the job's state."""
    place: Row = (*_places_of[TABLES[job.state]](job), -job.priority)
    return (*place, is_ahead(job)) if job.state is State.SCHEDULED else place


def schedule_of(row: Row) -> Schedule:
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


def _readable_schedule(row: Row) -> Schedule:
    return Schedule(
        id=row[0],
        spec=unpack_spec(row[1]),
        origin=_decode_origin(row[2]),
        version=row[3],
        generation=row[4],
        created_at=row[5],
        updated_at=row[6],
        is_enabled=row[7],
        pause=None if row[8] is None else _decode_pause(row[8]),
        next_at=row[9],
        fired_through=row[10],
        run_count=row[11],
        last=_decode_last(row[12]),
        problem=row[13],
        tenant_pause=None if row[14] is None else _decode_pause(row[14]),
        ahead=None if row[15] is None else _decode_ahead(row[15]),
    )


def row_of_schedule(schedule: Schedule) -> Row:
    """The columns of SCHEDULE_COLUMNS, then those of FOUND_BY."""
    return (
        schedule.id,
        pack_spec(schedule.spec).decode(),
        _encode(schedule.origin).decode(),
        schedule.version,
        schedule.generation,
        schedule.created_at,
        schedule.updated_at,
        schedule.is_enabled,
        packed(schedule.pause),
        schedule.next_at,
        schedule.fired_through,
        schedule.run_count,
        packed_last(schedule.last),
        text_of(schedule.problem),
        packed(schedule.tenant_pause),
        packed(schedule.ahead),
        schedule.due_at,
        text_of(schedule.spec.tenant),
        text_of(schedule.origin.name),
    )


def packed(value: Pause | Ahead | None) -> str | None:
    return None if value is None else _encode(value).decode()


def packed_last(last: LastRun) -> str:
    """As PostgreSQL can read it too: its JSON has no place for the character NUL either."""
    if last.error and "\x00" in last.error:
        last = msgspec.structs.replace(last, error=text_of(last.error))
    return _encode(last).decode()


def last_of(packed: str) -> LastRun:
    """What is known of a schedule's jobs; where that was spoiled by hand, nothing is."""
    try:
        return _decode_last(packed)
    except msgspec.MsgspecError:
        return LastRun()


def occurrence_of(row: Row) -> Occurrence:
    schedule_id, through_at, after_at, count, outcome, reason = row
    return Occurrence(
        schedule_id=schedule_id, after_at=after_at, through_at=through_at, count=count, outcome=outcome, reason=reason
    )


def row_of_occurrence(line: Occurrence) -> Row:
    return line.schedule_id, line.through_at, line.after_at, line.count, line.outcome, text_of(line.reason)
