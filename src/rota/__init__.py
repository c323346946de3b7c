"""Rota: a job scheduler and background-job system for Python."""

from __future__ import annotations

from rota.app import App
from rota.engine.events import Event
from rota.engine.run import current_job
from rota.errors import (
    BadCron,
    BadCronField,
    BadDuration,
    BadInterval,
    BadName,
    BadOption,
    BadPayload,
    BadStoreUrl,
    BadTarget,
    BadTrigger,
    DuplicateName,
    JobFailed,
    JobNotFound,
    LeaseLost,
    LockHeld,
    LockLost,
    NaiveDatetime,
    NotFound,
    PayloadTooLarge,
    Refused,
    ResultTimeout,
    RotaError,
    ScheduleNotFound,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    TenantNotFound,
    TokenNotFound,
    UnknownTask,
    UnknownZone,
    UnlawfulMove,
    VersionConflict,
)
from rota.jobs import Job
from rota.model.retry import backoff
from rota.signals import Cancel, Retry, Snooze
from rota.tasks import Task
from rota.triggers import Caveat, Trigger, calendar, cron, every, once, trigger_from_text

__version__ = "0.1.0"

__all__ = [
    "App",
    "BadCron",
    "BadCronField",
    "BadDuration",
    "BadInterval",
    "BadName",
    "BadOption",
    "BadPayload",
    "BadStoreUrl",
    "BadTarget",
    "BadTrigger",
    "Cancel",
    "Caveat",
    "DuplicateName",
    "Event",
    "Job",
    "JobFailed",
    "JobNotFound",
    "LeaseLost",
    "LockHeld",
    "LockLost",
    "NaiveDatetime",
    "NotFound",
    "PayloadTooLarge",
    "Refused",
    "ResultTimeout",
    "Retry",
    "RotaError",
    "ScheduleNotFound",
    "SchemaMismatch",
    "Snooze",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TenantNotFound",
    "TokenNotFound",
    "Trigger",
    "UnknownTask",
    "UnknownZone",
    "UnlawfulMove",
    "VersionConflict",
    "backoff",
    "calendar",
    "cron",
    "current_job",
    "every",
    "once",
    "trigger_from_text",
]
