"""The codec of PostgreSQL names every field that is stored: a new field of a value fails here until it has a column."""

from __future__ import annotations

from rota.model.jobs.job import Job, State
from rota.model.schedules.schedule import Schedule
from rota.store.postgres import codec
from rota.store.shared.sql_codec import SCHEDULE_TYPES


def test_every_field_of_a_job_has_a_column():
    assert set(codec.JOB_FIELDS) == set(Job.__struct_fields__)


def test_every_field_of_a_schedule_has_a_column():
    indexes = {"due_at", "tenant", "origin_name"}
    assert set(SCHEDULE_TYPES) - indexes == set(Schedule.__struct_fields__)


def test_a_claimed_job_has_each_column_in_its_field():
    row = tuple(f"{name}?" if name != "queued_at" else None for name in codec.CLAIMED)
    job = codec.claimed_job(row, "worker", 7, 9)
    assert {name: getattr(job, name) for name in codec.CLAIMED} == dict(zip(codec.CLAIMED, row, strict=True))
    assert (job.state, job.holder, job.started_at, job.lease_until) == (State.RUNNING, "worker", 7, 9)
    assert (job.finished_at, job.cancel_reason, job.result, job.progress) == (None, None, None, None)
