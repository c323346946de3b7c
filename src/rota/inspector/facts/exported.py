"""Defines a schedule as `rota export` writes it and `rota import rota` reads it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from rota.errors import BadPayload
from rota.model.jobs.payload import Call, unpack_call
from rota.model.micros import datetime_of, optional_datetime, span_text

if TYPE_CHECKING:
    from rota.model.schedules.schedule import Origin, Schedule
    from rota.model.secrets.redaction import Redaction

FORMAT = 1  # of the file; rises when a reader of older ones would misunderstand it


class ExportedSchedule(Struct, kw_only=True, omit_defaults=True):
    """A schedule as its author and its operators defined it; fields that were not set are left out."""

    trigger: str  # its compact text form, which the next Rota reads back
    tz: str
    task: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    retries: int | None = None
    timeout: str | None = None
    queue: str
    priority: int
    key: str | None = None  # the unique key of its jobs
    key_for: str | None = None
    overlap: str
    catchup: str
    catchup_limit: int
    grace: str
    jitter: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    day_bounds: list[str] = []  # which of start and end were given as local days
    max_runs: int | None = None
    run_on_start: bool = False
    lookahead: str | None = None
    tenant: str | None = None
    follows: dict[str, str | int] = {}  # fields above that the tenant sets, each with its value if the tenant does not
    sync: dict[str, Any] | None = None  # the collection that its jobs keep in sync
    enabled: bool
    paused: dict[str, Any] | None = None
    description: str = ""
    origin: dict[str, str]
    retired: bool = False
    created_at: datetime
    run_count: int
    problem: str | None = None  # why it cannot be evaluated, if it cannot


def exported(schedule: Schedule, hidden: Redaction) -> ExportedSchedule:
    spec = schedule.spec
    call, problem = _call_of(schedule, hidden)
    return ExportedSchedule(
        trigger=spec.trigger,
        tz=spec.tz,
        task=spec.task,
        args=call.args,
        kwargs=call.kwargs,
        meta=call.meta,
        retries=call.retries,
        timeout=span_text(call.timeout) if call.timeout else None,
        queue=spec.queue,
        priority=spec.priority,
        key=spec.key or None,
        key_for=span_text(spec.key_for) if spec.key_for else None,
        overlap=spec.overlap,
        catchup=spec.catchup,
        catchup_limit=spec.catchup_limit,
        grace=span_text(spec.grace),
        jitter=span_text(spec.jitter) if spec.jitter else None,
        start=optional_datetime(spec.start),
        end=optional_datetime(spec.end),
        day_bounds=list(spec.day_bounds),
        max_runs=spec.max_runs,
        run_on_start=spec.run_on_start,
        lookahead=span_text(spec.lookahead) if spec.lookahead else None,
        tenant=spec.tenant or None,
        follows=spec.follows,
        sync=None if spec.sync is None else msgspec.structs.asdict(spec.sync),
        enabled=schedule.is_enabled,
        paused=_pause_of(schedule),
        description=spec.description,
        origin=_origin_of(schedule.origin),
        retired=schedule.origin.is_retired,
        created_at=datetime_of(schedule.created_at),
        run_count=schedule.runs,
        problem=schedule.problem or problem,
    )


def _pause_of(schedule: Schedule) -> dict[str, Any] | None:
    pause = schedule.pause
    return None if pause is None else {"reason": pause.reason, "by": pause.by, "until": optional_datetime(pause.until)}


def _origin_of(origin: Origin) -> dict[str, str]:
    moved = {"zone": origin.zone} if origin.zone else {}
    return {"kind": origin.kind, "app": origin.app, "version": origin.version, **moved}


def _call_of(schedule: Schedule, hidden: Redaction) -> tuple[Call, str | None]:
    """Its call. A call that cannot be read is reported, and the others are exported."""
    try:
        return hidden.shown(unpack_call(schedule.spec.payload.encode())), None
    except BadPayload as err:
        return Call(), str(err)
