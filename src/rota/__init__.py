"""Rota: a job scheduler and background-job system for Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.app import App
    from rota.client.walking import walk
    from rota.engine.events import Event
    from rota.engine.executors.run import current_job
    from rota.errors import (
        BadCron,
        BadCronField,
        BadDuration,
        BadInterval,
        BadName,
        BadOption,
        BadPayload,
        BadResult,
        BadStoreUrl,
        BadTarget,
        BadTrigger,
        CollectionNotFound,
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
        SourceNotFound,
        StoreError,
        StoreUnavailable,
        TaskNotFound,
        TenantNotFound,
        TokenNotFound,
        UnknownTask,
        UnknownZone,
        UnlawfulMove,
        VersionConflict,
    )
    from rota.model.redaction import Secret
    from rota.model.retry import backoff
    from rota.tasks.job import Job
    from rota.tasks.signals import Cancel, Retry, Snooze
    from rota.tasks.task import Task
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
    "BadResult",
    "BadStoreUrl",
    "BadTarget",
    "BadTrigger",
    "Cancel",
    "Caveat",
    "CollectionNotFound",
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
    "Secret",
    "Snooze",
    "SourceNotFound",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskNotFound",
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
    "walk",
]

_PUBLIC = {  # module -> what it gives; loaded when it is first asked for, so that a command hears signals before that
    "rota.app": "App",
    "rota.client.walking": "walk",
    "rota.engine.events": "Event",
    "rota.engine.executors.run": "current_job",
    "rota.errors": (
        "BadCron BadCronField BadDuration BadInterval BadName BadOption BadPayload BadResult BadStoreUrl "
        "BadTarget BadTrigger CollectionNotFound DuplicateName JobFailed JobNotFound LeaseLost LockHeld LockLost "
        "NaiveDatetime NotFound PayloadTooLarge Refused ResultTimeout RotaError ScheduleNotFound "
        "SchemaMismatch SourceNotFound StoreError StoreUnavailable TaskNotFound TenantNotFound TokenNotFound "
        "UnknownTask UnknownZone UnlawfulMove VersionConflict"
    ),
    "rota.tasks.job": "Job",
    "rota.model.redaction": "Secret",
    "rota.model.retry": "backoff",
    "rota.tasks.signals": "Cancel Retry Snooze",
    "rota.tasks.task": "Task",
    "rota.triggers": "Caveat Trigger calendar cron every once trigger_from_text",
}
_WHERE = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_MODULES = {module.split(".")[1] for module in _PUBLIC}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"rota.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'rota' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
