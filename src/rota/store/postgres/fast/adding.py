"""Adds jobs that have no key and wait for nothing by one call of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from rota.errors import StoreError
from rota.failpoints import reach
from rota.model.jobs.job import NewJob, accept, can_use_fast_path
from rota.store.contract import Added
from rota.store.postgres.codec import NEW_JOB_COLUMNS, new_job_columns, one_job_values, plain_job_columns
from rota.store.postgres.transaction import function_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.store.postgres.connection import Database

_ADD_JOB = function_call("add_job", 9)
_ADD_JOBS = function_call("add_jobs", 2 + NEW_JOB_COLUMNS)


def add(database: Database, jobs: Sequence[NewJob], now: int | None) -> list[Added] | None:
    """None, and nothing is written, if a job needs the ordinary path, one of them exists, or the store is sealed."""
    if any(new.key or new.slot or new.waits_for or new.ahead is not None for new in jobs):
        return None
    statement, at, values = _call(database, jobs, now)
    reach("add.before_commit")
    try:
        ((is_added,),) = database.call(lambda tx: tx.call(statement, (at, tx.counter_slot, *values)))
    except StoreError as err:
        if isinstance(err.__cause__, psycopg.errors.UniqueViolation):
            return None
        raise
    if not is_added:
        return None
    reach("add.after_commit")
    database.notifier.notify("jobs")
    return [Added(id=new.id) for new in jobs]


def _call(database: Database, jobs: Sequence[NewJob], now: int | None) -> tuple[str, int | None, list[Any]]:
    """The function to call, and when the jobs are accepted: plain ones need no time, as the server takes its own."""
    is_one = len(jobs) == 1 and jobs[0].schedule_id is None
    if all(map(can_use_fast_path, jobs)):
        return (_ADD_JOB, now, one_job_values(jobs[0])) if is_one else (_ADD_JOBS, now, plain_job_columns(jobs))
    at = database.estimated_now() if now is None else now
    accepted = [accept(new, at) for new in jobs]
    return (_ADD_JOB, at, one_job_values(accepted[0])) if is_one else (_ADD_JOBS, at, new_job_columns(accepted))
