"""Shows a task of a collection to callers: one run, and its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.model.collection import collection_of
from rota.model.micros import datetime_of, optional_datetime
from rota.model.sync import level_of, status_of

if TYPE_CHECKING:
    from rota.model.jobs.job import Job


class SyncTask:
    """A task as it was when it was read. Its id is that of its job, also for app.jobs."""

    def __init__(self, record: Job, *, existed: bool = False) -> None:
        self.record = record
        self.existed = existed  # it was waiting or running already when it was requested
        self.id = record.id
        self.source, self.collection = collection_of(record) or ("", "")
        self.priority = level_of(record)
        self.status = status_of(record)
        self.created_at = datetime_of(record.created_at)
        self.started_at = optional_datetime(record.started_at)
        self.finished_at = optional_datetime(record.finished_at)
        self.attempts = record.attempts

    @property
    def error(self) -> str:
        """Why it failed or was cancelled, or the error of its last attempt; empty if there was none."""
        return self.record.error or self.record.cancel_reason or ""

    def __repr__(self) -> str:
        return f"<task {self.id} {self.status}>"
