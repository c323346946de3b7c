"""Fires schedules that each just add a job which is ready now, a whole batch by one call of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from rota.errors import StoreError
from rota.failpoints import reach
from rota.model.jobs.job import State, accept
from rota.model.schedules.schedule import LastRun
from rota.store.contract import Fired
from rota.store.postgres.codec import CODEC, NEW_JOB_COLUMNS, new_job_columns
from rota.store.postgres.transaction import function_call
from rota.store.shared.batching import number_plain
from rota.store.shared.placing import advanced
from rota.store.shared.sql_codec import packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.model.schedules.firing import Firing
    from rota.store.postgres.connection import Database

# What the server raises if an occurrence has its job already, or if a row was made unreadable by hand.
BLOCKED = (psycopg.errors.UniqueViolation, psycopg.DataError)
_NOT_KNOWN = LastRun()  # so that only what a firing says of the last run is sent
_FIRE = function_call("fire", 13 + NEW_JOB_COLUMNS)


def fire(database: Database, firings: Sequence[Firing], now: int | None) -> list[Fired] | None:
    """None, and nothing is written, if one of them needs the ordinary path."""
    if number_plain(firings) < len(firings):
        return None
    at = database.estimated_now() if now is None else now
    jobs = [accept(firing.shots[0].job, at) for firing in firings]
    if any(job.state is not State.QUEUED for job in jobs):
        return None
    columns = [*_schedule_columns(firings, at), *new_job_columns(jobs)]
    reach("fire.before_commit")
    try:
        rows = database.call(lambda tx: tx.call(_FIRE, (at, now is None, tx.counter_slot, *columns)))
    except StoreError as err:
        if isinstance(err.__cause__, BLOCKED):
            return None
        raise
    match rows[0][0]:
        case "fired":
            reach("fire.after_commit")
            database.notifier.notify("jobs")
            return [Fired(schedule_id=job.schedule_id or "", is_accepted=True, jobs=[job.id]) for job in jobs]
        case "outdated":
            return [Fired(schedule_id=firing.schedule.id, is_accepted=False) for firing in firings]
        case "clock":
            database.clock.forget()
    return None  # blocked, or sealed: the ordinary path says what to do


def _schedule_columns(firings: Sequence[Firing], at: int) -> list[list[Any]]:
    """The schedules before and after, by id: all transactions lock them in that order."""
    in_order = sorted(firings, key=lambda firing: firing.schedule.id)
    after = [
        advanced(firing, msgspec.structs.replace(firing.schedule, last=_NOT_KNOWN), [firing.shots[0].job.id], at)
        for firing in in_order
    ]
    return [
        [schedule.id for schedule in after],
        [firing.schedule.version for firing in in_order],
        [schedule.created_at for schedule in after],
        [schedule.version for schedule in after],
        [schedule.next_at for schedule in after],
        [schedule.due_at for schedule in after],
        [schedule.fired_through for schedule in after],
        [schedule.run_count for schedule in after],
        [packed(schedule.ahead) for schedule in after],
        [CODEC.packed_last(schedule.last) for schedule in after],
    ]
